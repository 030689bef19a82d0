//===- SinkProducts.cpp - A product stands where its residual is added ----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Cost/OpCost.h"
#include "ax/Passes/Passes.h"

namespace ax {
#define GEN_PASS_DEF_SINKPRODUCTS
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {
struct SinkProducts : ax::impl::SinkProductsBase<SinkProducts> {
  void runOnOperation() final {
    cost::Machine machine = cost::machineOf(getOperation());
    SmallVector<Epilogue> found;
    getOperation()->walk([&](Operation *op) {
      Epilogue epilogue = findEpilogue(op, *machine.library);
      if (epilogue.getPlace())
        found.push_back(epilogue);
    });
    for (const Epilogue &epilogue : found) {
      Operation *place = epilogue.getPlace();
      epilogue.product->moveBefore(place);
      for (Operation *op : epilogue.getOps()) {
        if (op == place)
          break;
        op->moveBefore(place);
      }
    }
  }
};
} // namespace
