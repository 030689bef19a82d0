//===- MessageCommunicator.h - Ranks that are processes ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A communicator of the host's memory, made of messages: who carries these
// (MPI, TCP) is a table. Results have the bits of communicator `local`.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_MESSAGECOMMUNICATOR_H
#define AX_RUNTIME_MESSAGECOMMUNICATOR_H

#include "ax/Runtime/Communicator.h"
#include "ax/Runtime/MessageTable.h"
#include "ax/Runtime/World.h"

#include "llvm/ADT/Twine.h"

namespace ax::rt {

/// Success, or a RunFailed error: `what: MPI: text`.
llvm::Error check(const AxMessageTable &carrier, int error,
                  const llvm::Twine &what);

/// Makes the communicator of a process's rank among the processes
/// 0 .. numRanks - 1, of which each makes the call. A Usage error where this
/// is none of them.
llvm::Expected<std::unique_ptr<Communicator>>
createMessageCommunicator(const AxMessageTable &carrier,
                          const ProcessPlace &place, int32_t numRanks,
                          const CommunicatorOptions &options);

/// A Usage error where this process does not run one rank, that of its number,
/// of as many as there are processes. `name`: the communicator's.
llvm::Error checkProcesses(llvm::StringRef name, const ProcessPlace &place,
                           int32_t numRanks,
                           const CommunicatorOptions &options);

} // namespace ax::rt

#endif // AX_RUNTIME_MESSAGECOMMUNICATOR_H
