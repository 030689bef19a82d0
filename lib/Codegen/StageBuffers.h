//===- StageBuffers.h - Where values of a command list lie ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_STAGEBUFFERS_H
#define AX_LIB_CODEGEN_STAGEBUFFERS_H

#include "StageBuilder.h"

namespace ax::codegen {

/// Buffers of the values of one list: those whose places `axl-place-buffers`
/// chose, arguments, and constants.
class StageBuffers {
public:
  StageBuffers(ProgramTables &tables, rt::StageProgram &stage)
      : tables(tables), stage(stage) {}

  int32_t add(rt::Space space, int32_t index, int64_t bytes,
              llvm::StringRef name, int64_t offset = 0);
  /// `value` lies in that one.
  int32_t place(mlir::Value value, int32_t buffer) {
    return buffers[value] = buffer;
  }
  /// Returns the buffer of a value, which must have one.
  int32_t lookup(mlir::Value value) const { return buffers.at(value); }

  /// The buffer of a value that is in memory.
  llvm::Expected<int32_t> of(mlir::Value value);
  llvm::Expected<rt::BufferRef> ref(mlir::Value value, int64_t byteOffset = 0);
  /// Where a dense view starts.
  llvm::Expected<rt::BufferRef> denseRef(mlir::Value value);

private:
  llvm::Expected<int32_t> constantState(ConstantOp constant);
  int32_t addKept(mlir::Value value);
  int32_t placeInKept(mlir::Value value, int32_t kept);

  ProgramTables &tables;
  rt::StageProgram &stage;
  llvm::DenseMap<mlir::Value, int32_t> buffers;
};

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_STAGEBUFFERS_H
