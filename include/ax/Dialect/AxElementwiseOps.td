//===- AxElementwiseOps.td - One element at a time ---------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_ELEMENTWISE_OPS_TD
#define AX_ELEMENTWISE_OPS_TD

include "ax/Dialect/AxOpBase.td"

def Ax_UnaryOp : Ax_InferredOp<"unary", [Ax_ElementwiseLike]> {
  let summary = "Element-wise function of one operand";
  let description = [{
    `is_*` give i1; all others the operand's type. `gelu` is the exact (erf)
    form, `gelu_tanh` its tanh approximation, `round` rounds half to even.
    Integer operands: neg, abs, sign, relu, bit_not; i1: logical_not.
  }];
  let arguments = (ins Ax_UnaryKindAttr:$kind, Ax_Tensor:$operand);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    `` $kind $operand attr-dict `:` type($operand) `->` type($result) }];
}

def Ax_BinaryOp : Ax_InferredOp<"binary", [Ax_ElementwiseLike]> {
  let summary = "Element-wise function of two operands, with NumPy broadcasting";
  let description = [{
    Both operands have the same element type; the result has it too. Integer
    division truncates; `floor_mod` has the divisor's sign (Python),
    `trunc_mod` the dividend's (C fmod). `pow` computes in the element type.
  }];
  let arguments = (ins Ax_BinaryKindAttr:$kind, Ax_Tensor:$lhs, Ax_Tensor:$rhs);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    `` $kind $lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
}

def Ax_CompareOp : Ax_InferredOp<"compare", [Ax_ElementwiseLike]> {
  let summary = "Element-wise comparison, with NumPy broadcasting; gives i1";
  let arguments = (ins Ax_CompareKindAttr:$kind, Ax_Tensor:$lhs, Ax_Tensor:$rhs);
  let results = (outs Ax_BoolTensor:$result);
  let assemblyFormat = [{
    `` $kind $lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
}

def Ax_SelectOp : Ax_InferredOp<"select", [Ax_ElementwiseLike]> {
  let summary = "Element-wise choice, with NumPy broadcasting of all three";
  let arguments = (ins Ax_BoolTensor:$condition, Ax_Tensor:$onTrue,
                       Ax_Tensor:$onFalse);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    $condition `,` $onTrue `,` $onFalse attr-dict `:` type($condition) `,`
    type($onTrue) `,` type($onFalse) `->` type($result)
  }];
}

def Ax_CastOp : Ax_ComputeOp<"cast", [Ax_ElementwiseLike]> {
  let summary = "Conversion to another element type";
  let description = [{
    Float to integer truncates towards zero; to i1: not equal to zero; wider
    float to narrower rounds to nearest even. Integers wrap.
  }];
  let arguments = (ins Ax_Tensor:$operand);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
  let hasVerifier = 1;
}

def Ax_AtMostOp : Ax_InferredOp<"at_most"> {
  let summary = "The operand; a number not 0 to `limit` is an error of the run";
  let description = [{
    How many results there are of which there may be `limit`. Numbers are not
    negative. Made by Import for `--max`.
  }];
  let arguments = (ins Ax_IndexTensor:$operand, I64Attr:$limit);
  let results = (outs Ax_IndexTensor:$result);
  let assemblyFormat = [{
    $operand `limit` $limit attr-dict `:` type($operand) `->` type($result) }];
}

def Ax_DropoutOp : Ax_InferredOp<"dropout"> {
  let summary = "Elements become zero at random; the others grow for it"
                " (x / (1 - rate))";
  let description = [{
    Which ones is a function of `seed` and `step` (scalars, i64), `id` and the
    element's place in the whole tensor: the same on every layout, whenever it
    is computed, and in the gradient. See `random`. Made by Import, Raise and
    Train.
  }];
  let arguments = (ins Ax_FloatTensor:$operand, Ax_IndexTensor:$seed,
    Ax_IndexTensor:$step, F64Attr:$rate, I64Attr:$id);
  let results = (outs Ax_FloatTensor:$result);
  let assemblyFormat = [{
    $operand `seed` $seed `step` $step `rate` $rate `id` $id attr-dict `:`
    type($operand) `,` type($seed) `,` type($step) `->` type($result) }];
}

def Ax_UniformOp : Ax_ComputeOp<"uniform"> {
  let summary = "Random numbers in [0, 1), as f32";
  let description = [{
    A function of `seed` and `step` (scalars, i64), `id` and the element's place
    in the whole tensor, as in `dropout`. Made by Import.
  }];
  let arguments = (ins Ax_IndexTensor:$seed, Ax_IndexTensor:$step,
    I64Attr:$id);
  let results = (outs Ax_FloatTensor:$result);
  let assemblyFormat = [{
    `seed` $seed `step` $step `id` $id attr-dict `:` type($seed) `,` type($step)
    `->` type($result) }];
  let hasVerifier = 1;
}

#endif // AX_ELEMENTWISE_OPS_TD
