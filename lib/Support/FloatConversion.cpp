//===- FloatConversion.cpp - Floats in the type that is wanted ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/FloatConversion.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"

#include <cassert>
#include <cmath>
#include <cstring>

namespace ax {

static bool isHalf(DType type) {
  return type == DType::BF16 || type == DType::F16;
}

bool canConvert(DType wanted, DType given) {
  return given == wanted || (wanted == DType::F32 && isHalf(given)) ||
         (given == DType::F32 && isHalf(wanted));
}

template <typename To, typename From>
static void convert(uint8_t *to, const uint8_t *from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from, sizeof(From));
    To converted(static_cast<float>(value));
    std::memcpy(to, &converted, sizeof(To));
    from += sizeof(From);
    to += sizeof(To);
  }
}

void copyConverted(DType wanted, uint8_t *to, DType given, const uint8_t *from,
                   int64_t count) {
  assert(canConvert(wanted, given) && "asked for before");
  if (wanted == given)
    std::memcpy(to, from, static_cast<size_t>(count * byteSize(given)));
  else if (wanted == DType::BF16)
    convert<BFloat16, float>(to, from, count);
  else if (wanted == DType::F16)
    convert<Float16, float>(to, from, count);
  else if (given == DType::BF16)
    convert<float, BFloat16>(to, from, count);
  else
    convert<float, Float16>(to, from, count);
}

/// Whether a finite number of f32 would become infinite as f16.
static bool isBeyondF16(const HostTensor &tensor) {
  // Halfway to the first power of two that it has not.
  constexpr float limit = 65520;
  return tensor.getType() == DType::F32 &&
         llvm::any_of(tensor.values<float>(), [](float value) {
           return std::abs(value) >= limit && std::isfinite(value);
         });
}

llvm::Expected<PiecedTensor> FloatConversion::to(DType wanted,
                                                 PiecedTensor tensor) {
  if (tensor.type == wanted)
    return tensor;
  if (wanted == DType::F16 &&
      llvm::any_of(tensor.pieces, [](const TensorPiece &piece) {
        return isBeyondF16(piece.tensor);
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
