//===- CheckpointParts.cpp - Where parts of a tensor lie ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CheckpointParts.h"

#include "ax/Runtime/Safetensors.h"

#include <algorithm>
#include <cstring>

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

std::optional<Box> Box::read(const json::Object &part, int64_t total) {
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
  return Box{*offset, std::move(*sizes), std::move(*strides), *count};
}

bool Box::take(Taken &taken, int64_t at, size_t dim) const {
  if (dim == sizes.size() || isRun(dim))
    return taken.take(at, dim == sizes.size() ? 1 : sizes[dim]);
  for (int64_t i = 0; i < sizes[dim]; ++i)
    if (!take(taken, at + i * strides[dim], dim + 1))
      return false;
  return true;
}

void Box::visit(const uint8_t *&from, uint8_t *to, int64_t elementBytes,
                size_t dim) const {
  if (dim == sizes.size() || isRun(dim)) {
    int64_t bytes = elementBytes * (dim == sizes.size() ? 1 : sizes[dim]);
    std::memcpy(to, from, static_cast<size_t>(bytes));
    from += bytes;
    return;
  }
  for (int64_t i = 0; i < sizes[dim]; ++i)
    visit(from, to + i * strides[dim] * elementBytes, elementBytes, dim + 1);
}

} // namespace ax::rt
