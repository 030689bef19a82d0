//===- FloatConversion.cpp - Floats in the type that is wanted ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/FloatConversion.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"

#include <cassert>
#include <cmath>
#include <cstring>

namespace ax {

bool canConvert(DType wanted, DType given) {
  auto isOne = [](DType type) {
    return type == DType::F32 || type == DType::BF16 || type == DType::F16;
  };
  return given == wanted || (isOne(wanted) && isOne(given));
}

template <typename To>
static To rounded(float value) {
  To result(value);
  // bf16 ends just before f32 does, whose lowest number masks have.
  if constexpr (std::is_same_v<To, BFloat16>)
    if (std::isinf(static_cast<float>(result)) && !std::isinf(value))
      return BFloat16::fromBits(value < 0 ? 0xff7f : 0x7f7f);
  return result;
}

template <typename To, typename From>
static void convert(uint8_t *to, const uint8_t *from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from, sizeof(From));
    To converted = rounded<To>(static_cast<float>(value));
    std::memcpy(to, &converted, sizeof(To));
    from += sizeof(From);
    to += sizeof(To);
  }
}

template <typename To>
static void convertTo(uint8_t *to, DType given, const uint8_t *from,
                      int64_t count) {
  if (given == DType::F32)
    convert<To, float>(to, from, count);
  else if (given == DType::BF16)
    convert<To, BFloat16>(to, from, count);
  else
    convert<To, Float16>(to, from, count);
}

void copyConverted(DType wanted, uint8_t *to, DType given, const uint8_t *from,
                   int64_t count) {
  assert(canConvert(wanted, given) && "asked for before");
  if (wanted == given)
    std::memcpy(to, from, static_cast<size_t>(count * byteSize(given)));
  else if (wanted == DType::F32)
    convertTo<float>(to, given, from, count);
  else if (wanted == DType::BF16)
    convertTo<BFloat16>(to, given, from, count);
  else
    convertTo<Float16>(to, given, from, count);
}

bool isBeyond(DType wanted, const HostTensor &tensor) {
  if (wanted != DType::F16 || tensor.getType() == DType::F16)
    return false;
  // Halfway to the first power of two that it has not.
  constexpr float limit = 65520;
  const uint8_t *from = tensor.data();
  for (int64_t i = 0, e = tensor.numElements(); i < e; ++i) {
    float value = 0;
    copyConverted(DType::F32, reinterpret_cast<uint8_t *>(&value),
                  tensor.getType(), from, 1);
    if (std::abs(value) >= limit && std::isfinite(value))
      return true;
    from += byteSize(tensor.getType());
  }
  return false;
}

llvm::Expected<PiecedTensor> FloatConversion::to(DType wanted,
                                                 PiecedTensor tensor) {
  if (tensor.type == wanted)
    return tensor;
  if (llvm::any_of(tensor.pieces, [&](const TensorPiece &piece) {
        return isBeyond(wanted, piece.tensor);
      }))
    return makeError(ExitCode::BadInput,
                     "some of its numbers are larger than f16 has them");
  ++counts[{tensor.type, wanted}];
  tensor.type = wanted;
  return tensor;
}

llvm::Expected<HostTensor> FloatConversion::to(DType wanted,
                                               const HostTensor &tensor) {
  auto converted = to(wanted, PiecedTensor::of(tensor));
  if (!converted)
    return converted.takeError();
  return converted->assemble();
}

void FloatConversion::tell(
    llvm::StringRef path,
    const std::function<void(const std::string &)> &warn) const {
  for (auto [types, count] : counts) {
    auto [given, wanted] = types;
    const char *become = wanted == DType::F32 ? "taken as " : "rounded to ";
    if (warn)
      warn("weights '" + path.str() + "': " + std::to_string(count) +
           (count == 1 ? " tensor is " : " tensors are ") + toString(given) +
           ", and " + become + toString(wanted));
  }
}

} // namespace ax
