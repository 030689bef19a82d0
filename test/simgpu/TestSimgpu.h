//===- TestSimgpu.h - The simulated driver, as tests set it up --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_TESTSIMGPU_H
#define AX_TEST_TESTSIMGPU_H

#include <cstdint>
#include <map>
#include <string>

namespace ax::rt {

/// Begins anew with the variables `SIMGPU_NAME`, by what is behind SIMGPU_, and
/// no others. Nothing of the driver may be in use.
void startSimgpu(const std::map<std::string, std::string> &settings = {});
/// The folder beside the tests' that has one of our drivers.
std::string driverFolder(const std::string &name = "simgpu");
std::string simgpuReported();
uint64_t simgpuCounted(const char *call);
/// An entry point by its symbol.
void *findInSimgpu(const char *symbol);

} // namespace ax::rt

#endif // AX_TEST_TESTSIMGPU_H
