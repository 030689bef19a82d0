//===- Connect.cpp - How processes get their connections ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of two processes the one with the higher number connects, and says first who
// it is, with the key of the other one; that one answers. Who says something
// else, or nothing for a while, is no process of the job: its connection is
// closed, whatever it has sent.
//
//===----------------------------------------------------------------------===//

#include "Connect.h"

#include "ax/Runtime/Agreement.h"
#include "ax/Runtime/Listener.h"
#include "ax/Support/Threads.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace ax::rt::tcp {

void Socket::close() {
  if (file >= 0)
    ::close(file);
  file = -1;
}

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Between two looks whether the job still goes on.
constexpr milliseconds glance(50);
/// For one address of several, and for what is said behind.
constexpr milliseconds patience(3000);
/// Strangers that may be heard at the same time, besides the processes.
constexpr size_t mostStrangers = 256;

constexpr std::array<char, 8> greeting = {'a', 'x', 't', 'c',
                                          'p', '0', '0', '1'};
constexpr size_t keyDigits = 32;

/// What the one that connects says first.
struct Hello {
  std::array<char, greeting.size()> begin;
  std::array<char, keyDigits> key;
  int32_t process;
};

/// Takes as long whatever is given.
bool isEqual(const std::array<char, keyDigits> &given, llvm::StringRef key) {
  unsigned char difference = 0;
  for (size_t i = 0; i < keyDigits; ++i)
    difference |= static_cast<unsigned char>(given[i] ^ key[i]);
  return difference == 0;
}

/// The soft limit of open files may be less than what a large job needs.
void allowFiles(size_t numProcesses) {
  constexpr rlim_t others = 256;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit))
    return;
  rlim_t needed = std::min(limit.rlim_max, 2 * numProcesses + others);
  if (limit.rlim_cur >= needed)
    return;
  limit.rlim_cur = needed;
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// Whether there is something to read (write) before `last`.
bool waitFor(int file, short event, Clock::time_point last) {
  auto left = std::chrono::ceil<milliseconds>(last - Clock::now());
  pollfd item = {file, event, 0};
  return left.count() > 0 && poll(&item, 1, static_cast<int>(left.count())) > 0;
}

/// Reads until `bytes` are full; false where they do not come before `last`.
bool readAll(int file, llvm::MutableArrayRef<char> bytes,
             Clock::time_point last) {
  while (!bytes.empty()) {
    ssize_t got = recv(file, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0)
      bytes = bytes.drop_front(static_cast<size_t>(got));
    else if (got == 0 || (errno != EAGAIN && errno != EINTR) ||
             !waitFor(file, POLLIN, last))
      return false;
  }
  return true;
}

class Connector {
public:
  Connector(World &world, const control::Listener &listener,
            std::vector<ControlAddress> addresses, std::vector<Peer> &peers,
            Clock::time_point last)
      : world(world), listener(listener), addresses(std::move(addresses)),
        peers(peers), last(last) {}

  /// Accepts those of higher numbers, for which there is no end but `last`.
  void acceptAll();
  llvm::Error connectLower();
  llvm::Error findMissing() const;

private:
  struct Caller {
    Socket socket;
    Hello hello = {};
    size_t got = 0;
    Clock::time_point last;
  };

  int32_t self() const { return world.getPlace().process; }
  bool isOver() const {
    return Clock::now() > last || !world.getAbortReason().empty();
  }
  std::string describe(size_t process) const {
    return "process " + std::to_string(process) + " on host '" +
           peers[process].host + "'";
  }
  bool hear(Caller &caller);
  void admit(Caller &caller);
  Socket tryHost(const std::string &host, uint16_t port, llvm::StringRef key,
                 std::string &why) const;

  World &world;
  const control::Listener &listener;
  const std::vector<ControlAddress> addresses;
  std::vector<Peer> &peers;
  const Clock::time_point last;
};

