//===- BatchCheck.cpp - Batches that ranks and time can share -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "BatchCheck.h"
#include "ax/Dialect/MeshAxes.h"

using namespace mlir;
using namespace ax;

/// How the user asked for ranks that share the batch.
static std::string flagsOf(const sharding::Mesh &mesh) {
  int64_t data = mesh.axisSize(meshAxis::data),
          depth = mesh.axisSize(meshAxis::depth);
  std::string text;
  if (data > 1)
    text = "--dp=" + std::to_string(data);
  if (depth > 1)
    text += (text.empty() ? "a depth of " : " and a depth of ") +
            std::to_string(depth) + " in --tp";
  return text;
}

LogicalResult ax::checkBatch(ProgramOp program) {
  sharding::Mesh mesh = getMesh(program);
  if (mesh.numTimeSlices() > 1 &&
      llvm::none_of(llvm::seq<unsigned>(0, program.getNumArguments()),
                    [&](unsigned i) { return program.isBatched(i); }))
    return program.emitError("has no input that takes batches, and so no "
                             "micro-batches");
  int64_t ranks =
      mesh.axisSize(meshAxis::data) * mesh.axisSize(meshAxis::depth);
  // Other inputs of another size are whole on all of these ranks.
  bool isFirst = true;
  for (auto [i, type] : llvm::enumerate(program.getArgumentTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    if (tensor.getRank() == 0 || !program.isBatched(i))
      continue;
    int64_t size = tensor.getDimSize(0);
    if (std::exchange(isFirst, false) && size % ranks != 0)
      return program.emitError()
             << "takes a batch of " << size << " (input '"
             << program.getArgName(i) << "'), which is not divided by " << ranks
             << " ranks (" << flagsOf(mesh)
             << "): some would compute the same; choose a batch that " << ranks
             << " divides (--dim, --shape), or fewer ranks";
    for (StringRef axis : {meshAxis::data, meshAxis::depth})
      if (size % mesh.axisSize(axis.str()) == 0)
        size /= mesh.axisSize(axis.str());
    if (size % mesh.numTimeSlices() != 0)
      return program.emitError()
             << "takes a batch of " << tensor.getDimSize(0) << " (input '"
             << program.getArgName(i) << "'), which is not divided by "
             << mesh.numTimeSlices()
             << " micro-batches, and the ranks that share it";
  }
  return success();
}
