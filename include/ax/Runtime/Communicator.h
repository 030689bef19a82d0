//===- Communicator.h - Ranks that work together ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the executor needs of a network: groups, collectives, messages, and a
// bounded end when something fails. Backends.h has them by name.
//
// Operations are prepared once and then started and waited for any number of
// times, so that nothing is allocated while running. Every member of a group
// prepares the same operations of it in the same order, and starts them in the
// same order. One Communicator is used by one thread at a time.
//
// Errors of start and wait are RunFailed: they name the rank, the operation and
// what it waited for. After one, or after `abort`, the ranks cannot communicate
// any more; every wait returns an error within a bounded time.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_COMMUNICATOR_H
#define AX_RUNTIME_COMMUNICATOR_H

#include "ax/Runtime/Collective.h"
#include "ax/Runtime/Device.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace ax::rt {

/// A prepared collective, send or receive. Destroy it only when it is not
/// started, or after a failure.
class Operation {
public:
  virtual ~Operation();

  /// Addresses of this run, one for each tensor (a send has no destination, a
  /// receive no source).
  /// Until `wait` returns, the source must not change and the destination is
  /// undefined. They must not overlap, except that an AllReduce may have
  /// destination == source.
  virtual llvm::Error start(llvm::ArrayRef<const void *> sources,
                            llvm::ArrayRef<void *> destinations) = 0;
  virtual llvm::Error wait() = 0;
  llvm::Error run(llvm::ArrayRef<const void *> sources,
                  llvm::ArrayRef<void *> destinations) {
    if (llvm::Error error = start(sources, destinations))
      return error;
    return wait();
  }
};

/// Is told of what an operation has put on a stream of its own.
class StreamObserver {
public:
  virtual ~StreamObserver();
  /// What the stream gets next is of the operation, until `end`.
  virtual llvm::Error begin(Stream &stream) = 0;
  virtual llvm::Error end(Stream &stream) = 0;
};

/// An operation on memory of devices, whose work is put on a stream. Prepared,
/// started and ended like an Operation, with errors of the stream besides.
class StreamOperation {
public:
  virtual ~StreamOperation();

  /// Comes after what the stream holds. The addresses of all sources, then
  /// those of all destinations; for what one may do with them until `finish`
  /// has been called, see Operation::start.
  virtual llvm::Error start(Stream &stream,
                            llvm::ArrayRef<DeviceAddress> addresses) = 0;
  /// Returns when the other ranks have come as far; `stream` is that of start.
  /// What it gets next finds the destinations, and may change the sources.
  virtual llvm::Error finish(Stream &stream) = 0;
  /// Whether its streams may be captured between start and finish, and both be
  /// left out in launches (Communicator::beginCapture).
  virtual bool canCapture() const { return false; }
  /// Has `observer`, which lives longer, told in each `start`. Returns false
  /// where the operation has no stream of its own: then what it does is on that
  /// of start and finish.
  virtual bool setObserver(StreamObserver &observer);
};

/// The operations of a graph.
class CapturedOperations {
public:
  virtual ~CapturedOperations();
  /// To be called before each launch of the graph, whose last one is done.
  virtual llvm::Error beginLaunch() = 0;
};

/// Some of the ranks, in an order that numbers them.
class Group {
public:
  explicit Group(std::vector<int32_t> ranks, int32_t index)
      : ranks(std::move(ranks)), index(index) {}
  virtual ~Group();
  const std::vector<int32_t> &getRanks() const { return ranks; }
  int32_t getSize() const { return static_cast<int32_t>(ranks.size()); }
  /// This rank's number in the group.
  int32_t getIndex() const { return index; }

private:
  std::vector<int32_t> ranks;
  int32_t index;
};

/// What the communicators of this process have alike.
struct CommunicatorOptions {
  /// The ranks of this process, ascending; none: all of them.
  std::vector<int32_t> ranks = {};
  /// How long an operation waits for other ranks; 0: for ever.
  std::chrono::milliseconds timeout{0};
  /// Threads that work at the same time in all processes of this host; 0: one
  /// per rank. With fewer cores, waiting ranks give up their core at once.
  int32_t numThreads = 0;
  /// The device of each of these ranks, for operations on their memory; none:
  /// all operations are on memory of the host.
  std::vector<Device *> devices = {};
};

class Communicator {
public:
  virtual ~Communicator();

  virtual int32_t getRank() const = 0;
  virtual int32_t getSize() const = 0;

