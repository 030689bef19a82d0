//===- JoinAccumulation.cpp - Products add to sums over micro-batches -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "Library.h"
#include "ax/Codegen/LocalPasses.h"

#include "mlir/IR/Matchers.h"

namespace ax::codegen {
#define GEN_PASS_DEF_JOINACCUMULATION
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

namespace {

/// As localisation writes it: select(axis_index == 0, value, sum + value).
struct Accumulation {
  SelectOp select;
  Value value;
  AxesAttr axes;
};

/// A product that gives floats as they are summed up, and nothing around it.
bool isBareProduct(Value value) {
  return value.getDefiningOp<DotOp>() || value.getDefiningOp<LinearOp>();
}

} // namespace

/// The axes along which the first has number 0; null where it says otherwise.
static AxesAttr axesOfFirst(Value isFirst) {
  auto compare = isFirst.getDefiningOp<CompareOp>();
  if (!compare || compare.getKind() != CompareKind::eq)
    return {};
  auto index = compare.getLhs().getDefiningOp<AxisIndexOp>();
  auto zero = compare.getRhs().getDefiningOp<ConstantOp>();
  if (!index || !zero || !matchPattern(zero.getValue(), m_Zero()))
    return {};
  return index.getAxes();
}

/// How `made` comes of a product and of `sum`, which nothing else reads.
static std::optional<Accumulation> findAccumulation(Value made, Value sum) {
  auto select = made.getDefiningOp<SelectOp>();
  auto added =
      select ? select.getOnFalse().getDefiningOp<BinaryOp>() : BinaryOp();
  if (!added || added.getKind() != BinaryKind::add || !added->hasOneUse() ||
      !sum.hasOneUse() || added.getLhs() != sum)
    return std::nullopt;
  Value value = added.getRhs();
  auto readsIt = [&](Operation *user) {
    return user == added || user == select;
  };
  AxesAttr axes = axesOfFirst(select.getCondition());
  if (!axes || select.getOnTrue() != value || !isBareProduct(value) ||
      value.getType() != sum.getType() ||
      !llvm::all_of(value.getUsers(), readsIt))
    return std::nullopt;
  return Accumulation{select, value, axes};
}

static void join(const Accumulation &found, Value sum) {
  SelectOp select = found.select;
  Operation *added = select.getOnFalse().getDefiningOp();
  LibraryOp library = wrapInLibrary(found.value.getDefiningOp());
  library->setLoc(mergeLocations(library, select));
  library->insertOperands(library->getNumOperands(), sum);
  Value argument =
      library.getBody().addArgument(sum.getType(), select.getLoc());
  OpBuilder builder(library.getYield());
  library.setYielded(AccumulateOp::create(builder, select.getLoc(),
                                          library.getCore()->getResult(0),
                                          argument, found.axes));
  select.getResult().replaceAllUsesWith(library.getResult());
  select.erase();
  added->erase();
}

namespace {

struct JoinAccumulationPass
    : codegen::impl::JoinAccumulationBase<JoinAccumulationPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      Block &block = stage.getBlock();
      for (auto [i, number] : llvm::enumerate(stage.getAccumulated())) {
        Value sum = block.getArgument(stage.getFirstSum() + i);
        Value made = stage.getYield()->getOperand(number);
        if (auto found = findAccumulation(made, sum))
          join(*found, sum);
      }
      removeUnused(block);
    });
  }
};

} // namespace
