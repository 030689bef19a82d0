//===- AxContractionOps.td - Sums of products --------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_CONTRACTION_OPS_TD
#define AX_CONTRACTION_OPS_TD

include "ax/Dialect/AxOpBase.td"

def Ax_DotOp : Ax_ContractionOp<"dot", [Ax_DoneByParts]> {
  let summary = "General contraction of two tensors";
  let description = [{
    Result dimensions: batch (in the order of `lhs_batch`), the other dimensions
    of lhs, those of rhs. Created by Import for MatMul, Gemm, Einsum; Raise turns
    those with a weight into `ax.linear`. Factors of eight bits (`f8E4M3FN`,
    `f8E5M2`, or one of each) give bf16, or the sum in f32; integers of eight bits
    give the sum in i32, too, and nothing else if one has a sign alone.
  }];
  let arguments = (ins Ax_Tensor:$lhs, Ax_Tensor:$rhs,
    DenseI64ArrayAttr:$lhs_batch, DenseI64ArrayAttr:$rhs_batch,
    DenseI64ArrayAttr:$lhs_contract, DenseI64ArrayAttr:$rhs_contract);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `batch` $lhs_batch `x` $rhs_batch `contract` $lhs_contract
    `x` $rhs_contract attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)
  }];
}

def Ax_LinearOp : Ax_LayerOp<"linear", [Ax_DoneByParts]> {
  let summary = "x W";
  let description = [{
    x: [..., k]; W: [k, n], or [n, k] with `transpose_w`; result: [..., n]. Created
    by Raise from a dot with a two-dimensional weight. Factors of eight bits give bf16
    or f32, as in `ax.dot`. What a library does in one call with it, a bias [n], an
    activation and a residual, stands behind it; code generation decides.
  }];
  let arguments = (ins Ax_FloatTensor:$x, Ax_FloatTensor:$w,
    UnitAttr:$transpose_w);
  let results = (outs Ax_FloatTensor:$result);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $x `,` $w `` custom<NoEpilogue>(ref($w)) attr-dict
    `:` type($x) `,` type($w) `->` type($result)
  }];
  let extraClassDeclaration = inferredDeclaration # [{
    int64_t getK(); int64_t getN();
  }];
}

def Ax_ConvOp : Ax_LayerOp<"conv"> {
  let summary = "Convolution in 1, 2 or 3 dimensions";
  let description = [{
    x: [batch, channels, spatial...]; w: [out channels, channels / groups,
    kernel...]. `pads`: low of each spatial dimension, then high of each. Behind it
    stands what a library does with it, as behind `ax.linear`; a bias is
    [out channels, 1...] there. Of floats, or of integers of eight bits as in
    `ax.dot`.
  }];
  let arguments = (ins Ax_Tensor:$x, Ax_Tensor:$w,
    DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads,
    DenseI64ArrayAttr:$dilations, DefaultValuedAttr<I64Attr, "1">:$groups);
  let results = (outs Ax_Tensor:$result);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $x `,` $w `` custom<NoEpilogue>(ref($w))
    `strides` $strides `pads` $pads `dilations` $dilations attr-dict
    `:` type($x) `,` type($w) `->` type($result)
  }];
}

def Ax_ConvTransposeOp : Ax_LayerOp<"conv_transpose"> {
  let summary = "Transposed convolution (the gradient of conv in its input)";
  let description = [{
    x: [batch, channels, spatial...]; w: [channels, out channels / groups,
    kernel...]. Output extent: stride (in - 1) + output_pad +
    (kernel - 1) dilation + 1 - pad_low - pad_high.
  }];
  let arguments = (ins Ax_FloatTensor:$x, Ax_FloatTensor:$w,
    DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads,
    DenseI64ArrayAttr:$dilations, DenseI64ArrayAttr:$output_pads,
    DefaultValuedAttr<I64Attr, "1">:$groups);
  let results = (outs Ax_FloatTensor:$result);
  let extraClassDeclaration = inferredDeclaration;
  let hasVerifier = 1;
  let assemblyFormat = [{
    $x `,` $w `` custom<NoEpilogue>(ref($w))
    `strides` $strides `pads` $pads `dilations` $dilations `output_pads`
    $output_pads attr-dict `:` type($x) `,` type($w) `->` type($result)
  }];
}

def Ax_ConvWeightGradientOp : Ax_ContractionOp<"conv_weight_gradient"> {
  let summary = "The gradient of conv in its weight";
  let description = [{
    x: [batch, channels, spatial...], the convolution's operand; gradient: that
    of its result, [batch, out channels, spatial...]; result: [out channels,
    channels / groups, kernel...]. The other attributes are the convolution's.
    With the two operands exchanged it is the gradient of conv_transpose in its
    weight. Created by Train.
  }];
  let arguments = (ins Ax_FloatTensor:$x, Ax_FloatTensor:$gradient,
    DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
    DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations,
    DefaultValuedAttr<I64Attr, "1">:$groups);
  let results = (outs Ax_FloatTensor:$result);
  let assemblyFormat = [{
    $x `,` $gradient `kernel` $kernel `strides` $strides `pads` $pads
    `dilations` $dilations attr-dict `:` type($x) `,` type($gradient) `->`
    type($result)
  }];
}

