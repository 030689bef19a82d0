//===- VerifyOps.cpp - Layouts of a stage obey rules ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A collective changes nothing but the layout, and an op whose layouts obey its
// rule computes the same whatever they are. So a stage in which all do computes
// what it would without any layout: removing, moving or changing a collective
// either breaks a rule or does no harm.
//
//===----------------------------------------------------------------------===//
#include "Verifier.h"

#include "ax/Cost/OpCost.h"
#include "ax/Dialect/Actions.h"
#include "ax/Dialect/Indexing.h"
#include "ax/Sharding/Digits.h"

#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;
using namespace ax;
using sharding::Layout;
using sharding::Mesh;

namespace {

class OpVerifier {
public:
  OpVerifier(Operation *op, const Mesh &mesh, bool isOnceAStep)
      : op(op), mesh(mesh), isOnceAStep(isOnceAStep) {}

  void verifyRule(ShardingRuleOpInterface ruled, plan::ObeyedRules &obeyed);
  void verifyCollective(CollectiveOpInterface collective);
  /// Stages are other ranks: no value of a stage is spread over them.
  void verifyNoPipe();
  void verifyNoSlices();

  InFlightDiagnostic fault() {
    InFlightDiagnostic diagnostic = op->emitOpError();
    if (StringRef node = getNodeName(op); !node.empty())
      diagnostic << "of node '" << node << "' ";
    return diagnostic;
  }

private:
  std::string text(const Layout &layout) const {
    return sharding::toString(layout, mesh);
  }
  std::vector<Layout> layoutsOf(ValueRange values) const {
    std::vector<Layout> layouts;
    for (Value value : values)
      layouts.push_back(getLayout(tensorType(value), mesh));
    return layouts;
  }
  void suggest(InFlightDiagnostic &diagnostic, const sharding::Rule &rule,
               const std::vector<Layout> &operands,
               const std::vector<Layout> &results);

  Operation *op;
  const Mesh &mesh;
  bool isOnceAStep;
};

} // namespace

/// The rule without one operand.
static sharding::Rule withoutOperand(sharding::Rule rule, int removed) {
  rule.operands.erase(rule.operands.begin() + removed);
  for (std::vector<int> &set : rule.linear) {
    set.erase(std::remove(set.begin(), set.end(), removed), set.end());
    for (int &operand : set)
      operand -= operand > removed;
  }
  return rule;
}

/// Which one operand, with which layout, would make the op right.
void OpVerifier::suggest(InFlightDiagnostic &diagnostic,
                         const sharding::Rule &rule,
                         const std::vector<Layout> &operands,
                         const std::vector<Layout> &results) {
  for (size_t i = 0; i < operands.size() && operands.size() > 1; ++i) {
    std::vector<Layout> others = operands;
    others.erase(others.begin() + i);
    auto inferred = sharding::inferAssignment(withoutOperand(rule, i), others,
                                              results, mesh);
    if (!inferred.assignment)
      continue;
    Layout wanted = sharding::operandLayout(rule, *inferred.assignment, i);
    std::vector<Layout> all = operands;
    all[i] = wanted;
    auto whole = sharding::inferAssignment(rule, all, results, mesh);
    if (!whole.assignment)
      continue;
    bool fits = true;
    for (size_t r = 0; r < results.size(); ++r)
      fits &= sharding::resultLayout(rule, *whole.assignment, r) == results[r];
    if (fits)
      diagnostic << "; operand " << i << " is " << text(operands[i])
                 << " and would have to be " << text(wanted);
  }
}

