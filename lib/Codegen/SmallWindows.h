//===- SmallWindows.h - Pools of small windows, unrolled --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_SMALLWINDOWS_H
#define AX_LIB_CODEGEN_SMALLWINDOWS_H

#include "ax/Gradients/TensorBuilder.h"

namespace ax::codegen {

/// What windows read of images, in each spatial dimension.
struct PoolWindows {
  llvm::SmallVector<int64_t> image, window, kernel, strides, low, dilations;

  size_t rank() const { return kernel.size(); }
  /// The elements from a window's first to its last.
  int64_t reach(size_t i) const { return (kernel[i] - 1) * dilations[i] + 1; }
};

/// What is no larger than anything.
double lowestOf(mlir::Type type);

/// Pools whose windows have so few elements that each is an operation of its
/// own: a slice of the images, with steps. All are elementwise then, and rows
/// and columns, which may be channels, are whatever lies around the spatial
/// dimensions: images are [rows, image..., columns...], results and gradients
/// [rows, window..., columns...].
class SmallWindows {
  using Value = mlir::Value;
  using Dims = llvm::ArrayRef<int64_t>;

public:
  SmallWindows(TensorBuilder &t, const PoolWindows &of) : t(t), of(of) {}

  /// Of up to nine elements, and no further apart: more are more than a kernel
  /// may have.
  static bool areSmall(Dims kernel, Dims strides);

  Value max(Value images);
  /// In a type that is wide enough to add up in.
  Value sum(Value images);
  /// Of each window the number of its largest element, the first of equal ones,
  /// or of the last that is no number; that element is the second.
  std::pair<Value, Value> findLargest(Value images);
  /// The gradient of `max`, which goes to these elements, and of `sum`.
  Value maxGradient(Value numbers, Value gradient);
  Value sumGradient(Value gradient) { return maxGradient(Value(), gradient); }

private:
  /// A number for each element of a window, in row-major order.
  llvm::SmallVector<int64_t> elementOf(int64_t number) const;
  int64_t numElements() const;
  Value padded(Value x, Dims low, Dims high, double with);
  Value padImages(Value images, double with);
  Value slice(Value x, Dims starts, Dims steps, Dims sizes);
  Value readElement(Value padded, int64_t number);
  Value firstInside(Value like);
  Value gather(Value numbers, Value gradient,
               llvm::SmallVector<int64_t> &rests);
  Value gatherAt(Value numbers, Value gradient, Dims rests);

  TensorBuilder &t;
  const PoolWindows &of;
};

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_SMALLWINDOWS_H
