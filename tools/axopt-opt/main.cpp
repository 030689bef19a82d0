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

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"

int main(int argc, char **argv) {
  // LLVM has some for each of its own parts, which are there by now.
  for (auto &[name, option] : llvm::cl::getRegisteredOptions())
    if (!llvm::is_contained({"help", "version"}, name))
      option->setHiddenFlag(llvm::cl::ReallyHidden);
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
