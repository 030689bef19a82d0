//===- Kernels.h - What the parts of the interpreter share ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_INTERPRETER_KERNELS_H
#define AX_LIB_INTERPRETER_KERNELS_H

#include "ax/Dialect/Ax.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Interpreter/Functions.h"

#include <limits>

namespace ax::interpreter {

using Operands = llvm::ArrayRef<HostTensor>;
using Results = llvm::SmallVector<HostTensor>;

// Of each file in Ops/, which the build finds there: the results, or nothing
// when the op is not of its family. Operands have the types that the op says.
#define AX_FILE(Name)                                                          \
  std::optional<Results> interpret##Name(mlir::Operation *op, Operands in);
#include "Families.inc"
#undef AX_FILE

/// Floats compute in double, integers in 64 bits, wrapping.
template <typename T>
using Wide = std::conditional_t<
    std::is_same_v<T, bool> || std::is_signed_v<T>,
    std::conditional_t<std::is_floating_point_v<T>, double, int64_t>,
    std::conditional_t<std::is_unsigned_v<T>, uint64_t, double>>;

template <typename T>
Wide<T> load(T value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<Wide<T>>(value);
  else
    return static_cast<double>(
        static_cast<
            std::conditional_t<std::is_same_v<T, double>, double, float>>(
            value));
}

template <typename T>
T store(Wide<T> value) {
  if constexpr (std::is_same_v<T, bool>)
    return value != 0;
  else
    return static_cast<T>(value);
}

/// The ends of the range: infinities of floats.
template <typename T>
Wide<T> lowest() {
  if constexpr (std::is_integral_v<T>)
    return std::numeric_limits<T>::min();
  else
    return -std::numeric_limits<double>::infinity();
}
template <typename T>
Wide<T> highest() {
  if constexpr (std::is_integral_v<T>)
    return std::numeric_limits<T>::max();
  else
    return std::numeric_limits<double>::infinity();
}

/// NaN wins a maximum or minimum.
template <typename W>
W combine(ReduceOpKind kind, W a, W b) {
  switch (kind) {
  case ReduceOpKind::sum:
    if constexpr (std::is_same_v<W, double>)
      return a + b;
    else
      return static_cast<W>(static_cast<uint64_t>(a) +
                            static_cast<uint64_t>(b));
  case ReduceOpKind::prod:
    if constexpr (std::is_same_v<W, double>)
      return a * b;
    else
      return static_cast<W>(static_cast<uint64_t>(a) *
                            static_cast<uint64_t>(b));
  case ReduceOpKind::max:
    return a != a || a > b ? a : b;
  case ReduceOpKind::min:
    return a != a || a < b ? a : b;
  }
  llvm_unreachable("reduce kind");
}

inline Shape toShape(llvm::ArrayRef<int64_t> shape) {
  return Shape(shape.begin(), shape.end());
}
/// The element type of the value.
DType elementDType(mlir::Value value);
/// A zero tensor of the value's type.
HostTensor emptyLike(mlir::Value value);

/// Indices into dimensions of the given sizes (see getIndexedSizes), negative
/// ones counted from the end; an error when one is out of range.
llvm::Expected<std::vector<int64_t>> toIndices(const HostTensor &tensor,
                                               llvm::ArrayRef<int64_t> sizes);

/// All elements as doubles.
std::vector<double> toDoubles(const HostTensor &tensor);
void storeDoubles(llvm::ArrayRef<double> values, HostTensor &to);

/// What each index along one result dimension adds to the position in the
/// operand, or `outside`.
using Table = std::vector<int64_t>;
constexpr int64_t outside = std::numeric_limits<int64_t>::min();
/// start, start + step, ... : `size` entries.
Table linearTable(int64_t size, int64_t start, int64_t step);

/// to[i, j, ...] = from[tables[0][i] + tables[1][j] + ...], or the element at
/// `fill` (zero bits when null) when any is outside.
void copyByTables(const HostTensor &from, llvm::ArrayRef<Table> tables,
                  HostTensor &to, const uint8_t *fill = nullptr);

HostTensor broadcastTo(const HostTensor &tensor, llvm::ArrayRef<int64_t> shape);
HostTensor transposed(const HostTensor &tensor,
                      llvm::ArrayRef<int64_t> permutation);
/// The order of dimensions with `dims` moved, in order, to the end.
llvm::SmallVector<int64_t> movedLast(int64_t rank,
                                     llvm::ArrayRef<int64_t> dims);
llvm::SmallVector<int64_t> inverse(llvm::ArrayRef<int64_t> permutation);

/// Combines element by element, in place.
void combineInto(ReduceOpKind kind, HostTensor &to, const HostTensor &from);

HostTensor interpretUnary(UnaryOp op, const HostTensor &x);
/// `dy` times the derivative of a function of floats at `x`.
HostTensor interpretUnaryGradient(UnaryKind kind, const HostTensor &dy,
                                  const HostTensor &x);

} // namespace ax::interpreter

#endif // AX_LIB_INTERPRETER_KERNELS_H
