//===- WriteTransposed.cpp - Results in another order ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "Library.h"
#include "ax/Codegen/LocalPasses.h"
#include "mlir/IR/IRMapping.h"

namespace ax::codegen {
#define GEN_PASS_DEF_WRITETRANSPOSED
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// What alone reads the result of `op`, if that may be written so.
static TransposeOp onlyTranspose(Operation *op) {
  if (!isa_and_present<LinearOp, DotOp, AttentionOp>(getLibraryCore(op)) ||
      !op->hasOneUse())
    return {};
  auto library = dyn_cast<LibraryOp>(op);
  auto transpose = dyn_cast<TransposeOp>(*op->user_begin());
  if (!transpose ||
      (library && (library.getResidual() || library.getTranspose())) ||
      transpose.getPermutation().back() + 1 !=
          static_cast<int64_t>(transpose.getPermutation().size()))
    return {};
  return transpose;
}

namespace {

struct WriteTransposedPass
    : codegen::impl::WriteTransposedBase<WriteTransposedPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      SmallVector<std::pair<Operation *, TransposeOp>> found;
      for (Operation &op : stage.getBlock())
        if (TransposeOp transpose = onlyTranspose(&op))
          found.push_back({&op, transpose});
      for (auto [op, transpose] : found)
        write(op, transpose);
    });
  }

  static void write(Operation *op, TransposeOp transpose) {
    LibraryOp library = wrapInLibrary(op);
    OpBuilder builder(library.getYield());
    IRMapping mapping;
    mapping.map(transpose.getOperand(), library.getYield()->getOperand(0));
    library.setYielded(builder.clone(*transpose, mapping)->getResult(0));
    transpose.getResult().replaceAllUsesWith(library.getResult());
    transpose.erase();
  }
};

} // namespace
