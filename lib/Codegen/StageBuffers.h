//===- StageBuffers.h - Where values of a command list lie ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_STAGEBUFFERS_H
#define AX_LIB_CODEGEN_STAGEBUFFERS_H

#include "StageBuilder.h"
#include "ax/Cost/Arena.h"

namespace ax::codegen {

/// Of a local tensor.
int64_t byteSizeOf(mlir::Value value);

/// Buffers of the values of one list, whose commands are being made: those in
/// the arena live from the command that first asks for them to the last one.
class StageBuffers {
public:
  StageBuffers(ProgramTables &tables, rt::StageProgram &stage,
               const std::vector<rt::Command> &commands)
      : tables(tables), stage(stage), commands(commands) {}

  int32_t add(rt::Space space, int32_t index, int64_t bytes,
              llvm::StringRef name);
  /// `value` lies in that one.
  int32_t place(mlir::Value value, int32_t buffer) {
    return buffers[value] = buffer;
  }
  bool contains(mlir::Value value) const { return buffers.contains(value); }
  /// Of a value that has one.
  int32_t lookup(mlir::Value value) const { return buffers.at(value); }

  /// The buffer of a value that is in memory; a new one in the arena for a
  /// result that has none yet.
  llvm::Expected<int32_t> of(mlir::Value value);
  /// The next command uses it.
  int32_t touch(int32_t buffer);
  llvm::Expected<rt::BufferRef> ref(mlir::Value value, int64_t byteOffset = 0);
  /// Where a dense view starts.
  llvm::Expected<rt::BufferRef> denseRef(mlir::Value value);
  /// Whether `result` may be made in `operand`'s memory: nobody needs that
  /// afterwards, and the result has no place yet.
  bool canReplace(mlir::Value operand, mlir::Value result) const;

  /// Places the arena.
  void finish();

private:
  llvm::Expected<int32_t> constantState(ConstantOp constant);
  int64_t now() const { return commands.size(); }

  ProgramTables &tables;
  rt::StageProgram &stage;
  const std::vector<rt::Command> &commands;
  llvm::DenseMap<mlir::Value, int32_t> buffers;
  /// Of the buffers in the arena.
  llvm::MapVector<int32_t, cost::Lifetime> lifetimes;
};

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_STAGEBUFFERS_H
