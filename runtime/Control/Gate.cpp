//===- Gate.cpp - Who is let in -------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Gate.h"

namespace ax::rt::control {

/// Takes as long whatever is given of the right length.
static bool isEqual(const std::string &given, const std::string &key) {
  if (given.size() != key.size())
    return false;
  unsigned char difference = 0;
  for (size_t i = 0; i < key.size(); ++i)
    difference |= static_cast<unsigned char>(given[i] ^ key[i]);
  return difference == 0;
}

void Gate::answer() {
  // Version, number of the request, domain, address, routing id, mechanism,
  // user and password.
  enum { Version, Request, Mechanism = 5, Password = 7, NumFrames };
  Frames asked;
  while (socket.receive(asked)) {
    std::vector<std::string> &frames = asked.frames;
    bool isRight = frames.size() == NumFrames && frames[Mechanism] == "PLAIN" &&
                   isEqual(frames[Password], key);
    refused |= !isRight;
    frames.resize(NumFrames);
    socket.send({frames[Version], frames[Request], isRight ? "200" : "400",
                 isRight ? "OK" : "wrong key", "", ""});
  }
}

} // namespace ax::rt::control
