//===- Report.h - What was found, for people --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXANALYZEFLIGHT_REPORT_H
#define AX_TOOLS_AXANALYZEFLIGHT_REPORT_H

#include "Analysis.h"

#include "llvm/Support/raw_ostream.h"

namespace ax::flight {

/// First why there are records, then who fell out, who waits, and what ranks
/// disagree on. Control characters of files do not get to a terminal.
void printReport(const Records &records, const Analysis &analysis,
                 llvm::raw_ostream &os);

} // namespace ax::flight

#endif // AX_TOOLS_AXANALYZEFLIGHT_REPORT_H