void Connector::acceptAll() {
  std::list<Caller> callers;
  auto isComplete = [&] {
    return llvm::all_of(llvm::drop_begin(peers, self() + 1),
                        [](const Peer &peer) { return bool(peer.socket); });
  };
  while (!isComplete() && !isOver()) {
    std::vector<pollfd> items = {{listener.socket, POLLIN, 0}};
    for (const Caller &caller : callers)
      items.push_back({caller.socket.get(), POLLIN, 0});
    poll(items.data(), items.size(), static_cast<int>(glance.count()));
    for (auto at = callers.begin(); at != callers.end();) {
      bool goesOn = hear(*at) && Clock::now() < at->last;
      at = goesOn ? std::next(at) : callers.erase(at);
    }
    if (!(items.front().revents & POLLIN))
      continue;
    Socket made(accept4(listener.socket, nullptr, nullptr,
                        SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (made && callers.size() < peers.size() + mostStrangers) {
      Caller &caller = callers.emplace_back();
      caller.socket = std::move(made);
      caller.last = Clock::now() + patience;
    }
  }
}

/// Returns whether there is more to hear of it.
bool Connector::hear(Caller &caller) {
  char *bytes = reinterpret_cast<char *>(&caller.hello);
  ssize_t got = recv(caller.socket.get(), bytes + caller.got,
                     sizeof(Hello) - caller.got, MSG_DONTWAIT);
  if (got <= 0)
    return got < 0 && (errno == EAGAIN || errno == EINTR);
  caller.got += static_cast<size_t>(got);
  if (caller.got < sizeof(Hello))
    return true;
  const Hello &hello = caller.hello;
  size_t process = static_cast<uint32_t>(hello.process);
  if (hello.begin == greeting && isEqual(hello.key, listener.address.key) &&
      hello.process > self() && process < peers.size() &&
      !peers[process].socket &&
      send(caller.socket.get(), greeting.data(), greeting.size(),
           MSG_NOSIGNAL) == static_cast<ssize_t>(greeting.size()))
    peers[process].socket = std::move(caller.socket);
  return false;
}

/// Returns no socket, and why, where there is nobody who knows the key.
Socket Connector::tryHost(const std::string &host, uint16_t port,
                          llvm::StringRef key, std::string &why) const {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  if (int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints,
                             &found)) {
    why = gai_strerror(code);
    return {};
  }
  Socket made(socket(found->ai_family,
                     SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  int error = made ? 0 : errno;
  Clock::time_point until = std::min(last, Clock::now() + patience);
  if (!error && ::connect(made.get(), found->ai_addr, found->ai_addrlen)) {
    error = errno;
    if (error == EINPROGRESS) {
      socklen_t size = sizeof(error);
      if (waitFor(made.get(), POLLOUT, until))
        getsockopt(made.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      else
        error = ETIMEDOUT;
    }
  }
  freeaddrinfo(found);
  if (error) {
    why = std::strerror(error);
    return {};
  }
  Hello hello = {greeting, {}, self()};
  llvm::copy(key, hello.key.begin());
  std::array<char, greeting.size()> answer = {};
  // It is less than what any connection takes at once.
  if (send(made.get(), &hello, sizeof(hello), MSG_NOSIGNAL) !=
          static_cast<ssize_t>(sizeof(hello)) ||
      !readAll(made.get(), answer, Clock::now() + patience) ||
      answer != greeting) {
    why = "who is there does not answer as a process of this job";
    return {};
  }
  return made;
}

llvm::Error Connector::connectLower() {
  for (size_t process = 0; process < static_cast<size_t>(self()); ++process) {
    const ControlAddress &address = addresses[process];
    std::string why;
    for (Socket &socket = peers[process].socket; !socket && !isOver();) {
      for (const std::string &host : address.hosts)
        if (!socket && !isOver())
          socket = tryHost(host, address.port, address.key, why);
      if (!socket)
        std::this_thread::sleep_for(glance);
    }
    if (!peers[process].socket)
      return makeErrorf(ExitCode::RunFailed,
                        "{0} cannot be reached at {1}, port {2}: {3}",
                        describe(process), llvm::join(address.hosts, ", "),
                        address.port, why);
  }
  return llvm::Error::success();
}

llvm::Error Connector::findMissing() const {
  for (size_t process = 0; process < peers.size(); ++process)
    if (!peers[process].socket && process != static_cast<size_t>(self()))
      return makeErrorf(ExitCode::RunFailed, "{0} has not connected",
                        describe(process));
  return llvm::Error::success();
}

/// `host\naddress`: no name of a host has a line's end.
llvm::Expected<std::vector<ControlAddress>>
shareAddresses(World &world, llvm::Expected<control::Listener> &listener,
               std::vector<Peer> &peers) {
  using Text = llvm::Expected<std::string>;
  auto texts = agreeOnTexts(
      world, "addresses",
      listener ? Text(world.getPlace().host + "\n" + listener->address.encode())
               : Text(listener.takeError()));
  if (!texts)
    return texts.takeError();
  std::vector<ControlAddress> addresses;
  for (llvm::StringRef text : *texts) {
    auto [host, bytes] = text.split('\n');
    auto address = ControlAddress::decode(bytes);
    if (!address)
      return address.takeError();
    // It is read as so many digits, whatever has come.
    address->key.resize(keyDigits);
    addresses.push_back(std::move(*address));
    peers.emplace_back().host = host.str();
  }
  return addresses;
}

} // namespace

llvm::Expected<std::vector<Peer>>
connectAll(World &world, llvm::StringRef address, milliseconds timeout) {
  std::vector<Peer> peers;
  allowFiles(static_cast<size_t>(world.getPlace().numProcesses));
  auto listener = control::listenAt(address);
  Socket closed(listener ? listener->socket : -1);
  auto addresses = shareAddresses(world, listener, peers);
  if (!addresses)
    return addresses.takeError();
  Connector connector(world, *listener, std::move(*addresses), peers,
                      Clock::now() + timeout);
  auto acceptor = startThread("connections of other processes",
                              [&] { connector.acceptAll(); });
  llvm::Error error =
      acceptor ? connector.connectLower() : acceptor.takeError();
  if (acceptor)
    acceptor->join();
  if (!error)
    error = connector.findMissing();
  if (llvm::Error failed = agree(world, "connections", std::move(error)))
    return failed;
  for (Peer &peer : peers) {
    if (!peer.socket)
      continue;
    int on = 1;
    setsockopt(peer.socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(peer.socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  }
  return peers;
}

} // namespace ax::rt::tcp
