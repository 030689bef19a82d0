//===- DeviceSuite.cpp - What every device must do with memory ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DeviceSuite.h"

#include "ax/Runtime/DeviceAccess.h"
#include "ax/Runtime/Program.h"
#include "ax/Runtime/StridedCopy.h"
#include "ax/Support/Error.h"

#include <algorithm>
#include <numeric>

namespace ax::rt {

static CopyCommand makeRun(int64_t bytes) {
  CopyCommand run;
  run.elementBytes = 1;
  run.sizes = {bytes};
  run.sourceStrides = run.destinationStrides = {1};
  return run;
}

llvm::Error TestRank::copy(Stream &by, DeviceAddress source,
                           DeviceAddress destination, int64_t bytes) {
  return by.copyStrided(makeRun(bytes), source, destination);
}

namespace {

uintptr_t numberOf(DeviceAddress address) {
  return reinterpret_cast<uintptr_t>(DeviceAccess::pointer(address));
}

TEST_P(DeviceSuite, MemoryIsAlignedAndApart) {
  std::vector<std::unique_ptr<DeviceMemory>> all;
  for (int64_t size : {1, 2, 63, 64, 65, 1000, 4096, 3 << 20})
    for (bool isZeroed : {false, true}) {
      auto &memory = all.emplace_back(llvm::cantFail(
          isZeroed ? device.allocateZeroed(size) : device.allocate(size)));
      EXPECT_EQ(memory->getSize(), size);
      EXPECT_EQ(numberOf(memory->getAddress()) % 64, 0U);
      rank->write(memory->getAddress(),
                  randomBytes(size, static_cast<uint32_t>(all.size())));
    }
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(rank->read(*all[i]),
              randomBytes(all[i]->getSize(), static_cast<uint32_t>(i + 1)));
}

TEST_P(DeviceSuite, ZeroedMemoryIsZero) {
  for (int64_t size : {1, 100, 70001, 5 << 20}) {
    // Where memory comes back, it is what others have left.
    rank->place(randomBytes(size, 1)).reset();
    auto memory = llvm::cantFail(device.allocateZeroed(size));
    EXPECT_EQ(rank->read(*memory), Bytes(static_cast<size_t>(size)));
  }
}

TEST_P(DeviceSuite, NoBytesAreNothing) {
  for (bool isZeroed : {false, true}) {
    auto none = llvm::cantFail(isZeroed ? device.allocateZeroed(0)
                                        : device.allocate(0));
    EXPECT_FALSE(none->getAddress());
    EXPECT_EQ(none->getSize(), 0);
  }
  auto pinned = llvm::cantFail(device.allocatePinned(0));
  EXPECT_EQ(pinned->getData(), nullptr);
  EXPECT_EQ(pinned->getSize(), 0);

  DeviceAddress nowhere;
  EXPECT_FALSE(nowhere);
  llvm::cantFail(rank->stream->upload(*pinned, 0, nowhere, 0));
  llvm::cantFail(rank->stream->download(nowhere, *pinned, 0, 0));
  llvm::cantFail(rank->stream->clear(nowhere, 0));
  llvm::cantFail(rank->copy(*rank->stream, nowhere, nowhere, 0));
  // At the end of memory there is nothing, too.
  auto memory = rank->place(Bytes(10, 'a'));
  DeviceAddress end = memory->getAddress() + 10;
  llvm::cantFail(rank->stream->clear(end, 0));
  llvm::cantFail(rank->copy(*rank->stream, memory->getAddress(), end, 0));
  EXPECT_EQ(rank->read(*memory), Bytes(10, 'a'));
}

TEST_P(DeviceSuite, AddressesAreCountedFrom) {
  auto memory = rank->place(randomBytes(100, 1));
  DeviceAddress begin = memory->getAddress();
  EXPECT_TRUE(begin + 3 + 5 == begin + 8);
  EXPECT_TRUE(begin + 8 + -8 == begin);
  EXPECT_FALSE(begin == begin + 1);
  Bytes want = randomBytes(100, 1), written = randomBytes(10, 2);
  std::copy(written.begin(), written.end(), want.begin() + 37);
  rank->write(begin + 37, written);
  EXPECT_EQ(rank->read(*memory), want);
  EXPECT_EQ(rank->read(begin + 40, 5),
            Bytes(want.begin() + 40, want.begin() + 45));
}

TEST_P(DeviceSuite, PinnedMemoryIsTheHosts) {
  std::vector<std::unique_ptr<PinnedMemory>> all;
  for (int64_t size : {1, 8, 65, 5000, 3 << 20}) {
    Bytes bytes = randomBytes(size, static_cast<uint32_t>(all.size()));
    auto &pinned = all.emplace_back(rank->pin(bytes));
    EXPECT_EQ(pinned->getSize(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pinned->getData()) % 64, 0U);
  }
  for (size_t i = 0; i < all.size(); ++i) {
    Bytes bytes = randomBytes(all[i]->getSize(), static_cast<uint32_t>(i));
    EXPECT_EQ(std::memcmp(all[i]->getData(), bytes.data(), bytes.size()), 0);
  }
}

TEST_P(DeviceSuite, MovesBytesAtOffsets) {
  const int64_t size = 300;
  for (auto [hostAt, deviceAt, bytes] :
       {std::tuple<int64_t, int64_t, int64_t>{0, 0, 300},
        {1, 0, 7},
        {0, 3, 9},
        {64, 128, 100},
        {17, 255, 45},
        {299, 299, 1}}) {
    auto memory = rank->place(randomBytes(size, 1));
    auto pinned = rank->pin(randomBytes(size, 2));
    llvm::cantFail(rank->stream->upload(
        *pinned, hostAt, memory->getAddress() + deviceAt, bytes));
    llvm::cantFail(rank->stream->synchronize());
    Bytes host = randomBytes(size, 2), want = randomBytes(size, 1);
    std::copy_n(host.begin() + hostAt, bytes, want.begin() + deviceAt);
    EXPECT_EQ(rank->read(*memory), want);

    memory = rank->place(randomBytes(size, 3));
    llvm::cantFail(rank->stream->download(memory->getAddress() + deviceAt,
                                          *pinned, hostAt, bytes));
    llvm::cantFail(rank->stream->synchronize());
    Bytes there = randomBytes(size, 3);
    std::copy_n(there.begin() + deviceAt, bytes, host.begin() + hostAt);
    EXPECT_EQ(std::memcmp(pinned->getData(), host.data(), host.size()), 0);
  }
}

TEST_P(DeviceSuite, Clears) {
  Bytes want = randomBytes(1000, 1);
  auto memory = rank->place(want);
  for (auto [begin, bytes] : {std::pair<int64_t, int64_t>{0, 1},
                              {63, 2},
                              {100, 0},
                              {333, 321},
                              {999, 1}}) {
    llvm::cantFail(rank->stream->clear(memory->getAddress() + begin, bytes));
    std::fill_n(want.begin() + begin, bytes, 0);
  }
  EXPECT_EQ(rank->read(*memory), want);
}

/// Of every number of dimensions, sizes down to 0, with neighbours that are
/// dense, in another order, far apart, or (of the source) the same.
CopyCommand randomBox(std::mt19937 &random) {
  CopyCommand box;
  const int64_t elements[] = {1, 2, 4, 8, 12};
  box.elementBytes = elements[random() % 5];
  size_t numDims = random() % 6;
  for (size_t d = 0; d < numDims; ++d)
    box.sizes.push_back(random() % 20 ? 1 + random() % 5 : 0);
  bool repeats = random() % 4 == 0;
  for (std::vector<int64_t> *strides :
       {&box.sourceStrides, &box.destinationStrides}) {
    std::vector<size_t> order(numDims);
    std::iota(order.begin(), order.end(), 0);
    if (random() % 2)
      std::shuffle(order.begin(), order.end(), random);
    strides->resize(numDims);
    int64_t stride = 1;
    for (size_t d : llvm::reverse(order)) {
      (*strides)[d] = stride;
      stride *= std::max<int64_t>(box.sizes[d], 1);
      if (random() % 3 == 0)
        stride += random() % 3;
    }
    if (repeats && strides == &box.sourceStrides && numDims)
      (*strides)[random() % numDims] = 0;
  }
  return box;
}

int64_t reachOf(const CopyCommand &box, const std::vector<int64_t> &strides) {
  int64_t elements = 1;
  for (size_t d = 0; d < box.sizes.size(); ++d)
    elements += std::max<int64_t>(box.sizes[d] - 1, 0) * strides[d];
  return elements * box.elementBytes;
}

TEST_P(DeviceSuite, CopiesStridedBoxes) {
  std::mt19937 random(1);
  for (uint32_t i = 0; i < 300; ++i) {
    CopyCommand command = randomBox(random);
    StridedBox box(command.elementBytes);
    for (size_t d = 0; d < command.sizes.size(); ++d)
      box.addDim(command.sizes[d],
                 command.sourceStrides[d] * command.elementBytes,
                 command.destinationStrides[d] * command.elementBytes);
    box.finish();
    Bytes from = randomBytes(reachOf(command, command.sourceStrides), i);
    Bytes to = randomBytes(reachOf(command, command.destinationStrides), ~i);
    auto source = rank->place(from), destination = rank->place(to);
    llvm::cantFail(rank->stream->copyStrided(command, source->getAddress(),
                                             destination->getAddress()));
    box.copy(from.data(), to.data());
    ASSERT_EQ(rank->read(*destination), to) << "box " << i;
    ASSERT_EQ(rank->read(*source), from) << "box " << i;
  }
}

TEST_P(DeviceSuite, SaysWhatMemoryThereIs) {
  MemorySize size = llvm::cantFail(device.getMemorySize());
  EXPECT_GT(size.total, 1 << 20);
  EXPECT_GE(size.free, 0);
  EXPECT_LE(size.free, size.total);
}

// And goes on as if nothing had happened.
TEST_P(DeviceSuite, TooMuchMemoryIsAnError) {
  const int64_t tooMuch = int64_t(1) << 60;
  auto expectRefusal = [&](llvm::Error error) {
    ErrorDescription refused = describeError(std::move(error));
    EXPECT_EQ(refused.code, ExitCode::RunFailed) << refused.message;
    EXPECT_NE(refused.message.find(std::to_string(tooMuch) + " bytes"),
              std::string::npos)
        << refused.message;
  };
  expectRefusal(device.allocate(tooMuch).takeError());
  expectRefusal(device.allocateZeroed(tooMuch).takeError());
  expectRefusal(device.allocatePinned(tooMuch).takeError());
  Bytes bytes = randomBytes(100, 1);
  EXPECT_EQ(rank->read(*rank->place(bytes)), bytes);
}

TEST_P(DeviceSuite, MemoryMayOutliveItsDevice) {
  auto memory = llvm::cantFail(device.allocate(100));
  auto pinned = llvm::cantFail(device.allocatePinned(100));
  rank.reset();
  devices.clear();
  std::memset(pinned->getData(), 1, 100);
  pinned.reset();
  memory.reset();
  EXPECT_EQ(GetParam()->create(1).size(), 1U);
}

} // namespace

} // namespace ax::rt
