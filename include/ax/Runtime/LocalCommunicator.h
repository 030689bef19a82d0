//===- LocalCommunicator.h - Ranks that are threads -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Threads of one process read each other's buffers directly. An all-reduce
// gives the same bits on every rank and from run to run: every element is
// reduced once, in the order of the group, by one rank.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_LOCALCOMMUNICATOR_H
#define AX_RUNTIME_LOCALCOMMUNICATOR_H

#include "ax/Runtime/Communicator.h"

namespace ax::rt {

/// Returns one communicator per rank. They share state and may outlive each
/// other.
std::vector<std::unique_ptr<Communicator>>
createLocalCommunicators(int32_t numRanks,
                         const CommunicatorOptions &options = {});

} // namespace ax::rt

#endif // AX_RUNTIME_LOCALCOMMUNICATOR_H
