//===- CountFlops.cpp - A pass in a plugin --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// axopt-opt plan.mlir --load-pass-plugin=libCountFlops.so
//   --pass-pipeline='builtin.module(count-flops)'
//
//===----------------------------------------------------------------------===//

#include "ax/Cost/OpCost.h"
#include "ax/Dialect/Ax.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Support/FormatVariadic.h"

namespace {
/// Remarks how much each program computes.
struct CountFlops
    : mlir::PassWrapper<CountFlops, mlir::OperationPass<mlir::ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CountFlops)

  llvm::StringRef getArgument() const override { return "count-flops"; }

  void runOnOperation() override {
    getOperation().walk([](ax::ProgramOp program) {
      double flops = 0;
      program.walk(
          [&](mlir::Operation *op) { flops += ax::cost::wholeFlops(op); });
      program.emitRemark() << llvm::formatv("{0:F0} FLOP", flops).str();
    });
  }
};
} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK mlir::PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "count-flops", "1",
          [] { mlir::PassRegistration<CountFlops>(); }};
}
