//===- Messenger.h - Messages over connections ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages of one group and tag arrive in the order in which they were sent.
// What nobody has asked for yet is kept until somebody does, so that no message
// waits behind another one; what is asked for is read to its place.
//
// Nothing runs by itself: whoever starts, tests or listens moves what can be
// moved, for all. Connections never block.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_TCP_MESSENGER_H
#define AX_RUNTIME_TCP_MESSENGER_H

#include "Connect.h"

#include "llvm/ADT/ArrayRef.h"

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <optional>

namespace ax::rt::tcp {

/// Error codes of the table of messages.
enum Fault : int {
  NoFault = 0,
  /// A message has another size than who receives it expects.
  OtherSize,
  NoMemory,
  /// And the number of the process whose connection is lost.
  Lost = 16,
};

/// What messages are matched by, of one sender. Two processes number the groups
/// that they share.
struct Label {
  uint32_t group = 0;
  int32_t tag = 0;
  bool operator<(const Label &o) const {
    return std::pair(group, tag) < std::pair(o.group, o.tag);
  }
};

/// One end of a message, which belongs to who starts it; `data` holds `bytes`
/// until it has ended, or was given up.
struct Message {
  bool isSend = false;
  int32_t process = 0;
  Label label;
  char *data = nullptr;
  int64_t bytes = 0;
  enum class State { Idle, Started, Ended };
  State state = State::Idle;
  Fault fault = NoFault;
  /// One less when it ends: its other results are there then.
  std::atomic<int64_t> *pending = nullptr;
};

class Messenger {
public:
  Messenger(int32_t self, std::vector<Peer> peers);
  ~Messenger();

  int32_t getSelf() const { return self; }
  std::string describe(int fault) const;
  /// The number of a new group that this process shares with another one.
  uint32_t shareGroup(int32_t process);

  void start(llvm::ArrayRef<Message *> messages);
  /// Moves what can be moved, unless somebody else does so now.
  void progress();
  /// Returns what these have failed with. A connection that is lost is told
  /// some time later: why its process is gone the World says better.
  Fault findFault(llvm::ArrayRef<const Message *> messages) const;
  bool isPending(const Message &message) const {
    std::lock_guard<std::mutex> lock(mutex);
    return message.state == Message::State::Started;
  }
  void giveUp(llvm::ArrayRef<Message *> messages);
  bool hasLost() const { return numLost.load(std::memory_order_relaxed) > 0; }

  /// Says it to another process, in a group.
  void say(int32_t process, uint32_t group, std::string text);
  /// Returns what one of the processes has said in its group, by the same
  /// index.
  std::optional<std::string> hear(llvm::ArrayRef<int32_t> processes,
                                  llvm::ArrayRef<uint32_t> groups);

private:
  /// What comes before each message. Processes of a job have one kind of
  /// processor.
  struct Header {
    Label label;
    int64_t bytes;
  };
  struct Outgoing {
    Header header = {};
    /// Null of what is said, which `text` keeps.
    Message *message = nullptr;
    std::string text = {};
    /// Bytes of header and data that are on their way.
    int64_t done = 0;

    const char *getData() const {
      return message ? message->data : text.data();
    }
  };
  /// A message that came before it was asked for.
  struct Early {
    std::unique_ptr<char[]> data;
    int64_t bytes = 0;
    bool isWhole = false;
    /// Who has asked meanwhile.
    Message *receiver = nullptr;
  };
  struct Queue {
    std::deque<Message *> receivers;
    std::deque<std::shared_ptr<Early>> early;
  };
  struct Connection {
    std::string host;
    Socket socket;
    std::deque<Outgoing> sends;
    bool wantsToWrite = false;
    std::map<Label, Queue> queues;
    uint32_t numGroups = 0;
    /// What is being read: its header, then where it goes; neither place: it is
    /// dropped.
    Header header = {};
    size_t headerBytes = 0;
    int64_t got = 0;
    Message *receiver = nullptr;
    std::shared_ptr<Early> early;
    std::chrono::steady_clock::time_point lostAt;
  };
  struct Said {
    int32_t process;
    uint32_t group;
    std::string text;
  };

  Connection &at(int32_t process) {
    return connections[static_cast<size_t>(process)];
  }
  void end(Message &message, Fault fault);
  void lose(Connection &connection);
  void moveAll();
  void write(Connection &connection);
  void watch(Connection &connection, bool writes);
  void read(Connection &connection);
  /// Returns false where nothing can come any more.
  bool beginMessage(Connection &connection);
  void endMessage(Connection &connection);
  void receive(Message &message);
  void giveUp(Message &message);
  void sendToSelf(Message &message);

  const int32_t self;
  mutable std::mutex mutex;
  std::vector<Connection> connections;
  int events = -1;
  std::atomic<int32_t> numLost{0};
  std::deque<Said> said;
  std::atomic<int32_t> numSaid{0};
};

} // namespace ax::rt::tcp

#endif // AX_RUNTIME_TCP_MESSENGER_H
