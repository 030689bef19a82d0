//===- AxCollectiveOps.td - Changes of layout --------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_COLLECTIVE_OPS_TD
#define AX_COLLECTIVE_OPS_TD

include "ax/Dialect/AxOpBase.td"

/// A change of layout and nothing else: operand and result have the same shape
/// and element type. `axes` move; the verifier checks that the two layouts
/// differ exactly as the op says. `because` is its cause, for the reader. With
/// `start` the result is there only behind its one user, `ax.wait`.
class Ax_CollectiveOp<string mnemonic> : Ax_Op<mnemonic, [Pure,
    DeclareOpInterfaceMethods<Ax_CollectiveOpInterface>]> {
  let arguments = (ins Ax_Tensor:$operand, Ax_AxesAttr:$axes,
                       OptionalAttr<StrAttr>:$because, UnitAttr:$start);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    $operand `over` custom<Axes>($axes) (`because` $because^)?
    (`start` $start^)? attr-dict `:` type($operand) `->` type($result) }];
  let hasVerifier = 1;
}

/// One exchange for several tensors: each result is its operand in another
/// layout, and the ranks wait for one another once.
class Ax_SharedCollectiveOp<string mnemonic> : Ax_CollectiveOp<mnemonic> {
  let arguments = (ins Variadic<Ax_Tensor>:$operands, Ax_AxesAttr:$axes,
                       OptionalAttr<StrAttr>:$because, UnitAttr:$start);
  let results = (outs Variadic<Ax_Tensor>:$results);
  let assemblyFormat = [{
    $operands `over` custom<Axes>($axes) (`because` $because^)?
    (`start` $start^)? attr-dict `:` type($operands) `->` type($results) }];
  let builders = [OpBuilder<(ins "::mlir::Type":$result,
                                 "::mlir::Value":$operand,
                                 "::ax::AxesAttr":$axes,
                                 "::mlir::StringAttr":$because), [{
    build($_builder, $_state, ::mlir::TypeRange(result),
          ::mlir::ValueRange(operand), axes, because, ::mlir::UnitAttr());
  }]>];
}

def Ax_AllReduceOp : Ax_SharedCollectiveOp<"all_reduce"> {
  let summary = "Partial over `axes` becomes replicated over them";
}
def Ax_ReduceScatterOp : Ax_SharedCollectiveOp<"reduce_scatter"> {
  let summary = "Partial over `axes` becomes split over them, one dimension";
}
def Ax_AllGatherOp : Ax_SharedCollectiveOp<"all_gather"> {
  let summary = "Split over `axes` (of one dimension) becomes replicated over them";
}
def Ax_AllSliceOp : Ax_CollectiveOp<"all_slice"> {
  let summary = "Replicated over `axes` becomes split over them; nothing is sent";
}
def Ax_AllToAllOp : Ax_CollectiveOp<"all_to_all"> {
  let summary = "`axes` move from splitting one dimension to splitting another";
}
def Ax_CollectivePermuteOp : Ax_CollectiveOp<"collective_permute"> {
  let summary = "Same local shape, parts dealt to other ranks of the group `axes`";
}
def Ax_ToPartialOp : Ax_CollectiveOp<"to_partial"> {
  let summary = "Replicated over `axes` becomes partial sum: zero but on one rank";
}

def Ax_WaitOp : Ax_Op<"wait", [Pure, AllTypesMatch<["started", "result"]>]> {
  let summary = "The result of a collective that was started";
  let description = [{
    The only user of a collective with `start`, in its block. Between the two, a
    rank does other things while the collective goes on; the collective's operand
    lives until here. `hides` says how many FLOPs of contractions lie between, as
    the plan was made.
  }];
  let arguments = (ins Ax_Tensor:$started, OptionalAttr<I64Attr>:$hides);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    $started (`hides` $hides^)? attr-dict `:` type($result) }];
  let hasVerifier = 1;
}

#endif // AX_COLLECTIVE_OPS_TD
