//===- NcclSeats.h - Where the ranks of NCCL compute ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_NCCL_NCCLSEATS_H
#define AX_RUNTIME_NCCL_NCCLSEATS_H

#include "Nccl.h"

#include "ax/Runtime/CudaHandles.h"

namespace ax::rt::nccl {

/// Where a rank computes, and with which NCCL. Plain bytes, which ranks tell
/// each other.
struct Seat {
  char host[256] = {};
  /// Another process may have another number for it.
  int32_t card = 0;
  /// NCCL's number of itself.
  int32_t version = 0;
  cuda::CardIdentity identity = {};
};

llvm::Expected<Seat> seatOf(const Device &device, const Nccl &library);

/// Looks at the seats of all ranks. A Usage error where NCCL is not the same
/// everywhere, as it asks for itself: of its drivers it asks nothing.
llvm::Error checkVersions(llvm::ArrayRef<Seat> seats);

/// Returns whether two ranks have one card: a Usage error, unless NCCL is told
/// to do with that.
llvm::Expected<bool> findSharing(llvm::ArrayRef<Seat> seats);

} // namespace ax::rt::nccl

#endif // AX_RUNTIME_NCCL_NCCLSEATS_H
