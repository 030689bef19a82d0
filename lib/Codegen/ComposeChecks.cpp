//===- ComposeChecks.cpp - Checks of indices in kernels -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Gradients/TensorBuilder.h"

#include <limits>

namespace ax::codegen {
#define GEN_PASS_DEF_COMPOSECHECKS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

namespace {

/// Replaces one check. An example, of indices [7, -1, 9] and a size of 8: the
/// places of bad ones are [none, none, 2], of which 2 is the first, where 9 is;
/// the word is [2, 9], and a gather reads [7, 7, 1].
class CheckComposer {
public:
  explicit CheckComposer(CheckIndicesOp check)
      : check(check), builder(check), t(check.getLoc(), builder),
        numSizes(static_cast<int64_t>(check.getSizes().size())),
        numIndices(tensorType(check.getIndices()).getNumElements()) {}

  /// Whether there are indices, of which each has a number that it may be.
  bool canCompose() {
    unsigned width = elementType(check.getIndices()).getIntOrFloatBitWidth();
    return numIndices > 0 && llvm::all_of(check.getSizes(), [&](int64_t size) {
             return size > 0 && APInt(64, size).isSignedIntN(width);
           });
  }

  void run() {
    ReportFaultOp::create(t.b, makeWord(), check.getIndices().getType(),
                          check.getSizes(), check.getWhole(), check.getOrder(),
                          check.getIsCount());
    check.getResult().replaceAllUsesWith(makeSafe());
    check.erase();
  }

private:
  /// The sizes times `factor`: one for all indices, or one for each of the last
  /// dimension.
  Value sizesTimes(int64_t factor, Type element) {
    SmallVector<APInt> values;
    for (int64_t size : check.getSizes())
      values.emplace_back(element.getIntOrFloatBitWidth(), factor * size,
                          /*isSigned=*/true);
    SmallVector<int64_t> shape;
    if (numSizes > 1)
      shape.push_back(numSizes);
    return ConstantOp::create(
        t.b, DenseElementsAttr::get(RankedTensorType::get(shape, element),
                                    ArrayRef<APInt>(values)));
  }
  Value scalar(int64_t value) {
    auto type = RankedTensorType::get({}, t.b.getI64Type());
    return ConstantOp::create(t.b, DenseElementsAttr::get(type, value));
  }

  /// One operation on what the reader reads, so that it is done there.
  Value makeSafe() {
    Value indices = check.getIndices();
    return t.binary(BinaryKind::floor_mod, indices,
                    sizesTimes(1, elementType(indices)));
  }

  /// [place, index] of the first that is out of range.
  Value makeWord() {
    Type i64 = t.b.getI64Type();
    SmallVector<int64_t> shape{numIndices / numSizes, numSizes};
    Value indices = t.cast(t.reshape(check.getIndices(), shape), i64);
    Value places = t.reshape(t.indexAlong(0, numIndices, 1), shape);
    Value least = sizesTimes(check.getIsCount() ? 0 : -1, i64);
    Value sizes = sizesTimes(1, i64);
    Value isLow = t.compare(CompareKind::lt, indices, least);
    Value isHigh = t.compare(CompareKind::ge, indices, sizes);
    Value isBad = t.binary(BinaryKind::logical_or, isLow, isHigh);
    Value none = scalar(std::numeric_limits<int64_t>::max());
    Value badPlaces = t.select(isBad, places, none);
    Value first =
        t.reduce(ReduceOpKind::min, badPlaces, {0, 1}, /*keepDims=*/false);
    Value isFirst = t.compare(CompareKind::eq, places, first);
    Value zero = scalar(0);
    Value atFirst = t.select(isFirst, indices, zero);
    Value index = t.sum(atFirst, {0, 1}, /*keepDims=*/false);
    Value number = t.indexAlong(0, 2, 1);
    Value isPlace = t.compare(CompareKind::eq, number, zero);
    return t.select(isPlace, first, index);
  }

  CheckIndicesOp check;
  OpBuilder builder;
  TensorBuilder t;
  int64_t numSizes, numIndices;
};

struct ComposeChecksPass : codegen::impl::ComposeChecksBase<ComposeChecksPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      for (auto check : llvm::make_early_inc_range(
               stage.getBlock().getOps<CheckIndicesOp>()))
        if (CheckComposer composer(check); composer.canCompose())
          composer.run();
    });
  }
};

} // namespace
