//===- SingleParameters.cpp - Parameters of one element -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Exporters write numbers of all kinds as initializers; one is a parameter
// where a layer takes it, and where the exporter says so.
//
//===----------------------------------------------------------------------===//

#include "Prepare.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace ax;
using namespace ax::import;

namespace {

class ParameterFinder {
public:
  explicit ParameterFinder(PreparedModel &model) : model(model) {}

  void run() {
    for (const auto &[name, kind] : model.kinds)
      if (kind == WeightKind::Parameter)
        take(name, /*leastRank=*/0);
    for (const onnx::NodeProto &node : model.proto.graph().node()) {
      const std::string &type = node.op_type();
      if (type == "Gemm" || type == "Conv" || type == "ConvTranspose") {
        if (node.input_size() > 2)
          take(node.input(2));
      } else if (type == "PRelu" && node.input_size() > 1) {
        take(node.input(1));
      } else if (type == "MatMul") {
        products[node.output(0)] = &node;
      } else if (type == "Add" && node.input_size() == 2) {
        for (int i : {0, 1})
          if (hasOneFeature(node.input(i)))
            take(node.input(1 - i));
      }
    }
  }

private:
  /// Layers have lists of parameters, also of one.
  void take(const std::string &name, size_t leastRank = 1) {
    auto found = model.numbers.find(name);
    if (found != model.numbers.end() && found->second.shape.size() >= leastRank)
      model.weights.insert(model.numbers.extract(found));
  }
  /// A product with a weight of one column.
  bool hasOneFeature(const std::string &value) const {
    auto product = products.find(value);
    if (product == products.end() || product->second->input_size() != 2)
      return false;
    auto weight = model.weights.find(product->second->input(1));
    return weight != model.weights.end() && !weight->second.shape.empty() &&
           weight->second.shape.back() == 1;
  }

  PreparedModel &model;
  llvm::StringMap<const onnx::NodeProto *> products;
};

} // namespace

/// Not one that an exporter made up for a number in the code (`onnx::Mul_3`,
/// `/fc/Constant_output_0`).
static bool isUsersName(llvm::StringRef name) {
  return !name.empty() && !llvm::isDigit(name.front()) &&
         name.find_first_of(":/") == llvm::StringRef::npos;
}

std::string ax::import::takeSingleParameters(PreparedModel &model) {
  ParameterFinder(model).run();
  std::string names;
  // What the exporter says of others, it would say of these.
  if (!model.kinds.empty())
    return names;
  for (const auto &[name, weight] : model.numbers)
    if (isUsersName(name))
      names += (names.empty() ? "" : ", ") + name;
  return names;
}
