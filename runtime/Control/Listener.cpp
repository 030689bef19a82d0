//===- Listener.cpp - Where a process is found ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Listener.h"

#include "ax/Runtime/Launcher.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <linux/filter.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ax::rt::control {

static std::string inDigits(const sockaddr *address) {
  char text[NI_MAXHOST];
  socklen_t size = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6)
                                                  : sizeof(sockaddr_in);
  if (getnameinfo(address, size, text, sizeof(text), nullptr, 0,
                  NI_NUMERICHOST))
    return "";
  return text;
}

static bool isAny(const sockaddr *address) {
  if (address->sa_family == AF_INET6)
    return IN6_IS_ADDR_UNSPECIFIED(
        &reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr);
  return reinterpret_cast<const sockaddr_in *>(address)->sin_addr.s_addr ==
         htonl(INADDR_ANY);
}

/// Returns the host's addresses of a family, those of networks first, and the
/// one that only processes of this host reach last.
static std::vector<std::string> listAddresses(int family) {
  std::vector<std::string> found, loops;
  ifaddrs *all = nullptr;
  if (getifaddrs(&all))
    return {};
  llvm::scope_exit release([&] { freeifaddrs(all); });
  for (ifaddrs *at = all; at; at = at->ifa_next) {
    if (!at->ifa_addr || at->ifa_addr->sa_family != family ||
        !(at->ifa_flags & IFF_UP))
      continue;
    std::string text = inDigits(at->ifa_addr);
    // An address of one link is none without the name of the link.
    if (text.empty() || llvm::StringRef(text).contains('%'))
      continue;
    (at->ifa_flags & IFF_LOOPBACK ? loops : found).push_back(std::move(text));
  }
  found.insert(found.end(), loops.begin(), loops.end());
  return found;
}

static llvm::Error cannotListen(llvm::StringRef address, llvm::StringRef why) {
  return makeErrorf(ExitCode::Usage,
                    "the control channel cannot listen at {0}: {1}",
                    address.empty() ? "any address" : address, why);
}

/// Returns a socket that listens, or -1, and errno.
static int tryListen(const addrinfo &at) {
  int made = socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
  if (made < 0)
    return -1;
  int on = 1;
  setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (!bind(made, at.ai_addr, at.ai_addrlen) && !listen(made, SOMAXCONN))
    return made;
  int error = errno;
  close(made);
  errno = error;
  return -1;
}

static llvm::Expected<std::string> makeKey() {
  unsigned char bits[16];
  if (getrandom(bits, sizeof(bits), 0) != sizeof(bits))
    return makeErrnoError("cannot find a random key", errno);
  return llvm::toHex(llvm::ArrayRef<uint8_t>(bits), /*LowerCase=*/true);
}

llvm::Expected<Listener> listenAt(llvm::StringRef address) {
  auto [host, port] = splitAddress(address);
  uint16_t number = 0;
  if (!port.empty() && port.getAsInteger(10, number))
    return cannotListen(address, "a port is a number below 65536");

  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  // What has IPv4 alone is still the usual case.
  hints.ai_family = host.empty() ? AF_INET : AF_UNSPEC;
  addrinfo *found = nullptr;
  std::string name = host.str(), service = std::to_string(number);
  if (int code = getaddrinfo(name.empty() ? nullptr : name.c_str(),
                             service.c_str(), &hints, &found))
    return cannotListen(address, gai_strerror(code));
  llvm::scope_exit release([&] { freeaddrinfo(found); });

  Listener listener;
  for (addrinfo *at = found; at && listener.socket < 0; at = at->ai_next)
    listener.socket = tryListen(*at);
  if (listener.socket < 0)
    return cannotListen(address, std::strerror(errno));

  sockaddr_storage bound = {};
  socklen_t size = sizeof(bound);
  auto *place = reinterpret_cast<sockaddr *>(&bound);
  getsockname(listener.socket, place, &size);
  listener.address.port =
      ntohs(place->sa_family == AF_INET6
                ? reinterpret_cast<sockaddr_in6 *>(place)->sin6_port
                : reinterpret_cast<sockaddr_in *>(place)->sin_port);
  if (isAny(place))
    listener.address.hosts = listAddresses(place->sa_family);
  else
    listener.address.hosts = {inDigits(place)};
  llvm::Expected<std::string> key = makeKey();
  if (!key) {
    close(listener.socket);
    return key.takeError();
  }
  listener.address.key = std::move(*key);
  return listener;
}

llvm::Expected<std::vector<std::string>> resolveHost(const std::string &name) {
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (int code = getaddrinfo(name.c_str(), nullptr, &hints, &found))
    return makeErrorf(ExitCode::Usage, "the host '{0}' of process 0: {1}", name,
                      gai_strerror(code));
  llvm::scope_exit release([&] { freeaddrinfo(found); });
  std::vector<std::string> addresses;
  for (addrinfo *at = found; at; at = at->ai_next)
    if (std::string text = inDigits(at->ai_addr); !text.empty())
      addresses.push_back(std::move(text));
  return addresses;
}

bool isRefused(const std::string &host, uint16_t port) {
  /// Who is there says so at once.
  constexpr int patience = 1000;
  addrinfo hints = {}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found))
    return false;
  llvm::scope_exit release([&] { freeaddrinfo(found); });
  int made = socket(found->ai_family,
                    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
  if (made < 0)
    return false;
  int error = connect(made, found->ai_addr, found->ai_addrlen) ? errno : 0;
  pollfd item = {made, POLLOUT, 0};
  socklen_t size = sizeof(error);
  if (error == EINPROGRESS && poll(&item, 1, patience) == 1)
    getsockopt(made, SOL_SOCKET, SO_ERROR, &error, &size);
  close(made);
  return error == ECONNREFUSED;
}

static uint64_t countOpenFiles() {
  uint64_t count = 0;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator at("/proc/self/fd", error), end;
       at != end && !error; at.increment(error))
    ++count;
  return count;
}

std::string describeFewFiles(size_t numProcesses, int error) {
  if (error == ENFILE)
    return llvm::formatv("process 0 has a connection of each of {0} processes, "
                         "and all processes of its host together have as many "
                         "files open as there may be: allow more (sysctl "
                         "fs.file-max, on its host)",
                         numProcesses)
        .str();
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  return llvm::formatv("process 0 has a connection of each of {0} processes, "
                       "and may have {1} files open: allow it more (ulimit "
                       "-n, on its host)",
                       numProcesses, limit.rlim_cur)
      .str();
}

llvm::Error reserveFiles(size_t numProcesses) {
  /// For what else the process opens.
  constexpr uint64_t others = 64;
  uint64_t needed = countOpenFiles() + numProcesses + others;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) || needed <= limit.rlim_cur)
    return llvm::Error::success();
  // Who needs more than usual opens more later as well.
  constexpr rlim_t most = 1000000;
  limit.rlim_cur = std::max<rlim_t>(needed, std::min(limit.rlim_max, most));
  if (needed <= limit.rlim_max && !setrlimit(RLIMIT_NOFILE, &limit))
    return llvm::Error::success();
  return makeError(ExitCode::Usage, describeFewFiles(numProcesses, EMFILE));
}

void refuseStrangers(int socket) {
  // Where the system cannot, the key alone keeps them out.
  sock_filter none = {BPF_RET | BPF_K, 0, 0, 0};
  sock_fprog program = {1, &none};
  setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

} // namespace ax::rt::control
