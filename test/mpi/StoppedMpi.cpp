//===- StoppedMpi.cpp - MPI in whose end a process is stopped -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The module itself, but that process 1 does not come out of its last call: it
// is stopped there, or hangs where AX_TEST_FINALIZE is set; where that is
// `after`, all but process 0 do so when they have done what the others wait
// for.
//
//===----------------------------------------------------------------------===//

#include "ModuleTable.h"

#include <csignal>
#include <cstdlib>
#include <string>
#include <unistd.h>

extern "C" const AxMpiModuleTable *axWholeMpiModuleTable();

const AxMpiModuleTable *axMpiModuleTable() {
  static AxMpiModuleTable table = *axWholeMpiModuleTable();
  table.finalize = [] {
    const char *rank = std::getenv("OMPI_COMM_WORLD_RANK");
    const char *how = std::getenv("AX_TEST_FINALIZE");
    if (how && how == std::string("after")) {
      int code = axWholeMpiModuleTable()->finalize();
      while (rank && rank != std::string("0"))
        pause();
      return code;
    }
    while (rank && rank == std::string("1"))
      if (how)
        pause();
      else
        std::raise(SIGSTOP);
    return axWholeMpiModuleTable()->finalize();
  };
  return &table;
}
