//===- NcclOperations.h - Exchanges that NCCL does --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_NCCL_NCCLOPERATIONS_H
#define AX_RUNTIME_NCCL_NCCLOPERATIONS_H

#include "NcclPlan.h"
#include "NcclWorld.h"

namespace ax::rt::nccl {

/// What an operation has of its rank, which it keeps.
struct RankLink {
  std::shared_ptr<NcclWorld> world;
  std::shared_ptr<NcclLink> link;
};

/// Makes member `index` of a collective: `specs` have no fault, and types that
/// can be reduced if they reduce.
llvm::Expected<std::unique_ptr<StreamOperation>>
makeNcclCollective(RankLink rank, std::shared_ptr<NcclComm> comm, int32_t index,
                   const CollectiveSpecs &specs, const std::string &name);

/// Makes a message to, or from, member `peer` of `comm`, which has all ranks.
llvm::Expected<std::unique_ptr<StreamOperation>>
makeNcclMessage(RankLink rank, std::shared_ptr<NcclComm> comm, int32_t peer,
                bool isSend, int64_t bytes, const std::string &name);

} // namespace ax::rt::nccl

#endif // AX_RUNTIME_NCCL_NCCLOPERATIONS_H
