//===- CodeLoader.cpp - Objects in this process's memory ------------------===//

#include "HostFunctions.h"
#include "NativeCode.h"

#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"

namespace ax::codegen {

struct CodeLoader::Impl {
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

CodeLoader::CodeLoader(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
CodeLoader::~CodeLoader() = default;

llvm::Expected<std::shared_ptr<CodeLoader>> CodeLoader::create() {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto impl = std::make_unique<Impl>();
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit)
    return jit.takeError();
  impl->jit = std::move(*jit);
  llvm::orc::JITDylib &library = impl->jit->getMainJITDylib();
  llvm::orc::SymbolMap symbols;
  symbols[impl->jit->mangleAndIntern(topKSymbol)] = {
      llvm::orc::ExecutorAddr::fromPtr(&ax_kernel_top_k),
      llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  if (llvm::Error error =
          library.define(llvm::orc::absoluteSymbols(std::move(symbols))))
    return error;
  // The C library.
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      impl->jit->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  library.addGenerator(std::move(*process));
  return std::shared_ptr<CodeLoader>(new CodeLoader(std::move(impl)));
}

llvm::Expected<void *> CodeLoader::load(llvm::ArrayRef<char> object,
                                        llvm::StringRef symbol) {
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(
      llvm::StringRef(object.data(), object.size()), symbol);
  if (llvm::Error error = impl->jit->addObjectFile(std::move(buffer)))
    return error;
  auto address = impl->jit->lookup(symbol);
  if (!address)
    return address.takeError();
  return address->toPtr<void *>();
}

} // namespace ax::codegen
