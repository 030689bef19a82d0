//===- Collectives.cpp - Verifying exchanges of parts ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Local/Local.h"

using namespace mlir;
using namespace ax;
using sharding::StepKind;

namespace {

class CollectiveVerifier {
public:
  explicit CollectiveVerifier(LocalCollectiveOpInterface op)
      : op(op), mesh(getMesh(op)) {}

  LogicalResult verify();

private:
  LogicalResult verifyAxes();
  LogicalResult verifyDims(unsigned part);
  LogicalResult verifyTypes(unsigned part);
  LogicalResult verifyStart();
  InFlightDiagnostic fault() { return op->emitOpError(); }

  LocalCollectiveOpInterface op;
  sharding::Mesh mesh;
  /// Ranks that exchange with each other, if the mesh is known.
  std::optional<int64_t> numMembers;
};

} // namespace

LogicalResult CollectiveVerifier::verifyAxes() {
  if (mesh.getAxes().empty())
    return success();
  sharding::SubAxes axes = op.getMovedAxes().resolve(mesh);
  for (const sharding::SubAxis &axis : axes)
    if (!mesh.find(axis.axis) ||
        mesh.axisSize(axis.axis) % (axis.pre * axis.size))
      return fault() << "names an axis that the mesh lacks: "
                     << sharding::toString(axis, mesh);
  numMembers = sharding::numParts(axes);
  return success();
}

LogicalResult CollectiveVerifier::verifyDims(unsigned part) {
  int64_t rank = tensorType(op->getOperand(part)).getRank();
  for (int64_t dim : {op.getGatherDimOf(part), op.getScatterDimOf(part)})
    if (dim < -1 || dim >= rank)
      return fault() << "names dimension " << dim << " of "
                     << op->getOperand(part).getType();
  return success();
}

/// Checks each dimension: a part becomes all parts, all of it one part, or
/// nothing changes.
LogicalResult CollectiveVerifier::verifyTypes(unsigned part) {
  RankedTensorType from = tensorType(op->getOperand(part)),
                   to = tensorType(op->getResult(part));
  bool fits = from.getElementType() == to.getElementType() &&
              from.getRank() == to.getRank();
  int64_t gather = op.getGatherDimOf(part), scatter = op.getScatterDimOf(part);
  for (int64_t dim = 0; fits && dim < from.getRank(); ++dim) {
    int64_t before = from.getDimSize(dim), after = to.getDimSize(dim);
    if (dim == gather)
      fits = after >= before && (!numMembers || after <= before * *numMembers);
    else if (dim == scatter)
      fits = after <= before && (!numMembers || before <= after * *numMembers);
    else
      fits = before == after;
  }
  if (fits)
    return success();
  return fault() << "cannot make " << to << " of " << from;
}

LogicalResult CollectiveVerifier::verifyStart() {
  if (!op.isStarted())
    return success();
  if (op->getNumResults() != 1 ||
      !llvm::all_of(op->getUsers(), llvm::IsaPred<AwaitOp>))
    return fault() << "is started: it has one result, for axl.await alone";
  return success();
}

LogicalResult CollectiveVerifier::verify() {
  if (op->getNumOperands() == 0 || op->getNumOperands() != op->getNumResults())
    return fault() << "has " << op->getNumOperands() << " operands and "
                   << op->getNumResults()
                   << " results: each result is made of an operand";
  if (std::optional<ReduceOpKind> kind = op.getReduction();
      kind == ReduceOpKind::prod)
    return fault() << "multiplies: ranks add, or take the largest or smallest";
  if (failed(verifyAxes()))
    return failure();
  for (unsigned part = 0; part < op->getNumOperands(); ++part)
    if (failed(verifyDims(part)) || failed(verifyTypes(part)))
      return failure();
  for (Value operand : op->getOperands())
    if (tensorType(operand).getElementType() !=
        tensorType(op->getOperand(0)).getElementType())
      return fault() << "exchanges elements of two types";
  return verifyStart();
}

/// One for each operand.
static LogicalResult verifyCount(Operation *op, ArrayRef<int64_t> dims) {
  if (dims.size() == op->getNumOperands() &&
      llvm::all_of(dims, [](int64_t dim) { return dim >= 0; }))
    return success();
  return op->emitOpError("names ")
         << dims.size() << " dimensions for " << op->getNumOperands()
         << " operands, or one below 0";
}

static LogicalResult verifyCollective(LocalCollectiveOpInterface op) {
  return CollectiveVerifier(op).verify();
}

StepKind LocalAllReduceOp::getStepKind() { return StepKind::AllReduce; }
std::optional<ReduceOpKind> LocalAllReduceOp::getReduction() {
  return getKind();
}
LogicalResult LocalAllReduceOp::verify() { return verifyCollective(*this); }

StepKind LocalReduceScatterOp::getStepKind() { return StepKind::ReduceScatter; }
std::optional<ReduceOpKind> LocalReduceScatterOp::getReduction() {
  return getKind();
}
int64_t LocalReduceScatterOp::getScatterDimOf(unsigned part) {
  return getDims()[part];
}
LogicalResult LocalReduceScatterOp::verify() {
  return failure(failed(verifyCount(*this, getDims())) ||
                 failed(verifyCollective(*this)));
}

StepKind LocalAllGatherOp::getStepKind() { return StepKind::AllGather; }
int64_t LocalAllGatherOp::getGatherDimOf(unsigned part) {
  return getDims()[part];
}
LogicalResult LocalAllGatherOp::verify() {
  return failure(failed(verifyCount(*this, getDims())) ||
                 failed(verifyCollective(*this)));
}

StepKind LocalAllToAllOp::getStepKind() { return StepKind::AllToAll; }
int64_t LocalAllToAllOp::getGatherDimOf(unsigned) {
  return static_cast<int64_t>(getGatherDim());
}
int64_t LocalAllToAllOp::getScatterDimOf(unsigned) {
  return static_cast<int64_t>(getScatterDim());
}
LogicalResult LocalAllToAllOp::verify() {
  auto gather = static_cast<int64_t>(getGatherDim()),
       scatter = static_cast<int64_t>(getScatterDim());
  if (gather < 0 || scatter < 0 || gather == scatter)
    return emitOpError("gathers dimension ")
           << gather << " and scatters dimension " << scatter;
  return verifyCollective(*this);
}

StepKind LocalPermuteOp::getStepKind() { return StepKind::CollectivePermute; }
LogicalResult LocalPermuteOp::verify() {
  if (failed(verifyCollective(*this)))
    return failure();
  sharding::Mesh mesh = getMesh(*this);
  if (mesh.getAxes().empty())
    return success();
  sharding::SubAxes axes = getAxes().resolve(mesh);
  bool fits = static_cast<int64_t>(getSources().size()) == mesh.numRanks();
  for (int64_t rank = 0; fits && rank < mesh.numRanks(); ++rank)
    fits = llvm::is_contained(mesh.group(axes, rank), getSources()[rank]);
  if (fits)
    return success();
  return emitOpError("needs for each of ")
         << mesh.numRanks() << " ranks a source of its own group";
}

LogicalResult AwaitOp::verify() {
  auto started = getStarted().getDefiningOp<LocalCollectiveOpInterface>();
  if (!started || !started.isStarted())
    return emitOpError(
        "waits for a value that no collective with `start` gives");
  if (started->getOperand(0) != getSource())
    return emitOpError("holds another value than the exchange reads");
  return success();
}
