//===- Zmq.cpp - ZeroMQ, found at run time --------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Zmq.h"

#include "ax/Support/Error.h"

#include <cstring>
#include <mutex>

namespace ax::rt::control {

llvm::Expected<const Zmq *> Zmq::load() {
  static Zmq zmq;
  static bool isLoaded = false;
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  if (isLoaded)
    return &zmq;
  std::string why;
  void *opened = openLibrary("libzmq.so.5", nullptr, why);
  if (!opened)
    return makeErrorf(ExitCode::Usage,
                      "a job of several processes needs ZeroMQ (Debian's "
                      "package libzmq5): {0}",
                      why);
#define AX_ZMQ_FUNCTION(NAME)                                                  \
  if (!bindFunction(opened, #NAME, zmq.NAME))                                  \
    return makeErrorf(ExitCode::Usage,                                         \
                      "the ZeroMQ that is there has no function {0}", #NAME);
#include "ZmqFunctions.def"
  isLoaded = true;
  return &zmq;
}

llvm::Error Zmq::describe(const char *name) const {
  return makeErrorf(ExitCode::RunFailed, "control channel: {0}: {1}", name,
                    zmq_strerror.function(zmq_errno.function()));
}

llvm::Error ZmqSocket::bind(const std::string &endpoint) {
  if (zmq.zmq_bind.function(handle, endpoint.c_str()))
    return zmq.describe("zmq_bind");
  return llvm::Error::success();
}

llvm::Error ZmqSocket::connect(const std::string &endpoint) {
  if (zmq.zmq_connect.function(handle, endpoint.c_str()))
    return zmq.describe("zmq_connect");
  return llvm::Error::success();
}

llvm::Error ZmqSocket::monitor(const std::string &endpoint, int events) {
  if (zmq.zmq_socket_monitor.function(handle, endpoint.c_str(), events))
    return zmq.describe("zmq_socket_monitor");
  return llvm::Error::success();
}

void ZmqSocket::send(const std::vector<std::string> &frames) {
  for (size_t i = 0; i < frames.size(); ++i) {
    int flags = ZMQ_DONTWAIT | (i + 1 < frames.size() ? ZMQ_SNDMORE : 0);
    if (zmq.zmq_send.function(handle, frames[i].data(), frames[i].size(),
                              flags) < 0)
      return;
  }
}

bool ZmqSocket::receive(Frames &message) {
  message = {};
  bool more = true;
  while (more) {
    zmq_msg_t frame;
    zmq.zmq_msg_init.function(&frame);
    if (zmq.zmq_msg_recv.function(&frame, handle, ZMQ_DONTWAIT) < 0) {
      zmq.zmq_msg_close.function(&frame);
      return false;
    }
    message.frames.emplace_back(
        static_cast<const char *>(zmq.zmq_msg_data.function(&frame)),
        zmq.zmq_msg_size.function(&frame));
    message.connection = zmq.zmq_msg_get.function(&frame, ZMQ_SRCFD);
    more = zmq.zmq_msg_get.function(&frame, ZMQ_MORE);
    zmq.zmq_msg_close.function(&frame);
  }
  return true;
}

bool ZmqSocket::receive(SocketEvent &event) {
  Frames message;
  if (!receive(message))
    return false;
  // Sixteen bits of kind, and thirty-two of value.
  const std::string &frame = message.frames.front();
  uint16_t kind = 0;
  int32_t value = -1;
  if (frame.size() >= sizeof(kind) + sizeof(value)) {
    std::memcpy(&kind, frame.data(), sizeof(kind));
    std::memcpy(&value, frame.data() + sizeof(kind), sizeof(value));
  }
  event = {kind, value};
  return true;
}

} // namespace ax::rt::control
