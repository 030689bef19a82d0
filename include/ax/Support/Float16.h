//===- Float16.h - f16 and bf16 in software ---------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Conversions round to nearest, ties to even; NaN stays NaN, overflow gives
// infinity, subnormals are kept. From double there is one rounding only.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SUPPORT_FLOAT16_H
#define AX_SUPPORT_FLOAT16_H

#include <cstdint>
#include <cstring>

namespace ax {

// Always inline: files compiled for newer processors use them too, and must
// not leave a copy that others would be linked to.
#define AX_ALWAYS_INLINE [[gnu::always_inline]] inline

AX_ALWAYS_INLINE uint32_t floatBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
AX_ALWAYS_INLINE float floatFromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

AX_ALWAYS_INLINE uint16_t floatToBF16Bits(float value) {
  uint32_t bits = floatBits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
AX_ALWAYS_INLINE float bf16BitsToFloat(uint16_t bits) {
  return floatFromBits(static_cast<uint32_t>(bits) << 16);
}

AX_ALWAYS_INLINE uint16_t floatToF16Bits(float value) {
  uint32_t bits = floatBits(value);
  uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  // 65520 is halfway between the largest finite f16 and the next power of two.
  if (magnitude >= 0x477ff000u)
    return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // Below the smallest normal f16: adding 0.5 aligns the unit of the sum's
    // mantissa with the f16 subnormal unit, so the hardware rounds for us.
    float aligned = floatFromBits(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (floatBits(aligned) - 0x3f000000u));
  }
  uint32_t rebased = magnitude - 0x38000000u;
  return static_cast<uint16_t>(
      sign | ((rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13));
}
AX_ALWAYS_INLINE float f16BitsToFloat(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u)
    return floatFromBits(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
  if (magnitude < 0x400u) {
    float value = static_cast<float>(magnitude) * 0x1p-24f;
    return floatFromBits(sign | floatBits(value));
  }
  return floatFromBits(sign | ((magnitude << 13) + 0x38000000u));
}

/// `value` as a float whose last bit is sticky: rounding the result to fewer
/// than 23 bits is as if `value` itself had been rounded.
AX_ALWAYS_INLINE float roundToOdd(double value) {
  float nearest = static_cast<float>(value);
  double back = nearest;
  if (back == value || back != back)
    return nearest;
  uint32_t bits = floatBits(nearest);
  if ((back < 0 ? -back : back) > (value < 0 ? -value : value))
    --bits;
  return floatFromBits(bits | 1u);
}

/// IEEE half precision. Arithmetic is done in float.
struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  Float16(float value) : bits(floatToF16Bits(value)) {}
  Float16(double value) : bits(floatToF16Bits(roundToOdd(value))) {}
  template <typename T>
  explicit Float16(T value) : Float16(static_cast<double>(value)) {}
  static Float16 fromBits(uint16_t bits) {
    Float16 value;
    value.bits = bits;
    return value;
  }
  operator float() const { return f16BitsToFloat(bits); }
};

/// The upper half of a float. Arithmetic is done in float.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  BFloat16(float value) : bits(floatToBF16Bits(value)) {}
  BFloat16(double value) : bits(floatToBF16Bits(roundToOdd(value))) {}
  template <typename T>
  explicit BFloat16(T value) : BFloat16(static_cast<double>(value)) {}
  static BFloat16 fromBits(uint16_t bits) {
    BFloat16 value;
    value.bits = bits;
    return value;
  }
  operator float() const { return bf16BitsToFloat(bits); }
};

} // namespace ax

#endif // AX_SUPPORT_FLOAT16_H
