//===- ExchangeNarrow.cpp - Exchanges stand before what widens ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A collective that only moves elements is the same before an element-wise
// operation as behind it. Example: of what a quantised layer gives, q in ui8,
// with a scale and a zero point for all of it,
//
//   all_gather((cast q - zero) * scale) = (cast (all_gather q) - zero) * scale
//
// is a quarter of the bytes, and a product then has integers to multiply. And
// keys that attention may round to bf16 are gathered as such.
//
//===----------------------------------------------------------------------===//
#include "ax/Cost/OpCost.h"
#include "ax/Dialect/OpTraits.h"
#include "ax/Dialect/StageAndAction.h"
#include "ax/Dialect/Tensors.h"
#include "ax/Passes/Passes.h"
#include "ax/Sharding/Digits.h"

namespace ax {
#define GEN_PASS_DEF_EXCHANGENARROW
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;
using sharding::Layout;
using sharding::Mesh;

namespace {

class Exchange {
public:
  Exchange(Operation *collective, const Mesh &mesh)
      : collective(collective), mesh(mesh),
        from(layoutOf(collective->getOperand(0))),
        to(layoutOf(collective->getResult(0))) {}

  static bool isMove(Operation *op) {
    return isa<AllGatherOp, AllToAllOp, CollectivePermuteOp>(op) &&
           op->getNumResults() == 1 && !op->hasAttr("start");
  }

  /// Exchanges what the operand is widened from, if there is such.
  void narrow();

private:
  const Layout &layoutOf(Value value) const {
    return getLayout(tensorType(value), mesh);
  }
  bool isMoved(size_t dim) const { return !(from.dims[dim] == to.dims[dim]); }
  bool isSameForAll(Value operand) const;
  Value widenedFrom(Value value) const;
  /// Puts an exchange of `narrowed` in place of the collective; returns what it
  /// gives.
  Value replaceCollective(OpBuilder &builder, Value narrowed);
  void narrowTo(Type rounded);

  Operation *collective;
  const Mesh &mesh;
  Layout from, to;
};

} // namespace

/// Whether ranks that exchange elements have the same of `operand`, which is
/// broadcast along what is moved, and it is to be had where they meet.
bool Exchange::isSameForAll(Value operand) const {
  Operation *op = operand.getDefiningOp();
  bool isThere = op && (isa<ConstantOp>(op) ||
                        op->getAttr(kStage) == collective->getAttr(kStage));
  ArrayRef<int64_t> shape = shapeOf(operand);
  size_t before = from.dims.size() - shape.size();
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (shape[dim] != 1 && isMoved(before + dim))
      return false;
  return isThere;
}

/// The operand of which, element by element, `value` is made; null where there
/// is another, or more to compute than that saves.
Value Exchange::widenedFrom(Value value) const {
  Operation *op = value.getDefiningOp();
  auto binary = dyn_cast_or_null<BinaryOp>(op);
  bool isCheap = binary && (binary.getKind() == BinaryKind::add ||
                            binary.getKind() == BinaryKind::sub ||
                            binary.getKind() == BinaryKind::mul);
  if (!isCheap && !isa_and_nonnull<CastOp>(op))
    return {};
  Value found;
  for (Value operand : op->getOperands()) {
    if (shapeOf(operand) != shapeOf(value)) {
      if (!isSameForAll(operand))
        return {};
      continue;
    }
    if ((found && found != operand) || !(layoutOf(operand) == from))
      return {};
    found = operand;
  }
  return found;
}

/// What all that read `value` may round it to; null where there are others.
static Type roundedByReaders(Value value) {
  constexpr unsigned numFactors = 3;
  Type found;
  for (OpOperand &use : value.getUses()) {
    std::optional<Type> rounded;
    if (use.getOperandNumber() >= numFactors)
      return {};
    if (auto attention = dyn_cast<AttentionOp>(use.getOwner()))
      rounded = attention.getProductType();
    else if (auto gradient = dyn_cast<AttentionGradientOp>(use.getOwner()))
      rounded = gradient.getProductType();
    if (!rounded || (found && found != *rounded))
      return {};
    found = *rounded;
  }
  return found;
}

Value Exchange::replaceCollective(OpBuilder &builder, Value narrowed) {
  auto moved = cast<RankedTensorType>(collective->getResult(0).getType());
  Operation *exchange = builder.clone(*collective);
  exchange->setOperand(0, narrowed);
  exchange->getResult(0).setType(moved.clone(elementType(narrowed)));
  return exchange->getResult(0);
}

void Exchange::narrowTo(Type rounded) {
  OpBuilder builder(collective);
  auto cast = [&](Value value, Type type) {
    auto made = CastOp::create(builder, collective->getLoc(),
                               tensorType(value).clone(type), value);
    copyStageAndAction(collective, made);
    return made.getResult();
  };
  Value result = collective->getResult(0);
  Value exchanged =
      replaceCollective(builder, cast(collective->getOperand(0), rounded));
  result.replaceAllUsesWith(cast(exchanged, elementType(result)));
  collective->erase();
}

void Exchange::narrow() {
  auto bytesOf = [](Value value) {
    return cost::elementBytes(elementType(value));
  };
  Value wide = collective->getOperand(0), narrowest = wide;
  SmallVector<Operation *> between, chain;
  Value value = wide;
  while (Value source = widenedFrom(value)) {
    chain.push_back(value.getDefiningOp());
    if (bytesOf(source) < bytesOf(narrowest)) {
      narrowest = source;
      between = chain;
    }
    value = source;
  }
  if (narrowest == wide) {
    if (Type rounded = roundedByReaders(collective->getResult(0));
        rounded && isNarrowFloat(rounded) && elementType(wide).isF32())
      narrowTo(rounded);
    return;
  }
  OpBuilder builder(collective);
  auto moved = cast<RankedTensorType>(collective->getResult(0).getType());
  IRMapping map;
  map.map(narrowest, replaceCollective(builder, narrowest));
  for (Operation *op : llvm::reverse(between)) {
    Operation *copy = builder.clone(*op, map);
    copy->getResult(0).setType(moved.clone(elementType(op->getResult(0))));
    for (StringRef name : {StringRef(kStage), StringRef(kAction)})
      copy->removeAttr(name);
    copyStageAndAction(collective, copy);
  }
  collective->getResult(0).replaceAllUsesWith(map.lookup(wide));
  collective->erase();
  for (Operation *op : between)
    if (op->use_empty())
      op->erase();
}

namespace {
struct ExchangeNarrow : ax::impl::ExchangeNarrowBase<ExchangeNarrow> {
  void runOnOperation() final {
    Mesh mesh = getOperation().getMesh();
    for (ProgramOp program : getOperation().getBody().getOps<ProgramOp>()) {
      SmallVector<Operation *> collectives;
      for (Operation &op : program.getBody().front())
        if (Exchange::isMove(&op))
          collectives.push_back(&op);
      for (Operation *collective : collectives)
        Exchange(collective, mesh).narrow();
    }
  }
};
} // namespace
