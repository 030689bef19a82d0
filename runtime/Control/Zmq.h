//===- Zmq.h - ZeroMQ, found at run time ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_CONTROL_ZMQ_H
#define AX_RUNTIME_CONTROL_ZMQ_H

#include "ax/Support/SharedLibrary.h"

#include "llvm/Support/Error.h"

#include <memory>
#include <string>
#include <vector>
#include <zmq.h>

namespace ax::rt::control {

/// The functions of libzmq.so.5. The library stays in the process.
struct Zmq {
#define AX_ZMQ_FUNCTION(NAME) LibraryFunction<decltype(::NAME)> NAME{#NAME};
#include "ZmqFunctions.def"

  /// A Usage error where there is none, or one that is too old.
  static llvm::Expected<const Zmq *> load();
  /// `zmq_bind: Address already in use`, of the last call.
  llvm::Error describe(const char *name) const;
};

class ZmqContext {
public:
  explicit ZmqContext(const Zmq &zmq)
      : zmq(zmq), handle(zmq.zmq_ctx_new.function()) {}
  ZmqContext(const ZmqContext &) = delete;
  /// Returns when all sockets, which have to be closed, have sent what they
  /// had, or given up.
  ~ZmqContext() { zmq.zmq_ctx_term.function(handle); }

  const Zmq &zmq;
  void *const handle;
};

/// A message of one or more frames, and which connection it came by.
struct Frames {
  std::vector<std::string> frames;
  int connection = -1;
};

/// What a socket's monitor tells.
struct SocketEvent {
  int kind = 0;
  /// Which connection; of a failure, why.
  int value = -1;
};

/// Used by one thread at a time. Sends never wait.
class ZmqSocket {
public:
  ZmqSocket(ZmqContext &context, int type)
      : zmq(context.zmq),
        handle(zmq.zmq_socket.function(context.handle, type)) {
    set(ZMQ_LINGER, 1000);
    set(ZMQ_IPV6, 1);
  }
  ZmqSocket(const ZmqSocket &) = delete;
  ~ZmqSocket() { zmq.zmq_close.function(handle); }

  void set(int option, int value) {
    zmq.zmq_setsockopt.function(handle, option, &value, sizeof(value));
  }
  void set(int option, const std::string &value) {
    zmq.zmq_setsockopt.function(handle, option, value.data(), value.size());
  }
  void setLargestFrame(int64_t bytes) {
    zmq.zmq_setsockopt.function(handle, ZMQ_MAXMSGSIZE, &bytes, sizeof(bytes));
  }
  llvm::Error bind(const std::string &endpoint);
  llvm::Error connect(const std::string &endpoint);
  /// Events go to another socket of kind ZMQ_PAIR that connects to `endpoint`.
  llvm::Error monitor(const std::string &endpoint, int events);

  /// What cannot be sent is dropped: its receiver is gone.
  void send(const std::vector<std::string> &frames);
  /// Returns the next message, or false where there is none now.
  bool receive(Frames &message);
  /// Likewise, of a socket that is connected to a monitor.
  bool receive(SocketEvent &event);

  const Zmq &zmq;
  void *const handle;
};

} // namespace ax::rt::control

#endif // AX_RUNTIME_CONTROL_ZMQ_H
