//===- PlanFuzzer.cpp - Any text is a plan that runs, or one error --------===//
#include "../../fuzz/TryPlan.h"
#include "ax/Dialect/Ax.h"
#include "ax/Plan/Plan.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

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
