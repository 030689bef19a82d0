//===- Localize.h - What one rank of a stage computes -----------*- C++ -*-===//
//
// A stage is written on global shapes with layouts. Localising gives the same
// computation on the part that one rank holds: one program for all ranks, in
// which a rank's place is a number read at run time (`ax.axis_index`).
//
//===----------------------------------------------------------------------===//
#ifndef AX_CODEGEN_LOCALIZE_H
#define AX_CODEGEN_LOCALIZE_H

#include "ax/Dialect/Ax.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace ax::codegen {

/// The part of a stage that a rank computes, as a detached `ax.program` whose
/// types have no layouts. Arguments: the stage's operands in order, then the
/// states it loads (zero where a rank's part is padding), then, of the results
/// that are added up over micro-batches, what they came to so far (of no
/// meaning in the first). Results: the stage's, then the new values of the
/// states it stores. Padding elsewhere may hold anything and never reaches a
/// valid element.
///
/// Collectives are in a form that needs no layouts: one exchange over `axes`
/// of parts along one dimension, part after part in group order, where
///   all_reduce, reduce_scatter have `ax.reduce` = "sum" | "max" | "min",
///   all_gather, all_to_all     have `ax.gather_dim`: becomes whole,
///   reduce_scatter, all_to_all have `ax.scatter_dim`: keeps this rank's part,
///   collective_permute         has `ax.sources`: for each rank of the mesh the
///                              rank whose value it receives.
/// A whole extent is that of the types; the last parts may be cut short.
struct LocalStage {
  mlir::OwningOpRef<ProgramOp> program;
  unsigned numInputs = 0;
  std::vector<std::string> states;
  /// Numbers of the results that are added up.
  std::vector<unsigned> accumulated;
  /// In the order of their results.
  std::vector<std::string> stored;

  /// The argument that holds the first sum so far.
  unsigned firstSum() const { return numInputs + states.size(); }
};

/// Localises `stage`, which must be part of a verified plan with `mesh`. A
/// BadPlan error names the node whose layouts no rank could follow.
llvm::Expected<LocalStage> localize(StageOp stage, const sharding::Mesh &mesh);

} // namespace ax::codegen

#endif // AX_CODEGEN_LOCALIZE_H
