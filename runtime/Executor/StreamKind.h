//===- StreamKind.h - What a rank's streams are for -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_STREAMKIND_H
#define AX_RUNTIME_STREAMKIND_H

#include <cstddef>

namespace ax::rt {

/// The streams of RankStreams.
enum class StreamKind { Compute, Exchange, Send, Receive, Upload, Download };

constexpr size_t numStreamKinds = 6;

constexpr const char *toString(StreamKind kind) {
  switch (kind) {
  case StreamKind::Compute:
    return "compute";
  case StreamKind::Exchange:
    return "exchange";
  case StreamKind::Send:
    return "send";
  case StreamKind::Receive:
    return "receive";
  case StreamKind::Upload:
    return "upload";
  case StreamKind::Download:
    return "download";
  }
  return "";
}

} // namespace ax::rt

#endif // AX_RUNTIME_STREAMKIND_H
