//===- HostTensor.cpp - A dense tensor in host memory ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/HostTensor.h"

#include "ax/Support/Error.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <type_traits>

namespace ax {

namespace {

constexpr size_t alignment = 64;

/// More than any process can address; allocators need not be asked.
constexpr int64_t addressableBytes = int64_t(1) << 46;

/// Null when memory is short.
std::shared_ptr<uint8_t> allocateBytes(int64_t numBytes) {
  if (numBytes >= addressableBytes)
    return nullptr;
  // calloc leaves large blocks untouched until they are used; the extra bytes
  // are for alignment.
  void *raw = std::calloc(static_cast<size_t>(numBytes) + alignment, 1);
  if (!raw)
    return nullptr;
  auto address = reinterpret_cast<uintptr_t>(raw);
  auto aligned = (address + alignment - 1) & ~(alignment - 1);
  return {reinterpret_cast<uint8_t *>(aligned),
          [raw](uint8_t *) { std::free(raw); }};
}

int64_t saturatingInt(double value) {
  if (std::isnan(value))
    return 0;
  if (value >= 0x1p63)
    return std::numeric_limits<int64_t>::max();
  if (value < -0x1p63)
    return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

template <typename T>
constexpr bool isIntegral = std::is_integral_v<T> && !std::is_same_v<T, bool>;

template <typename T>
T fromDouble(double value) {
  if constexpr (std::is_same_v<T, bool>)
    return value != 0;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return value >= 0x1p63
               ? (value >= 0x1p64 ? std::numeric_limits<uint64_t>::max()
                                  : static_cast<uint64_t>(value))
               : static_cast<uint64_t>(saturatingInt(value));
  else if constexpr (isIntegral<T>)
    return static_cast<T>(saturatingInt(value));
  else
    return T(value);
}

template <typename T>
double toDouble(T value) {
  return static_cast<double>(value);
}
double toDouble(Float16 value) { return static_cast<float>(value); }
double toDouble(BFloat16 value) { return static_cast<float>(value); }
double toDouble(Float8E4M3FN value) { return static_cast<float>(value); }
double toDouble(Float8E5M2 value) { return static_cast<float>(value); }

} // namespace

std::optional<int64_t> checkedNumElements(llvm::ArrayRef<int64_t> shape,
                                          int64_t elementBytes) {
  int64_t product = elementBytes;
  bool empty = false;
  for (int64_t dim : shape) {
    if (dim < 0)
      return std::nullopt;
    if (dim == 0)
      empty = true;
    else if (__builtin_mul_overflow(product, dim, &product))
      return std::nullopt;
  }
  return empty ? 0 : product / elementBytes;
}

std::vector<int64_t> rowMajorStrides(llvm::ArrayRef<int64_t> shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

std::string shapeToString(llvm::ArrayRef<int64_t> shape) {
  std::string text;
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? "x" : "") + std::to_string(shape[i]);
  return text;
}

HostTensor::HostTensor(DType type, Shape shapeIn)
    : type(type), shape(std::move(shapeIn)) {
  assert(checkedNumElements(shape, byteSize(type)) && "impossible shape");
  owned = allocateBytes(numBytes());
  if (!owned)
    llvm::report_bad_alloc_error("tensor");
  bytes = owned.get();
}

llvm::Expected<HostTensor> HostTensor::allocate(DType type, Shape shape) {
  std::optional<int64_t> count = checkedNumElements(shape, byteSize(type));
  if (!count)
    return makeErrorf(ExitCode::BadInput, "impossible tensor shape [{0}]",
                      shapeToString(shape));
  HostTensor tensor;
  tensor.owned = allocateBytes(*count * byteSize(type));
  if (!tensor.owned)
    return makeErrorf(
        ExitCode::RunFailed, "out of memory: tensor {0}x{1} needs {2} bytes",
        shapeToString(shape), toString(type), *count * byteSize(type));
  tensor.type = type;
  tensor.shape = std::move(shape);
  tensor.bytes = tensor.owned.get();
  return tensor;
}

llvm::Expected<HostTensor>
HostTensor::fromBytes(DType type, Shape shape, llvm::ArrayRef<uint8_t> bytes) {
  std::optional<int64_t> count = checkedNumElements(shape, byteSize(type));
  if (!count || *count * byteSize(type) != static_cast<int64_t>(bytes.size()))
    return makeErrorf(ExitCode::BadInput,
                      "{0} bytes given for a tensor of shape [{1}] and type "
                      "{2}",
                      bytes.size(), shapeToString(shape), toString(type));
  llvm::Expected<HostTensor> tensor = allocate(type, std::move(shape));
  if (!tensor)
    return tensor.takeError();
  uint8_t *to = tensor->mutableData();
  if (type == DType::Bool)
    for (size_t i = 0; i < bytes.size(); ++i)
      to[i] = bytes[i] != 0;
  else if (!bytes.empty())
    std::memcpy(to, bytes.data(), bytes.size());
  return tensor;
}

HostTensor HostTensor::borrow(DType type, Shape shape, const void *data,
                              std::shared_ptr<const void> owner) {
  HostTensor tensor;
  tensor.type = type;
  tensor.shape = std::move(shape);
  tensor.keptAlive = std::move(owner);
  tensor.bytes = static_cast<const uint8_t *>(data);
  return tensor;
}

int64_t HostTensor::numElements() const {
  int64_t count = 1;
  for (int64_t dim : shape)
    count *= dim;
  return count;
}

std::string HostTensor::typeToString() const {
  std::string text = shapeToString(shape);
  return (text.empty() ? "" : text + "x") + toString(type);
}

uint8_t *HostTensor::mutableData() {
  if (!owned || owned.use_count() > 1) {
    std::shared_ptr<uint8_t> copy = allocateBytes(numBytes());
    if (!copy)
      llvm::report_bad_alloc_error("tensor");
    if (bytes && numBytes())
      std::memcpy(copy.get(), bytes, static_cast<size_t>(numBytes()));
    owned = std::move(copy);
    keptAlive.reset();
    bytes = owned.get();
  }
  return owned.get();
}

double HostTensor::getDouble(int64_t index) const {
  assert(index >= 0 && index < numElements());
  return visitDType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return toDouble(reinterpret_cast<const T *>(bytes)[index]);
  });
}

