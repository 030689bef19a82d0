//===- KernelWriter.h - What writes a kernel for a target -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The Emitter says what a kernel does, scalar by scalar and loop by loop, in
// the order in which it is done; a writer makes a target's code of that
// (CpuWriter.h), or none while loops are being chosen (Nests.h).
//
//===----------------------------------------------------------------------===//
#ifndef AX_CODEGEN_KERNELS_KERNELWRITER_H
#define AX_CODEGEN_KERNELS_KERNELWRITER_H

#include "ax/Dialect/Ax.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace ax::codegen {

/// Values belong to the writer: nobody looks into one, and a writer that writes
/// nothing gives null ones. Integers without a type named are indices, of
/// a width that the writer chooses, conditions are i1; `type` is an element
/// type of ax.
class KernelWriter {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;
  /// The body of a loop returns the values that the next iteration gets.
  using LoopBody =
      llvm::function_ref<Values(Value counter, mlir::ValueRange carried)>;
  using Scalar = llvm::function_ref<Value()>;
  /// How values that threads carry become one.
  struct Combining {
    ReduceOpKind kind;
    mlir::Type type;
  };
  /// Points 0 .. count - 1 that are dealt out, and what is done with each. It
  /// has so many terms of what is combined.
  struct DealtPoints {
    int64_t count, terms;
    LoopBody body;
  };
  /// Of some numbers the largest, and the sum of exp(number - largest).
  struct MaxAndSum {
    Value max, sum;
  };

  virtual ~KernelWriter() = default;

  //===--- Index arithmetic -----------------------------------------------===//

  virtual Value number(int64_t value) = 0;
  /// Neither of the two overflows.
  virtual Value addIndex(Value x, Value y) = 0;
  virtual Value mulIndex(Value x, Value y) = 0;
  /// Neither number is negative.
  virtual Value divIndex(Value x, Value y) = 0;
  virtual Value remIndex(Value x, Value y) = 0;
  /// Both are of one type; sums of numbers from memory may wrap around.
  virtual Value addWrapped(Value x, Value y) = 0;
  virtual Value minSigned(Value x, Value y) = 0;
  virtual Value maxSigned(Value x, Value y) = 0;
  virtual Value isLess(Value x, Value y) = 0;
  virtual Value isAtLeast(Value x, Value y) = 0;
  virtual Value both(Value condition, Value other) = 0;
  virtual Value select(Value condition, Value x, Value y) = 0;
  /// Between indices and i64, of a number that is an index.
  virtual Value wide(Value index) = 0;
  virtual Value narrow(Value number) = 0;

  //===--- Elements -------------------------------------------------------===//

  /// `type` is the operands'.
  virtual Value unary(UnaryKind kind, Value x, mlir::Type type) = 0;
  /// exp of an f32 that is not above 0, whose subnormal results may be 0.
  virtual Value expFlushed(Value x) = 0;
  virtual Value binary(BinaryKind kind, Value x, Value y, mlir::Type type) = 0;
  virtual Value compare(CompareKind kind, Value x, Value y,
                        mlir::Type type) = 0;
  virtual Value convert(Value x, mlir::Type from, mlir::Type to) = 0;
  /// Sums and products may be done in any order.
  virtual Value combine(ReduceOpKind kind, Value acc, Value x,
                        mlir::Type type) = 0;
  /// What combining starts from.
  virtual Value neutral(ReduceOpKind kind, mlir::Type type) = 0;
  virtual Value zero(mlir::Type type) = 0;
  virtual Value constant(mlir::Attribute element, mlir::Type type) = 0;
  /// An f32 in [0, 1) (ax/Support/Philox.h).
  virtual Value random(Value index, Value seed, Value step, int64_t id) = 0;

  //===--- Memory ---------------------------------------------------------===//

  /// Tensors of the kernel: operands, then results.
  virtual Value tensor(unsigned number) = 0;
  /// A number that ranks differ in (KernelSignature::scalars).
  virtual Value scalar(unsigned number) = 0;
  /// Returns the memory of one iteration, from so many bytes on.
  virtual Value scratch(int64_t byteOffset) = 0;
  /// The elements of a constant of more than one number.
  virtual Value table(ConstantOp op) = 0;
  /// Returns the place of the element `offset` behind `base`.
  virtual Value address(Value base, Value offset, mlir::Type type) = 0;
  virtual Value load(Value base, Value offset, mlir::Type type) = 0;
  virtual void store(Value value, Value base, Value offset,
                     mlir::Type type) = 0;

  //===--- Control --------------------------------------------------------===//

  /// The loop over the kernel's iterations; when `tiledSize` > 0 for each tile
  /// of so many points, whose first point, and the one behind its last, the
  /// body gets.
  virtual void iterations(
      int64_t tiledSize,
      llvm::function_ref<void(Value iteration, std::pair<Value, Value> tile)>
          body) = 0;
  virtual Values loop(Value begin, Value end, mlir::ValueRange carried,
                      LoopBody body) = 0;
  /// Points 0 .. count - 1 in any order, each by one of the threads that do an
  /// iteration of the kernel together. The body gets one, or `together` of them
  /// that the same thread does.
  virtual void
  dealtLoop(int64_t count, int64_t together,
            llvm::function_ref<void(mlir::ValueRange points)> body) = 0;
  /// Likewise, where each thread carries values of its own from point to point.
  /// Those of all threads become one at last, each with the one that was given:
  /// these all of them get.
  virtual Values dealtReduction(llvm::ArrayRef<DealtPoints> points,
                                mlir::ValueRange carried,
                                Combining combining) = 0;
  /// Of the numbers, f32, that bodies return. None of them is carried.
  virtual MaxAndSum dealtMaxAndSum(llvm::ArrayRef<DealtPoints> points) = 0;
  /// What any of these threads stored before, all of them may load behind it.
  virtual void meet() = 0;
  virtual Value choice(Value condition, mlir::Type type, Scalar inside,
                       Scalar outside) = 0;
  /// Does the one or the other; what is null is nothing.
  virtual void branch(Value condition, llvm::function_ref<void()> inside,
                      llvm::function_ref<void()> outside) = 0;
  /// A place that is written to later, with `at`, until it is closed: here.
  virtual mlir::Operation *openPlace() = 0;
  virtual void at(mlir::Operation *place, llvm::function_ref<void()> body) = 0;
  virtual void closePlace(mlir::Operation *place) = 0;
};

} // namespace ax::codegen

#endif // AX_CODEGEN_KERNELS_KERNELWRITER_H
