//===- PickElements.cpp - A sum of which one term is not zero -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Example: what a model gives its label, of logits [rows, words]:
//
//   number   = iota along the words
//   isLabel  = number == label            of [rows, 1]
//   chosen   = select(isLabel, logits, 0)
//   result   = sum of chosen over words
//
// As it is for shards of words, of which a rank has some: then a number is the
// rank's first one and more. One element of each row is read instead, and is 0
// where the label is no word, or another rank's.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "ax/Codegen/Kernel.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Gradients/TensorBuilder.h"
#include "ax/Local/Local.h"

namespace ax::codegen {
#define GEN_PASS_DEF_PICKELEMENTS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

namespace {

/// Of which element each sum is: its number, and what that of the first one is;
/// null: 0.
struct Choice {
  Value number, first;
};

} // namespace

static bool isZero(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  if (!constant)
    return false;
  auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!dense || !dense.isSplat())
    return false;
  if (isa<FloatType>(dense.getElementType()))
    return dense.getSplatValue<APFloat>().isPosZero();
  return dense.getSplatValue<APInt>().isZero();
}

/// Whether the value is iota along the dimension, which counts from the last
/// one on, and has as many numbers as it has indices.
static bool isIota(Value value, int64_t fromLast, int64_t size) {
  auto iota = value.getDefiningOp<IotaOp>();
  if (!iota)
    return false;
  auto dim = static_cast<int64_t>(iota.getDim());
  ArrayRef<int64_t> shape = shapeOf(value);
  return static_cast<int64_t>(shape.size()) - dim == fromLast &&
         shape[dim] == size;
}

/// Whether all of them are made by a row operation, which would have to put
/// them into memory for one to be read.
static bool isOfRowOperation(Value elements, int depth = 0) {
  constexpr int deepest = 8;
  Operation *op = elements.getDefiningOp();
  if (!op || fusionKind(op) == FusionKind::None)
    return false;
  if (fusionKind(op) != FusionKind::Pull || depth == deepest)
    return true;
  int64_t count = tensorType(elements).getNumElements();
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    return tensorType(operand).getNumElements() >= count &&
           isOfRowOperation(operand, depth + 1);
  });
}

static std::optional<Choice> findChoice(Value condition, int64_t fromLast,
                                        int64_t size) {
  auto compare = condition.getDefiningOp<CompareOp>();
  if (!compare || compare.getKind() != CompareKind::eq)
    return std::nullopt;
  for (auto [numbers, number] :
       {std::pair(compare.getLhs(), compare.getRhs()),
        std::pair(compare.getRhs(), compare.getLhs())}) {
    if (isIota(numbers, fromLast, size))
      return Choice{number, {}};
    auto sum = numbers.getDefiningOp<BinaryOp>();
    if (!sum || sum.getKind() != BinaryKind::add)
      continue;
    for (auto [iota, first] : {std::pair(sum.getLhs(), sum.getRhs()),
                               std::pair(sum.getRhs(), sum.getLhs())})
      if (isIota(iota, fromLast, size) &&
          tensorType(first).getNumElements() == 1)
        return Choice{number, first};
  }
  return std::nullopt;
}

namespace {

struct PickElementsPass : codegen::impl::PickElementsBase<PickElementsPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (Operation &op : llvm::make_early_inc_range(stage.getBlock()))
        if (auto reduce = dyn_cast<ReduceOp>(op))
          pick(reduce);
      removeUnused(stage.getBlock());
    });
  }

  static void pick(ReduceOp reduce) {
    auto select = reduce.getOperand().getDefiningOp<SelectOp>();
    if (reduce.getKind() != ReduceOpKind::sum || reduce.getDims().size() != 1 ||
        !select || !select->hasOneUse() || !isZero(select.getOnFalse()))
      return;
    Value elements = select.getOnTrue();
    int64_t dim = reduce.getDims().front();
    ArrayRef<int64_t> shape = shapeOf(select.getResult());
    int64_t rank = static_cast<int64_t>(shape.size());
    std::optional<Choice> choice =
        findChoice(select.getCondition(), rank - dim, shape[dim]);
    SmallVector<int64_t> picked(shape);
    picked[dim] = 1;
    // Whoever is broadcast, is so by what reads it.
    if (!choice || shape[dim] == 0 || shapeOf(elements) != shape ||
        shapeOf(choice->number) != ArrayRef(picked) ||
        isOfRowOperation(elements))
      return;
    Type type = elementType(choice->number);
    if (!type.isSignlessInteger(32) && !type.isSignlessInteger(64))
      return;
    OpBuilder builder(reduce);
    TensorBuilder t(reduce.getLoc(), builder);
    Value index = choice->number;
    if (choice->first)
      index = t.sub(index, choice->first);
    Value isHere = t.binary(
        BinaryKind::logical_and, t.compare(CompareKind::ge, index, 0.0),
        t.compare(CompareKind::lt, index, static_cast<double>(shape[dim])));
    Value element = GatherElementsOp::create(t.b, elements, index, dim);
    Value result = t.select(isHere, element, select.getOnFalse());
    reduce.getResult().replaceAllUsesWith(
        t.reshape(result, shapeOf(reduce.getResult())));
    reduce.erase();
  }
};

} // namespace
