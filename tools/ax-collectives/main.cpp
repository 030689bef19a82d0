//===- main.cpp - ax-collectives: how fast collectives are ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of nccl-tests, for ranks that are threads, or, started by mpirun,
// processes. Beside it, with --peer, what threads do that need not wait for
// each other, and MPI's own calls.
//
//===----------------------------------------------------------------------===//

#include "DirectPeer.h"
#include "Options.h"
#include "Peer.h"

#include "ax/Runtime/LocalCommunicator.h"
#include "ax/Runtime/MpiProcess.h"
#include "ax/Support/Error.h"
#include "ax/Support/Process.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <dlfcn.h>
#include <mutex>
#include <optional>
#include <thread>

using namespace ax;
static llvm::Expected<decltype(&axMpiPeer)> loadPeer() {
  llvm::SmallString<256> file(
      llvm::sys::path::parent_path(llvm::sys::fs::getMainExecutable(
          nullptr, reinterpret_cast<void *>(&loadPeer))));
  llvm::sys::path::append(file, "libax-mpi-peer.so");
  // Beside the program in a build, and where libraries are when installed.
  for (const char *name : {file.c_str(), "libax-mpi-peer.so"})
    if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL))
      if (void *found = dlsym(library, "axMpiPeer"))
        return reinterpret_cast<decltype(&axMpiPeer)>(found);
  return makeErrorf(ExitCode::Usage, "--peer: {0}", dlerror());
}

namespace {

class MpiPeer : public Peer {
public:
  explicit MpiPeer(decltype(&axMpiPeer) call) : call(call) {}
  void begin(CaseKind newKind, const float *newSource, float *newDestination,
             int64_t newCount) override {
    kind = newKind;
    source = newSource;
    destination = newDestination;
    count = newCount;
  }
  llvm::Error run() override {
    if (int code = call(static_cast<int32_t>(kind), source, destination, count))
      return makeErrorf(ExitCode::RunFailed, "--peer: {0}: MPI's error {1}",
                        nameOf(kind), code);
    return llvm::Error::success();
  }

private:
  decltype(&axMpiPeer) call;
  CaseKind kind = CaseKind::AllReduce;
  const float *source = nullptr;
  float *destination = nullptr;
  int64_t count = 0;
};

} // namespace

static llvm::Error runProcess(CollectivesOptions options) {
  auto process = rt::openMpi();
  if (!process)
    return process.takeError();
  rt::CommunicatorOptions communicator;
  communicator.timeout = std::chrono::minutes(1);
  auto comm = (*process)->createCommunicator(
      (*process)->getPlace().numProcesses, communicator);
  if (!comm)
    return comm.takeError();
  std::optional<MpiPeer> peer;
  if (options.withPeer) {
    auto call = loadPeer();
    if (!call)
      return call.takeError();
    options.measure.peer = &peer.emplace(*call);
  }
  if (llvm::Error error = measureAll(**comm, options.measure))
    return error;
  return (*process)->finalize();
}

static llvm::Error runThreads(const CollectivesOptions &options) {
  auto communicators = rt::createLocalCommunicators(options.numRanks);
  auto peers = createDirectPeers(options.numRanks);
  std::vector<std::thread> threads;
  std::mutex mutex;
  llvm::Error failure = llvm::Error::success();
  for (auto &comm : communicators)
    threads.emplace_back(
        [&, comm = comm.get(), own = options.measure]() mutable {
          if (options.withPeer)
            own.peer = peers[static_cast<size_t>(comm->getRank())].get();
          if (llvm::Error error = measureAll(*comm, own)) {
            comm->abort("another rank has failed");
            std::lock_guard<std::mutex> lock(mutex);
            failure = llvm::joinErrors(std::move(failure), std::move(error));
          }
        });
  for (std::thread &thread : threads)
    thread.join();
  return failure;
}

int main(int argc, char **argv) {
  constexpr const char *tool = "ax-collectives";
  setUpProcess(tool);
  auto options = parseCollectivesOptions(argc, argv);
  if (!options)
    return reportError(tool, options.takeError());
  return reportError(tool, rt::isStartedByMpi() ? runProcess(*options)
                                                : runThreads(*options));
}
