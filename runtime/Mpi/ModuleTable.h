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

#include <cstdint>

extern "C" {

/// Counts changes of what is below.
constexpr uint32_t axMpiModuleVersion = 2;

/// Some processes, numbered in an order of their own. They are kept until the
/// process ends: what one still sends to others that have gone on must find
/// nobody, and not those of a later one.
struct AxMpiGroup;
/// Messages that are started together, any number of times.
struct AxMpiBatch;

struct AxMpiPlace {
  int32_t process, numProcesses, indexOnHost, numOnHost;
  char host[256];
};

struct AxMpiDim {
  int64_t size, stride;
};

/// Runs of bytes, in dimensions around them, outermost first.
struct AxMpiBox {
  int64_t offset, runBytes;
  const AxMpiDim *dims;
  int32_t numDims;
};

struct AxMpiTransfer {
  int32_t isSend;
  /// The other one's number in the group.
  int32_t peer;
  int32_t tag;
  /// Which of the addresses given at the start is meant.
  int32_t buffer;
  AxMpiBox box;
};

struct AxMpiModuleTable {
  uint32_t version;

  /// `threadsAllowed`: whether many threads may call at the same time.
  int (*initialize)(int32_t *threadsAllowed);
  int (*finalize)(void);
  /// Ends all processes of the job, this one with them.
  void (*abort)(int32_t code);
  /// The text of an error code.
  void (*describe)(int error, char *text, int32_t capacity);
  int (*getPlace)(AxMpiPlace *place);
  /// The highest tag that a message may have.
  int (*getMostTag)(int32_t *tag);
  /// From process 0 to all.
  int (*broadcast)(void *bytes, int64_t count);

  /// All of `processes` call it; it returns when they have, and nothing but
  /// `abort` ends its waiting.
  int (*createGroup)(const int32_t *processes, int32_t count,
                     AxMpiGroup **group);

  int (*createBatch)(AxMpiGroup *group, const AxMpiTransfer *transfers,
                     int32_t count, AxMpiBatch **batch);
  int (*startBatch)(AxMpiBatch *batch, void *const *buffers);
  /// `done`: whether all messages have ended. Of receives all bytes must have
  /// come.
  int (*testBatch)(AxMpiBatch *batch, int32_t *done);
  /// Returns how many peers have messages that have not ended, at most
  /// `capacity`, and their numbers; receives only, where there are some.
  int32_t (*listPending)(AxMpiBatch *batch, int32_t *peers, int32_t capacity);
  /// Messages that have not ended are given up.
  void (*destroyBatch)(AxMpiBatch *batch);

  /// Sends `text` to all others of a group; nobody waits for it.
  int (*shout)(AxMpiGroup *group, const char *text);
  /// Looks whether somebody has shouted: then `heard` becomes 1, once, and
  /// `text` what it was. Gives MPI time to go on with all that is started.
  int (*listen)(AxMpiGroup *group, char *text, int32_t capacity,
                int32_t *heard);
};

/// The module's only entry: its table, of which `version` comes first in every
/// version.
const AxMpiModuleTable *axMpiModuleTable(void);
}

#endif // AX_RUNTIME_MPI_MODULETABLE_H
