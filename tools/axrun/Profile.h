//===- Profile.h - What takes the time --------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXRUN_PROFILE_H
#define AX_TOOLS_AXRUN_PROFILE_H

#include "Report.h"

#include "llvm/Support/raw_ostream.h"

namespace ax {

/// A table of the commands of the runs that were measured and traced, the
/// longest first, computations apart from exchanges: at most `lines` of each;
/// 0: all. What each kind of them comes to stands below, and what all do.
void printProfile(const rt::Executor &executor, const Measurement &measurement,
                  int64_t lines, llvm::raw_ostream &os);

/// Returns at most `width` characters that tell which nodes: of the first one
/// the end, of the others the last part of their names, and how many more there
/// are.
std::string shortenNodes(const std::vector<std::string> &nodes, size_t width);

} // namespace ax

#endif // AX_TOOLS_AXRUN_PROFILE_H
