//===- LocalCollectiveOps.td - Exchanges of parts ----------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LOCAL_COLLECTIVE_OPS_TD
#define AX_LOCAL_COLLECTIVE_OPS_TD

include "ax/Local/LocalInterfaces.td"
include "ax/Local/LocalOpBase.td"

/// One exchange over `axes` of parts along one dimension, part after part in
/// group order. A whole extent is that of the types; the last parts may be cut
/// short.
class Axl_CollectiveOp<string mnemonic, list<string> methods = []>
    : Axl_Op<mnemonic, [Pure, DeclareOpInterfaceMethods<
        Axl_CollectiveOpInterface, methods>]> {
  let results = (outs Variadic<Axl_Tensor>:$results);
  let hasVerifier = 1;
}

class Axl_CollectiveArgs<dag own> {
  dag all = !con(own, (ins Variadic<Axl_Tensor>:$operands, Ax_AxesAttr:$axes,
                           OptionalAttr<StrAttr>:$because, UnitAttr:$start));
}

def Axl_LocalAllReduceOp : Axl_CollectiveOp<"all_reduce", ["getReduction"]> {
  let summary = "Every rank has what all ranks' operands come to";
  let arguments = Axl_CollectiveArgs<(ins Ax_ReduceOpKindAttr:$kind)>.all;
  let assemblyFormat = [{
    `` $kind $operands `over` custom<Axes>($axes) (`because` $because^)?
    (`start` $start^)? attr-dict `:` type($operands) `->` type($results) }];
}

def Axl_LocalReduceScatterOp : Axl_CollectiveOp<"reduce_scatter",
    ["getReduction", "getScatterDimOf"]> {
  let summary = "Every rank has its part of what all ranks' operands come to";
  let arguments = Axl_CollectiveArgs<
    (ins Ax_ReduceOpKindAttr:$kind, DenseI64ArrayAttr:$dims)>.all;
  let assemblyFormat = [{
    `` $kind $operands `dims` $dims `over` custom<Axes>($axes)
    (`because` $because^)? (`start` $start^)? attr-dict `:` type($operands) `->`
    type($results) }];
}

def Axl_LocalAllGatherOp : Axl_CollectiveOp<"all_gather", ["getGatherDimOf"]> {
  let summary = "Every rank has all ranks' operands, one after another";
  let arguments = Axl_CollectiveArgs<(ins DenseI64ArrayAttr:$dims)>.all;
  let assemblyFormat = [{
    $operands `dims` $dims `over` custom<Axes>($axes) (`because` $because^)?
    (`start` $start^)? attr-dict `:` type($operands) `->` type($results) }];
}

def Axl_LocalAllToAllOp : Axl_CollectiveOp<"all_to_all",
    ["getGatherDimOf", "getScatterDimOf"]> {
  let summary = "Every rank has its part of all ranks' operands, one after another";
  let arguments = Axl_CollectiveArgs<
    (ins I64Attr:$gather_dim, I64Attr:$scatter_dim)>.all;
  let assemblyFormat = [{
    $operands `gather` $gather_dim `scatter` $scatter_dim `over`
    custom<Axes>($axes) (`because` $because^)? (`start` $start^)? attr-dict `:`
    type($operands) `->` type($results) }];
}

def Axl_LocalPermuteOp : Axl_CollectiveOp<"permute"> {
  let summary = "Every rank has the operand of another one";
  let description = [{
    `sources`: for each rank of the mesh the one whose value it receives, of its
    own group.
  }];
  let arguments = Axl_CollectiveArgs<(ins DenseI64ArrayAttr:$sources)>.all;
  let assemblyFormat = [{
    $operands `sources` $sources `over` custom<Axes>($axes)
    (`because` $because^)? (`start` $start^)? attr-dict `:` type($operands) `->`
    type($results) }];
}

def Axl_AwaitOp : Axl_Op<"await", [Pure, AllTypesMatch<["started", "result"]>]> {
  let summary = "The result of a started exchange, in its memory";
  let description = [{
    What localisation makes of `ax.wait`. `source` is the exchange's operand: it
    lives until here.
  }];
  let arguments = (ins Axl_Tensor:$started, Axl_Tensor:$source);
  let results = (outs Axl_Tensor:$result);
  let assemblyFormat = [{
    $started `source` $source attr-dict `:` type($result) `,` type($source) }];
  let hasVerifier = 1;
}

#endif // AX_LOCAL_COLLECTIVE_OPS_TD
