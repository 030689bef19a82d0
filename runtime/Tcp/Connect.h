//===- Connect.h - How processes get their connections ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_TCP_CONNECT_H
#define AX_RUNTIME_TCP_CONNECT_H

#include "ax/Runtime/World.h"

#include <chrono>

namespace ax::rt::tcp {

/// A socket that is closed with it.
class Socket {
public:
  Socket() = default;
  explicit Socket(int file) : file(file) {}
  Socket(Socket &&other) noexcept : file(other.file) { other.file = -1; }
  Socket &operator=(Socket &&other) noexcept {
    std::swap(file, other.file);
    return *this;
  }
  ~Socket() { close(); }
  void close();
  int get() const { return file; }
  explicit operator bool() const { return file >= 0; }

private:
  int file = -1;
};

/// Another process, and the connection to it, which does not block.
struct Peer {
  std::string host;
  Socket socket;
};

/// Returns one for each process of the world; this one's has no connection.
/// Errors are those of TcpMesh::connect.
llvm::Expected<std::vector<Peer>> connectAll(World &world,
                                             llvm::StringRef address,
                                             std::chrono::milliseconds timeout);

} // namespace ax::rt::tcp

#endif // AX_RUNTIME_TCP_CONNECT_H
