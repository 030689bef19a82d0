//===- GivenWeights.cpp - Weights of a file for those of a model ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/GivenWeights.h"

#include "ax/Support/Checksum.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace ax {

std::string withoutNumbers(llvm::StringRef name) {
  std::string result;
  for (char c : name)
    if (!llvm::isDigit(c))
      result += c;
    else if (result.empty() || result.back() != '#')
      result += '#';
  return result;
}

bool isComputedBuffer(llvm::StringRef name) {
  static constexpr llvm::StringLiteral names[] = {"inv_freq",
                                                  "original_inv_freq",
                                                  "position_ids",
                                                  "cos_cached",
                                                  "sin_cached",
                                                  "masked_bias",
                                                  "relative_position_index",
                                                  "num_batches_tracked"};
  return llvm::is_contained(names, name.substr(name.rfind('.') + 1));
}

bool isOfLayers(DType type, llvm::ArrayRef<uint8_t> elements,
                bool isQuantised) {
  bool isNarrow = type == DType::I8 || type == DType::U8 ||
                  type == DType::I16 || type == DType::U16 ||
                  (isQuantised && type == DType::I32);
  bool isMask = !elements.empty() &&
                llvm::all_of(elements, [](uint8_t byte) { return byte <= 1; });
  return isFloat(type) || (isNarrow && !isMask);
}

std::string fingerprintOf(const HostTensor &tensor) {
  return toString(tensor.getType()) + std::string(":") +
         checksumOf(tensor.rawBytes());
}

std::optional<DType> typeOfFingerprint(llvm::StringRef fingerprint) {
  constexpr size_t numDigits = 16;
  auto [type, digits] = fingerprint.split(':');
  if (digits.size() != numDigits || !llvm::all_of(digits, llvm::isHexDigit))
    return std::nullopt;
  return parseDType(type);
}

std::string listSome(llvm::ArrayRef<std::string> names, size_t most) {
  std::string text;
  for (const std::string &name : names.take_front(most))
    text += (text.empty() ? "'" : ", '") + name + "'";
  if (names.size() > most)
    text += " and " + std::to_string(names.size() - most) + " more";
  return text;
}

} // namespace ax
