//===- FourBits.cpp - Where numbers of four bits may be -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "FourBits.h"

#include "Operators.h"
#include "Schemas.h"
#include "Types.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace ax;
using namespace ax::import;
using onnx::NodeProto;

namespace {

enum class Use { Refused, Read, Moved };

class FourBitChecker {
public:
  explicit FourBitChecker(const WeightMap &weights) {
    for (const auto &[name, weight] : weights)
      if (weight.fourBits)
        names.insert(name);
  }

  llvm::Error check(const onnx::GraphProto &graph);
  llvm::Error check(const onnx::FunctionProto &function);

private:
  llvm::Error checkNode(const NodeProto &node);
  llvm::Error checkOutput(const std::string &name);
  llvm::StringSet<> names;
};

} // namespace

static Use useOf(const NodeProto &node) {
  return llvm::StringSwitch<Use>(qualifiedName(node))
      .Cases({"DequantizeLinear", "com.microsoft.DequantizeLinear"}, Use::Read)
      .Cases({"Cast", "Shape", "Size"}, Use::Read)
      .Case("com.microsoft.GatherBlockQuantized", Use::Read)
      .Cases({"Flatten", "Identity", "Reshape", "Squeeze"}, Use::Moved)
      .Cases({"Transpose", "Unsqueeze"}, Use::Moved)
      .Default(Use::Refused);
}

llvm::Error FourBitChecker::checkNode(const NodeProto &node) {
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    if (node.op_type() == "Constant" && node.output_size() &&
        fourBitKind(attribute.t().data_type()))
      names.insert(node.output(0));
    if (attribute.has_g())
      if (llvm::Error error = check(attribute.g()))
        return error;
  }
  for (const std::string &input : node.input()) {
    if (!names.contains(input))
      continue;
    Use use = useOf(node);
    if (use == Use::Refused)
      return makeErrorf(ExitCode::Unsupported,
                        "node {0} ({1}) takes '{2}' of four bits, which is "
                        "not supported: these may be dequantised, cast and "
                        "moved",
                        describe(node), node.op_type(), input);
    if (use == Use::Moved)
      names.insert(node.output().begin(), node.output().end());
  }
  return llvm::Error::success();
}

llvm::Error FourBitChecker::checkOutput(const std::string &name) {
  if (!names.contains(name))
    return llvm::Error::success();
  return makeErrorf(ExitCode::Unsupported,
                    "output '{0}' is of four bits, which is not supported",
                    name);
}

llvm::Error FourBitChecker::check(const onnx::FunctionProto &function) {
  for (const NodeProto &node : function.node())
    if (llvm::Error error = checkNode(node))
      return error;
  for (const std::string &output : function.output())
    if (llvm::Error error = checkOutput(output))
      return error;
  return llvm::Error::success();
}

llvm::Error FourBitChecker::check(const onnx::GraphProto &graph) {
  for (const onnx::TensorProto &tensor : graph.initializer())
    if (fourBitKind(tensor.data_type()))
      names.insert(tensor.name());
  for (const NodeProto &node : graph.node())
    if (llvm::Error error = checkNode(node))
      return error;
  for (const onnx::ValueInfoProto &output : graph.output())
    if (llvm::Error error = checkOutput(output.name()))
      return error;
  return llvm::Error::success();
}

llvm::Error ax::import::checkFourBits(const onnx::ModelProto &model,
                                      const WeightMap &weights) {
  for (const onnx::FunctionProto &function : model.functions())
    if (llvm::Error error = FourBitChecker(WeightMap()).check(function))
      return error;
  return FourBitChecker(weights).check(model.graph());
}