/// Whether layouts obey a rule depends on nothing else, so that of equal layers
/// one is proven.
void OpVerifier::verifyRule(ShardingRuleOpInterface ruled,
                            plan::ObeyedRules &obeyed) {
  sharding::Rule rule = ruled.getShardingRule();
  std::vector<int64_t> key = sharding::numbersOf(rule);
  for (TypeRange types :
       {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      key.push_back(reinterpret_cast<int64_t>(type.getAsOpaquePointer()));
  if (obeyed.count(key))
    return;
  std::vector<Layout> operands = layoutsOf(op->getOperands());
  std::vector<Layout> results = layoutsOf(op->getResults());
  auto inferred = sharding::inferAssignment(rule, operands, results, mesh);
  if (!inferred.assignment) {
    InFlightDiagnostic diagnostic = fault();
    diagnostic << "has layouts that do not fit together: " << inferred.fault;
    suggest(diagnostic, rule, operands, results);
    return;
  }
  bool obeys = true;
  for (size_t i = 0; i < results.size(); ++i) {
    Layout right = sharding::resultLayout(rule, *inferred.assignment, i);
    if (right == results[i])
      continue;
    obeys = false;
    InFlightDiagnostic diagnostic = fault();
    diagnostic << "has result " << i << " of layout " << text(results[i])
               << "; its operands give " << text(right);
    suggest(diagnostic, rule, operands, results);
  }
  if (obeys)
    obeyed.insert(std::move(key));
}

void OpVerifier::verifyCollective(CollectiveOpInterface collective) {
  if (!sharding::communicates(collective.getStepKind()))
    return;
  if (isOnceAStep && isReducedWhereKept(op, mesh))
    return;
  for (const sharding::SubAxis &axis : collective.getMovedAxes().resolve(mesh))
    if (mesh.isInTime(axis))
      fault() << "exchanges over '" << axis.axis
              << "', which is in time: micro-batches are not there at once";
}

void OpVerifier::verifyNoPipe() {
  for (Value value : op->getResults())
    for (const sharding::SubAxis &axis :
         getLayout(tensorType(value), mesh).usedAxes())
      if (axis.axis == meshAxis::pipe) {
        fault() << "has a result spread over '" << meshAxis::pipe
                << "'; values go between stages by ax.transfer only";
        return;
      }
}

/// What is done once a step works on sums over all micro-batches.
static bool isSliced(const Layout &layout, const Mesh &mesh) {
  return !inTime(layout.usedAxes(), mesh).empty() &&
         (!isReducedOverTime(layout, mesh) ||
          inTime(layout.usedAxes(), mesh) != inTime(layout.partial, mesh));
}

void OpVerifier::verifyNoSlices() {
  if (!isOnceAStep)
    return;
  for (const Layout &layout : layoutsOf(op->getResults()))
    if (isSliced(layout, mesh))
      fault() << "has a result " << text(layout)
              << ", but its list is done once a step, for no micro-batch";
}

std::optional<std::string>
plan::findHoldingFault(RankedTensorType type, const Mesh &mesh, bool inTime) {
  const Layout &layout = getLayout(type, mesh);
  if (!layout.partial.empty())
    return "is a partial " + std::string(toString(layout.partialKind)) +
           ": reduce it first";
  for (const sharding::SubAxis &axis : layout.usedAxes()) {
    if (axis.axis == meshAxis::pipe)
      return "is split over '" + axis.axis + "', whose ranks are other stages";
    if (!inTime && mesh.isInTime(axis))
      return "is split over '" + axis.axis +
             "', but is the same for every micro-batch";
  }
  return std::nullopt;
}

/// Why the bytes of a constant cannot be known.
static std::optional<std::string> findValueFault(ElementsAttr value) {
  if (isa<DenseElementsAttr>(value))
    return std::nullopt;
  if (isa<StoredAttr>(value))
    return "is in a file that was not read";
  auto resource = dyn_cast<DenseResourceElementsAttr>(value);
  if (!resource)
    return "is neither dense nor a resource";
  StringRef key = resource.getRawHandle().getKey();
  const AsmResourceBlob *blob = resource.getRawHandle().getBlob();
  if (!blob)
    return ("resource '" + key + "' has no bytes").str();
  auto type = cast<ShapedType>(value.getType());
  int64_t wanted =
      type.getNumElements() * cost::elementBytes(type.getElementType());
  auto given = static_cast<int64_t>(blob->getData().size());
  if (given != wanted)
    return ("resource '" + key + "' has " + Twine(given) + " bytes, not " +
            Twine(wanted))
        .str();
  return std::nullopt;
}

void plan::verifyOps(StageOp stage, const Mesh &mesh, ObeyedRules &obeyed) {
  auto kind = actionOf(stage);
  bool isOnceAStep = kind && kind->isOnceAStep();
  for (auto [i, operand] : llvm::enumerate(stage.getOperands()))
    if (const Layout &layout = getLayout(tensorType(operand), mesh);
        isOnceAStep && isSliced(layout, mesh))
      stage.emitOpError() << "takes operand " << i << " of layout "
                          << sharding::toString(layout, mesh)
                          << ", which is not that of all micro-batches "
                             "together, but is done once a step";
  for (Operation &op : stage.getBody().front()) {
    OpVerifier verifier(&op, mesh, isOnceAStep);
    // Loads and stores equal their state by their own check.
    if (isa<YieldOp, LoadOp, StoreOp>(op))
      continue;
    verifier.verifyNoPipe();
    verifier.verifyNoSlices();
    if (auto collective = dyn_cast<CollectiveOpInterface>(op))
      verifier.verifyCollective(collective);
    else if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op))
      verifier.verifyRule(ruled, obeyed);
    else if (!isa<WaitOp>(op))
      verifier.fault() << "does not belong in a stage";
    if (auto constant = dyn_cast<ConstantOp>(op))
      if (auto why = findValueFault(constant.getValue()))
        verifier.fault() << *why;
    if (std::optional<std::string> why = findIndexFault(&op))
      verifier.fault() << "has indices of which one cannot be: " << *why;
  }
}
