//===- Plugin.cpp - The ax dialect and passes for mlir-opt ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Compile/Compile.h"
#include "ax/Dialect/Ax.h"
#include "ax/Passes/Passes.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

extern "C" LLVM_ATTRIBUTE_WEAK mlir::DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "ax", "1",
          [](mlir::DialectRegistry *registry) {
            registry->insert<ax::AxDialect>();
          }};
}

extern "C" LLVM_ATTRIBUTE_WEAK mlir::PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "ax", "1", [] {
            ax::registerAxPasses();
            ax::registerPipelines();
          }};
}
