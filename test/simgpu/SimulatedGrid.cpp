//===- SimulatedGrid.cpp - Kernels for GPUs, on a processor ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SimulatedGrid.h"

#include "FaultGuard.h"

#include "ax/Runtime/CpuKernel.h"
#include "ax/Support/Error.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

using namespace ax;

namespace {

/// Which thread runs.
struct Place {
  int32_t thread = 0, block = 0, threads = 0, blocks = 0;
};
thread_local Place place;

int32_t threadNumber() { return place.thread; }
int32_t numThreads() { return place.threads; }
int32_t blockNumber() { return place.block; }
int32_t numBlocks() { return place.blocks; }

/// To the nearest, which is even. The 16 bits are the lower ones of what is
/// returned: so do the libraries of compilers that know the type.
float roundToBf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  bits = std::isnan(x) ? bits >> 16 | 0x40
                       : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  std::memcpy(&x, &bits, sizeof(bits));
  return x;
}

const void *findFunction(llvm::StringRef name) {
  const std::pair<llvm::StringRef, const void *> functions[] = {
      {"simgpu_tid_x", reinterpret_cast<const void *>(&threadNumber)},
      {"simgpu_ntid_x", reinterpret_cast<const void *>(&numThreads)},
      {"simgpu_ctaid_x", reinterpret_cast<const void *>(&blockNumber)},
      {"simgpu_nctaid_x", reinterpret_cast<const void *>(&numBlocks)},
      {"__truncsfbf2", reinterpret_cast<const void *>(&roundToBf16)}};
  for (auto [known, function] : functions)
    if (known == name)
      return function;
  return rt::hostFunction(name);
}

/// The numbers below `count`.
std::vector<int32_t> makeOrder(int64_t count, std::mt19937_64 *random) {
  std::vector<int32_t> order(static_cast<size_t>(count));
  std::iota(order.rbegin(), order.rend(), 0);
  if (random)
    std::shuffle(order.begin(), order.end(), *random);
  return order;
}

} // namespace

llvm::Expected<SimulatedGrid> SimulatedGrid::load(llvm::ArrayRef<uint8_t> image,
                                                  llvm::StringRef entry) {
  const auto *text = std::find(image.begin(), image.end(), 0);
  auto loaded = rt::loadObject(image.drop_front(text - image.begin() + 1),
                               (entry + "_call").str(), findFunction);
  if (!loaded)
    return loaded.takeError();
  return SimulatedGrid(std::move(*loaded));
}

std::optional<uintptr_t> SimulatedGrid::run(const rt::LaunchShape &shape,
                                            const void *const *parameters,
                                            std::mt19937_64 *random) const {
  auto *call = reinterpret_cast<void (*)(const void *const *)>(
      const_cast<void *>(code.get()));
  place.blocks = static_cast<int32_t>(shape.blocks);
  place.threads = static_cast<int32_t>(shape.threadsPerBlock);
  std::vector<int32_t> blocks = makeOrder(shape.blocks, random);
  std::vector<int32_t> threads = makeOrder(shape.threadsPerBlock, random);
  return simgpu::catchFault([&] {
    for (int32_t block : blocks)
      for (int32_t thread : threads) {
        place.block = block;
        place.thread = thread;
        call(parameters);
      }
  });
}

llvm::Error ax::runGrid(const rt::Kernel &kernel, const rt::LaunchShape &shape,
                        llvm::ArrayRef<void *> buffers,
                        llvm::ArrayRef<int64_t> scalars, void *scratch) {
  auto grid = SimulatedGrid::load(kernel.image, kernel.entry);
  if (!grid)
    return grid.takeError();
  llvm::SmallVector<const void *> parameters;
  for (void *const &buffer : buffers)
    parameters.push_back(&buffer);
  for (const int64_t &scalar : scalars)
    parameters.push_back(&scalar);
  if (scratch)
    parameters.push_back(&scratch);
  if (auto address = grid->run(shape, parameters.data()))
    return makeErrorf(ExitCode::Internal,
                      "the kernel touches {0:x}, which is "
                      "no memory",
                      *address);
  return llvm::Error::success();
}
