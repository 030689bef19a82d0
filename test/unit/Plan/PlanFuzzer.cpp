//===- PlanFuzzer.cpp - Any text is a plan that runs, or one error --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../../fuzz/TryPlan.h"
#include "ax/Dialect/Ax.h"
#include "ax/Plan/Plan.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <string>
#include <unistd.h>

using namespace mlir;

/// A plan beside which there are constants, in a folder of this process: the
/// numbers from 0 on, as i64.
static const std::string &planPath() {
  static std::string folder, path;
  if (!path.empty())
    return path;
  llvm::SmallString<128> made;
  std::error_code fault =
      llvm::sys::fs::createUniqueDirectory("ax-plan-fuzz", made);
  folder = made.str().str();
  path = folder + "/plan.mlir";
  if (!fault) {
    llvm::raw_fd_ostream file(path + ".data", fault);
    for (int64_t i = 0; i < 256; ++i)
      file.write(reinterpret_cast<const char *>(&i), sizeof(i));
  }
  // Without them, plans that have constants would be refused for that alone.
  if (fault)
    llvm::report_fatal_error(llvm::Twine("no constants for plans: ") +
                             fault.message());
  std::atexit([] {
    unlink((path + ".data").c_str());
    rmdir(folder.c_str());
  });
  return path;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static MLIRContext *context = nullptr;
  static int uses = 0;
  // Attributes live as long as their context.
  if (uses++ % 1000 == 0) {
    delete context;
    context = new MLIRContext(MLIRContext::Threading::DISABLED);
    context->loadDialect<ax::AxDialect>();
  }
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  auto module = ax::plan::parsePlan(text, "fuzz", *context);
  if (!module) {
    llvm::consumeError(module.takeError());
    return 0;
  }
  if (llvm::Error error = ax::plan::readConstants(**module, planPath())) {
    llvm::consumeError(std::move(error));
    return 0;
  }
  if (llvm::Error error = ax::plan::verifyPlan(**module)) {
    llvm::consumeError(std::move(error));
    return 0;
  }
  ax::plan::summarise(**module, llvm::nulls());
  ax::plan::explain(**module, llvm::nulls());
  ax::plan::reportJSON(**module);
  ax::test::tryPlan(**module);
  return 0;
}
