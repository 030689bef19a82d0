//===- Bands.h - What masks have between diagonals --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_RAISE_BANDS_H
#define AX_PASSES_RAISE_BANDS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace ax {

/// A tensor of [.., rows, columns] in bands from its lower left to its upper
/// right. In row i and column j it has what the first band has that ends at j -
/// i or behind; the last one has no end. So causality is {{0}, {true, false}},
/// and with a window of four {{-4, 0}, {false, true, false}}.
template <typename Part>
struct Bands {
  /// No mask that is used has more.
  static constexpr size_t mostEnds = 8;

  /// Each is larger than the one before it.
  llvm::SmallVector<int64_t, 2> ends;
  /// One more than ends; neighbours differ.
  llvm::SmallVector<Part, 3> parts;

  static Bands everywhere(Part part) { return {{}, {std::move(part)}}; }
  bool isUniform() const { return ends.empty(); }
  /// Where j - i is `difference`.
  const Part &at(int64_t difference) const {
    return parts[llvm::lower_bound(ends, difference) - ends.begin()];
  }
  const Part &last() const { return parts.back(); }

  void append(int64_t end, Part part) {
    ends.push_back(end);
    parts.push_back(std::move(part));
  }
  /// Neighbours that are the same become one.
  void join() {
    for (size_t i = ends.size(); i-- > 0;)
      if (parts[i] == parts[i + 1]) {
        ends.erase(ends.begin() + i);
        parts.erase(parts.begin() + i);
      }
  }
  /// Without bands in which a tensor of that shape has no element.
  void crop(llvm::ArrayRef<int64_t> shape) {
    int64_t rows = shape[shape.size() - 2], columns = shape.back();
    while (!ends.empty() && ends.back() >= columns - 1) {
      ends.pop_back();
      parts.pop_back();
    }
    while (!ends.empty() && ends.front() < 1 - rows) {
      ends.erase(ends.begin());
      parts.erase(parts.begin());
    }
  }
};

/// What `fn` makes of the parts of several tensors, where they overlap. None
/// where it makes nothing of some, or there are too many.
template <typename To, typename Part, typename Fn>
std::optional<Bands<To>> mapBands(llvm::ArrayRef<Bands<Part>> operands, Fn fn) {
  llvm::SmallVector<int64_t> ends;
  for (const Bands<Part> &operand : operands)
    ends.append(operand.ends.begin(), operand.ends.end());
  llvm::sort(ends);
  ends.erase(llvm::unique(ends), ends.end());
  if (ends.size() > Bands<To>::mostEnds)
    return std::nullopt;
  Bands<To> result;
  for (size_t i = 0; i <= ends.size(); ++i) {
    llvm::SmallVector<Part> parts;
    for (const Bands<Part> &operand : operands)
      parts.push_back(i < ends.size() ? operand.at(ends[i]) : operand.last());
    std::optional<To> made = fn(parts);
    if (!made)
      return std::nullopt;
    result.parts.push_back(std::move(*made));
  }
  result.ends.assign(ends.begin(), ends.end());
  result.join();
  return result;
}

} // namespace ax

#endif // AX_PASSES_RAISE_BANDS_H
