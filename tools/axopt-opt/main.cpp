//===- main.cpp - axopt-opt: passes on IR, for tests ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Codegen/LocalPasses.h"
#include "ax/Compile/Compile.h"
#include "ax/Dialect/Ax.h"
#include "ax/Local/Local.h"
#include "ax/Passes/Passes.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<ax::AxDialect, ax::AxlDialect>();
  ax::registerAxPasses();
  ax::registerPipelines();
  ax::codegen::registerLocalPasses();
  mlir::registerCSEPass();
  mlir::registerCanonicalizerPass();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "axopt's passes, one by one\n", registry));
}
