//===- Messenger.cpp - Messages over connections --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Messenger.h"

#include "llvm/ADT/STLExtras.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace ax::rt::tcp {

namespace {

using Clock = std::chrono::steady_clock;
using Lock = std::lock_guard<std::mutex>;

/// What is said has no receiver, and a limit.
constexpr int32_t saidTag = -1;
constexpr int64_t longestText = 4096;
/// Nobody has tensors of more.
constexpr int64_t mostBytes = int64_t(1) << 46;
/// Of one connection, before others have their turn.
constexpr int64_t bytesInTurn = 4 << 20;
/// So long the World has time to say why a process is gone.
constexpr std::chrono::seconds grace(2);

/// A message of nothing has no address.
void copyBytes(char *to, const char *from, int64_t bytes) {
  if (bytes > 0)
    std::memcpy(to, from, static_cast<size_t>(bytes));
}

} // namespace

Messenger::Messenger(int32_t self, std::vector<Peer> peers)
    : self(self), connections(peers.size()),
      events(epoll_create1(EPOLL_CLOEXEC)) {
  for (auto [peer, connection] : llvm::zip_equal(peers, connections)) {
    connection.host = std::move(peer.host);
    connection.socket = std::move(peer.socket);
    if (!connection.socket)
      continue;
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.ptr = &connection;
    epoll_ctl(events, EPOLL_CTL_ADD, connection.socket.get(), &event);
  }
}

Messenger::~Messenger() { ::close(events); }

std::string Messenger::describe(int fault) const {
  if (fault == OtherSize)
    return "a message has another size than its receiver expects";
  if (fault == NoMemory)
    return "no memory for a message";
  auto process = static_cast<size_t>(fault - Lost);
  if (fault < Lost || process >= connections.size())
    return "error " + std::to_string(fault);
  return "the connection to process " + std::to_string(process) + " on host '" +
         connections[process].host + "' is lost";
}

uint32_t Messenger::shareGroup(int32_t process) {
  Lock lock(mutex);
  return at(process).numGroups++;
}

void Messenger::end(Message &message, Fault fault) {
  message.fault = fault;
  message.state = Message::State::Ended;
  message.pending->fetch_sub(1, std::memory_order_release);
}

void Messenger::start(llvm::ArrayRef<Message *> messages) {
  Lock lock(mutex);
  for (Message *message : messages) {
    message->state = Message::State::Started;
    message->fault = NoFault;
    Connection &connection = at(message->process);
    if (!message->isSend) {
      receive(*message);
    } else if (message->process == self) {
      sendToSelf(*message);
    } else {
      connection.sends.push_back({{message->label, message->bytes}, message});
      if (!connection.wantsToWrite)
        write(connection);
    }
  }
}

void Messenger::progress() {
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  if (lock)
    moveAll();
}

void Messenger::moveAll() {
  std::array<epoll_event, 64> found;
  int count = epoll_wait(events, found.data(), found.size(), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event &event = found[static_cast<size_t>(i)];
    auto &connection = *static_cast<Connection *>(event.data.ptr);
    if (event.events & EPOLLOUT)
      write(connection);
    if (event.events & ~static_cast<uint32_t>(EPOLLOUT))
      read(connection);
  }
}

/// Who waits for its messages is told later; the socket stays, or another one
/// might get its number.
void Messenger::lose(Connection &connection) {
  if (connection.lostAt != Clock::time_point())
    return;
  connection.lostAt = Clock::now();
  epoll_ctl(events, EPOLL_CTL_DEL, connection.socket.get(), nullptr);
  numLost.fetch_add(1, std::memory_order_relaxed);
}

void Messenger::watch(Connection &connection, bool writes) {
  if (connection.wantsToWrite == writes)
    return;
  connection.wantsToWrite = writes;
  epoll_event event = {};
  event.events = EPOLLIN | (writes ? static_cast<uint32_t>(EPOLLOUT) : 0);
  event.data.ptr = &connection;
  epoll_ctl(events, EPOLL_CTL_MOD, connection.socket.get(), &event);
}

