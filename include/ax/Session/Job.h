//===- Job.h - A process among those of its job -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where a launcher (mpirun, srun, torchrun) has started several processes, they
// find each other by MPI or by variables of their environment, and agree and
// notice each other's end by the control channel. People hear one voice, that
// of process 0.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SESSION_JOB_H
#define AX_SESSION_JOB_H

#include "ax/Runtime/World.h"

#include <chrono>
#include <mutex>

namespace ax::rt {
struct ControlOptions;
} // namespace ax::rt

namespace ax {

class JobGuard;

/// Whether a launcher has started this process and others, as far as it says so
/// in its environment.
bool isOneOfSeveral();

/// Standard output is process 0's: what others write there nobody sees. Before
/// anything is written.
void keepOutputOfFirst();

struct JobOptions {
  /// What messages begin with.
  std::string tool;
  /// As rt::ControlOptions::address.
  std::string control;
  /// So long a process may be silent before the others give it up; 0: for ever.
  double timeoutSeconds = 600;
};

class Job {
public:
  /// Returns when all processes have joined; at once where there is but this
  /// one, and nothing of MPI is opened; a line says after a while for whom it
  /// waits where variables say that there are others. Usage errors where they
  /// do not find each other, or are of different versions. After an error
  /// `failBeforeJoin` ends the process; of one that process 0 does not have,
  /// too, it says whose it is.
  static llvm::Expected<std::unique_ptr<Job>> join(const JobOptions &options);
  static int failBeforeJoin(const std::string &tool, llvm::Error error);
  ~Job();

  const std::shared_ptr<rt::World> &getWorld() const { return world; }
  /// The communicator of ranks on the host, where there are several processes:
  /// `mpi`, or `tcp` of processes that have no MPI.
  const char *getCommunicator() const { return mpi ? "mpi" : "tcp"; }

  /// All processes do so last, with the same code, which it returns. Nobody
  /// else has the world any more. Where another process does not come to its
  /// end within the job's timeout, or is lost, this one is ended as by `fail`.
  int leave(int code);
  /// Tells of an error and ends all processes. Returns the error's code where
  /// there is but this one; else it does not return.
  int fail(llvm::Error error);

private:
  class Mpi;

  explicit Job(JobOptions options);
  llvm::Error joinByMpi();
  llvm::Error joinByVariables();
  llvm::Error joinControl(rt::ControlOptions control);
  std::chrono::milliseconds silence() const;
  bool isSpeaker() const;
  [[noreturn]] void end(const std::string &reason, int code);
  [[noreturn]] void tellAndEnd(const std::string &message, int code);

  JobOptions options;
  std::unique_ptr<Mpi> mpi;
  std::shared_ptr<rt::World> world;
  std::unique_ptr<JobGuard> guard;
  std::mutex telling;
};

} // namespace ax

#endif // AX_SESSION_JOB_H
