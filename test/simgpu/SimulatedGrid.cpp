//===- SimulatedGrid.cpp - Kernels for GPUs, on a processor ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SimulatedGrid.h"

#include "FaultGuard.h"
#include "ThreadFibers.h"

#include "ax/Runtime/CpuKernel.h"
#include "ax/Support/Error.h"
#include "ax/Support/Float8.h"
#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

using namespace ax;

namespace {

/// Which thread runs, with which others if it meets them, and what its block
/// has. A process runs one at a time.
struct Place {
  int32_t thread = 0, block = 0, threads = 0, blocks = 0;
  ThreadFibers *fibers = nullptr;
  alignas(64) char shared[48 << 10];
};
Place place;

int32_t threadNumber() {
  return place.fibers ? place.fibers->current() : place.thread;
}
int32_t numThreads() { return place.threads; }
int32_t blockNumber() { return place.block; }
int32_t numBlocks() { return place.blocks; }
char *sharedMemory(int64_t offset) { return place.shared + offset; }

void barrier(int32_t) { place.fibers->meetBlock(); }
void warpBarrier(int32_t mask) {
  place.fibers->meetWarp(static_cast<uint32_t>(mask));
}
/// Lanes beyond the last that is asked for are not: `clamp` is of all lanes.
int32_t shuffleIdx(int32_t mask, int32_t value, int32_t lane, int32_t) {
  return static_cast<int32_t>(place.fibers->exchange(
      static_cast<uint32_t>(mask), static_cast<uint32_t>(value), lane & 31));
}
int32_t shuffleBfly(int32_t mask, int32_t value, int32_t bits, int32_t clamp) {
  return shuffleIdx(mask, value, threadNumber() ^ bits, clamp);
}

/// Powers of two, and what is not finite or not normal: units are exact there.
bool isExactOnUnits(float x) {
  int exponent;
  return !std::isnormal(x) || std::fabs(std::frexp(x, &exponent)) == 0.5;
}

float flushed(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x;
}

/// A number that is as if drawn from -1, 0, and 1.
int drawnBy(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return static_cast<int>((bits * 2654435761U >> 16) % 3) - 1;
}

/// ex2.approx.ftz: within 2 units of the last place, so what is nearest to a
/// number that is one and a half beside the power. It is so more often than a
/// GPU's.
float powerOf2(float x) {
  float nearest = flushed(std::exp2(flushed(x)));
  if (isExactOnUnits(nearest))
    return nearest;
  double unit = std::ldexp(1.0, std::ilogb(nearest) - 23);
  return flushed(static_cast<float>(std::exp2(static_cast<double>(x)) +
                                    1.5 * unit * drawnBy(x)));
}

/// rcp.approx.ftz: within one, so the number on the other side of 1 / x.
float reciprocal(float x) {
  x = flushed(x);
  float nearest = flushed(1.0F / x);
  if (isExactOnUnits(nearest) || drawnBy(x) == 0)
    return nearest;
  double error = 1.0 / static_cast<double>(x) - static_cast<double>(nearest);
  return std::nextafter(nearest, error > 0 ? INFINITY : -INFINITY);
}

/// The first one is in the upper bits.
template <const Float8Format &format>
uint16_t roundToFloat8(float upper, float lower) {
  return static_cast<uint16_t>(floatToF8Bits<format>(upper) << 8 |
                               floatToF8Bits<format>(lower));
}

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

/// What a thread calls to know which one it is.
const void *findOwn(llvm::StringRef name) {
  const std::pair<llvm::StringRef, const void *> functions[] = {
      {"simgpu_tid_x", reinterpret_cast<const void *>(&threadNumber)},
      {"simgpu_ntid_x", reinterpret_cast<const void *>(&numThreads)},
      {"simgpu_ctaid_x", reinterpret_cast<const void *>(&blockNumber)},
      {"simgpu_nctaid_x", reinterpret_cast<const void *>(&numBlocks)},
      {"simgpu_shared", reinterpret_cast<const void *>(&sharedMemory)},
      {"simgpu_ex2", reinterpret_cast<const void *>(&powerOf2)},
      {"simgpu_rcp", reinterpret_cast<const void *>(&reciprocal)},
      {"simgpu_e4m3x2",
       reinterpret_cast<const void *>(&roundToFloat8<f8E4M3FN>)},
      {"simgpu_e5m2x2", reinterpret_cast<const void *>(&roundToFloat8<f8E5M2>)},
      {"__truncsfbf2", reinterpret_cast<const void *>(&roundToBf16)}};
  for (auto [known, function] : functions)
    if (known == name)
      return function;
  return rt::hostFunction(name);
}

/// What it calls to meet others; null for others.
const void *findMeeting(llvm::StringRef name) {
  const std::pair<llvm::StringRef, const void *> functions[] = {
      {"simgpu_barrier", reinterpret_cast<const void *>(&barrier)},
      {"simgpu_warp_barrier", reinterpret_cast<const void *>(&warpBarrier)},
      {"simgpu_shfl_bfly", reinterpret_cast<const void *>(&shuffleBfly)},
      {"simgpu_shfl_idx", reinterpret_cast<const void *>(&shuffleIdx)}};
  for (auto [known, function] : functions)
    if (known == name)
      return function;
  return nullptr;
}

/// The numbers below `count`.
std::vector<int32_t> makeOrder(int64_t count) {
  std::vector<int32_t> order(static_cast<size_t>(count));
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

} // namespace

llvm::Expected<SimulatedGrid> SimulatedGrid::load(llvm::ArrayRef<uint8_t> image,
                                                  llvm::StringRef entry) {
  const auto *text = std::find(image.begin(), image.end(), 0);
  bool meets = false, shares = false;
  auto loaded =
      rt::loadObject(image.drop_front(text - image.begin() + 1),
                     (entry + "_call").str(), [&](llvm::StringRef name) {
                       const void *meeting = findMeeting(name);
                       meets |= meeting != nullptr;
                       shares |= name == "simgpu_shared";
                       return meeting ? meeting : findOwn(name);
                     });
  if (!loaded)
    return loaded.takeError();
  return SimulatedGrid(std::move(*loaded), meets, shares);
}

GridEnd SimulatedGrid::run(const rt::LaunchShape &shape,
                           const void *const *parameters,
                           GridOrder order) const {
  auto *call = reinterpret_cast<void (*)(const void *const *)>(
      const_cast<void *>(code.get()));
  place.blocks = static_cast<int32_t>(shape.blocks);
  place.threads = static_cast<int32_t>(shape.threadsPerBlock);
  std::vector<int32_t> blocks = makeOrder(shape.blocks),
                       threads = makeOrder(shape.threadsPerBlock);
  std::mt19937_64 random(order.seed.value_or(0));
  if (order.seed)
    std::shuffle(blocks.begin(), blocks.end(), random);
  std::optional<ThreadFibers> fibers;
  if (meets)
    fibers.emplace(place.threads, order.seed, order.droppedBarrier);
  place.fibers = fibers ? &*fibers : nullptr;
  GridEnd end;
  auto callOnce = [&] { call(parameters); };
  end.fault = simgpu::catchFault([&] {
    for (int32_t block : blocks) {
      place.block = block;
      if (shares)
        std::memset(place.shared, 0xff, sizeof(place.shared));
      if (fibers) {
        if (llvm::Error error = fibers->run(callOnce)) {
          end.stuck = llvm::toString(std::move(error));
          return;
        }
        continue;
      }
      if (order.seed)
        std::shuffle(threads.begin(), threads.end(), random);
      for (int32_t thread : threads) {
        place.thread = thread;
        call(parameters);
      }
    }
  });
  return end;
}

llvm::Error ax::runGrid(const rt::Kernel &kernel, const rt::LaunchShape &shape,
                        llvm::ArrayRef<void *> buffers,
                        llvm::ArrayRef<int64_t> scalars, void *scratch,
                        GridOrder order) {
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
  GridEnd end = grid->run(shape, parameters.data(), order);
  if (end.fault)
    return makeErrorf(ExitCode::Internal,
                      "kernel {0} touches {1:x}, which is no memory",
                      kernel.entry, *end.fault);
  if (!end.stuck.empty())
    return makeErrorf(ExitCode::Internal, "kernel {0}: {1}", kernel.entry,
                      end.stuck);
  return llvm::Error::success();
}
