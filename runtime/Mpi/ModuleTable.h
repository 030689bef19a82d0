//===- ModuleTable.h - What libax-mpi.so does -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MPI is in a module that a program opens when a launcher has started it, so
// that the same program runs where there is no MPI. Between both are plain C
// types alone: the module knows nothing of LLVM or of ours, and its users
// nothing of mpi.h.
//
// Functions that return an int return MPI's error codes, 0 for success.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_MPI_MODULETABLE_H
#define AX_RUNTIME_MPI_MODULETABLE_H

#include "ax/Runtime/MessageTable.h"

extern "C" {

/// Counts changes of what is below, and of the table of messages.
constexpr uint32_t axMpiModuleVersion = 4;

struct AxMpiPlace {
  int32_t process, numProcesses, indexOnHost, numOnHost;
  char host[256];
};

struct AxMpiModuleTable {
  uint32_t version;

  /// `threadsAllowed`: whether many threads may call at the same time.
  int (*initialize)(int32_t *threadsAllowed);
  int (*finalize)(void);
  /// Ends all processes of the job, this one with them.
  void (*abort)(int32_t code);
  int (*getPlace)(AxMpiPlace *place);
  /// From process 0 to all.
  int (*broadcast)(void *bytes, int64_t count);

  AxMessageTable messages;
};

/// The module's only entry: its table, of which `version` comes first in every
/// version.
const AxMpiModuleTable *axMpiModuleTable(void);
}

#endif // AX_RUNTIME_MPI_MODULETABLE_H
