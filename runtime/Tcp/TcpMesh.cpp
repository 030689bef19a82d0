//===- TcpMesh.cpp - Connections between all processes --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/TcpMesh.h"

#include "Carrier.h"

#include "ax/Runtime/Backends.h"
#include "ax/Runtime/MessageCommunicator.h"
#include "ax/Support/Error.h"

namespace ax::rt {

TcpMesh::TcpMesh(ProcessPlace place, std::unique_ptr<tcp::Carrier> carrier)
    : place(std::move(place)), carrier(std::move(carrier)) {}
TcpMesh::~TcpMesh() = default;

llvm::Expected<std::unique_ptr<TcpMesh>>
TcpMesh::connect(World &world, llvm::StringRef address,
                 std::chrono::milliseconds timeout) {
  auto peers = tcp::connectAll(world, address, timeout);
  if (!peers)
    return peers.takeError();
  const ProcessPlace &place = world.getPlace();
  return std::unique_ptr<TcpMesh>(new TcpMesh(
      place, std::make_unique<tcp::Carrier>(place.process, std::move(*peers))));
}

llvm::Expected<std::unique_ptr<Communicator>>
TcpMesh::createCommunicator(int32_t numRanks,
                            const CommunicatorOptions &options) {
  return createMessageCommunicator(carrier->getTable(), place, numRanks,
                                   options);
}

/// It lives as long as the process.
static TcpMesh *opened = nullptr;

TcpMesh *getTcp() { return opened; }

llvm::Error openTcp(World &world, llvm::StringRef address) {
  auto made = TcpMesh::connect(world, address);
  if (!made)
    return made.takeError();
  opened = made->release();
  return llvm::Error::success();
}

// Declared where the build's list of them is called.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void registerTcp(Backends &backends) {
  backends.communicators.add(
      "tcp",
      [](int32_t numRanks, const CommunicatorOptions &options)
          -> llvm::Expected<std::vector<std::unique_ptr<Communicator>>> {
        if (!opened)
          return makeError(
              ExitCode::Usage,
              "communicator 'tcp' is for processes that find each "
              "other by their environment: torchrun "
              "--nproc-per-node=RANKS --no-python -- axrun ..., or "
              "srun axrun ...");
        if (llvm::Error error =
                checkProcesses("tcp", opened->getPlace(), numRanks, options))
          return error;
        auto made = opened->createCommunicator(numRanks, options);
        if (!made)
          return made.takeError();
        std::vector<std::unique_ptr<Communicator>> result;
        result.push_back(std::move(*made));
        return result;
      });
}

} // namespace ax::rt
