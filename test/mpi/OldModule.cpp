//===- OldModule.cpp - A module of another version ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ModuleTable.h"

const AxMpiModuleTable *axMpiModuleTable() {
  static AxMpiModuleTable table = {};
  table.version = axMpiModuleVersion + 1;
  return &table;
}
