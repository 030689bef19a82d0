//===- MpiProcess.cpp - A process that MPI's launcher started -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/MpiProcess.h"

#include "LoadModule.h"

#include "ax/Runtime/Backends.h"
#include "ax/Runtime/MessageCommunicator.h"
#include "ax/Support/Error.h"

#include <cstdlib>
#include <mutex>

namespace ax::rt {

bool isStartedByMpi() {
  for (const char *name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"})
    if (std::getenv(name))
      return true;
  return false;
}

llvm::Error MpiProcess::broadcast(llvm::MutableArrayRef<char> bytes) {
  return check(mpi.messages,
               mpi.broadcast(bytes.data(), static_cast<int64_t>(bytes.size())),
               "broadcast from process 0");
}

llvm::Expected<std::unique_ptr<Communicator>>
MpiProcess::createCommunicator(int32_t numRanks,
                               const CommunicatorOptions &options) {
  return createMessageCommunicator(mpi.messages, place, numRanks, options);
}

void MpiProcess::abort(int32_t code) {
  if (!isFinalized.load())
    mpi.abort(code);
  std::_Exit(code);
}

llvm::Error MpiProcess::finalize() {
  int code = mpi.finalize();
  isFinalized.store(true);
  return check(mpi.messages, code, "end of the job");
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
  if (llvm::Error error = check(mpi.messages, mpi.initialize(&threadsAllowed),
                                "start of the job"))
    return error;
  if (!threadsAllowed)
    return makeError(ExitCode::Usage,
                     "this MPI does not let several threads call it "
                     "(MPI_THREAD_MULTIPLE): use one that was built with that");
  AxMpiPlace found = {};
  if (llvm::Error error =
          check(mpi.messages, mpi.getPlace(&found), "places of the processes"))
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
        if (llvm::Error error = checkProcesses("mpi", (*process)->getPlace(),
                                               numRanks, options))
          return error;
        auto made = (*process)->createCommunicator(numRanks, options);
        if (!made)
          return made.takeError();
        std::vector<std::unique_ptr<Communicator>> result;
        result.push_back(std::move(*made));
        return result;
      });
}

} // namespace ax::rt
