//===- Simgpu.h - What the simulated driver has besides ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points of test/simgpu's libcuda.so.1 that no driver has: for tests, and
// for stand-ins of libraries that use the driver, which find them with dlsym.
//
//===----------------------------------------------------------------------===//
#ifndef AX_TEST_SIMGPU_H
#define AX_TEST_SIMGPU_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

/// Memory of the card that work uses.
struct SimgpuRange {
  uint64_t address = 0;
  size_t bytes = 0;
};
/// What is given where the bytes of each range really lie.
using SimgpuWork = std::function<void(const std::vector<unsigned char *> &)>;
/// Asked, with the same, when a stream has got there: whether the work may be
/// done. Nothing of the driver may be called.
using SimgpuReady = std::function<bool(const std::vector<unsigned char *> &)>;
/// Work that is done once, and when it may be; without the latter, at once.
struct SimgpuPiece {
  SimgpuWork work;
  SimgpuReady isReady;
};
/// Asked when the work is put on a stream; of a stream that is captured, in
/// each launch, and not before. Nothing of the driver may be called.
using SimgpuMaker = std::function<SimgpuPiece()>;

extern "C" {
/// Forgets all contexts and what they have, and reads the environment again.
void simgpuReset();
/// What was refused first since this was called last, and why; empty: nothing.
const char *simgpuReport();
/// How often a function was called since then, `*` stands for all of them;
/// `work`: how many things streams have done.
uint64_t simgpuCount(const char *call);

/// Begins the call of a library. Returns the error with which it is to fail;
/// 0: none. `context` becomes the number of the calling thread's context, 0
/// where it has none.
int simgpuEnter(const char *call, uint64_t *context);
/// The compute capability (90 is 9.0) of the card that the calling thread's
/// context is on; 0 where it has none.
int simgpuCapability();
/// Says what is wrong with the call of a library.
void simgpuRefuse(const char *call, const char *why);
/// Puts work on a stream of the calling thread's context, as a launch of a
/// kernel is: memory that is not the card's it finds out late. Returns a
/// CUresult.
int simgpuEnqueue(void *stream, const std::string &what,
                  const std::vector<SimgpuRange> &ranges, SimgpuMaker make);
}

#endif // AX_TEST_SIMGPU_H
