//===- Listener.h - Where a process is found --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_LISTENER_H
#define AX_RUNTIME_LISTENER_H

#include "ax/Runtime/Control.h"

namespace ax::rt::control {

/// A socket that listens. Whoever takes it (ZeroMQ) closes it.
struct Listener {
  int socket = -1;
  ControlAddress address;
};

/// `address` is that of ControlOptions. A Usage error where it is none of this
/// host's, or is in use. The key is a random one.
llvm::Expected<Listener> listenAt(llvm::StringRef address);

/// Returns the addresses of a host in digits. A Usage error where there is
/// none.
llvm::Expected<std::vector<std::string>> resolveHost(const std::string &name);

/// Whether the system that has an address says that nobody listens at it; false
/// where it says nothing.
bool isRefused(const std::string &host, uint16_t port);

/// Process 0 has a connection of each other process, and may have to be allowed
/// more open files. A Usage error where it cannot have as many.
llvm::Error reserveFiles(size_t numProcesses);

/// Why there are fewer connections than processes. `error`: EMFILE where the
/// process has as many files open as it may, ENFILE where the system has.
std::string describeFewFiles(size_t numProcesses, int error);

/// From now on nobody connects: requests to do so are dropped, and who has done
/// it stays connected.
void refuseStrangers(int socket);

} // namespace ax::rt::control

#endif // AX_RUNTIME_LISTENER_H
