//===- InspectModel.cpp - What is in the model ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Actions.h"
#include "ax/Inspect/Inspect.h"
#include "ax/Support/MappedFile.h"

using namespace ax;

llvm::Error ax::inspectModel(const Options &options,
                             mlir::MLIRContext &context) {
  auto inspection = inspect::inspectModel(options.input, options.import,
                                          options.strategy, context);
  if (!inspection)
    return inspection.takeError();
  if (options.inspect == Inspect::JSON)
    inspect::printJSON(*inspection, llvm::outs());
  else
    inspect::print(*inspection, options.inspect == Inspect::All, llvm::outs());
  return checkMappedFiles();
}