void Messenger::write(Connection &connection) {
  constexpr int64_t headerSize = sizeof(Header);
  while (!connection.sends.empty() &&
         connection.lostAt == Clock::time_point()) {
    Outgoing &next = connection.sends.front();
    int64_t ofHeader = std::min(next.done, headerSize);
    int64_t ofData = next.done - ofHeader;
    std::array<iovec, 2> parts = {
        iovec{reinterpret_cast<char *>(&next.header) + ofHeader,
              static_cast<size_t>(headerSize - ofHeader)},
        iovec{const_cast<char *>(next.getData()) + ofData,
              static_cast<size_t>(next.header.bytes - ofData)}};
    msghdr message = {};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    ssize_t sent =
        sendmsg(connection.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent < 0 && errno == EAGAIN)
      return watch(connection, true);
    if (sent < 0)
      // What has come before may still be read.
      return watch(connection, false);
    next.done += sent;
    if (next.done < headerSize + next.header.bytes)
      continue;
    if (next.message)
      end(*next.message, NoFault);
    connection.sends.pop_front();
  }
  watch(connection, false);
}

void Messenger::read(Connection &connection) {
  int64_t left = bytesInTurn;
  while (left > 0 && connection.lostAt == Clock::time_point()) {
    std::array<char, 4096> dropped;
    bool isHeader = connection.headerBytes < sizeof(Header);
    char *place;
    int64_t bytes;
    if (isHeader) {
      place =
          reinterpret_cast<char *>(&connection.header) + connection.headerBytes;
      bytes = static_cast<int64_t>(sizeof(Header) - connection.headerBytes);
    } else {
      bytes = connection.header.bytes - connection.got;
      if (connection.receiver) {
        place = connection.receiver->data + connection.got;
      } else if (connection.early) {
        place = connection.early->data.get() + connection.got;
      } else {
        place = dropped.data();
        bytes = std::min<int64_t>(bytes, dropped.size());
      }
    }
    ssize_t got = recv(connection.socket.get(), place,
                       static_cast<size_t>(bytes), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0 && errno == EAGAIN)
      return;
    if (got <= 0)
      return lose(connection);
    left -= got;
    if (isHeader) {
      connection.headerBytes += static_cast<size_t>(got);
      if (connection.headerBytes < sizeof(Header))
        continue;
      if (!beginMessage(connection))
        return lose(connection);
    } else {
      connection.got += got;
    }
    if (connection.got == connection.header.bytes)
      endMessage(connection);
  }
}

bool Messenger::beginMessage(Connection &connection) {
  const Header &header = connection.header;
  connection.got = 0;
  if (header.bytes < 0 || header.bytes > mostBytes ||
      header.label.tag < saidTag)
    return false;
  if (header.label.tag == saidTag) {
    if (header.bytes > longestText)
      return false;
  } else {
    Queue &queue = connection.queues[header.label];
    if (!queue.receivers.empty()) {
      Message &receiver = *queue.receivers.front();
      queue.receivers.pop_front();
      if (receiver.bytes == header.bytes)
        connection.receiver = &receiver;
      else
        // Its bytes are dropped.
        end(receiver, OtherSize);
      return true;
    }
    queue.early.push_back(std::make_shared<Early>());
    connection.early = queue.early.back();
  }
  if (!connection.early)
    connection.early = std::make_shared<Early>();
  Early &early = *connection.early;
  early.bytes = header.bytes;
  early.data.reset(new (std::nothrow) char[static_cast<size_t>(header.bytes)]);
  return early.data != nullptr;
}

void Messenger::endMessage(Connection &connection) {
  auto process = static_cast<int32_t>(&connection - connections.data());
  std::shared_ptr<Early> early = std::move(connection.early);
  connection.early.reset();
  connection.headerBytes = 0;
  if (Message *receiver = std::exchange(connection.receiver, nullptr))
    return end(*receiver, NoFault);
  if (!early)
    return;
  if (connection.header.label.tag == saidTag) {
    said.push_back(
        {process, connection.header.label.group,
         std::string(early->data.get(), static_cast<size_t>(early->bytes))});
    numSaid.fetch_add(1, std::memory_order_release);
    return;
  }
  early->isWhole = true;
  if (Message *receiver = early->receiver) {
    copyBytes(receiver->data, early->data.get(), early->bytes);
    end(*receiver, NoFault);
  }
}

