//===- Carrier.h - The table of messages over TCP ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_TCP_CARRIER_H
#define AX_RUNTIME_TCP_CARRIER_H

#include "Messenger.h"

#include "ax/Runtime/MessageTable.h"

#include <list>

/// The numbers that groups have between this process and each member.
struct AxMessageGroup {
  ax::rt::tcp::Messenger &messenger;
  std::vector<int32_t> processes;
  std::vector<uint32_t> numbers;
};

namespace ax::rt::tcp {

/// Boxes with gaps are packed by who sends them, and unpacked by who receives
/// them: what is on the way is dense.
class Carrier {
public:
  Carrier(int32_t self, std::vector<Peer> peers);
  Carrier(const Carrier &) = delete;

  const AxMessageTable &getTable() const { return table; }
  Messenger &getMessenger() { return messenger; }
  /// It lives as long as this.
  AxMessageGroup &addGroup(llvm::ArrayRef<int32_t> processes);

private:
  Messenger messenger;
  std::list<AxMessageGroup> groups;
  AxMessageTable table;
};

} // namespace ax::rt::tcp

#endif // AX_RUNTIME_TCP_CARRIER_H
