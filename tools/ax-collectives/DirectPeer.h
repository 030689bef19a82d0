//===- DirectPeer.h - What threads can do at best ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_COLLECTIVES_DIRECTPEER_H
#define AX_TOOLS_COLLECTIVES_DIRECTPEER_H

#include "Measure.h"

namespace ax {

/// The peer of each of `ranks` threads: it reads the others' memory, and nobody
/// waits for anybody, which is what a collective over shared memory comes near
/// to at best.
std::vector<std::unique_ptr<Peer>> createDirectPeers(int32_t ranks);

} // namespace ax

#endif // AX_TOOLS_COLLECTIVES_DIRECTPEER_H
