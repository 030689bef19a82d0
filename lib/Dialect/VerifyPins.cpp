//===- VerifyPins.cpp - Pins and shardings fit what they stand on ---------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Dialect/Ax.h"
#include "ax/Dialect/Pins.h"
#include "ax/Dialect/PlanAttrs.h"

#include "llvm/ADT/Twine.h"

using namespace mlir;
using namespace ax;

/// Why `layout` is none of a tensor of `type`.
static std::optional<std::string> findLayoutFault(LayoutAttr layout, Type type,
                                                  const sharding::Mesh &mesh) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(type).getShape();
  if (layout.getNumDims() != static_cast<int64_t>(shape.size()))
    return "of the tensor's " + std::to_string(shape.size()) +
           " dimensions it names " + std::to_string(layout.getNumDims());
  return sharding::findFault(layout.resolve(shape, mesh), shape.vec(), mesh);
}

static std::optional<std::string> findFault(PinAttr pin, TypeRange results,
                                            const sharding::Mesh &mesh) {
  if (pin.getResult() >= results.size())
    return "there is no result " + std::to_string(pin.getResult());
  if (pin.getUser() && pin.getWeak())
    return "it is a user's, and so not weak";
  return findLayoutFault(pin.getLayout(), results[pin.getResult()], mesh);
}

static std::optional<std::string> findFault(FactorPinAttr pin, Operation *op,
                                            const sharding::Mesh &mesh) {
  auto ruled = dyn_cast_or_null<ShardingRuleOpInterface>(op);
  if (!ruled)
    return "it stands on what has no factors";
  sharding::Rule rule = ruled.getShardingRule();
  const auto &maps = pin.getOfResult() ? rule.results : rule.operands;
  if (pin.getTensor() >= maps.size() ||
      pin.getDim() >= maps[pin.getTensor()].size())
    return "there is no such dimension";
  const std::vector<int> &factors = maps[pin.getTensor()][pin.getDim()];
  if (pin.getPart() >= factors.size())
    return "the dimension is made of " + std::to_string(factors.size()) +
           " factors";
  int64_t size = rule.factors[factors[pin.getPart()]].size;
  return sharding::findFault(pin.getSplit().resolve({size}, mesh), {size},
                             mesh);
}

/// `op`: where the pins are an operation's.
static LogicalResult
verifyPins(Attribute list, Operation *op, TypeRange results,
           const sharding::Mesh &mesh,
           llvm::function_ref<InFlightDiagnostic()> emitError) {
  auto pins = dyn_cast<ArrayAttr>(list);
  if (!pins || !llvm::all_of(pins, llvm::IsaPred<PinAttr, FactorPinAttr>))
    return emitError() << kPins
                       << " is a list of #ax.pin and #ax.factor_pin, got "
                       << list;
  for (Attribute attr : pins) {
    auto pin = dyn_cast<PinAttr>(attr);
    auto fault = pin ? findFault(pin, results, mesh)
                     : findFault(cast<FactorPinAttr>(attr), op, mesh);
    if (fault)
      return emitError() << attr << ": " << *fault;
  }
  return success();
}

/// `operands`, `results`: those that have layouts. `isMade`: by an operation
/// that may leave a partial sum.
static LogicalResult
verifySharding(Attribute attr, TypeRange operands, TypeRange results,
               bool isMade, const sharding::Mesh &mesh,
               llvm::function_ref<InFlightDiagnostic()> emitError) {
  auto sharding = dyn_cast<ShardingAttr>(attr);
  if (!sharding || sharding.getOperands().size() != operands.size() ||
      sharding.getResults().size() != results.size())
    return emitError() << kSharding << " is a #ax.sharding of "
                       << operands.size() << " operands and " << results.size()
                       << " results, got " << attr;
  for (auto [what, layouts, types] :
       {std::tuple("operand ", sharding.getOperands(), operands),
        {"result ", sharding.getResults(), results}})
    for (auto [i, layout] : llvm::enumerate(layouts))
      if (auto fault = findLayoutFault(layout, types[i], mesh))
        return emitError() << kSharding << " of " << what << i << ", " << layout
                           << ": " << *fault;
  for (LayoutAttr layout : sharding.getResults())
    if (!isMade && !layout.resolve({}, mesh).partial.empty())
      return emitError() << kSharding << " " << layout
                         << ": what is given or stored is no partial sum";
  return success();
}

LogicalResult AxDialect::verifyOperationAttribute(Operation *op,
                                                  NamedAttribute attr) {
  auto emitError = [op] {
    InFlightDiagnostic diagnostic = op->emitOpError();
    if (StringRef node = getNodeName(op); !node.empty())
      diagnostic << "of node '" << node << "' ";
    return diagnostic;
  };
  if (attr.getName() == kPins)
    return verifyPins(attr.getValue(), op, op->getResultTypes(), getMesh(op),
                      emitError);
  bool isMade = isa<ShardingRuleOpInterface>(op);
  if (attr.getName() == kSharding)
    return verifySharding(attr.getValue(),
                          isMade ? TypeRange(op->getOperandTypes())
                                 : TypeRange(),
                          op->getResultTypes(), isMade, getMesh(op), emitError);
  if (!fitsPlanAttribute(op, attr))
    return emitError() << "has attribute '" << attr.getName().getValue()
                       << "' = " << attr.getValue() << ", which it cannot have";
  return success();
}

LogicalResult AxDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                  unsigned argument,
                                                  NamedAttribute attr) {
  auto program = dyn_cast<ProgramOp>(op);
  if (!program || (attr.getName() != kPins && attr.getName() != kSharding))
    return success();
  auto emitError = [&] {
    return program.emitOpError("input '")
           << program.getArgName(argument) << "' ";
  };
  TypeRange type = program.getArgumentTypes().slice(argument, 1);
  return attr.getName() == kPins
             ? verifyPins(attr.getValue(), nullptr, type, getMesh(op),
                          emitError)
             : verifySharding(attr.getValue(), {}, type, /*isMade=*/false,
                              getMesh(op), emitError);
}
