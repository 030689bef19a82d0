//===- CheckpointParts.cpp - Where parts of a tensor lie ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CheckpointParts.h"

#include "ax/Runtime/Safetensors.h"

#include <algorithm>

namespace ax::rt {

namespace json = llvm::json;

std::optional<std::vector<int64_t>> numbersIn(const json::Object &object,
                                              llvm::StringRef key) {
  const json::Array *array = object.getArray(key);
  if (!array || array->size() > mostDims)
    return std::nullopt;
  std::vector<int64_t> numbers;
  for (const json::Value &value : *array) {
    std::optional<int64_t> number = value.getAsInteger();
    if (!number || *number < 0)
      return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

Taken::Taken(int64_t elements)
    : words(static_cast<size_t>((elements + wordBits - 1) / wordBits)) {}

bool Taken::take(const ElementBox &box) {
  return box.forEachRun(
      [&](int64_t at, int64_t count, int64_t) { return take(at, count); });
}

bool Taken::take(int64_t begin, int64_t count) {
  for (int64_t at = begin, end = begin + count; at < end;) {
    int64_t bit = at % wordBits, length = std::min(wordBits - bit, end - at);
    uint64_t ones = ~uint64_t(0) >> (wordBits - length) << bit;
    uint64_t &word = words[static_cast<size_t>(at / wordBits)];
    if (word & ones)
      return false;
    word |= ones;
    at += length;
  }
  return true;
}

std::optional<ElementBox> readBox(const json::Object &part, int64_t total) {
  auto offset = part.getInteger("offset");
  auto sizes = numbersIn(part, "sizes"), strides = numbersIn(part, "strides");
  if (!offset || *offset < 0 || !sizes || !strides ||
      sizes->size() != strides->size())
    return std::nullopt;
  auto count = checkedNumElements(*sizes);
  if (!count || *offset > total - std::min<int64_t>(*count, 1))
    return std::nullopt;
  int64_t last = *offset;
  for (auto [size, stride] : llvm::zip(*sizes, *strides)) {
    if (*count && size > 1 &&
        (stride < 1 || stride > (total - 1 - last) / (size - 1)))
      return std::nullopt;
    last += *count ? (size - 1) * stride : 0;
  }
  return ElementBox{*offset, std::move(*sizes), std::move(*strides), *count};
}

std::optional<Dealt> readDealt(const json::Value &value,
                               llvm::ArrayRef<int64_t> shape) {
  const json::Object *object = value.getAsObject();
  auto dim = object ? object->getInteger("dim") : std::nullopt;
  auto hands = object ? object->getInteger("hands") : std::nullopt;
  const json::Array *sizes = object ? object->getArray("parts") : nullptr;
  if (!dim || !hands || !sizes)
    return std::nullopt;
  Dealt dealt{*dim, {}, *hands};
  for (const json::Value &size : *sizes)
    dealt.parts.push_back(size.getAsInteger().value_or(0));
  return dealt.findFault(shape) ? std::nullopt : std::optional(dealt);
}

} // namespace ax::rt
