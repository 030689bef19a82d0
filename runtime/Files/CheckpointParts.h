//===- CheckpointParts.h - Where parts of a tensor lie ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CHECKPOINTPARTS_H
#define AX_RUNTIME_CHECKPOINTPARTS_H

#include "ax/Support/HostTensor.h"

#include "llvm/Support/JSON.h"

#include <optional>
#include <vector>

namespace ax::rt {

/// One number for each dimension, none of them negative; nothing where there
/// are other things.
std::optional<std::vector<int64_t>> numbersIn(const llvm::json::Object &object,
                                              llvm::StringRef key);

/// Which elements of a tensor some part has.
class Taken {
public:
  explicit Taken(int64_t elements);

  /// False when one of them is taken already.
  bool take(int64_t begin, int64_t count);

private:
  static constexpr int64_t wordBits = 64;
  std::vector<uint64_t> words;
};

/// Where a part's elements lie in the global tensor, in elements.
struct Box {
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
  int64_t count = 0;

  /// Reads a box; gives nothing for one that is not inside of `total` elements.
  static std::optional<Box> read(const llvm::json::Object &part, int64_t total);

  bool isAll(int64_t total) const {
    return sizes.size() == 1 && sizes[0] == total;
  }
  /// False when one of the elements is taken already.
  bool take(Taken &taken) const { return count == 0 || take(taken, offset, 0); }
  void copy(const uint8_t *from, uint8_t *to, int64_t elementBytes) const {
    if (count)
      visit(from, to + offset * elementBytes, elementBytes, 0);
  }

private:
  bool isRun(size_t dim) const {
    return dim + 1 == sizes.size() && strides[dim] == 1;
  }
  bool take(Taken &taken, int64_t at, size_t dim) const;
  void visit(const uint8_t *&from, uint8_t *to, int64_t elementBytes,
             size_t dim) const;
};

} // namespace ax::rt

#endif // AX_RUNTIME_CHECKPOINTPARTS_H
