//===- Renaming.cpp - The same pieces, dealt to other ranks ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Renaming.h"

#include "ax/Sharding/Digits.h"

namespace ax::sharding::detail {

/// How a dimension falls into pieces, whoever holds them: sizes of the digits
/// in turn, negative for digits counted locally. `3 * 64{col}` is -3, 4, -16,
/// and so is `3 * 64{row, data}` with row = data = 2: both are a renaming of
/// the other.
static std::vector<int64_t> piecesOf(const DimLayout &dim) {
  std::optional<Digits> digits = digitsOf(dim);
  if (!digits)
    return {dim.size(), 0, numParts(dim.axes())};
  std::vector<int64_t> pieces;
  for (const Digit &digit : *digits) {
    if (digit.isSplit() && !pieces.empty() && pieces.back() > 0)
      pieces.back() *= digit.size;
    else
      pieces.push_back(digit.isSplit() ? digit.size : -digit.size);
  }
  return pieces;
}

std::optional<Renaming> renamingOf(const DimLayout &from, const DimLayout &to) {
  if (piecesOf(from) != piecesOf(to))
    return std::nullopt;
  auto before = cutAxes(from.axes(), to.axes());
  auto after = cutAxes(to.axes(), from.axes());
  if (!before || !after)
    return std::nullopt;
  // Names that stay at either end take no part: from `{a, b, c}` to `{a, c, b}`
  // b and c change, in groups in which a is the same.
  while (!before->empty() && !after->empty() &&
         before->front() == after->front()) {
    before->erase(before->begin());
    after->erase(after->begin());
  }
  while (!before->empty() && !after->empty() &&
         before->back() == after->back()) {
    before->pop_back();
    after->pop_back();
  }
  return Renaming{*before, *after};
}

} // namespace ax::sharding::detail
