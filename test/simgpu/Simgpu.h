//===- Simgpu.h - What the simulated driver has besides ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Entry points of test/simgpu's libcuda.so.1 that no driver has: for tests,
// which find them with dlsym.
//
//===----------------------------------------------------------------------===//
#ifndef AX_TEST_SIMGPU_H
#define AX_TEST_SIMGPU_H

#include <cstdint>

extern "C" {
/// Forgets all contexts and what they have, and reads the environment again.
void simgpuReset();
/// What was refused first since this was called last, and why; empty: nothing.
const char *simgpuReport();
/// How often a function was called since then, `*` stands for all of them;
/// `work`: how many things streams have done.
uint64_t simgpuCount(const char *call);
}

#endif // AX_TEST_SIMGPU_H
