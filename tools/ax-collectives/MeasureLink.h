//===- MeasureLink.h - How fast ranks reach each other ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_COLLECTIVES_MEASURELINK_H
#define AX_TOOLS_COLLECTIVES_MEASURELINK_H

#include "CaseRun.h"
#include "Team.h"

#include "ax/Cost/FitLink.h"

namespace ax {

/// Measures collectives of a few kinds and sizes over this rank's group, while
/// the other groups do the same: each rank of the team is in one, and all have
/// as many ranks, two or more. The slowest rank's times count; every rank gets
/// the same result.
llvm::Expected<cost::LinkFit>
measureLink(rt::Communicator &comm, rt::Device &device, Team &team,
            const std::shared_ptr<rt::Group> &group,
            const Reductions &reductions);

} // namespace ax

#endif // AX_TOOLS_COLLECTIVES_MEASURELINK_H
