//===- DeviceTransfers.cpp - Boxes between the host and every device ------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DeviceSuite.h"

#include "ax/Runtime/HostTransfer.h"

#include <algorithm>
#include <numeric>

namespace ax::rt {

namespace {

constexpr int64_t pieceBytes = 64;

/// A box of the host, its source, and of the device, where its runs lie in
/// order.
struct TestBox {
  StridedBox box;
  int64_t hostBytes = 0, deviceBytes = 0;

  /// What the device has after an upload, and the host after a download.
  Bytes uploaded(const Bytes &host) const {
    Bytes device(static_cast<size_t>(deviceBytes));
    box.copy(host.data(), device.data());
    return device;
  }
  Bytes downloaded(Bytes host, const Bytes &device) const {
    box.copyBack(host.data(), device.data());
    return host;
  }
};

/// `gap` is how much may lie between neighbours on the device.
TestBox randomBox(std::mt19937 &random, int64_t gap) {
  TestBox made;
  int64_t element = int64_t(1) << (random() % 4);
  size_t numDims = random() % 5;
  std::vector<int64_t> sizes(numDims), host(numDims), device(numDims);
  for (int64_t &size : sizes)
    size = random() % 25 ? 1 + static_cast<int64_t>(random() % 6) : 0;
  auto more = [&] { return static_cast<int64_t>(random() % (gap + 1)); };
  std::vector<size_t> order(numDims);
  std::iota(order.begin(), order.end(), 0);
  int64_t stride = element;
  for (size_t d = numDims; d-- > 0; stride += more()) {
    device[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  made.deviceBytes = stride;
  std::shuffle(order.begin(), order.end(), random);
  stride = element;
  for (size_t d : order) {
    host[d] = stride;
    stride = stride * std::max<int64_t>(sizes[d], 1) + element * (random() % 2);
  }
  made.hostBytes = stride;
  made.box = StridedBox(element);
  made.box.sourceOffset = static_cast<int64_t>(random() % 10);
  made.box.destinationOffset = more();
  made.hostBytes += made.box.sourceOffset;
  made.deviceBytes += made.box.destinationOffset + more();
  for (size_t d = 0; d < numDims; ++d)
    made.box.addDim(sizes[d], host[d], device[d]);
  made.box.finish();
  return made;
}

class Boxes {
public:
  explicit Boxes(TestRank &rank)
      : rank(rank), transfer(rank.device, *rank.stream, pieceBytes) {}

  /// Up and down; what lies around on the device stays as it is.
  void check(const TestBox &test, uint32_t seed) {
    Bytes host = randomBytes(test.hostBytes, seed);
    const int64_t margin = 16;
    Bytes around(static_cast<size_t>(test.deviceBytes + 2 * margin), 'x');
    auto memory = rank.place(around);
    DeviceAddress at = memory->getAddress() + margin;
    Bytes given = host;
    llvm::cantFail(
        transfer.upload(test.box, given.data(), at, test.deviceBytes));
    std::fill(given.begin(), given.end(), 'y');
    Bytes want = test.uploaded(host);
    std::copy(want.begin(), want.end(), around.begin() + margin);
    ASSERT_EQ(rank.read(*memory), around);

    Bytes there = randomBytes(test.deviceBytes, ~seed);
    rank.write(at, there);
    Bytes got = host;
    llvm::cantFail(
        transfer.download(test.box, at, test.deviceBytes, got.data()));
    ASSERT_EQ(got, test.downloaded(host, there));
  }

private:
  TestRank &rank;
  HostTransfer transfer;
};

TEST_P(DeviceSuite, MovesBoxesOfEveryShape) {
  std::mt19937 random(1);
  Boxes boxes(*rank);
  for (uint32_t i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    boxes.check(randomBox(random, i % 3 ? 0 : 40), i);
    if (HasFatalFailure())
      return;
  }
}

// One byte less than pieces have, as many, one more; less than nothing is left
// for the last one.
TEST_P(DeviceSuite, MovesRunsOfEverySize) {
  HostTransfer transfer(device, *rank->stream, pieceBytes);
  for (int64_t size : {0, 1, 63, 64, 65, 127, 128, 129, 191, 192, 193, 5000}) {
    auto memory = llvm::cantFail(device.allocate(size));
    Bytes bytes = randomBytes(size, 1), read(bytes.size());
    llvm::cantFail(transfer.upload(bytes.data(), memory->getAddress(), size));
    llvm::cantFail(transfer.download(memory->getAddress(), read.data(), size));
    EXPECT_EQ(read, bytes) << size;
  }
}

TEST_P(DeviceSuite, AnEmptyBoxIsZero) {
  StridedBox none(4);
  none.addDim(0, 4, 4);
  none.finish();
  HostTransfer transfer(device, *rank->stream, pieceBytes);
  auto memory = rank->place(Bytes(200, 'x'));
  llvm::cantFail(transfer.upload(none, nullptr, memory->getAddress(), 150));
  Bytes want(200, 'x');
  std::fill_n(want.begin(), 150, 0);
  EXPECT_EQ(rank->read(*memory), want);
  llvm::cantFail(transfer.download(none, memory->getAddress(), 150, nullptr));
}

// A transfer takes its turn on its stream, and may be gone before its work is
// done.
TEST_P(DeviceSuite, TransfersFollowTheirStream) {
  const int64_t size = 1000;
  Bytes a = randomBytes(size, 1), b = randomBytes(size, 2), read(a.size());
  auto memory = llvm::cantFail(device.allocate(size));
  auto copy = llvm::cantFail(device.allocate(size));
  Stream &stream = *rank->stream;
  {
    HostTransfer transfer(device, stream, pieceBytes);
    llvm::cantFail(transfer.upload(a.data(), memory->getAddress(), size));
    llvm::cantFail(
        rank->copy(stream, memory->getAddress(), copy->getAddress(), size));
    llvm::cantFail(transfer.upload(b.data(), memory->getAddress(), size));
  }
  HostTransfer transfer(device, stream, pieceBytes);
  llvm::cantFail(transfer.download(copy->getAddress(), read.data(), size));
  EXPECT_EQ(read, a);
  llvm::cantFail(transfer.download(memory->getAddress(), read.data(), size));
  EXPECT_EQ(read, b);
}

} // namespace

} // namespace ax::rt
