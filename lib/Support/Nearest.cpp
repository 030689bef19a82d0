//===- Nearest.cpp - What a misspelled word may mean ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/Nearest.h"

#include <algorithm>

using namespace ax;

/// Two letters wrong in a short word, a third of them in a long one; not all.
static bool isNear(size_t distance, size_t length) {
  return distance <= std::max<size_t>(2, length / 3) && distance < length;
}

llvm::StringRef ax::findNearest(llvm::StringRef word,
                                llvm::ArrayRef<llvm::StringRef> known) {
  llvm::StringRef nearest;
  size_t best = ~size_t(0);
  for (llvm::StringRef name : known) {
    // What was begun and not finished is nearer than what only looks alike.
    bool isBegun = !word.empty() && name.starts_with_insensitive(word);
    bool isPart =
        isBegun || (word.size() > 3 && name.contains_insensitive(word));
    size_t distance = name == word ? 0
                      : isBegun    ? 1
                      : isPart     ? 2
                                   : word.edit_distance_insensitive(name);
    if (distance < best && (isPart || isNear(distance, name.size()))) {
      best = distance;
      nearest = name;
    }
  }
  return nearest;
}

std::string ax::suggestNearest(llvm::StringRef word,
                               llvm::ArrayRef<llvm::StringRef> known) {
  llvm::StringRef nearest = findNearest(word, known);
  return nearest.empty() ? "" : "; did you mean '" + nearest.str() + "'?";
}
