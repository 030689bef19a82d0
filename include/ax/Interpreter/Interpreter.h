//===- Interpreter.h - Reference interpreter of ax operations ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every compute operation on host tensors, slowly and exactly: floats in
// double, rounded once to the result's type; integers wrap.
//
//===----------------------------------------------------------------------===//
#ifndef AX_INTERPRETER_INTERPRETER_H
#define AX_INTERPRETER_INTERPRETER_H

#include "ax/Dialect/Ax.h"
#include "ax/Local/Local.h"
#include "ax/Support/HostTensor.h"

namespace ax::interpreter {

/// Where on the mesh an operation runs: one coordinate for each axis.
struct Place {
  const sharding::Mesh *mesh = nullptr;
  std::vector<int64_t> coordinates;
};

/// Returns the results of one operation without side effects, except
/// collectives and `ax.load`. Operands must have the operand types' shapes and
/// element types (layouts do not matter). `axl.axis_index` needs a place. Fails
/// for operations that it does not know.
llvm::Expected<llvm::SmallVector<HostTensor>>
interpret(mlir::Operation *op, llvm::ArrayRef<HostTensor> operands,
          const Place *place = nullptr);

/// Gives the value of the state that an `ax.load` reads.
using StateReader = llvm::function_ref<llvm::Expected<HostTensor>(LoadOp load)>;

/// Takes what an `ax.store` writes.
using StateWriter = llvm::function_ref<void(StoreOp store, HostTensor value)>;

/// Returns the results of a whole program, before or after the Pipeline phase,
/// on global tensors: a collective changes nothing. Without `writeState`
/// nothing is stored.
llvm::Expected<llvm::SmallVector<HostTensor>>
interpretProgram(ProgramOp program, llvm::ArrayRef<HostTensor> inputs,
                 StateReader readState, StateWriter writeState = nullptr);

/// The tensors of every rank of a mesh.
using PerRank = std::vector<llvm::SmallVector<HostTensor>>;

/// Returns what a local stage gives on all ranks of `mesh`, which do it in
/// lockstep, in slice `slice` of the axes in time.
llvm::Expected<PerRank> interpretRanks(LocalStageOp local,
                                       const sharding::Mesh &mesh,
                                       PerRank inputs, int64_t slice = 0);

/// Returns the result of every rank of one exchange of operand number `part`,
/// which `operands` has of every rank.
std::vector<HostTensor>
interpretCollective(LocalCollectiveOpInterface op, unsigned part,
                    const sharding::Mesh &mesh,
                    llvm::ArrayRef<HostTensor> operands);

} // namespace ax::interpreter

#endif // AX_INTERPRETER_INTERPRETER_H
