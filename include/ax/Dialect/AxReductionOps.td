//===- AxReductionOps.td - Reductions, norms, scans --------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_REDUCTION_OPS_TD
#define AX_REDUCTION_OPS_TD

include "ax/Dialect/AxOpBase.td"

def Ax_ReduceOp : Ax_InferredOp<"reduce", [Ax_FusesByRow, Ax_DoneByParts]> {
  let summary = "Sum, product, maximum or minimum over dimensions";
  let description = [{
    `dims` are sorted and unique. Without elements the result is the neutral
    element. Means, norms and log-sum-exp are compositions. i1: max is any, min
    is all.
  }];
  let arguments = (ins Ax_ReduceOpKindAttr:$kind, Ax_Tensor:$operand,
    DenseI64ArrayAttr:$dims, UnitAttr:$keep_dims);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    `` $kind $operand `dims` $dims (`keep_dims` $keep_dims^)? attr-dict
    `:` type($operand) `->` type($result) }];
}

def Ax_ArgReduceOp : Ax_InferredOp<"arg_reduce", [
    Ax_FusesByRow, Ax_DoneByParts]> {
  let summary = "Index (i64) of the largest or smallest element; dim is kept as 1";
  let arguments = (ins Ax_Tensor:$operand, I64Attr:$dim, UnitAttr:$min,
    UnitAttr:$last);
  let results = (outs Ax_IndexTensor:$result);
  let assemblyFormat = [{
    $operand `dim` $dim attr-dict `:` type($operand) `->` type($result) }];
}

def Ax_CumulativeOp : Ax_InferredOp<"cumulative", [
    Ax_FusesByRow, Ax_DoneByParts]> {
  let summary = "Running sum, product, maximum or minimum along a dimension";
  let arguments = (ins Ax_ReduceOpKindAttr:$kind, Ax_Tensor:$operand,
    I64Attr:$dim, UnitAttr:$exclusive, UnitAttr:$reverse);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    `` $kind $operand `dim` $dim attr-dict `:` type($operand) `->` type($result) }];
}

def Ax_TopKOp : Ax_InferredOp<"top_k", [Ax_DoneByParts]> {
  let summary = "The k largest (or smallest) elements along a dimension, in order";
  let description = "Equal elements keep the order of their indices.";
  let arguments = (ins Ax_Tensor:$operand, I64Attr:$k, I64Attr:$dim,
    UnitAttr:$smallest);
  let results = (outs Ax_Tensor:$values, Ax_IndexTensor:$indices);
  let assemblyFormat = [{
    $operand `k` $k `dim` $dim attr-dict `:` type($operand) `->` type($values)
    `,` type($indices) }];
}

def Ax_NonMaxSuppressionOp : Ax_InferredOp<"non_max_suppression", [
    Ax_DoneByParts]> {
  let summary = "The best boxes of those that overlap, by image and class";
  let description = [{
    boxes: [images, n, 4], two opposite corners y, x, y, x each; scores: [images,
    classes, n]; result: [images, classes, limit], i64: which boxes are taken,
    best first (equal scores: lower index first), then -1. A box is taken unless
    its score is not above `score_threshold`, or its intersection with one taken
    before it, divided by their union, is above `iou_threshold`. Boxes whose
    score is NaN are never taken.
  }];
  let arguments = (ins Ax_FloatTensor:$boxes, Ax_FloatTensor:$scores,
    I64Attr:$limit, F64Attr:$iou_threshold,
    OptionalAttr<F64Attr>:$score_threshold);
  let results = (outs Ax_IndexTensor:$result);
  let assemblyFormat = [{
    $boxes `,` $scores `limit` $limit `iou_threshold` $iou_threshold attr-dict
    `:` type($boxes) `,` type($scores) `->` type($result) }];
}

def Ax_SoftmaxOp : Ax_InferredOp<"softmax", [Ax_FusesByRow, Ax_DoneByParts]> {
  let summary = "exp(x - max) / sum along a dimension, or its logarithm";
  let arguments = (ins Ax_FloatTensor:$operand, I64Attr:$dim, UnitAttr:$log);
  let results = (outs Ax_FloatTensor:$result);
  let assemblyFormat = [{
    $operand `dim` $dim attr-dict `:` type($operand) `->` type($result) }];
}

def Ax_FakeQuantizeOp : Ax_InferredOp<"fake_quantize", [
    Ax_FusesByRow, Ax_DoneByParts]> {
  let summary = "Rows rounded to integers of eight bits by a scale each";
  let description = [{
    Rows are those of the last dimension. Of one whose largest |x| is m, x becomes
    round(x (127 / m)) (m / 127), halves to even, and 0 where m is less than 4e-37, of
    which 127 / m would be no number; computed in f32. Its gradient is that of what is
    rounded (the straight-through estimator, arXiv:1308.3432).
  }];
  let arguments = (ins Ax_FloatTensor:$operand);
  let results = (outs Ax_FloatTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
}

class Ax_NormOp<string mnemonic> : Ax_InferredOp<mnemonic, [
    AttrSizedOperandSegments, Ax_FusesByRow, Ax_DoneByParts]> {
  let arguments = (ins Ax_FloatTensor:$x, Optional<Ax_FloatTensor>:$scale,
    Optional<Ax_FloatTensor>:$bias, I64Attr:$axis, F64Attr:$epsilon);
  let results = (outs Ax_FloatTensor:$result);
  let assemblyFormat = [{
    $x (`scale` $scale^ `:` type($scale))? (`bias` $bias^ `:` type($bias))?
    `axis` $axis `epsilon` $epsilon attr-dict `:` type($x) `->` type($result) }];
}

def Ax_LayerNormOp : Ax_NormOp<"layer_norm"> {
  let summary = "(x - mean) / sqrt(variance + epsilon) scale + bias";
  let description = [{
    Mean and variance over the dimensions axis .. rank - 1 together; scale and
    bias have exactly these dimensions. Computed in f32 for narrower types.
  }];
}

def Ax_RMSNormOp : Ax_NormOp<"rms_norm"> {
  let summary = "x / sqrt(mean(x^2) + epsilon) scale + bias";
  let description = "As layer_norm, without subtracting the mean.";
}

#endif // AX_REDUCTION_OPS_TD
