//===- SingleBiases.cpp - Biases of layers with one feature ---------------===//
//
// Exporters write numbers of all kinds as initializers; one is a parameter
// where a layer adds it.
//
//===----------------------------------------------------------------------===//

#include "Prepare.h"

#include "llvm/ADT/StringMap.h"

using namespace ax;
using namespace ax::import;

namespace {

class BiasFinder {
public:
  explicit BiasFinder(PreparedModel &model) : model(model) {}

  void run() {
    for (const onnx::NodeProto &node : model.proto.graph().node()) {
      const std::string &type = node.op_type();
      if (type == "Gemm" || type == "Conv" || type == "ConvTranspose") {
        if (node.input_size() > 2)
          take(node.input(2));
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
  void take(const std::string &name) {
    if (auto found = model.numbers.extract(name))
      model.weights.insert(std::move(found));
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

void ax::import::takeSingleBiases(PreparedModel &model) {
  BiasFinder(model).run();
}
