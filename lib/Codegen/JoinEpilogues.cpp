//===- JoinEpilogues.cpp - What a library does along with a product -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ForEachStage.h"
#include "Library.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Cost/Epilogue.h"
#include "mlir/IR/IRMapping.h"

namespace ax::codegen {
#define GEN_PASS_DEF_JOINEPILOGUES
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

namespace {

struct JoinEpiloguesPass : codegen::impl::JoinEpiloguesBase<JoinEpiloguesPass> {
  using JoinEpiloguesBase::JoinEpiloguesBase;

  void runOnOperation() override {
    const Library &library = gpu ? gpuLibrary() : cpuLibrary();
    forEachStage(getOperation(), [&](LocalStageOp stage) {
      SmallVector<Epilogue> found;
      for (Operation &op : stage.getBlock())
        if (Epilogue epilogue = findEpilogue(&op, library);
            !epilogue.getOps().empty())
          found.push_back(epilogue);
      llvm::for_each(found, join);
    });
  }

  /// A number becomes one for each column, which is what libraries add.
  static Value asColumns(Value bias, Operation *product) {
    auto constant = bias.getDefiningOp<ConstantOp>();
    RankedTensorType type = tensorType(product->getResult(0));
    if (!constant || tensorType(bias).getRank() != 0)
      return bias;
    int64_t dim = cast<LayerOpInterface>(product).getFeatureDim();
    SmallVector<int64_t> shape(type.getRank() - dim, 1);
    shape[0] = type.getDimSize(dim);
    OpBuilder builder(product);
    auto number = cast<DenseElementsAttr>(constant.getValue());
    return ConstantOp::create(builder, bias.getLoc(),
                              number.resizeSplat(RankedTensorType::get(
                                  shape, type.getElementType())));
  }

  static void join(const Epilogue &epilogue) {
    Operation *product = epilogue.product;
    SmallVector<Operation *, 4> ops = epilogue.getOps();
    Value bias = epilogue.getBias(), addend = epilogue.getAddend();
    // What is added may be computed later than the product was.
    if (Operation *place = epilogue.getPlace())
      product->moveBefore(place);
    if (bias)
      bias = asColumns(bias, product);
    Value inside = product->getResult(0);
    LibraryOp library = wrapInLibrary(product);
    OpBuilder builder(library.getYield());
    for (Operation *op : ops) {
      library->setLoc(mergeLocations(library, op));
      Value added = op == epilogue.bias ? bias : addend;
      if (isa<BinaryOp>(op)) {
        library->insertOperands(library->getNumOperands(), added);
        Value argument =
            library.getBody().addArgument(added.getType(), op->getLoc());
        inside = BinaryOp::create(builder, op->getLoc(), BinaryKind::add,
                                  inside, argument);
      } else {
        IRMapping mapping;
        mapping.map(op->getOperand(0), inside);
        inside = builder.clone(*op, mapping)->getResult(0);
      }
    }
    library.setYielded(inside);
    ops.back()->getResult(0).replaceAllUsesWith(library.getResult());
    for (Operation *op : llvm::reverse(ops))
      op->erase();
  }
};

} // namespace
