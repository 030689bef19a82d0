//===- StageBuilder.h - Commands of one stage -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_CODEGEN_STAGEBUILDER_H
#define AX_LIB_CODEGEN_STAGEBUILDER_H

#include "Library.h"
#include "ax/Codegen/Kernel.h"
#include "ax/Runtime/Program.h"

namespace ax::codegen {

/// Where a stage's operand comes from.
struct StageInput {
  rt::Space space = rt::Space::Input;
  int32_t index = 0;
};

/// Where a list's result goes: into program outputs, to other stages, into a
/// state, to other lists of the stage.
struct StageOutput {
  llvm::SmallVector<int32_t, 1> outputs;
  llvm::SmallVector<int32_t, 1> transfers;
  llvm::SmallVector<int32_t, 1> states;
  llvm::SmallVector<int32_t, 1> kept;
};

/// What the stages of a program share.
struct ProgramTables {
  ProgramTables(rt::Program &program, bool gpu) : program(program), gpu(gpu) {}

  rt::Program &program;
  /// Whether libraries are those of a GPU.
  bool gpu;
  llvm::StringMap<int32_t> states;
  /// The kept value of each copy of a state, by stage and number.
  llvm::DenseMap<std::pair<rt::StageProgram *, int64_t>, int32_t> copies;
  llvm::DenseMap<mlir::Attribute, int32_t> constants;
  /// The number of each kernel, by its key.
  llvm::StringMap<int32_t> kernels;
};

/// A localised, fused list of a stage with its kernels and connections.
struct StageSource {
  rt::CommandList list;
  /// The number of the stage among the program's.
  int64_t number = 0;
  LocalStageOp local;
  std::vector<StageInput> inputs;
  std::vector<StageOutput> outputs;
  llvm::DenseMap<mlir::Operation *, CompiledKernel> kernels;
  /// What devices reduce with, where a collective has that.
  llvm::DenseMap<mlir::Operation *, std::shared_ptr<const rt::Kernel>>
      reductions;
};

/// Adds a list, buffers and groups to `stage`, whose name, ranks and kept
/// values are set.
llvm::Error buildStage(const StageSource &source, ProgramTables &tables,
                       rt::StageProgram &stage);

} // namespace ax::codegen

#endif // AX_LIB_CODEGEN_STAGEBUILDER_H
