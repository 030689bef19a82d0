//===- Backends.cpp - Devices and communicators by name -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Backends.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/StringExtras.h"

namespace ax::rt {

llvm::Error checkThreads(int64_t numRanks, int64_t threadsPerRank) {
  if (threadsPerRank < 1)
    return makeErrorf(ExitCode::Usage,
                      "--threads-per-rank={0}: a rank has 1 thread or more",
                      threadsPerRank);
  if (numRanks <= mostThreads / threadsPerRank)
    return llvm::Error::success();
  return makeErrorf(ExitCode::Usage,
                    "{0} ranks with {1} threads each: one process runs 1 to "
                    "{2} threads",
                    numRanks, threadsPerRank, mostThreads);
}

llvm::Error noBackend(llvm::StringRef kind, llvm::StringRef name,
                      const std::vector<std::string> &known) {
  return makeErrorf(ExitCode::Usage, "there is no {0} '{1}', but: {2}", kind,
                    name, llvm::join(known, ", "));
}

llvm::Error Backends::check(const BackendOptions &options) const {
  auto device = devices.find(options.device);
  if (!device)
    return device.takeError();
  return communicators.find(options.communicator).takeError();
}

llvm::Expected<RankBackends>
Backends::create(int64_t numRanks, const BackendOptions &options) const {
  if (llvm::Error error =
          checkThreads(numRanks, options.devices.threadsPerRank))
    return error;
  auto device = devices.find(options.device);
  if (!device)
    return device.takeError();
  auto createCommunicators = communicators.find(options.communicator);
  if (!createCommunicators)
    return createCommunicators.takeError();
  auto ranks = static_cast<int32_t>(numRanks);
  auto madeDevices = device->create(ranks, options.devices);
  if (!madeDevices)
    return madeDevices.takeError();
  CommunicatorOptions communicatorOptions;
  communicatorOptions.timeout = options.timeout;
  for (const std::unique_ptr<Device> &made : *madeDevices) {
    communicatorOptions.numThreads += made->getNumThreads();
    communicatorOptions.devices.push_back(made.get());
  }
  auto madeCommunicators = (*createCommunicators)(ranks, communicatorOptions);
  if (!madeCommunicators)
    return madeCommunicators.takeError();
  RankBackends made{std::move(*madeDevices), std::move(*madeCommunicators)};
  if (options.host.empty() || made.devices.front()->getHostMapping())
    return made;
  auto host = devices.find(options.host);
  if (!host)
    return host.takeError();
  auto madeHosts = host->create(ranks, options.devices);
  if (!madeHosts)
    return madeHosts.takeError();
  made.hosts = std::move(*madeHosts);
  return made;
}

} // namespace ax::rt
