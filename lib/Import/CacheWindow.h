//===- CacheWindow.h - Keys and values of the last positions ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_CACHEWINDOW_H
#define AX_LIB_IMPORT_CACHEWINDOW_H

#include "Emitter.h"

namespace ax::import {

/// A cache for attention to the last `window` positions, with `rows` of them,
/// at least as many. It holds positions one behind the other from its first row
/// on; how many, follows from how many there were: all for which there is
/// room, and when one more comes the first rows - window + 1 go. E.g. a window
/// of 2 in 4 rows, after positions 0 to 5: [0], .., [0 1 2 3], [3 4], [3 4 5].
struct CacheWindow {
  int64_t rows, window;
  /// How many positions there were before, [batch or 1, 1], and are now,
  /// [batch, 1], i64.
  Value before, after;

  /// What it holds afterwards, [batch, heads, rows, width], of what it held and
  /// the new ones, [batch, heads, rows + new, width]; zeros behind.
  Value slide(Emitter &b, Value all) const;
  /// Which of `all` each of the `count` new ones sees, [batch or 1, 1, count,
  /// rows + count].
  Value visible(Emitter &b, int64_t count) const;

private:
  /// Of how many positions.
  Value numHeld(Emitter &b, Value count) const;
};

} // namespace ax::import

#endif // AX_LIB_IMPORT_CACHEWINDOW_H
