//===- HostTransfer.cpp - Boxes between host and device -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/HostTransfer.h"

#include <algorithm>
#include <cstring>

namespace ax::rt {

static StridedBox makeRun(int64_t bytes) {
  StridedBox box(bytes);
  if (bytes == 0)
    box.addDim(0, 0, 0);
  box.finish();
  return box;
}

HostTransfer::Piece::~Piece() {
  // Its error is one of the stream, too.
  if (done)
    llvm::consumeError(done->synchronize());
}

llvm::Expected<HostTransfer::Piece *> HostTransfer::takePiece(int64_t bytes) {
  Piece &piece = pieces[numTaken++ % pieces.size()];
  if (piece.done) {
    if (llvm::Error error = piece.done->synchronize())
      return error;
  } else {
    llvm::Expected<std::unique_ptr<Event>> event = device.createEvent();
    if (!event)
      return event.takeError();
    piece.done = std::move(*event);
  }
  if (piece.memory && piece.memory->getSize() >= bytes)
    return &piece;
  piece.memory.reset();
  llvm::Expected<std::unique_ptr<PinnedMemory>> memory =
      device.allocatePinned(bytes);
  if (!memory)
    return memory.takeError();
  piece.memory = std::move(*memory);
  return &piece;
}

llvm::Error HostTransfer::upload(const StridedBox &box, const void *host,
                                 DeviceAddress memory, int64_t deviceBytes) {
  bool hasGaps = box.numBytes() < deviceBytes;
  if (const HostMapping *mapping = device.getHostMapping()) {
    if (llvm::Error error = stream.synchronize())
      return error;
    void *to = mapping->toHost(memory);
    if (hasGaps)
      std::memset(to, 0, static_cast<size_t>(deviceBytes));
    box.copy(host, to);
    return llvm::Error::success();
  }
  const char *from = static_cast<const char *>(host);
  for (int64_t begin = 0; begin < deviceBytes; begin += pieceBytes) {
    int64_t size = std::min(pieceBytes, deviceBytes - begin);
    llvm::Expected<Piece *> piece = takePiece(size);
    if (!piece)
      return piece.takeError();
    char *to = static_cast<char *>((*piece)->memory->getData());
    if (hasGaps)
      std::memset(to, 0, static_cast<size_t>(size));
    box.forEachRunWithin(
        begin, begin + size,
        [&](int64_t source, int64_t destination, int64_t bytes) {
          std::memcpy(to + destination - begin, from + source,
                      static_cast<size_t>(bytes));
        });
    if (llvm::Error error =
            stream.upload(*(*piece)->memory, 0, memory + begin, size))
      return error;
    if (llvm::Error error = stream.record(*(*piece)->done))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error HostTransfer::fetch(Piece &piece, DeviceAddress memory,
                                int64_t bytes) {
  if (llvm::Error error = stream.download(memory, *piece.memory, 0, bytes))
    return error;
  return stream.record(*piece.done);
}

llvm::Error HostTransfer::download(const StridedBox &box, DeviceAddress memory,
                                   int64_t deviceBytes, void *host) {
  if (const HostMapping *mapping = device.getHostMapping()) {
    if (llvm::Error error = stream.synchronize())
      return error;
    box.copyBack(host, mapping->toHost(memory));
    return llvm::Error::success();
  }
  char *to = static_cast<char *>(host);
  // While the host unpacks one piece, the next travels.
  Piece *current = nullptr;
  for (int64_t begin = -pieceBytes; begin < deviceBytes; begin += pieceBytes) {
    Piece *next = nullptr;
    int64_t nextBegin = begin + pieceBytes;
    if (nextBegin < deviceBytes) {
      int64_t size = std::min(pieceBytes, deviceBytes - nextBegin);
      llvm::Expected<Piece *> piece = takePiece(size);
      if (!piece)
        return piece.takeError();
      next = *piece;
      if (llvm::Error error = fetch(*next, memory + nextBegin, size))
        return error;
    }
    if (Piece *arrived = std::exchange(current, next)) {
      if (llvm::Error error = arrived->done->synchronize())
        return error;
      const char *from = static_cast<const char *>(arrived->memory->getData());
      box.forEachRunWithin(
          begin, std::min(nextBegin, deviceBytes),
          [&](int64_t source, int64_t destination, int64_t bytes) {
            std::memcpy(to + source, from + destination - begin,
                        static_cast<size_t>(bytes));
          });
    }
  }
  return stream.synchronize();
}

llvm::Error HostTransfer::upload(const void *host, DeviceAddress memory,
                                 int64_t bytes) {
  return upload(makeRun(bytes), host, memory, bytes);
}

llvm::Error HostTransfer::download(DeviceAddress memory, void *host,
                                   int64_t bytes) {
  return download(makeRun(bytes), memory, bytes, host);
}

} // namespace ax::rt
