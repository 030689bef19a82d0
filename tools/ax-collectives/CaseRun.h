//===- CaseRun.h - One collective of one size, on a rank --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_COLLECTIVES_CASERUN_H
#define AX_TOOLS_COLLECTIVES_CASERUN_H

#include "Cases.h"

#include "ax/Runtime/Communicator.h"
#include "ax/Runtime/Program.h"

namespace ax {

/// Does the same as a case of ours.
class Peer {
public:
  virtual ~Peer() = default;
  /// What calls of `run` do from now on: `count` f32 are in the source. A
  /// barrier is between this and the first of them, and behind the last.
  virtual void begin(CaseKind kind, const float *source, float *destination,
                     int64_t count) = 0;
  virtual llvm::Error run() = 0;
};

/// What adds up on a device (rt::CollectiveCommand); null where that is others'
/// business.
struct Reductions {
  std::shared_ptr<const rt::Kernel> allReduce, reduceScatter;
};

/// One case of one size, on this rank of a group. Messages (SendReceive) go
/// round among all ranks.
class CaseRun {
public:
  using Seconds = std::chrono::duration<double>;

  CaseRun(rt::Communicator &comm, rt::Device &device,
          std::shared_ptr<rt::Group> group, CaseKind kind, int64_t bytes)
      : comm(comm), device(device), group(std::move(group)), kind(kind),
        counts(countsOf(kind, bytes, this->group->getSize())) {}
  /// What is still on the stream uses the memory.
  ~CaseRun() {
    if (stream)
      llvm::consumeError(stream->synchronize());
  }

  llvm::Error prepare(const Reductions &reductions);
  /// Puts one execution on the stream.
  llvm::Error issue();
  /// Returns when all that was put there is done.
  llvm::Error complete() {
    if (llvm::Error error = stream->synchronize())
      return error;
    return comm.getLateError();
  }
  /// Tells a peer of this case, whose device works on the host's memory.
  void begin(Peer &peer) {
    const rt::HostMapping &host = *device.getHostMapping();
    peer.begin(kind, static_cast<float *>(host.toHost(source->getAddress())),
               static_cast<float *>(host.toHost(destination->getAddress())),
               counts.source);
  }

  /// Returns how many values are not what they should be.
  llvm::Expected<int64_t> countWrong();
  /// Adds this round to the best time of a call: `call` begins each, and
  /// `complete` returns when all are done.
  llvm::Error time(int64_t calls, Seconds &best,
                   llvm::function_ref<llvm::Error()> call,
                   llvm::function_ref<llvm::Error()> completeAll);
  /// The same of this case.
  llvm::Error time(int64_t calls, Seconds &best) {
    return time(
        calls, best, [&] { return issue(); }, [&] { return complete(); });
  }
  int64_t numBytes() const {
    return 4 * std::max(counts.source, counts.destination);
  }

private:
  using Prepared = llvm::Expected<std::unique_ptr<rt::StreamOperation>>;

  llvm::Error allocate();
  Prepared prepareCollective(const Reductions &reductions);
  Prepared prepareMessage(bool isSend);

  rt::Communicator &comm;
  rt::Device &device;
  std::shared_ptr<rt::Group> group;
  CaseKind kind;
  CaseCounts counts;
  std::unique_ptr<rt::DeviceMemory> source, destination;
  std::unique_ptr<rt::Stream> stream;
  std::unique_ptr<rt::StreamOperation> operation, receive;
};

} // namespace ax

#endif // AX_TOOLS_COLLECTIVES_CASERUN_H
