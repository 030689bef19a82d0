//===- ReadWrite.cpp - Plans from and to text -----------------------------===//
#include "Faults.h"
#include "Screen.h"

#include "ax/Plan/Plan.h"
#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace ax::plan {

static constexpr size_t maxFileBytes = size_t(64) << 20;

llvm::Expected<OwningOpRef<ModuleOp>>
parsePlan(llvm::StringRef text, llvm::StringRef name, MLIRContext &context) {
  if (text.size() > maxFileBytes)
    return makeErrorf(ExitCode::BadPlan,
                      "{0}: {1} bytes; plans have at most {2}", name,
                      text.size(), maxFileBytes);
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(text, name);
  if (isBytecode(*buffer))
    return makeError(ExitCode::BadPlan,
                     name + ": is MLIR bytecode; plans are text");
  if (llvm::Error error = screenText(text, name))
    return error;
  Faults faults(&context);
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(
      sources, ParserConfig(&context, /*verifyAfterParse=*/false));
  if (module && succeeded(screenModule(*module)) && succeeded(verify(*module)))
    return module;
  if (llvm::Error error = faults.take())
    return error;
  return makeError(ExitCode::BadPlan, name + ": is no plan");
}

llvm::Expected<OwningOpRef<ModuleOp>> readPlan(llvm::StringRef path,
                                               MLIRContext &context) {
  auto file = MappedFile::open(path.str());
  if (!file)
    return file.takeError();
  return parsePlan(llvm::toStringRef((*file)->bytes()), path, context);
}

llvm::Error writePlan(ModuleOp module, llvm::StringRef path) {
  std::string text;
  llvm::raw_string_ostream(text) << module << '\n';
  if (text.size() > maxFileBytes)
    return makeErrorf(ExitCode::Unsupported,
                      "the plan has {0} bytes; plans have at most {1}",
                      text.size(), maxFileBytes);
  if (path == "-") {
    llvm::outs() << text;
    llvm::outs().flush();
    return llvm::Error::success();
  }
  return writeFileAtomically(path.str(), llvm::StringRef(text));
}

} // namespace ax::plan
