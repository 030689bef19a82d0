//===- DType.h - Element types of tensors -----------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SUPPORT_DTYPE_H
#define AX_SUPPORT_DTYPE_H

#include "ax/Support/Float8.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace ax {

/// Element types. Stored in memory as their size says; Bool as one byte, 0 or
/// 1. The numbers are internal: files use the names.
enum class DType : uint8_t {
  F32,
  F64,
  F16,
  BF16,
  I8,
  I16,
  I32,
  I64,
  U8,
  U16,
  U32,
  U64,
  Bool,
  F8E4M3FN,
  F8E5M2,
};

/// Bytes of one element.
int64_t byteSize(DType type);
/// `f32`, `bf16`, `i64`, `u8`, `bool`, `f8E4M3FN`.
const char *toString(DType type);
/// Inverse of toString; nothing for any other text.
std::optional<DType> parseDType(llvm::StringRef name);

bool isFloat(DType type);
/// The two of eight bits.
inline bool isFloat8(DType type) {
  return type == DType::F8E4M3FN || type == DType::F8E5M2;
}
/// Signed or unsigned integer; not Bool.
bool isInteger(DType type);
bool isUnsigned(DType type);

template <typename T>
struct TypeTag {
  using type = T;
};

/// The C++ type of the elements: Float16, BFloat16 and those of 8 bits convert
/// from and to float; Bool is `bool`.
template <typename T>
constexpr DType dtypeOf();

/// Calls `fn(TypeTag<T>())` with T the C++ type of `type`, and returns what it
/// returns.
template <typename Fn>
decltype(auto) visitDType(DType type, Fn &&fn) {
  switch (type) {
  case DType::F32:
    return fn(TypeTag<float>());
  case DType::F64:
    return fn(TypeTag<double>());
  case DType::F16:
    return fn(TypeTag<Float16>());
  case DType::BF16:
    return fn(TypeTag<BFloat16>());
  case DType::I8:
    return fn(TypeTag<int8_t>());
  case DType::I16:
    return fn(TypeTag<int16_t>());
  case DType::I32:
    return fn(TypeTag<int32_t>());
  case DType::I64:
    return fn(TypeTag<int64_t>());
  case DType::U8:
    return fn(TypeTag<uint8_t>());
  case DType::U16:
    return fn(TypeTag<uint16_t>());
  case DType::U32:
    return fn(TypeTag<uint32_t>());
  case DType::U64:
    return fn(TypeTag<uint64_t>());
  case DType::Bool:
    return fn(TypeTag<bool>());
  case DType::F8E4M3FN:
    return fn(TypeTag<Float8E4M3FN>());
  case DType::F8E5M2:
    return fn(TypeTag<Float8E5M2>());
  }
  __builtin_unreachable();
}

template <>
constexpr DType dtypeOf<float>() {
  return DType::F32;
}
template <>
constexpr DType dtypeOf<double>() {
  return DType::F64;
}
template <>
constexpr DType dtypeOf<Float16>() {
  return DType::F16;
}
template <>
constexpr DType dtypeOf<BFloat16>() {
  return DType::BF16;
}
template <>
constexpr DType dtypeOf<int8_t>() {
  return DType::I8;
}
template <>
constexpr DType dtypeOf<int16_t>() {
  return DType::I16;
}
template <>
constexpr DType dtypeOf<int32_t>() {
  return DType::I32;
}
template <>
constexpr DType dtypeOf<int64_t>() {
  return DType::I64;
}
template <>
constexpr DType dtypeOf<uint8_t>() {
  return DType::U8;
}
template <>
constexpr DType dtypeOf<uint16_t>() {
  return DType::U16;
}
template <>
constexpr DType dtypeOf<uint32_t>() {
  return DType::U32;
}
template <>
constexpr DType dtypeOf<uint64_t>() {
  return DType::U64;
}
template <>
constexpr DType dtypeOf<bool>() {
  return DType::Bool;
}
template <>
constexpr DType dtypeOf<Float8E4M3FN>() {
  return DType::F8E4M3FN;
}
template <>
constexpr DType dtypeOf<Float8E5M2>() {
  return DType::F8E5M2;
}

} // namespace ax

#endif // AX_SUPPORT_DTYPE_H