  /// Tells which groups will be made, of whatever ranks; a hint. All ranks of
  /// the communicator make the call with the same groups, in the same order,
  /// once, before they make one of them. It may wait for them, and ends as an
  /// operation's wait does.
  virtual llvm::Error
  announceGroups(llvm::ArrayRef<std::vector<int32_t>> groups);
  /// `ranks` are distinct and include this one. Every one of them makes the
  /// call; two ranks make those of the groups they share in the same order.
  /// Where it waits for them, it ends as an operation's wait does.
  virtual llvm::Expected<std::shared_ptr<Group>>
  createGroup(llvm::ArrayRef<int32_t> ranks) = 0;

  /// `name` is for error messages and the same on every member.
  virtual llvm::Expected<std::unique_ptr<Operation>>
  prepare(const CollectiveSpecs &specs, const std::shared_ptr<Group> &group,
          const std::string &name) = 0;

  /// Messages of `bytes` bytes to (from) `peer`. Those of one tag arrive in the
  /// order of their starts; several receives of one tag may be started ahead.
  /// A send may wait for its receive to be started.
  virtual llvm::Expected<std::unique_ptr<Operation>>
  prepareSend(int32_t peer, int64_t tag, int64_t bytes,
              const std::string &name) = 0;
  virtual llvm::Expected<std::unique_ptr<Operation>>
  prepareReceive(int32_t peer, int64_t tag, int64_t bytes,
                 const std::string &name) = 0;

  /// As the three above, on memory of the ranks' devices. Null, for all ranks
  /// of the operation, where they have to copy to memory of the host and use
  /// what works on that. `reduction`, which the operation copies: what reduces
  /// on a device (CollectiveCommand); null: nothing does. All members give the
  /// same.
  virtual llvm::Expected<std::unique_ptr<StreamOperation>>
  prepareOnStream(const CollectiveSpecs &specs,
                  const std::shared_ptr<Group> &group, const std::string &name,
                  const Kernel *reduction);
  virtual llvm::Expected<std::unique_ptr<StreamOperation>>
  prepareSendOnStream(int32_t peer, int64_t tag, int64_t bytes,
                      const std::string &name);
  virtual llvm::Expected<std::unique_ptr<StreamOperation>>
  prepareReceiveOnStream(int32_t peer, int64_t tag, int64_t bytes,
                         const std::string &name);

  /// Whether what this rank has on streams goes out one at a time, in the order
  /// of starts, each when what is before it has ended: so the orders of ranks
  /// have to fit each other (ExchangeOrder.h). Messages are found by their
  /// order then, not by their tags.
  virtual bool isOrdered() const { return false; }

  /// Around what is put on streams that are captured, with no operation under
  /// way. What begins meanwhile begins in launches, as often as there are any,
  /// and in the order of those. Null where there is nothing to be called then.
  virtual void beginCapture();
  virtual std::unique_ptr<CapturedOperations> endCapture();

  /// To be asked when streams have done what operations put there: the error of
  /// one that failed after its `finish` had returned. What operations were to
  /// write is undefined then. None where `finish` has them all.
  virtual llvm::Error getLateError() const;
  /// Waits until streams of its own have done what they have, or cannot, but
  /// not longer than `until`. For any thread, when the rank's has ended.
  virtual void settle(std::chrono::steady_clock::time_point until);

  /// Returns when every member has called it.
  virtual llvm::Error barrier(Group &group) = 0;

  /// Allocates memory of this rank's device that operations use in every step:
  /// as the device does, or of a kind that a backend reaches with fewer copies.
  /// With errors of Device::allocate.
  virtual llvm::Expected<std::unique_ptr<DeviceMemory>> allocate(Device &device,
                                                                 int64_t bytes);

  /// Returns how much memory of the device such a collective of `size` ranks
  /// copies by, of which this one is number `index`: all that a rank exchanges
  /// shares it. `specs` have no fault.
  virtual int64_t findStaging(const CollectiveSpecs &specs, int32_t size,
                              int32_t index) const;

  /// Makes every rank's waits fail with `reason`. The first call decides. May
  /// be called from any thread.
  virtual void abort(const std::string &reason) = 0;
  /// Likewise of the ranks that this process has, where `reason` is known from
  /// others: nobody else is told.
  virtual void stop(const std::string &reason) = 0;
  /// Why ranks were told to stop; empty as long as they were not.
  virtual std::string getAbortReason() const = 0;
};

} // namespace ax::rt

#endif // AX_RUNTIME_COMMUNICATOR_H
