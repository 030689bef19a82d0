//===- AxShapeOps.td - Moving elements ---------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_SHAPE_OPS_TD
#define AX_SHAPE_OPS_TD

include "ax/Dialect/AxOpBase.td"

def Ax_ConstantOp : Ax_ComputeOp<"constant", [ConstantLike, Ax_SourceLike]> {
  let summary = "A constant tensor; with a layout, each rank holds its part";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = "attr-dict $value `->` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::ElementsAttr":$value), [{
    build($_builder, $_state, value.getType(), value);
  }]>];
}

def Ax_IotaOp : Ax_ComputeOp<"iota", [Ax_FusesByElement]> {
  let summary = "The index along `dim`, as a number of the result's element type";
  let arguments = (ins I64Attr:$dim);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = "`dim` $dim attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Ax_ReshapeOp : Ax_ComputeOp<"reshape", [Ax_ViewLike]> {
  let summary = "The same elements in row-major order with another shape";
  let arguments = (ins Ax_Tensor:$operand);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def Ax_TransposeOp : Ax_InferredOp<"transpose", [Ax_ViewLike, Ax_DoneByParts]> {
  let summary = "Result dimension i is operand dimension permutation[i]";
  let arguments = (ins Ax_Tensor:$operand, DenseI64ArrayAttr:$permutation);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    $operand $permutation attr-dict `:` type($operand) `->` type($result) }];
}

def Ax_BroadcastOp : Ax_ComputeOp<"broadcast", [Ax_ViewLike, Ax_DoneByParts]> {
  let summary = "NumPy broadcast to the result's shape";
  let arguments = (ins Ax_Tensor:$operand);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def Ax_SliceOp : Ax_ComputeOp<"slice", [Ax_ViewLike]> {
  let summary = "Elements start, start + step, ... of each dimension";
  let description = "Steps may be negative, never 0; sizes are the result's.";
  let arguments = (ins Ax_Tensor:$operand, DenseI64ArrayAttr:$starts,
    DenseI64ArrayAttr:$steps);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    $operand `starts` $starts `steps` $steps attr-dict `:` type($operand) `->`
    type($result) }];
  let hasVerifier = 1;
}

def Ax_DynamicSliceOp : Ax_ComputeOp<"dynamic_slice", [
    Ax_FusesByElement, Ax_DoneByParts]> {
  let summary = "A window whose start is known at run time";
  let description = [{
    One i64 scalar per dimension. Elements outside the operand are 0 (false).
    Created by localisation: a rank's part of a replicated tensor.
  }];
  let arguments = (ins Ax_Tensor:$operand, Variadic<Ax_IndexTensor>:$starts);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    $operand `[` $starts `]` attr-dict `:` type($operand) `,` type($starts) `->`
    type($result) }];
  let hasVerifier = 1;
}

def Ax_ConcatOp : Ax_InferredOp<"concat", [Ax_FusesByElement, Ax_DoneByParts]> {
  let summary = "Operands one after another along `dim`";
  let arguments = (ins Variadic<Ax_Tensor>:$operands, I64Attr:$dim);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    $operands `dim` $dim attr-dict `:` type($operands) `->` type($result) }];
}

def Ax_PadOp : Ax_InferredOp<"pad", [Ax_FusesByElement]> {
  let summary = "Elements added before and after each dimension";
  let description = [{
    `value` is a scalar tensor of the operand's element type, required exactly
    for mode constant. `low`, `high` >= 0.
  }];
  let arguments = (ins Ax_Tensor:$operand, Optional<Ax_Tensor>:$value,
    DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
    DefaultValuedAttr<Ax_PadModeAttr, "PadMode::constant">:$mode);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    $operand (`value` $value^ `:` type($value))? `low` $low `high` $high
    attr-dict `:` type($operand) `->` type($result) }];
}

def Ax_GatherOp : Ax_InferredOp<"gather", [Ax_FusesByElement]> {
  let summary = "Slices of `operand` along `axis` chosen by `indices`";
  let description = [{
    ONNX Gather: result shape = operand[:axis] + indices + operand[axis+1:].
    Negative indices count from the end. Here, in the other gathers and in
    scatters an index out of range is an error: of the plan where it is a
    constant, of the run otherwise, whatever the layouts are.
  }];
  let arguments = (ins Ax_Tensor:$operand, Ax_IndexTensor:$indices, I64Attr:$axis);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    $operand `[` $indices `]` `axis` $axis attr-dict `:` type($operand) `,`
    type($indices) `->` type($result) }];
}

def Ax_GatherElementsOp : Ax_InferredOp<"gather_elements", [
    Ax_FusesByElement, Ax_DoneByParts]> {
  let summary = "ONNX GatherElements";
  let arguments = (ins Ax_Tensor:$operand, Ax_IndexTensor:$indices, I64Attr:$axis);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    $operand `[` $indices `]` `axis` $axis attr-dict `:` type($operand) `,`
    type($indices) `->` type($result) }];
}

def Ax_GatherNDOp : Ax_InferredOp<"gather_nd", [
    Ax_FusesByElement, Ax_DoneByParts]> {
  let summary = "ONNX GatherND";
  let arguments = (ins Ax_Tensor:$operand, Ax_IndexTensor:$indices,
    I64Attr:$batch_dims);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    $operand `[` $indices `]` `batch_dims` $batch_dims attr-dict `:`
    type($operand) `,` type($indices) `->` type($result) }];
}

def Ax_ScatterElementsOp : Ax_InferredOp<"scatter_elements", [Ax_DoneByParts]> {
  let summary = "ONNX ScatterElements";
  let arguments = (ins Ax_ScatterKindAttr:$kind, Ax_Tensor:$operand,
    Ax_IndexTensor:$indices, Ax_Tensor:$updates, I64Attr:$axis);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    `` $kind $operand `[` $indices `]` `,` $updates `axis` $axis attr-dict `:`
    type($operand) `,` type($indices) `,` type($updates) `->` type($result) }];
}

def Ax_ScatterNDOp : Ax_InferredOp<"scatter_nd", [Ax_DoneByParts]> {
  let summary = "ONNX ScatterND";
  let arguments = (ins Ax_ScatterKindAttr:$kind, Ax_Tensor:$operand,
    Ax_IndexTensor:$indices, Ax_Tensor:$updates);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    `` $kind $operand `[` $indices `]` `,` $updates attr-dict `:` type($operand)
    `,` type($indices) `,` type($updates) `->` type($result) }];
}

def Ax_GatherGradientOp : Ax_InferredOp<"gather_gradient"> {
  let summary = "Slices added up at the places that a gather took them from";
  let description = [{
    updates: operand[:axis] + indices + operand[axis+1:], where operand is the
    result: zeros of `size` along `axis`, to which each slice is added at its
    index. Indices are as in gather. Created by Train.
  }];
  let arguments = (ins Ax_Tensor:$updates, Ax_IndexTensor:$indices,
    I64Attr:$axis, I64Attr:$size);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    $updates `[` $indices `]` `axis` $axis `size` $size attr-dict `:`
    type($updates) `,` type($indices) `->` type($result) }];
}

#endif // AX_SHAPE_OPS_TD
