//===- NcclLink.h - One rank's way to the others ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// NCCL promises no progress of two operations at a time: where two ranks begin
// them in another order, each may wait for the other for ever. So all that a
// rank does goes through one stream, the wire, in the order of its calls,
// whatever streams have the tensors: the wire waits for these, and they for it.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_NCCL_NCCLLINK_H
#define AX_RUNTIME_NCCL_NCCLLINK_H

#include "Nccl.h"

#include "ax/Runtime/Communicator.h"
#include "ax/Runtime/CountingMark.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <atomic>
#include <mutex>

namespace ax::rt::nccl {

class NcclWorld;

/// How many operations each member of some ranks has put on its stream, as far
/// as it is in this process.
struct Attendance {
  std::vector<int32_t> ranks;
  std::vector<bool> isHere;
  std::vector<std::atomic<uint64_t>> counts;
};

/// What an operation is, for errors.
struct Description {
  /// `all_reduce 4 f32 'x'`.
  std::string text;
  /// Who else takes part.
  std::vector<int32_t> others;
  /// Of a collective; else null.
  std::shared_ptr<Attendance> attendance;
  /// This rank's place in that.
  size_t index = 0;
};

/// A NCCL communicator of this rank.
struct NcclComm {
  /// Null after an abort.
  std::atomic<ncclComm_t> handle{nullptr};
  std::shared_ptr<Attendance> attendance;
};

/// Memory of NCCL's own kind. It is the owner's, who frees it.
struct NcclBuffer {
  void *address = nullptr;
  int64_t bytes = 0;
  /// By communicator: as what it knows the memory.
  std::vector<std::pair<std::shared_ptr<NcclComm>, void *>> handles;
};

class NcclLink {
public:
  /// `host` does what is on memory of the host.
  NcclLink(NcclWorld &world, Device &device, std::unique_ptr<Communicator> host)
      : world(world), device(device), host(std::move(host)) {}
  ~NcclLink();
  /// Makes the wire.
  llvm::Error create();

  int32_t getRank() const { return host->getRank(); }
  Communicator &getHost() const { return *host; }
  Device &getDevice() const { return device; }
  Stream &getWire() const { return *wire; }

  /// Joins the communicator of `ranks`, of whom all come with the same `id`.
  llvm::Expected<std::shared_ptr<NcclComm>>
  join(const std::vector<int32_t> &ranks, ncclUniqueId id);

  /// Takes part in a split of the communicator `parent`, to which all its ranks
  /// come. Returns the one of `ranks`, this one among them, who share the
  /// parent's resources; null where there are none.
  llvm::Expected<std::shared_ptr<NcclComm>>
  split(const NcclComm &parent, const std::vector<int32_t> &ranks, int color);

  /// Allocates memory of the card that all communicators of this rank know,
  /// also those to come, so that between cards that reach each other's, and in
  /// switches that add, their operations need no copies. Null where NCCL gives
  /// none: there is other memory.
  std::unique_ptr<NcclBuffer> allocate(int64_t bytes);
  void free(NcclBuffer &buffer);

  /// So much of memory for copies an operation needs.
  void reserveScratch(int64_t bytes) {
    wantedScratch = std::max(wantedScratch, bytes);
  }
  /// Returns where that begins; the wire alone uses it.
  llvm::Expected<DeviceAddress> getScratch();

  /// Puts an operation on the wire, behind what is there: `before`, then
  /// `calls`, as one group of NCCL's, then `behind`. Errors name the rank and
  /// the operation.
  llvm::Error
  issue(const std::shared_ptr<const Description> &what,
        llvm::function_ref<llvm::Error()> before,
        llvm::function_ref<llvm::Error(const Nccl &, CUstream_st *)> calls,
        llvm::function_ref<llvm::Error()> behind);

  /// Around operations that streams, and with them the wire, are captured with.
  /// Returns them; for beginLaunch, before each launch.
  void beginCapture();
  std::vector<std::shared_ptr<const Description>> endCapture();
  llvm::Error beginLaunch(
      const std::vector<std::shared_ptr<const Description>> &operations);

  /// The error of what is on the wire, if that failed since; the one that ranks
  /// were stopped with, too.
  llvm::Error getLateError() const;
  /// The error of an operation that cannot begin any more.
  llvm::Error stopError(const std::string &operation) const;

  /// For the thread that looks after links: why ranks have to be stopped; empty
  /// where all is well.
  std::string findFault(std::chrono::steady_clock::time_point now);
  /// From now on nothing begins. For any thread, several times.
  void stop();
  /// Ends what NCCL does, behind `stop`, in a group of the caller's. Who is
  /// inside NCCL is waited for until `until`.
  void abort(std::chrono::steady_clock::time_point until);
  void settle(std::chrono::steady_clock::time_point until);

private:
  /// An operation on the wire.
  struct Issued {
    std::shared_ptr<const Description> what;
    /// Its number among those of its attendance.
    uint64_t sequence = 0;
  };
  static constexpr size_t mostIssued = 1024;

  llvm::Error addRank(llvm::Error error) const;
  llvm::Error begin(const std::shared_ptr<const Description> &what,
                    uint64_t &number);
  /// Puts it into the ring, with the mutex held.
  void add(const std::shared_ptr<const Description> &what);
  llvm::Error callTogether(
      llvm::function_ref<llvm::Error(const Nccl &, CUstream_st *)> calls);
  std::vector<std::shared_ptr<NcclComm>> getComms() const;
  /// Has a communicator know memory, with `calling` held.
  void introduce(NcclBuffer &buffer, const std::shared_ptr<NcclComm> &comm);
  /// What the wire has begun, and not done; nothing of it where it is between
  /// two. With the mutex held.
  Issued findUnderWay() const;
  /// Who has not come to an operation, as far as can be seen: else all others.
  static std::vector<int32_t> findMissing(const Issued &issued);

  NcclWorld &world;
  Device &device;
  std::unique_ptr<Communicator> host;
  std::unique_ptr<Stream> wire;
  /// Set to the number of an operation where the wire begins it, and where it
  /// has done it.
  CountingMark begun, done;
  std::unique_ptr<DeviceMemory> scratch;
  int64_t wantedScratch = 0;
  /// Guarded by `calling`.
  std::vector<NcclBuffer *> buffers;

  /// The operations of a graph that is being captured.
  bool isCapturing = false;
  std::vector<std::shared_ptr<const Description>> captured;

  /// Held while NCCL is called with communicators, which may take as long as
  /// others do not come.
  std::mutex calling;
  std::atomic<bool> isStopped{false};

  /// Guards what follows, for a moment.
  mutable std::mutex mutex;
  std::vector<std::shared_ptr<NcclComm>> comms;
  /// Operations by their number, modulo its size.
  std::vector<Issued> ring = std::vector<Issued>(mostIssued);
  uint64_t numIssued = 0;
  /// What the wire was at when ranks were stopped.
  std::string stoppedIn;

  /// Only of the thread that looks after links.
  uint64_t lastDone = 0;
  std::chrono::steady_clock::time_point lastProgress;
};

} // namespace ax::rt::nccl

#endif // AX_RUNTIME_NCCL_NCCLLINK_H
