//===- LayoutText.h - Layouts and sub-axes from text ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SHARDING_LAYOUTTEXT_H
#define AX_SHARDING_LAYOUTTEXT_H

#include "ax/Sharding/Layout.h"

#include <string_view>

namespace ax::sharding {

struct ParsedLayout {
  std::optional<Layout> layout;
  /// What is wrong, with the offset in the text; empty when it parsed.
  std::string fault;
};

/// Reads what toString(layout, mesh) writes:
/// `[{data, micro}, {}, 3 * 8{col} * 64], partial sum {row}`. `shape` gives the
/// sizes of dimensions written by their axes alone. The result is canonical
/// and legal (see findFault).
ParsedLayout parseLayout(std::string_view text,
                         const std::vector<int64_t> &shape, const Mesh &mesh);

} // namespace ax::sharding

#endif // AX_SHARDING_LAYOUTTEXT_H
