//===- Peer.h - MPI's own collectives, in a module --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_COLLECTIVES_PEER_H
#define AX_TOOLS_COLLECTIVES_PEER_H

#include <cstdint>

extern "C" {
/// The same as the case of this number (Cases.h) does, of `count` f32 that each
/// source has. Returns MPI's error code.
int axMpiPeer(int32_t kind, const float *source, float *destination,
              int64_t count);
}

#endif // AX_TOOLS_COLLECTIVES_PEER_H
