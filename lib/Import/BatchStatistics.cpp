//===- BatchStatistics.cpp - What BatchNormalization goes by --------------===//

#include "BatchStatistics.h"

#include "ax/Support/Error.h"

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"

using namespace ax;
using namespace ax::import;

/// Null when the node has none.
static onnx::AttributeProto *findMode(onnx::NodeProto &node) {
  auto &attributes = *node.mutable_attribute();
  auto mode = llvm::find_if(attributes, [](const auto &attribute) {
    return attribute.name() == "training_mode";
  });
  return mode == attributes.end() ? nullptr : &*mode;
}

static void setMode(onnx::NodeProto &node, bool ofBatch) {
  onnx::AttributeProto *mode = findMode(node);
  if (!mode)
    mode = node.add_attribute();
  mode->set_name("training_mode");
  mode->set_type(onnx::AttributeProto::INT);
  mode->set_i(ofBatch);
  // The running statistics as they would become.
  while (!ofBatch && node.output_size() > 1)
    node.mutable_output()->RemoveLast();
}

llvm::Error ax::import::setBatchStatistics(onnx::GraphProto &graph,
                                           std::optional<bool> ofBatch,
                                           mlir::Location location) {
  int64_t byBatch = 0, byRunning = 0;
  for (onnx::NodeProto &node : *graph.mutable_node()) {
    if (node.op_type() != "BatchNormalization" || !node.domain().empty())
      continue;
    if (ofBatch)
      setMode(node, *ofBatch);
    const onnx::AttributeProto *mode = findMode(node);
    ++(mode && mode->i() ? byBatch : byRunning);
  }
  if (ofBatch && byBatch + byRunning == 0)
    return makeError(
        ExitCode::Usage,
        "--batchnorm: the model has no BatchNormalization; exporters "
        "make it part of convolutions unless they are told not to");
  llvm::StringRef why = !ofBatch   ? "as the model was exported"
                        : *ofBatch ? "--batchnorm=train"
                                   : "--batchnorm=frozen";
  if (byBatch)
    mlir::emitRemark(location)
        << byBatch << " BatchNormalization by the statistics of the batch ("
        << why << "); --batchnorm=frozen takes the running ones";
  if (byRunning && ofBatch)
    mlir::emitRemark(location)
        << byRunning << " BatchNormalization by the running statistics (" << why
        << "); --batchnorm=train takes the batch's";
  else if (byRunning)
    mlir::emitWarning(location)
        << byRunning
        << " BatchNormalization by the running statistics, which stay as they "
           "are ("
        << why
        << "; torch's dynamo exporter also writes training mode so); "
           "--batchnorm=train takes the batch's, --batchnorm=frozen confirms "
           "it";
  return llvm::Error::success();
}
