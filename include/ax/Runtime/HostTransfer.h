//===- HostTransfer.h - Boxes between host and device -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_HOSTTRANSFER_H
#define AX_RUNTIME_HOSTTRANSFER_H

#include "ax/Runtime/Device.h"
#include "ax/Runtime/StridedCopy.h"

#include <array>

namespace ax::rt {

/// Moves boxes between any memory of the host, their source, and that of a
/// stream's device, their destination, whose runs lie there in the order of
/// addresses. Where the device works on the host's memory that is one copy.
/// Elsewhere the destination is filled and emptied piece by piece through
/// pinned memory: one piece travels while the host copies the next. Errors are
/// the device's.
class HostTransfer {
public:
  /// Large enough for a link's full speed.
  static constexpr int64_t usualPieceBytes = 32 << 20;

  HostTransfer(Device &device, Stream &stream,
               int64_t pieceBytes = usualPieceBytes)
      : device(device), stream(stream), pieceBytes(pieceBytes) {}
  Stream &getStream() const { return stream; }

  /// Makes `deviceBytes` bytes what the box says, and zero where it says
  /// nothing. When it returns, the host may overwrite what it was given.
  llvm::Error upload(const StridedBox &box, const void *host,
                     DeviceAddress memory, int64_t deviceBytes);
  /// When it returns, the host has it, and all of the stream's work before is
  /// done.
  llvm::Error download(const StridedBox &box, DeviceAddress memory,
                       int64_t deviceBytes, void *host);

  /// Move `bytes` bytes in one run.
  llvm::Error upload(const void *host, DeviceAddress memory, int64_t bytes);
  llvm::Error download(DeviceAddress memory, void *host, int64_t bytes);

private:
  struct Piece {
    Piece() = default;
    Piece(Piece &&) = default;
    /// Waits for what uses the memory.
    ~Piece();
    std::unique_ptr<PinnedMemory> memory;
    /// What last used the memory is done.
    std::unique_ptr<Event> done;
  };
  /// Returns the piece that was used less recently, with so many bytes of
  /// which nothing is in use.
  llvm::Expected<Piece *> takePiece(int64_t bytes);
  llvm::Error fetch(Piece &piece, DeviceAddress memory, int64_t bytes);

  Device &device;
  Stream &stream;
  int64_t pieceBytes;
  std::array<Piece, 2> pieces;
  size_t numTaken = 0;
};

} // namespace ax::rt

#endif // AX_RUNTIME_HOSTTRANSFER_H
