//===- main.cpp - ax-collectives: how fast collectives are ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table of nccl-tests, for ranks that are threads, or, started by mpirun,
// processes. Beside it, with --peer, what threads do that need not wait for
// each other, and MPI's own calls.
//
//===----------------------------------------------------------------------===//

#include "DirectPeer.h"
#include "Measure.h"
#include "Peer.h"

#include "ax/Runtime/LocalCommunicator.h"
#include "ax/Runtime/MpiProcess.h"
#include "ax/Support/Error.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <dlfcn.h>
#include <mutex>
#include <optional>
#include <thread>

using namespace ax;
namespace cl = llvm::cl;

static cl::OptionCategory category("Options");

static cl::opt<int32_t> numRanks("ranks", cl::init(2),
                                 cl::desc("rank threads, without a launcher"),
                                 cl::cat(category));
static cl::opt<int64_t> minBytes("min-bytes", cl::init(64),
                                 cl::desc("smallest size; the next is 4 times "
                                          "as large"),
                                 cl::cat(category));
static cl::opt<int64_t> maxBytes("max-bytes", cl::init(64 << 20),
                                 cl::desc("largest size"), cl::cat(category));
static cl::opt<int32_t> rounds("rounds", cl::init(20),
                               cl::desc("of which the fastest counts"),
                               cl::cat(category));
static cl::opt<bool> withPeer("peer",
                              cl::desc("beside it MPI's own calls; of threads "
                                       "direct reads, without waiting"),
                              cl::cat(category));

static llvm::Expected<decltype(&axMpiPeer)> loadPeer() {
  llvm::SmallString<256> file(
      llvm::sys::path::parent_path(llvm::sys::fs::getMainExecutable(
          nullptr, reinterpret_cast<void *>(&loadPeer))));
  llvm::sys::path::append(file, "libax-mpi-peer.so");
  if (void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL))
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

static llvm::Error runProcess(MeasureOptions options) {
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
  if (withPeer) {
    auto call = loadPeer();
    if (!call)
      return call.takeError();
    options.peer = &peer.emplace(*call);
  }
  if (llvm::Error error = measureAll(**comm, options))
    return error;
  return (*process)->finalize();
}

static llvm::Error runThreads(const MeasureOptions &options) {
  if (numRanks < 1 || numRanks > 64)
    return makeErrorf(ExitCode::Usage, "--ranks={0}: expected 1 to 64",
                      numRanks.getValue());
  auto communicators = rt::createLocalCommunicators(numRanks);
  auto peers = createDirectPeers(numRanks);
  std::vector<std::thread> threads;
  std::mutex mutex;
  llvm::Error failure = llvm::Error::success();
  for (auto &comm : communicators)
    threads.emplace_back([&, comm = comm.get(), own = options]() mutable {
      if (withPeer)
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
  // LLVM has some for each of its own parts.
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "how fast collectives are\n");
  if (minBytes < 4 || minBytes > maxBytes || rounds < 1)
    return reportError("ax-collectives",
                       makeError(ExitCode::Usage,
                                 "sizes are 4 bytes or more, and there is a "
                                 "round"));
  MeasureOptions options;
  options.minBytes = minBytes;
  options.maxBytes = maxBytes;
  options.rounds = rounds;
  return reportError("ax-collectives", rt::isStartedByMpi()
                                           ? runProcess(std::move(options))
                                           : runThreads(options));
}
