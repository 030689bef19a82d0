//===- NcclWorld.h - What a process's ranks have of NCCL --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_NCCL_NCCLWORLD_H
#define AX_RUNTIME_NCCL_NCCLWORLD_H

#include "NcclLink.h"

#include <condition_variable>
#include <map>
#include <thread>

namespace ax::rt::nccl {

/// The links of the ranks of this process, and a thread that looks after them:
/// what is put on streams has nobody who waits for it, so it is this thread
/// that finds an operation which takes too long, or that NCCL has given up.
class NcclWorld {
public:
  NcclWorld(std::shared_ptr<const Nccl> library,
            std::chrono::milliseconds timeout)
      : library(std::move(library)), timeout(timeout) {}
  ~NcclWorld();

  const Nccl &getLibrary() const { return *library; }
  std::chrono::milliseconds getTimeout() const { return timeout; }

  /// Before `watch`.
  void add(std::shared_ptr<NcclLink> link) { links.push_back(std::move(link)); }
  const std::vector<std::shared_ptr<NcclLink>> &getLinks() const {
    return links;
  }
  /// Whether ranks share a card, of this process or not. Before operations are
  /// made.
  void setSharing(bool shares) { isSharing = shares; }
  bool sharesCards() const { return isSharing; }
  /// Begins to look after them.
  llvm::Error watch();

  /// Which operations members of these ranks have put on their streams.
  std::shared_ptr<Attendance> getAttendance(const std::vector<int32_t> &ranks);

  /// The first call decides, of all ranks of this process.
  void abort(const std::string &why) { end(why, /*tellsOthers=*/true); }
  /// Likewise, and other processes are not told.
  void stop(const std::string &why) { end(why, /*tellsOthers=*/false); }
  bool isAborted() const { return aborted.load(std::memory_order_acquire); }
  std::string getAbortReason() const;

private:
  void watchLinks();
  void end(const std::string &why, bool tellsOthers);

  std::shared_ptr<const Nccl> library;
  std::chrono::milliseconds timeout;
  std::vector<std::shared_ptr<NcclLink>> links;
  bool isSharing = false;
  std::atomic<bool> aborted{false};
  mutable std::mutex mutex;
  std::condition_variable changed;
  /// Guarded by the mutex.
  std::string reason;
  bool isLeaving = false;
  std::map<std::vector<int32_t>, std::shared_ptr<Attendance>> attendances;
  std::thread watcher;
};

} // namespace ax::rt::nccl

#endif // AX_RUNTIME_NCCL_NCCLWORLD_H
