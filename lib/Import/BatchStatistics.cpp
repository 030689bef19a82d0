//===- BatchStatistics.cpp - What BatchNormalization goes by --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "BatchStatistics.h"

#include "ax/Dialect/SampleDims.h"
#include "ax/Dialect/Tensors.h"
#include "ax/Support/Error.h"
#include "ax/Support/HostTensor.h"

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

/// Whether a node normalises by its batch. Until operator set 13 whoever asks
/// for statistics does.
static bool isByBatch(onnx::NodeProto &node, int opset) {
  if (opset < 14)
    return node.output_size() > 1;
  const onnx::AttributeProto *mode = findMode(node);
  return mode && mode->i();
}

static void setByBatch(onnx::NodeProto &node, bool byBatch, int opset) {
  if (opset >= 14) {
    onnx::AttributeProto *mode = findMode(node);
    if (!mode)
      mode = node.add_attribute();
    mode->set_name("training_mode");
    mode->set_type(onnx::AttributeProto::INT);
    mode->set_i(byBatch);
  }
  // The running statistics as they would become, and, until set 13, the
  // batch's.
  const char *statistics[] = {"", "running_mean", "running_variance", "mean",
                              "variance"};
  int count = !byBatch ? 1 : opset < 14 ? 5 : 3;
  while (node.output_size() > count)
    node.mutable_output()->RemoveLast();
  while (node.output_size() < count)
    node.add_output(node.output(0) + "/" + statistics[node.output_size()]);
}

llvm::Error ax::import::setBatchStatistics(onnx::GraphProto &graph, int opset,
                                           std::optional<bool> ofBatch,
                                           int64_t numParts,
                                           mlir::Location location) {
  int64_t byBatch = 0, byRunning = 0;
  for (onnx::NodeProto &node : *graph.mutable_node()) {
    if (node.op_type() != "BatchNormalization" || !node.domain().empty())
      continue;
    if (ofBatch)
      setByBatch(node, *ofBatch, opset);
    ++(isByBatch(node, opset) ? byBatch : byRunning);
  }
  if (ofBatch && byBatch + byRunning == 0)
    return makeError(
        ExitCode::Usage,
        "--batchnorm: the model has no BatchNormalization; exporters "
        "make it part of convolutions unless they are told not to");
  std::string train = "--batchnorm=train", parts;
  if (numParts > 1) {
    std::string number = std::to_string(numParts);
    train += ":" + number;
    parts = "each of " + number + " parts of ";
  }
  llvm::StringRef why = !ofBatch   ? "as the model was exported"
                        : *ofBatch ? llvm::StringRef(train)
                                   : "--batchnorm=frozen";
  if (byBatch)
    mlir::emitRemark(location)
        << byBatch << " BatchNormalization by the statistics of " << parts
        << "the batch (" << why
        << "); --batchnorm=frozen takes the running ones";
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

llvm::Error ax::import::checkBatchParts(ProgramOp program, int64_t numParts) {
  llvm::SmallVector<mlir::Operation *> cuts;
  llvm::SmallVector<mlir::Value> batches;
  for (mlir::Operation &op : program.getBody().front())
    if (op.removeAttr(kCutsBatch)) {
      cuts.push_back(&op);
      batches.push_back(op.getOperand(0));
    }
  if (cuts.empty())
    return llvm::Error::success();
  std::string flag = "--batchnorm=train:" + std::to_string(numParts);
  if (int64_t batch = program.getBatch().value_or(0); batch % numParts != 0)
    return makeError(ExitCode::Usage, flag + " does not divide the batch of " +
                                          std::to_string(batch));
  for (auto [cut, dim] :
       llvm::zip_equal(cuts, findPartDims(program, batches, numParts)))
    if (dim != 0)
      return makeErrorf(
          ExitCode::Usage,
          "node '{0}': {1} cuts the first dimension of [{2}], which does not "
          "count the samples of the batch: use --batchnorm=train or frozen",
          getNodeName(cut), flag,
          shapeToString(tensorType(cut->getOperand(0)).getShape()));
  return llvm::Error::success();
}
