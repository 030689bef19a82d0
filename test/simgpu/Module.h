//===- Module.h - Images that the simulated driver loads --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMGPU_MODULE_H
#define AX_TEST_SIMGPU_MODULE_H

#include "PtxText.h"
#include "Settings.h"
#include "SimulatedGrid.h"

#include <cuda.h>
#include <string>
#include <vector>

namespace simgpu {

struct Context;

struct Function {
  PtxEntry entry;
  ax::SimulatedGrid grid;
  Context *context = nullptr;
  /// The number of the module that has it.
  uint64_t module = 0;
};

/// Loads all entries of an image: text that ends with a NUL, and behind that an
/// object file of the same code. It is read as far as that is memory, since
/// images for real cards end with the NUL. `why`: what is wrong with it.
CUresult loadImage(const char *image, const Settings &settings, int card,
                   std::vector<Function> &functions, std::string &why);

} // namespace simgpu

#endif // AX_TEST_SIMGPU_MODULE_H