void Messenger::receive(Message &message) {
  Queue &queue = at(message.process).queues[message.label];
  if (queue.early.empty()) {
    queue.receivers.push_back(&message);
    return;
  }
  std::shared_ptr<Early> early = std::move(queue.early.front());
  queue.early.pop_front();
  if (early->bytes != message.bytes)
    return end(message, OtherSize);
  if (!early->isWhole) {
    early->receiver = &message;
    return;
  }
  copyBytes(message.data, early->data.get(), message.bytes);
  end(message, NoFault);
}

void Messenger::sendToSelf(Message &message) {
  Queue &queue = at(self).queues[message.label];
  if (!queue.receivers.empty()) {
    Message &receiver = *queue.receivers.front();
    queue.receivers.pop_front();
    bool fits = receiver.bytes == message.bytes;
    if (fits)
      copyBytes(receiver.data, message.data, message.bytes);
    end(receiver, fits ? NoFault : OtherSize);
    return end(message, NoFault);
  }
  auto early = std::make_shared<Early>();
  early->bytes = message.bytes;
  early->isWhole = true;
  early->data.reset(
      new (std::nothrow) char[static_cast<size_t>(message.bytes)]);
  if (!early->data)
    return end(message, NoMemory);
  copyBytes(early->data.get(), message.data, message.bytes);
  queue.early.push_back(std::move(early));
  end(message, NoFault);
}

Fault Messenger::findFault(llvm::ArrayRef<const Message *> messages) const {
  Lock lock(mutex);
  for (const Message *message : messages) {
    if (message->fault != NoFault)
      return message->fault;
    const Connection &connection =
        connections[static_cast<size_t>(message->process)];
    if (message->state == Message::State::Started &&
        connection.lostAt != Clock::time_point() &&
        Clock::now() - connection.lostAt > grace)
      return static_cast<Fault>(Lost + message->process);
  }
  return NoFault;
}

void Messenger::giveUp(llvm::ArrayRef<Message *> messages) {
  Lock lock(mutex);
  for (Message *message : messages)
    if (message->state == Message::State::Started)
      giveUp(*message);
}

void Messenger::giveUp(Message &message) {
  Connection &connection = at(message.process);
  message.state = Message::State::Ended;
  if (message.isSend) {
    auto found = llvm::find_if(connection.sends, [&](const Outgoing &out) {
      return out.message == &message;
    });
    if (found == connection.sends.end())
      return;
    // Behind a part of a message nothing can be sent that would be understood.
    if (found->done > 0)
      lose(connection);
    connection.sends.erase(found);
    return;
  }
  if (connection.receiver == &message)
    connection.receiver = nullptr;
  if (connection.early && connection.early->receiver == &message)
    connection.early->receiver = nullptr;
  Queue &queue = connection.queues[message.label];
  llvm::erase(queue.receivers, &message);
}

void Messenger::say(int32_t process, uint32_t group, std::string text) {
  Lock lock(mutex);
  Connection &connection = at(process);
  text.resize(std::min<size_t>(text.size(), longestText));
  Outgoing &out = connection.sends.emplace_back();
  out.text = std::move(text);
  out.header = {{group, saidTag}, static_cast<int64_t>(out.text.size())};
  if (!connection.wantsToWrite)
    write(connection);
}

std::optional<std::string> Messenger::hear(llvm::ArrayRef<int32_t> processes,
                                           llvm::ArrayRef<uint32_t> groups) {
  if (numSaid.load(std::memory_order_acquire) == 0)
    return std::nullopt;
  Lock lock(mutex);
  for (auto found = said.begin(); found != said.end(); ++found)
    for (auto [process, group] : llvm::zip_equal(processes, groups))
      if (found->process == process && found->group == group) {
        std::string text = std::move(found->text);
        said.erase(found);
        numSaid.fetch_sub(1, std::memory_order_relaxed);
        return text;
      }
  return std::nullopt;
}

} // namespace ax::rt::tcp
