//===- PoorModule.cpp - Modules that no program can use -------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// AX_MODULE_VERSION: what it says of itself. Its MPI lets one thread call it.
//
//===----------------------------------------------------------------------===//

#include "ModuleTable.h"

const AxMpiModuleTable *axMpiModuleTable() {
  static AxMpiModuleTable table = {};
  table.version = AX_MODULE_VERSION;
  table.initialize = [](int32_t *threadsAllowed) {
    *threadsAllowed = 0;
    return 0;
  };
  return &table;
}
