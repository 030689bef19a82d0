//===- HostTensor.h - A dense tensor in host memory -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Contiguous, row-major. A value type: copies share their bytes until one of
// them is written to.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SUPPORT_HOSTTENSOR_H
#define AX_SUPPORT_HOSTTENSOR_H

#include "ax/Support/DType.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <cassert>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ax {

using Shape = std::vector<int64_t>;

/// Product of the dimensions (1 for a scalar); nothing when a dimension is
/// negative or the product, times `elementBytes`, does not fit int64_t.
std::optional<int64_t> checkedNumElements(llvm::ArrayRef<int64_t> shape,
                                          int64_t elementBytes = 1);
/// Row-major strides in elements.
std::vector<int64_t> rowMajorStrides(llvm::ArrayRef<int64_t> shape);
/// `8x128`, `` for a scalar.
std::string shapeToString(llvm::ArrayRef<int64_t> shape);

class HostTensor {
public:
  /// f32 of shape [0].
  HostTensor() : shape{0} {}

  /// Makes a tensor of zero bits. The shape must be one that checkedNumElements
  /// accepts, and come from us; for sizes that a file names use `allocate`.
  HostTensor(DType type, Shape shape);

  /// Returns a tensor of zero bits; an error when the shape is impossible or
  /// memory is short.
  static llvm::Expected<HostTensor> allocate(DType type, Shape shape);

  /// Copies `bytes`; an error when there are not exactly as many as the shape
  /// needs. Bool bytes other than 0 become 1.
  static llvm::Expected<HostTensor> fromBytes(DType type, Shape shape,
                                              llvm::ArrayRef<uint8_t> bytes);

  /// Refers to `data`, which must hold the shape's bytes, be aligned to the
  /// element size, and live as long as `owner`. Writing makes a copy first.
  static HostTensor borrow(DType type, Shape shape, const void *data,
                           std::shared_ptr<const void> owner);

  template <typename T>
  static HostTensor fromValues(Shape shape, llvm::ArrayRef<T> values);
  template <typename T>
  static HostTensor scalar(T value) {
    return fromValues<T>({}, {value});
  }

  DType getType() const { return type; }
  const Shape &getShape() const { return shape; }
  int64_t getRank() const { return static_cast<int64_t>(shape.size()); }
  int64_t numElements() const;
  int64_t numBytes() const { return numElements() * byteSize(type); }
  /// `8x128xf32`.
  std::string typeToString() const;

  const uint8_t *data() const { return bytes; }
  llvm::ArrayRef<uint8_t> rawBytes() const {
    return {bytes, static_cast<size_t>(numBytes())};
  }
  /// Keeps the bytes alive as long as it is held.
  std::shared_ptr<const void> getOwner() const {
    return owned ? std::shared_ptr<const void>(owned) : keptAlive;
  }
  /// Bytes to write to; first makes them this tensor's own.
  uint8_t *mutableData();

  /// The elements; T must be the C++ type of getType().
  template <typename T>
  llvm::ArrayRef<T> values() const;
  template <typename T>
  llvm::MutableArrayRef<T> mutableValues();

  /// Element `index` in row-major order. getInt of a float truncates, and
  /// saturates (NaN: 0); of a u64 above the range of int64_t it wraps.
  double getDouble(int64_t index) const;
  int64_t getInt(int64_t index) const;
  /// Rounded to nearest for floats; to integers as getInt, then cut to the
  /// width; Bool is `value != 0`.
  void setDouble(int64_t index, double value);
  void setInt(int64_t index, int64_t value);
  std::vector<int64_t> toInts() const;

  /// Returns the same bytes under another shape of as many elements.
  HostTensor reshaped(Shape newShape) const;
  /// Returns a tensor with every element converted as by setDouble or setInt.
  HostTensor cast(DType newType) const;
  /// Whether type, shape and bits are the same.
  bool isIdentical(const HostTensor &other) const;

private:
  DType type = DType::F32;
  Shape shape;
  /// Set when the bytes may be written to by their only owner.
  std::shared_ptr<uint8_t> owned;
  std::shared_ptr<const void> keptAlive;
  const uint8_t *bytes = nullptr;
};

template <typename T>
llvm::ArrayRef<T> HostTensor::values() const {
  assert(dtypeOf<T>() == type && "element type of the tensor");
  return llvm::ArrayRef<T>(reinterpret_cast<const T *>(bytes),
                           static_cast<size_t>(numElements()));
}

template <typename T>
llvm::MutableArrayRef<T> HostTensor::mutableValues() {
  assert(dtypeOf<T>() == type && "element type of the tensor");
  return llvm::MutableArrayRef<T>(reinterpret_cast<T *>(mutableData()),
                                  static_cast<size_t>(numElements()));
}

template <typename T>
HostTensor HostTensor::fromValues(Shape shape, llvm::ArrayRef<T> values) {
  HostTensor tensor(dtypeOf<T>(), std::move(shape));
  assert(static_cast<int64_t>(values.size()) == tensor.numElements());
  std::copy(values.begin(), values.end(), tensor.mutableValues<T>().begin());
  return tensor;
}

} // namespace ax

#endif // AX_SUPPORT_HOSTTENSOR_H
