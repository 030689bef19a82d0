//===- CudaTransferTest.cpp - What HostTransfer waits for -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Its waits are the host's, for events: each is left out until something is
// wrong in some order.
//
//===----------------------------------------------------------------------===//

#include "DeviceSuite.h"
#include "TestSimgpu.h"

#include "ax/Runtime/HostTransfer.h"

using namespace ax::rt;

namespace {

constexpr int64_t pieceBytes = 64;

/// In which of some random orders `run(rank)` returns false; each has a rank of
/// its own, whose stream is the first of the thread.
template <typename Run>
int numFailures(bool dropsWaits, Run &&run) {
  int failures = 0;
  for (int seed = 0; seed < 20; ++seed) {
    startSimgpu({{"ORDER", "random:" + std::to_string(seed)},
                 {"DROP_WAIT", dropsWaits ? "0<1" : "0"}});
    DeviceKind cuda = llvm::cantFail(allBackends().devices.find("cuda"));
    auto devices = llvm::cantFail(cuda.create({0}, DeviceOptions()));
    devices.front()->attachThread();
    TestRank rank(*devices.front());
    failures += !run(rank);
  }
  return failures;
}

template <typename Run>
void expectNeeded(Run &&run) {
  EXPECT_EQ(numFailures(false, run), 0);
  EXPECT_GT(numFailures(true, run), 0);
}

// Two pieces take turns.
TEST(CudaTransferTest, APieceIsFilledAgainWhenItIsUp) {
  expectNeeded([](TestRank &rank) {
    Bytes bytes = randomBytes(10 * pieceBytes, 1);
    auto size = static_cast<int64_t>(bytes.size());
    auto memory = llvm::cantFail(rank.device.allocate(size));
    HostTransfer transfer(rank.device, *rank.stream, pieceBytes);
    llvm::cantFail(transfer.upload(bytes.data(), memory->getAddress(), size));
    return rank.read(*memory) == bytes;
  });
}

TEST(CudaTransferTest, APieceIsReadWhenItIsDown) {
  expectNeeded([](TestRank &rank) {
    Bytes bytes = randomBytes(2 * pieceBytes, 1), read(bytes.size());
    auto memory = rank.place(bytes);
    HostTransfer transfer(rank.device, *rank.stream, pieceBytes);
    llvm::cantFail(transfer.download(memory->getAddress(), read.data(),
                                     memory->getSize()));
    return read == bytes;
  });
}

TEST(CudaTransferTest, PiecesGoWhenTheyAreUp) {
  expectNeeded([](TestRank &rank) {
    Bytes bytes = randomBytes(2 * pieceBytes, 1);
    auto memory = rank.place(bytes);
    simgpuReported();
    {
      HostTransfer transfer(rank.device, *rank.stream, pieceBytes);
      llvm::cantFail(transfer.upload(bytes.data(), memory->getAddress(),
                                     memory->getSize()));
    }
    return simgpuReported().empty();
  });
}

} // namespace
