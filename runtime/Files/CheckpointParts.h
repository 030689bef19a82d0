//===- CheckpointParts.h - Where parts of a tensor lie ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CHECKPOINTPARTS_H
#define AX_RUNTIME_CHECKPOINTPARTS_H

#include "ax/Support/PiecedTensor.h"

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
  bool take(const ElementBox &box);

private:
  bool take(int64_t begin, int64_t count);

  static constexpr int64_t wordBits = 64;
  std::vector<uint64_t> words;
};

/// Reads a box; gives nothing for one that is not inside of `total` elements.
std::optional<ElementBox> readBox(const llvm::json::Object &part,
                                  int64_t total);

/// Reads how a state of that shape is dealt; gives nothing for what is no order
/// of it.
std::optional<Dealt> readDealt(const llvm::json::Value &value,
                               llvm::ArrayRef<int64_t> shape);

} // namespace ax::rt

#endif // AX_RUNTIME_CHECKPOINTPARTS_H