def Ax_PoolOp : Ax_InferredOp<"pool", [Ax_DoneByParts]> {
  let summary = "Sliding-window maximum, mean or sum over spatial dimensions";
  let description = [{
    x: [batch, channels, spatial...]. Padding never wins a maximum, adds nothing
    to a sum, and counts in a mean only with `count_include_pad`. `ceil_extra`:
    elements past the high padding that the last window reaches (ceil mode);
    these never count in a mean.
  }];
  let arguments = (ins Ax_PoolKindAttr:$kind, Ax_Tensor:$x,
    DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
    DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations,
    DenseI64ArrayAttr:$ceil_extra, UnitAttr:$count_include_pad);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    `` $kind $x `kernel` $kernel `strides` $strides `pads` $pads `dilations`
    $dilations `ceil_extra` $ceil_extra attr-dict `:` type($x) `->` type($result)
  }];
}

def Ax_MaxPoolGradientOp : Ax_InferredOp<"max_pool_gradient", [
    Ax_DoneByParts]> {
  let summary = "The gradient of a maximum pool in its operand";
  let description = [{
    x: the pool's operand; gradient: that of its result; result: as x. Each
    window gives its gradient to the first, in row-major order, of its largest
    elements. The attributes are the pool's. Created by Train.
  }];
  let arguments = (ins Ax_FloatTensor:$x, Ax_FloatTensor:$gradient,
    DenseI64ArrayAttr:$kernel, DenseI64ArrayAttr:$strides,
    DenseI64ArrayAttr:$pads, DenseI64ArrayAttr:$dilations,
    DenseI64ArrayAttr:$ceil_extra);
  let results = (outs Ax_FloatTensor:$result);
  let assemblyFormat = [{
    $x `,` $gradient `kernel` $kernel `strides` $strides `pads` $pads
    `dilations` $dilations `ceil_extra` $ceil_extra attr-dict `:` type($x) `,`
    type($gradient) `->` type($result)
  }];
}

def Ax_AttentionOp : Ax_InferredOp<"attention", [
    DeclareOpInterfaceMethods<Ax_ContractionOpInterface>]> {
  let summary = "softmax(scale q k^T + mask) v by heads";
  let description = [{
    q: [batch, heads, S, d]; k: [batch, kv heads, T, d]; v: [batch, kv heads, T,
    dv]; result: [batch, heads, S, dv]. heads is a multiple of kv heads: query
    head h uses kv head h / (heads / kv heads). mask broadcasts to [batch, heads,
    S, T] and has four dimensions: i1 (true = attend), float (added), or i64 m, the
    same for all queries: query i attends to key t if t <= i + m, as if it was
    causal. `causal`:
    query i attends to keys <= i + T - S; others do not count, NaN neither, while
    what a mask hides is 0 times its value, or is not read. `window` w, beside one of
    these or both: of keys <= p, as they say, those > p - w; others do not count. p
    is i + T - S, i + m, or the lesser. `softcap` c: scores become
    c tanh(scores / c) before the mask. A row from which mask, `causal` and `window` hide all
    keys gives 0 with `empty_rows_zero`; the mean of all values with `empty_rows_mean`, as it
    attends to all keys alike, also those that are hidden; NaN otherwise. `product_type`: what factors of products
    are rounded to where this is made of products (the numbers of `--precision`); a
    library that does it all in f32 need not.
    Created by Raise and by Import (opset 23 Attention).
  }];
  let arguments = (ins Ax_FloatTensor:$q, Ax_FloatTensor:$k, Ax_FloatTensor:$v,
    Optional<Ax_Tensor>:$mask, F64Attr:$scale, UnitAttr:$causal,
    OptionalAttr<I64Attr>:$window, OptionalAttr<F64Attr>:$softcap,
    UnitAttr:$empty_rows_zero, UnitAttr:$empty_rows_mean,
    OptionalAttr<TypeAttr>:$product_type);
  let results = (outs Ax_FloatTensor:$result);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`mask` $mask^ `:` type($mask))? `scale` $scale attr-dict
    `:` type($q) `,` type($k) `,` type($v) `->` type($result)
  }];
}

def Ax_AttentionGradientOp : Ax_InferredOp<"attention_gradient", [
    DeclareOpInterfaceMethods<Ax_ContractionOpInterface>]> {
  let summary = "The gradient of attention in q, k and v";
  let description = [{
    q, k, v, mask and the attributes are the attention's, `result` is what it
    gave, and `gradient` that of it: with p = softmax(...) as there,
    dv = p^T gradient; ds = p (gradient v^T - sum(gradient result)), times
    1 - tanh(...)^2 under a `softcap`; dq = scale ds k; dk = scale ds^T q. What
    is hidden has p = 0, by which it is multiplied; a row with nothing to attend
    to has p = 0 with `empty_rows_zero`, 1 / T with `empty_rows_mean`, NaN
    otherwise. `product_type` is the
    attention's. A mask that is trained needs all of ds, and the other operations of which this
    one is made. Created by Train; code generation composes it where the library
    lacks it.
  }];
  let arguments = (ins Ax_FloatTensor:$q, Ax_FloatTensor:$k, Ax_FloatTensor:$v,
    Ax_FloatTensor:$result, Ax_FloatTensor:$gradient, Optional<Ax_Tensor>:$mask,
    F64Attr:$scale, UnitAttr:$causal, OptionalAttr<I64Attr>:$window,
    OptionalAttr<F64Attr>:$softcap, UnitAttr:$empty_rows_zero,
    UnitAttr:$empty_rows_mean, OptionalAttr<TypeAttr>:$product_type);
  let results = (outs Ax_FloatTensor:$dq, Ax_FloatTensor:$dk,
    Ax_FloatTensor:$dv);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $result `,` $gradient (`mask` $mask^ `:` type($mask))?
    `scale` $scale attr-dict `:` type($q) `,` type($k) `,` type($v) `,`
    type($result) `,` type($gradient) `->` type($dq) `,` type($dk) `,` type($dv)
  }];
}

#endif // AX_CONTRACTION_OPS_TD
