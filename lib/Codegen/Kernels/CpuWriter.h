//===- CpuWriter.h - Kernels as functions on scalars ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_CPUWRITER_H
#define AX_CODEGEN_KERNELS_CPUWRITER_H

#include "KernelWriter.h"
#include "Nests.h"

#include "ax/Local/Local.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace ax::codegen {

/// The entry of ax/Codegen/Kernel.h, `symbol`, and a body that it calls, which
/// knows that its buffers do not overlap.
class CpuWriter final : public KernelWriter {
public:
  /// Into `module`, which is empty. `hasScratch`: iterations ask for scratch.
  CpuWriter(FusionOp fusion, llvm::StringRef symbol, mlir::ModuleOp module,
            unsigned numScalars, bool hasScratch);

  Value number(int64_t value) final;
  Value addIndex(Value x, Value y) final;
  Value mulIndex(Value x, Value y) final;
  Value divIndex(Value x, Value y) final;
  Value remIndex(Value x, Value y) final;
  Value addWrapped(Value x, Value y) final;
  Value minSigned(Value x, Value y) final;
  Value maxSigned(Value x, Value y) final;
  Value isLess(Value x, Value y) final;
  Value isAtLeast(Value x, Value y) final;
  Value both(Value condition, Value other) final;
  Value select(Value condition, Value x, Value y) final;

  Value unary(UnaryKind kind, Value x, mlir::Type type) final;
  Value expFlushed(Value x) final;
  Value binary(BinaryKind kind, Value x, Value y, mlir::Type type) final;
  Value compare(CompareKind kind, Value x, Value y, mlir::Type type) final;
  Value convert(Value x, mlir::Type from, mlir::Type to) final;
  Value combine(ReduceOpKind kind, Value acc, Value x, mlir::Type type) final;
  Value neutral(ReduceOpKind kind, mlir::Type type) final;
  Value zero(mlir::Type type) final;
  Value constant(mlir::Attribute element, mlir::Type type) final;
  Value random(Value index, Value seed, Value step, int64_t id) final;

  Value tensor(unsigned number) final { return tensors[number]; }
  Value scalar(unsigned number) final { return scalars[number]; }
  Value scratch(int64_t byteOffset) final;
  Value table(ConstantOp op) final;
  Value address(Value base, Value offset, mlir::Type type) final;
  Value load(Value base, Value offset, mlir::Type type) final;
  void store(Value value, Value base, Value offset, mlir::Type type) final;

  void iterations(
      int64_t tiledSize,
      llvm::function_ref<void(Value, std::pair<Value, Value>)> body) final;
  Values loop(Value begin, Value end, mlir::ValueRange carried,
              LoopBody body) final;
  Value choice(Value condition, mlir::Type type, Scalar inside,
               Scalar outside) final;
  mlir::Operation *openPlace() final;
  void at(mlir::Operation *place, llvm::function_ref<void()> body) final;
  void closePlace(mlir::Operation *place) final;

private:
  mlir::Type pointerType();
  Value loadWord(Value base, mlir::Type type, unsigned index);
  mlir::ArrayAttr argumentAttributes(FusionOp fusion, unsigned numArguments);
  void writeEntry(llvm::StringRef symbol, mlir::Operation *body,
                  unsigned numScalars, bool hasScratch);

  mlir::ModuleOp module;
  mlir::OpBuilder b;
  mlir::Location loc;
  Values tensors, scalars;
  Value scratchBase, begin, end;
};

/// Writes the function `symbol` (see ax/Codegen/Kernel.h), whose loops are
/// `nests`, into `module`: nothing for a fusion without results. The fusion is
/// the one they were chosen for.
void writeKernel(FusionOp fusion, KernelNests nests, llvm::StringRef symbol,
                 mlir::ModuleOp module);

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_CPUWRITER_H
