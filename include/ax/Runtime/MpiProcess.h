//===- MpiProcess.h - A process that MPI's launcher started -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One rank is one process. What needs MPI itself is in a module, libax-mpi.so,
// which only a process that a launcher has started opens.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_MPIPROCESS_H
#define AX_RUNTIME_MPIPROCESS_H

#include "ax/Runtime/Communicator.h"
#include "ax/Runtime/World.h"

#include <atomic>

struct AxMpiModuleTable;

namespace ax::rt {

/// Whether a launcher (mpirun, srun) has started this process: it says so in
/// OMPI_COMM_WORLD_SIZE, PMIX_RANK or PMI_RANK.
bool isStartedByMpi();

/// MPI, as long as this process lives.
class MpiProcess {
public:
  const ProcessPlace &getPlace() const { return place; }

  /// Process 0's bytes come to all, which call it at the same time. There is no
  /// end to its waiting: it is for what has to be known before there is a
  /// World. Errors are RunFailed.
  llvm::Error broadcast(llvm::MutableArrayRef<char> bytes);

  /// Makes the communicator of this process's rank among the processes
  /// 0 .. numRanks - 1, of which each makes the call. A Usage error where this
  /// is none of them.
  llvm::Expected<std::unique_ptr<Communicator>>
  createCommunicator(int32_t numRanks, const CommunicatorOptions &options);

  /// Ends all processes of the job with `code`, this one at once. After
  /// `finalize` it ends this one, and with it the launcher the others, as it
  /// does when one has failed.
  [[noreturn]] void abort(int32_t code);
  /// All processes call it last, when all is well and there is no communicator
  /// any more; it waits for the others. A process that ends without it makes
  /// the launcher end the job.
  llvm::Error finalize();

private:
  friend llvm::Expected<MpiProcess *> openMpi();
  MpiProcess(const AxMpiModuleTable &mpi, ProcessPlace place)
      : mpi(mpi), place(std::move(place)) {}

  const AxMpiModuleTable &mpi;
  ProcessPlace place;
  std::atomic<bool> isFinalized{false};
};

/// Returns this process's, which the first call opens: MPI starts only once. A
/// Usage error where no launcher has started it, there is no module that fits,
/// or MPI lets only one thread call it at a time.
llvm::Expected<MpiProcess *> openMpi();

} // namespace ax::rt

#endif // AX_RUNTIME_MPIPROCESS_H
