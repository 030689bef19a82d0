//===- Passes.td - The passes of axopt -------------------------*- tablegen -*-===//
//
// In the order of the phases. A pass runs on whatever holds programs: a module,
// a plan, or one program.
//
//===----------------------------------------------------------------------===//
#ifndef AX_PASSES_PASSES_TD
#define AX_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Normalize
//===----------------------------------------------------------------------===//

def Normalize : Pass<"ax-normalize"> {
  let summary = "One form for what exporters write in many";
  let description = [{
    Removes what does nothing (identity reshapes, transposes, casts, broadcasts,
    slices, + 0, * 1), merges chains of movement, moves constants and weights to
    the right, moves reshapes below element-wise operations, lets element-wise
    operations broadcast by themselves and contractions transpose by themselves,
    turns lookups with known indices into slices, and evaluates what depends on
    constants only.
  }];
  let dependentDialects = ["ax::AxDialect"];
}

#endif // AX_PASSES_PASSES_TD