int64_t HostTensor::getInt(int64_t index) const {
  assert(index >= 0 && index < numElements());
  return visitDType(type, [&](auto tag) -> int64_t {
    using T = typename decltype(tag)::type;
    T value = reinterpret_cast<const T *>(bytes)[index];
    if constexpr (std::is_integral_v<T>)
      return static_cast<int64_t>(value);
    else
      return saturatingInt(toDouble(value));
  });
}

void HostTensor::setDouble(int64_t index, double value) {
  assert(index >= 0 && index < numElements());
  uint8_t *to = mutableData();
  visitDType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    reinterpret_cast<T *>(to)[index] = fromDouble<T>(value);
  });
}

void HostTensor::setInt(int64_t index, int64_t value) {
  assert(index >= 0 && index < numElements());
  uint8_t *to = mutableData();
  visitDType(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    reinterpret_cast<T *>(to)[index] = static_cast<T>(value);
  });
}

std::vector<int64_t> HostTensor::toInts() const {
  std::vector<int64_t> result(static_cast<size_t>(numElements()));
  for (size_t i = 0; i < result.size(); ++i)
    result[i] = getInt(static_cast<int64_t>(i));
  return result;
}

HostTensor HostTensor::reshaped(Shape newShape) const {
  HostTensor result = *this;
  result.shape = std::move(newShape);
  assert(result.numElements() == numElements());
  return result;
}

HostTensor HostTensor::cast(DType newType) const {
  if (newType == type)
    return *this;
  HostTensor result(newType, shape);
  visitDType(type, [&](auto fromTag) {
    using From = typename decltype(fromTag)::type;
    llvm::ArrayRef<From> from = values<From>();
    visitDType(newType, [&](auto toTag) {
      using To = typename decltype(toTag)::type;
      llvm::MutableArrayRef<To> to = result.mutableValues<To>();
      for (size_t i = 0; i < from.size(); ++i) {
        if constexpr (std::is_integral_v<From>)
          to[i] = static_cast<To>(from[i]);
        else
          to[i] = fromDouble<To>(toDouble(from[i]));
      }
    });
  });
  return result;
}

bool HostTensor::isIdentical(const HostTensor &other) const {
  return type == other.type && shape == other.shape &&
         rawBytes() == other.rawBytes();
}

} // namespace ax
