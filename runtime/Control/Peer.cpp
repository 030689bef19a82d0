//===- Peer.cpp - What is known of another process ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Peer.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace ax::rt::control {

static double inSeconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

std::string Peer::describe() const {
  return llvm::formatv("process {0} on host {1}", process, host).str();
}

std::string Peer::describeLast(Clock::time_point now) const {
  std::string doing = lastSaid.text;
  if (doing.empty() && lastSaid.number)
    doing =
        llvm::formatv("at exchange {0}, {1}", lastSaid.number, lastSaid.name);
  // It may have spoken after `now` was asked.
  double silent = inSeconds(std::max(
      now - (doing.empty() ? lastHeard : lastSaidAt), Clock::duration(0)));
  return llvm::formatv(doing.empty() ? "{0} (last heard {1:f1} s ago)"
                                     : "{0} ({1:f1} s ago it was {2})",
                       describe(), silent, doing)
      .str();
}

std::vector<const Peer *> findSilent(llvm::ArrayRef<const Peer *> peers,
                                     Clock::time_point now,
                                     std::chrono::milliseconds timeout) {
  auto longer = [&](std::chrono::milliseconds time) {
    std::vector<const Peer *> found;
    llvm::copy_if(peers, std::back_inserter(found), [&](const Peer *peer) {
      return now - peer->lastHeard > time;
    });
    return found;
  };
  if (longer(timeout).empty())
    return {};
  // Their heartbeats came at different times of the same interval.
  return longer(timeout - timeout / 3);
}

std::string describeMissing(llvm::StringRef what,
                            llvm::ArrayRef<const Peer *> missing,
                            Clock::time_point now) {
  std::vector<std::string> texts;
  for (const Peer *peer : missing.take_front(mostNamed))
    texts.push_back(peer->describeLast(now));
  return (what + " " + joinSome(texts, missing.size(), ", ")).str();
}

std::string joinSome(llvm::ArrayRef<std::string> texts, size_t count,
                     llvm::StringRef between) {
  std::string text = llvm::join(texts.take_front(mostNamed), between);
  if (count > mostNamed)
    text += llvm::formatv("{0}{1} more", between, count - mostNamed).str();
  return text;
}

long Pulse::beforeSleep(Clock::time_point now) {
  // Rounded up, or the last millisecond would be polled away.
  auto sleep = std::chrono::ceil<std::chrono::milliseconds>(
      std::max(next - now, Clock::duration(0)));
  if (awake == Clock::time_point())
    awake = now;
  planned = sleep;
  return static_cast<long>(sleep.count());
}

Clock::duration Pulse::afterSleep(Clock::time_point now) {
  Clock::duration late = now - awake - planned;
  awake = now;
  if (late <= interval)
    return Clock::duration(0);
  stopped = late;
  stoppedUntil = now;
  return late;
}

std::string Pulse::describeStop(Clock::time_point now) const {
  constexpr std::chrono::seconds least(1), recent(10);
  if (stopped < least || now - stoppedUntil > recent)
    return "";
  return llvm::formatv("this process was stopped for {0:F1} s and ",
                       std::chrono::duration<double>(stopped).count());
}

bool Pulse::isDue(Clock::time_point now) {
  if (now < next)
    return false;
  next = now + interval;
  return true;
}

} // namespace ax::rt::control
