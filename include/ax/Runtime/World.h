//===- World.h - The processes that run a plan together ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A job is one process that has all of a plan's ranks as threads, or, under a
// launcher (mpirun, srun, torchrun), several processes with one rank each. What
// is the same for both asks its World: which ranks are here, and what all
// processes have to know before they go on.
//
// Exchanges carry little: agreement, a step's report, lists of files. Tensors
// go through a Communicator. All processes make the same exchanges in the same
// order, each from one thread at a time; after an error, or after `abort`, all
// that are waited for fail, everywhere, within a bounded time.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_WORLD_H
#define AX_RUNTIME_WORLD_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ax::rt {

/// Where a process stands among those of its job.
struct ProcessPlace {
  /// Below numProcesses. Process 0 is who prints, and writes what is the job's.
  int32_t process = 0;
  int32_t numProcesses = 1;
  /// The name of its host, for people.
  std::string host = {};
  /// Its number among the processes of its host, and how many these are.
  int32_t indexOnHost = 0;
  int32_t numOnHost = 1;
};

class World {
public:
  explicit World(ProcessPlace place) : place(std::move(place)) {}
  virtual ~World();

  const ProcessPlace &getPlace() const { return place; }
  /// Before anybody else asks for it.
  void setPlaceOnHost(int32_t indexOnHost, int32_t numOnHost) {
    place.indexOnHost = indexOnHost;
    place.numOnHost = numOnHost;
  }
  bool isAlone() const { return place.numProcesses == 1; }
  bool isFirst() const { return place.process == 0; }

  /// Returns the ranks that this process runs of a plan of `numRanks`,
  /// ascending: all where it is alone, else that of its own number. A Usage
  /// error, with both numbers, where there are not as many processes as ranks.
  llvm::Expected<std::vector<int32_t>> getRanks(int64_t numRanks) const;
  /// Returns the process that runs a rank.
  int32_t processOf(int32_t rank) const { return isAlone() ? 0 : rank; }

  /// Returns what all processes gave, by their numbers. `what` names the
  /// exchange in errors, which are RunFailed; processes that are at different
  /// ones are told so.
  virtual llvm::Expected<std::vector<std::string>>
  allGather(llvm::StringRef what, std::string value) = 0;
  /// Returns it to process 0, and nothing to others.
  virtual llvm::Expected<std::vector<std::string>>
  gather(llvm::StringRef what, std::string value) = 0;
  /// Returns what process 0 gave.
  virtual llvm::Expected<std::string> broadcast(llvm::StringRef what,
                                                std::string value) = 0;
  /// Returns when all processes have called it.
  virtual llvm::Error barrier(llvm::StringRef what) = 0;

  /// Ends the job: all processes' exchanges fail with `reason`, and the others'
  /// abort handlers are told. The first call of all processes decides. May be
  /// called from any thread; returns when it is decided, within seconds.
  virtual void abort(const std::string &reason) = 0;
  /// Why the job ends; empty as long as it does not.
  virtual std::string getAbortReason() const = 0;
  /// Whether process 0 is there, as far as this one knows: where it is not, it
  /// cannot tell people anything.
  virtual bool isFirstThere() const { return true; }
  /// `handler` is called once, from any thread, when the job ends for another
  /// reason than an `abort` of this process: one that another called, or a
  /// process that is lost or silent. At once if it has ended before. An empty
  /// one takes it away, and waits for a call that is being made.
  virtual void
  setAbortHandler(std::function<void(const std::string &reason)> handler) = 0;
  /// Asked from any thread what this process does now, in a line for people;
  /// others tell it when this one is missing. It may not wait: who does not
  /// answer counts as silent. An empty one takes it away, as a handler's.
  virtual void setProgress(std::function<std::string()> progress) = 0;

private:
  ProcessPlace place;
};

/// Returns the world of a process that is not one of several.
std::unique_ptr<World> makeLoneWorld();

} // namespace ax::rt

#endif // AX_RUNTIME_WORLD_H
