//===- MpiProcess.cpp - A process that MPI's launcher started -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/MpiProcess.h"

#include "LoadModule.h"
#include "MpiLink.h"

#include "ax/Runtime/Backends.h"
#include "ax/Support/Error.h"

#include <cstdlib>
#include <mutex>

namespace ax::rt {

using mpi::check;

bool isStartedByMpi() {
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"})
    if (std::getenv(name))
      return true;
  return false;
}

std::string rankOfLauncher() {
  for (const char *name :
       {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char *rank = std::getenv(name))
      return rank;
  return "0";
}

bool isFirstOfLauncher() { return rankOfLauncher() == "0"; }

llvm::Error MpiProcess::broadcast(llvm::MutableArrayRef<char> bytes) {
  return check(mpi,
               mpi.broadcast(bytes.data(), static_cast<int64_t>(bytes.size())),
               "broadcast from process 0");
}

llvm::Expected<std::unique_ptr<Communicator>>
MpiProcess::createCommunicator(int32_t numRanks,
                               const CommunicatorOptions &options) {
  if (place.process >= numRanks || numRanks > place.numProcesses)
    return makeErrorf(
        ExitCode::Usage,
        "process {0} of {1} cannot be one of {2} ranks; start one "
        "process for each rank",
        place.process, place.numProcesses, numRanks);
  auto link = mpi::MpiLink::create(mpi, place, numRanks, options);
  if (!link)
    return link.takeError();
  return mpi::makeMpiCommunicator(std::move(*link));
}

void MpiProcess::abort(int32_t code) {
  mpi.abort(code);
  std::_Exit(code);
}

llvm::Error MpiProcess::finalize() {
  return check(mpi, mpi.finalize(), "end of the job");
}

llvm::Expected<MpiProcess *> openMpi() {
  static std::mutex mutex;
  static MpiProcess *opened = nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  if (opened)
    return opened;
  if (!isStartedByMpi())
    return makeError(ExitCode::Usage,
                     "communicator 'mpi' is for processes that a launcher has "
                     "started: mpirun -np RANKS axrun ...");
  auto loaded = mpi::loadModule();
  if (!loaded)
    return loaded.takeError();
  const AxMpiModuleTable &mpi = **loaded;
  int32_t threadsAllowed = 0;
  if (llvm::Error error =
          check(mpi, mpi.initialize(&threadsAllowed), "start of the job"))
    return error;
  if (!threadsAllowed)
    return makeError(ExitCode::Usage,
                     "this MPI does not let several threads call it "
                     "(MPI_THREAD_MULTIPLE): use one that was built with that");
  AxMpiPlace found = {};
  if (llvm::Error error =
          check(mpi, mpi.getPlace(&found), "places of the processes"))
    return error;
  ProcessPlace place;
  place.process = found.process;
  place.numProcesses = found.numProcesses;
  place.host = found.host;
  place.indexOnHost = found.indexOnHost;
  place.numOnHost = found.numOnHost;
  // It lives as long as MPI does.
  opened = new MpiProcess(mpi, std::move(place));
  return opened;
}

// Declared where the build's list of them is called.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void registerMpi(Backends &backends) {
  backends.communicators.add(
      "mpi",
      [](int32_t numRanks, const CommunicatorOptions &options)
          -> llvm::Expected<std::vector<std::unique_ptr<Communicator>>> {
        auto process = openMpi();
        if (!process)
          return process.takeError();
        const ProcessPlace &place = (*process)->getPlace();
        if (options.ranks != std::vector<int32_t>{place.process} ||
            numRanks != place.numProcesses)
          return makeErrorf(ExitCode::Usage,
                            "{0} processes run {1} ranks: communicator 'mpi' "
                            "needs one process for each rank",
                            place.numProcesses, numRanks);
        auto made = (*process)->createCommunicator(numRanks, options);
        if (!made)
          return made.takeError();
        std::vector<std::unique_ptr<Communicator>> result;
        result.push_back(std::move(*made));
        return result;
      });
}

} // namespace ax::rt
