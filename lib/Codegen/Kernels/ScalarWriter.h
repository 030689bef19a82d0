//===- ScalarWriter.h - What writers of scalar code share -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CODEGEN_KERNELS_SCALARWRITER_H
#define AX_CODEGEN_KERNELS_SCALARWRITER_H

#include "ElementOps.h"
#include "KernelWriter.h"

#include "ax/Local/Local.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace ax::codegen {

/// Arithmetic, memory and loops of one thread, which does an iteration by
/// itself. What is left to a target: the function, and how iterations are dealt
/// out.
class ScalarWriter : public KernelWriter {
public:
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
  Value wide(Value index) final;
  Value narrow(Value number) final;

  Value unary(UnaryKind kind, Value x, mlir::Type type) final;
  Value expFlushed(Value x) override;
  Value binary(BinaryKind kind, Value x, Value y, mlir::Type type) override;
  Value compare(CompareKind kind, Value x, Value y, mlir::Type type) final;
  Value convert(Value x, mlir::Type from, mlir::Type to) override;
  Value combine(ReduceOpKind kind, Value acc, Value x,
                mlir::Type type) override;
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

  Values loop(Value begin, Value end, mlir::ValueRange carried,
              LoopBody body) final;
  /// An iteration is one thread's.
  void dealtLoop(int64_t, int64_t,
                 llvm::function_ref<void(mlir::ValueRange)>) override {
    llvm_unreachable("nobody is there to deal out to");
  }
  Values dealtReduction(llvm::ArrayRef<DealtPoints>, mlir::ValueRange,
                        Combining) override {
    llvm_unreachable("nobody is there to deal out to");
  }
  MaxAndSum dealtMaxAndSum(llvm::ArrayRef<DealtPoints>) override {
    llvm_unreachable("nobody is there to deal out to");
  }
  void meet() override {}
  Value choice(Value condition, mlir::Type type, Scalar inside,
               Scalar outside) final;
  void branch(Value condition, llvm::function_ref<void()> inside,
              llvm::function_ref<void()> outside) final;
  mlir::Operation *openPlace() final;
  void at(mlir::Operation *place, llvm::function_ref<void()> body) final;
  void closePlace(mlir::Operation *place) final;

protected:
  /// Into `module`, which is empty; `tableSpace` is the address space that
  /// tables of constants lie in.
  ScalarWriter(mlir::ModuleOp module, ScalarUnit unit, unsigned indexBits,
               unsigned tableSpace);

  mlir::Type pointerType();
  /// Returns attributes of parameters, which do not overlap: one for each
  /// tensor of the fusion, and scratch, which is the last of them.
  llvm::SmallVector<mlir::NamedAttrList> bufferAttributes(FusionOp fusion);
  /// Says that threads read what others write: in results and in scratch.
  static void shareWritten(FusionOp fusion,
                           llvm::MutableArrayRef<mlir::NamedAttrList> buffers);
  /// These are the fusion's operands and results, all in `buffers`.
  void setTensors(FusionOp fusion, mlir::ValueRange buffers);

  mlir::ModuleOp module;
  mlir::OpBuilder b;
  mlir::Location loc;
  Values scalars;
  Value scratchBase;

private:
  ScalarUnit unit;
  unsigned indexBits, tableSpace;
  Values tensors;
};

/// An attribute list of a function's parameters.
mlir::ArrayAttr toArray(mlir::MLIRContext *context,
                        llvm::ArrayRef<mlir::NamedAttrList> attributes);

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_SCALARWRITER_H
