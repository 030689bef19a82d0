//===- RankStreams.h - The streams of one rank ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_RANKSTREAMS_H
#define AX_RUNTIME_RANKSTREAMS_H

#include "StreamKind.h"

#include "ax/Runtime/Device.h"

namespace ax::rt {

/// Work that goes on beside the rank's computing, and where the two meet.
class SideStream {
public:
  explicit SideStream(StreamKind kind) : kind(kind) {}
  llvm::Error create(Device &device);
  Stream &get() const { return *stream; }
  StreamKind getKind() const { return kind; }

  /// What it gets next comes after all that `compute` holds.
  llvm::Error enter(Stream &compute);
  /// What `compute` gets next comes after all that it holds.
  llvm::Error leave(Stream &compute);

private:
  StreamKind kind;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Event> entered, left;
};

/// Kernels, library operations and copies are put on `compute`, collectives on
/// `exchange`, messages to and from other stages on `send` and `receive`, and
/// what goes between host and device on `upload` and `download`: what comes
/// down waits for what was computed last, what goes up does not.
struct RankStreams {
  /// Exchanges and messages come first, since other ranks wait for them.
  static llvm::Expected<RankStreams> create(Device &device);

  std::unique_ptr<Stream> compute, upload, download;
  SideStream exchange{StreamKind::Exchange}, send{StreamKind::Send},
      receive{StreamKind::Receive};
};

} // namespace ax::rt

#endif // AX_RUNTIME_RANKSTREAMS_H
