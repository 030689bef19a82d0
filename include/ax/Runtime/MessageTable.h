//===- MessageTable.h - Who carries messages --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages with tags between the processes of a job, as functions of C: those
// of MPI are in a module of their own (runtime/Mpi/ModuleTable.h), which knows
// nothing of LLVM or of ours; those of TCP are in the program (runtime/Tcp).
//
// Functions that return an int return error codes of the table's own, 0 for
// success.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_MESSAGETABLE_H
#define AX_RUNTIME_MESSAGETABLE_H

#include <cstdint>

extern "C" {

/// Some processes, numbered in an order of their own. They are kept until the
/// process ends: what one still sends to others that have gone on must find
/// nobody, and not those of a later one.
struct AxMessageGroup;
/// Messages that are started together, any number of times.
struct AxMessageBatch;

struct AxMessageDim {
  int64_t size, stride;
};

/// Runs of bytes, in dimensions around them, outermost first.
struct AxMessageBox {
  int64_t offset, runBytes;
  const AxMessageDim *dims;
  int32_t numDims;
};

struct AxMessageTransfer {
  int32_t isSend;
  /// The other one's number in the group.
  int32_t peer;
  int32_t tag;
  /// Which of the addresses given at the start is meant.
  int32_t buffer;
  AxMessageBox box;
};

struct AxMessageTable {
  /// What messages of errors begin with: `MPI`.
  const char *name;
  /// Whose messages they are, for the functions that take it.
  void *context;

  /// The text of an error code.
  void (*describe)(void *context, int error, char *text, int32_t capacity);
  /// The highest tag that a message may have.
  int (*getMostTag)(int32_t *tag);

  /// All of `processes` call it, those that two share in the same order; it may
  /// return only when they have, and nothing but the end of the job ends such
  /// waiting.
  int (*createGroup)(void *context, const int32_t *processes, int32_t count,
                     AxMessageGroup **group);

  int (*createBatch)(AxMessageGroup *group, const AxMessageTransfer *transfers,
                     int32_t count, AxMessageBatch **batch);
  int (*startBatch)(AxMessageBatch *batch, void *const *buffers);
  /// `done`: whether all messages have ended. Of receives all bytes must have
  /// come.
  int (*testBatch)(AxMessageBatch *batch, int32_t *done);
  /// Returns how many peers have messages that have not ended, at most
  /// `capacity`, and their numbers; receives only, where there are some.
  int32_t (*listPending)(AxMessageBatch *batch, int32_t *peers,
                         int32_t capacity);
  /// Messages that have not ended are given up. Returns whether one may still
  /// be written to its memory, which then has to stay.
  int32_t (*destroyBatch)(AxMessageBatch *batch);

  /// Sends `text` to all others of a group; nobody waits for it.
  int (*shout)(AxMessageGroup *group, const char *text);
  /// Looks whether somebody has shouted: then `heard` becomes 1, once, and
  /// `text` what it was. Goes on with all that is started.
  int (*listen)(AxMessageGroup *group, char *text, int32_t capacity,
                int32_t *heard);
};
}

#endif // AX_RUNTIME_MESSAGETABLE_H
