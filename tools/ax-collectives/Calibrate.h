//===- Calibrate.h - What ranks have of this machine ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_COLLECTIVES_CALIBRATE_H
#define AX_TOOLS_COLLECTIVES_CALIBRATE_H

#include "CaseRun.h"

namespace ax {

struct CalibrateOptions {
  /// Where the machine is written to, as `axopt --machine` reads it; empty: it
  /// is not what is measured.
  std::string file;
  /// The GPU that ranks have, as `sm_90`; empty: a processor.
  std::string target;
  /// Ranks on this one's host, and its number among them.
  int32_t ranksOnHost = 1, indexOnHost = 0;
};

/// Measures what each rank has while all do the same, and, on rank 0, writes
/// it to the file and prints it; every rank calls it. Errors of devices and
/// communicators. Of ranks that are not numbered host by host rank 0 alone has
/// an error, a Usage one, and so of a file that cannot be written: nobody
/// measures any more then.
llvm::Error calibrate(rt::Communicator &comm, rt::Device &device,
                      const CalibrateOptions &options,
                      const Reductions &reductions);

} // namespace ax

#endif // AX_TOOLS_COLLECTIVES_CALIBRATE_H
