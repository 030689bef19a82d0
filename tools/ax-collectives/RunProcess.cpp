//===- RunProcess.cpp - Ranks that are processes --------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Peer.h"
#include "Run.h"

#include "ax/Runtime/AllBackends.h"
#include "ax/Runtime/MpiProcess.h"
#include "ax/Support/Error.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <dlfcn.h>
#include <optional>

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

llvm::Error ax::runProcess(CollectivesOptions options) {
  auto process = rt::openMpi();
  if (!process)
    return process.takeError();
  const rt::ProcessPlace &place = (*process)->getPlace();
  if (llvm::Error error = checkCards(options, place.numProcesses))
    return error;
  std::optional<MpiPeer> peer;
  if (options.withPeer) {
    auto call = loadPeer();
    if (!call)
      return call.takeError();
    options.measure.peer = &peer.emplace(*call);
  }
  options.backends.ranks = {place.process};
  options.backends.processesOnHost = place.numOnHost;
  options.backends.indexOnHost = place.indexOnHost;
  options.calibration.ranksOnHost = place.numOnHost;
  options.calibration.indexOnHost = place.indexOnHost;
  if (llvm::Error error =
          prepareCalibration(options, place.numProcesses, place.process == 0))
    return error;
  {
    auto ranks = rt::allBackends().create(place.numProcesses, options.backends);
    if (!ranks)
      return ranks.takeError();
    if (llvm::Error error = runRank(*ranks->communicators.front(),
                                    *ranks->devices.front(), options))
      return error;
  }
  return (*process)->finalize();
}
