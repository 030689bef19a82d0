//===- CpuWriter.h - Kernels as functions on scalars ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_CPUWRITER_H
#define AX_CODEGEN_KERNELS_CPUWRITER_H

#include "ScalarWriter.h"

namespace ax::codegen {

/// The entry of ax/Codegen/Kernel.h, `symbol`, and a body that it calls, which
/// knows that its buffers do not overlap.
class CpuWriter final : public ScalarWriter {
public:
  /// Into `module`, which is empty. `hasScratch`: iterations ask for scratch.
  CpuWriter(FusionOp fusion, llvm::StringRef symbol, mlir::ModuleOp module,
            unsigned numScalars, bool hasScratch);

  void iterations(
      int64_t tiledSize,
      llvm::function_ref<void(Value, std::pair<Value, Value>)> body) final;

private:
  Value loadWord(Value base, mlir::Type type, unsigned index);
  void writeEntry(llvm::StringRef symbol, mlir::Operation *body,
                  unsigned numScalars, bool hasScratch);

  Value begin, end;
};

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_CPUWRITER_H
