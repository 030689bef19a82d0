//===- Float8.h - f8E4M3FN and f8E5M2 in software ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Micikevicius et al., arXiv 2209.05433. Conversions round to nearest, ties to
// even, and saturate, as instructions of GPUs do: what is larger than the
// largest finite number, infinity too, becomes that; NaN stays NaN, subnormals
// are kept. From double there is one rounding only.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SUPPORT_FLOAT8_H
#define AX_SUPPORT_FLOAT8_H

#include "ax/Support/Float16.h"

namespace ax {

/// What the two formats differ in. Behind the sign are an exponent, of which
/// `bias` is taken away, and the mantissa.
struct Float8Format {
  uint32_t mantissaBits, bias;
  /// The largest finite number, and a NaN.
  uint8_t largest, nan;
  /// Whether an exponent of ones is infinity or NaN; otherwise there is no
  /// infinity, and `nan` alone is none.
  bool hasInfinity;

  /// Bits of f32 that it has not.
  AX_ALWAYS_INLINE constexpr uint32_t dropped() const {
    return 23 - mantissaBits;
  }
  /// What f32's exponent has on top, in its place.
  AX_ALWAYS_INLINE constexpr uint32_t rebase() const {
    return (127 - bias) << 23;
  }
  /// Bits of an f32: the largest number, the smallest normal one, the distance
  /// of subnormal ones, and the number whose last bit is as much as that.
  AX_ALWAYS_INLINE constexpr uint32_t largestF32() const {
    return (static_cast<uint32_t>(largest) << dropped()) + rebase();
  }
  AX_ALWAYS_INLINE constexpr uint32_t normalF32() const {
    return rebase() + (1u << 23);
  }
  AX_ALWAYS_INLINE constexpr uint32_t unitF32() const {
    return rebase() + ((1u - mantissaBits) << 23);
  }
  AX_ALWAYS_INLINE constexpr uint32_t alignerF32() const {
    return unitF32() + (23u << 23);
  }
};

inline constexpr Float8Format f8E4M3FN = {3, 7, 0x7e, 0x7f, false},
                              f8E5M2 = {2, 15, 0x7b, 0x7e, true};

template <const Float8Format &format>
AX_ALWAYS_INLINE uint8_t floatToF8Bits(float value) {
  uint32_t bits = floatBits(value);
  uint32_t sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return static_cast<uint8_t>(sign | format.nan);
  if (magnitude > format.largestF32())
    magnitude = format.largestF32();
  if (magnitude < format.normalF32()) {
    // As in floatToF16Bits: the hardware rounds the sum.
    float aligned =
        floatFromBits(magnitude) + floatFromBits(format.alignerF32());
    return static_cast<uint8_t>(sign |
                                (floatBits(aligned) - format.alignerF32()));
  }
  uint32_t rebased = magnitude - format.rebase();
  uint32_t last = (rebased >> format.dropped()) & 1u;
  uint32_t belowHalf = (1u << (format.dropped() - 1)) - 1;
  return static_cast<uint8_t>(
      sign | ((rebased + belowHalf + last) >> format.dropped()));
}

template <const Float8Format &format>
AX_ALWAYS_INLINE float f8BitsToFloat(uint8_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24;
  uint32_t magnitude = bits & 0x7fu;
  if (!format.hasInfinity && magnitude == format.nan)
    return floatFromBits(sign | 0x7fc00000u);
  if (format.hasInfinity && magnitude > format.largest)
    return floatFromBits(sign | (magnitude << format.dropped()) | 0x7f800000u);
  if (magnitude < (1u << format.mantissaBits)) {
    float value =
        static_cast<float>(magnitude) * floatFromBits(format.unitF32());
    return floatFromBits(sign | floatBits(value));
  }
  return floatFromBits(sign |
                       ((magnitude << format.dropped()) + format.rebase()));
}

/// A number of eight bits. Arithmetic is done in float.
template <const Float8Format &format>
struct Float8 {
  uint8_t bits = 0;

  Float8() = default;
  Float8(float value) : bits(floatToF8Bits<format>(value)) {}
  Float8(double value) : bits(floatToF8Bits<format>(roundToOdd(value))) {}
  template <typename T>
  explicit Float8(T value) : Float8(static_cast<double>(value)) {}
  static Float8 fromBits(uint8_t bits) {
    Float8 value;
    value.bits = bits;
    return value;
  }
  operator float() const { return f8BitsToFloat<format>(bits); }
};

/// Precise, up to 448, without infinity: for weights and activations.
using Float8E4M3FN = Float8<f8E4M3FN>;
/// Up to 57344, with infinity: for gradients.
using Float8E5M2 = Float8<f8E5M2>;

} // namespace ax

#endif // AX_SUPPORT_FLOAT8_H
