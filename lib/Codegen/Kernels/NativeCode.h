//===- NativeCode.h - From scalar loops to an object file -------*- C++ -*-===//
#ifndef AX_CODEGEN_KERNELS_NATIVECODE_H
#define AX_CODEGEN_KERNELS_NATIVECODE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace ax::codegen {

/// Loads what `generateObject` needs into the context. Once, before threads.
void loadLoweringDialects(mlir::MLIRContext &context);

/// `module`: llvm.func of scf, arith, math and llvm; consumed.
llvm::Expected<llvm::SmallVector<char, 0>>
generateObject(mlir::ModuleOp module);

/// Name and features of this machine's CPU.
const std::string &hostDescription();

/// Objects in this process's memory. Thread-safe.
class CodeLoader {
public:
  static llvm::Expected<std::shared_ptr<CodeLoader>> create();
  ~CodeLoader();
  /// Address of `symbol` in the object, which stays loaded as long as the
  /// loader lives.
  llvm::Expected<void *> load(llvm::ArrayRef<char> object,
                              llvm::StringRef symbol);

private:
  struct Impl;
  explicit CodeLoader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_NATIVECODE_H
