//===- NcclWorld.cpp - What a process's ranks have of NCCL ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "NcclWorld.h"

#include "ax/Support/Threads.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace ax::rt::nccl {

/// How often to look, in milliseconds, where nothing is to be noticed sooner.
constexpr int64_t longest = 200;

NcclWorld::~NcclWorld() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    isLeaving = true;
  }
  changed.notify_all();
  if (watcher.joinable())
    watcher.join();
}

llvm::Error NcclWorld::watch() {
  auto thread = startThread("what watches over NCCL", [this] { watchLinks(); });
  if (!thread)
    return thread.takeError();
  watcher = std::move(*thread);
  return llvm::Error::success();
}

void NcclWorld::watchLinks() {
  std::chrono::milliseconds interval(
      timeout.count() > 0 ? std::clamp<int64_t>(timeout.count() / 8, 1, longest)
                          : longest);
  std::unique_lock<std::mutex> lock(mutex);
  while (!changed.wait_for(lock, interval, [&] { return isLeaving; })) {
    if (aborted.load(std::memory_order_relaxed))
      continue;
    lock.unlock();
    for (const std::shared_ptr<NcclLink> &link : links)
      if (std::string fault = link->findFault(std::chrono::steady_clock::now());
          !fault.empty()) {
        abort(fault);
        break;
      }
    lock.lock();
  }
}

std::shared_ptr<Attendance>
NcclWorld::getAttendance(const std::vector<int32_t> &members) {
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<Attendance> &found = attendances[members];
  if (!found) {
    found = std::make_shared<Attendance>();
    found->ranks = members;
    for (int32_t member : members)
      found->isHere.push_back(llvm::any_of(
          links, [&](const auto &link) { return link->getRank() == member; }));
    found->counts = std::vector<std::atomic<uint64_t>>(members.size());
  }
  return found;
}

void NcclWorld::end(const std::string &why, bool tellsOthers) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (aborted.load(std::memory_order_relaxed))
      return;
    reason = why;
    aborted.store(true, std::memory_order_release);
  }
  for (const std::shared_ptr<NcclLink> &link : links) {
    tellsOthers ? link->getHost().abort(why) : link->getHost().stop(why);
    link->stop();
  }
  // In one group: alone, the abort of one communicator may wait for what the
  // wire has before it, which is another one's.
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  llvm::consumeError(library->call(&Nccl::ncclGroupStart));
  for (const std::shared_ptr<NcclLink> &link : links)
    link->abort(until);
  llvm::consumeError(library->call(&Nccl::ncclGroupEnd));
}

std::string NcclWorld::getAbortReason() const {
  std::lock_guard<std::mutex> lock(mutex);
  return reason;
}

} // namespace ax::rt::nccl
