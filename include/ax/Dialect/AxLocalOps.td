//===- AxLocalOps.td - Only inside Codegen ----------------------*- tablegen -*-===//
#ifndef AX_LOCAL_OPS_TD
#define AX_LOCAL_OPS_TD

include "ax/Dialect/AxOpBase.td"

def Ax_CheckIndicesOp : Ax_Op<"check_indices", [Pure,
    AllTypesMatch<["indices", "result"]>]> {
  let summary = "The indices, negative ones counted from the end, or an error";
  let description = [{
    Created by localisation for indices that are not known. The run ends with an
    error unless every element i is in [-s, s), where s = sizes[i mod number of
    sizes].
  }];
  let arguments = (ins Ax_IndexTensor:$indices, DenseI64ArrayAttr:$sizes);
  let results = (outs Ax_IndexTensor:$result);
  let assemblyFormat = "$indices `sizes` $sizes attr-dict `:` type($result)";
}

def Ax_RandomOp : Ax_Op<"random", [Pure]> {
  let summary = "Uniform numbers in [0, 1) by seed, step, id and index";
  let description = [{
    Philox4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3,
    SC 2011): the counter's words are the index (low, high), the id and the step,
    the key is the seed; the upper 24 bits of the first word, as f32. `index`,
    `seed` and `step` are i64, the last two scalars. What localisation makes of
    `dropout` and `uniform`.
  }];
  let arguments = (ins Ax_IndexTensor:$index, Ax_IndexTensor:$seed,
    Ax_IndexTensor:$step, I64Attr:$id);
  let results = (outs Ax_FloatTensor:$result);
  let assemblyFormat = [{
    $index `seed` $seed `step` $step `id` $id attr-dict `:` type($index) `,`
    type($seed) `,` type($step) `->` type($result) }];
}

def Ax_AwaitOp : Ax_Op<"await", [Pure, AllTypesMatch<["started", "result"]>]> {
  let summary = "The result of a started exchange, in its memory";
  let description = [{
    What localisation makes of `ax.wait`. `source` is the exchange's operand: it
    lives until here.
  }];
  let arguments = (ins Ax_Tensor:$started, Ax_Tensor:$source);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    $started `source` $source attr-dict `:` type($result) `,` type($source) }];
}

#endif // AX_LOCAL_OPS_TD
