//===- LocalOps.td - What one rank does --------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LOCAL_OPS_TD
#define AX_LOCAL_OPS_TD

include "ax/Local/LocalCollectiveOps.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

def Axl_LocalProgramOp : Axl_Op<"program", [IsolatedFromAbove, Symbol,
    SingleBlock, NoTerminator, NoRegionArguments, HasParent<"PlanOp">]> {
  let summary = "The stages of a program, as their ranks do them";
  let description = [{
    Stands in a plan in place of the `ax.program` that it was made of, and holds
    one `axl.stage` for each `ax.stage`, in their order.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Axl_LocalStageOp : Axl_Op<"stage", [IsolatedFromAbove, SingleBlock,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "The part of a stage that a rank computes";
  let description = [{
    Arguments: the stage's operands in order; then the states it loads, each once
    (zero where a rank's part is padding); then, of the results that are added up
    over micro-batches, what they came to so far (of no meaning in the first).
    Results: the stage's, then the new values of the states it stores. Padding
    elsewhere may hold anything and never reaches a valid element.

    `direct`: results that may be made right where they go in the end, since
    nothing reads what is there before. `arena_bytes`: what its values share, after
    `axl-place-buffers`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, ArrayAttr:$states,
    DenseI64ArrayAttr:$accumulated, ArrayAttr:$stored,
    DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$direct,
    OptionalAttr<I64Attr>:$arena_bytes);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name,
    "::llvm::ArrayRef<::mlir::Attribute>":$states,
    "::llvm::ArrayRef<int64_t>":$accumulated,
    "::llvm::ArrayRef<::mlir::Attribute>":$stored,
    "::llvm::ArrayRef<int64_t>":$direct,
    "::mlir::TypeRange":$arguments)>];
  let skipDefaultBuilders = 1;
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block &getBlock() { return getBody().front(); }
    ::mlir::Operation *getYield() { return getBlock().getTerminator(); }
    unsigned getNumInputs() { return getFirstSum() - getStates().size(); }
    /// The argument that holds the first sum so far.
    unsigned getFirstSum() {
      return getBody().getNumArguments() - getAccumulated().size();
    }
    /// The result that is the first new value of a state.
    unsigned getFirstStored() {
      return getYield()->getNumOperands() - getStored().size();
    }
    ::llvm::StringRef getState(unsigned i) {
      return ::llvm::cast<::mlir::FlatSymbolRefAttr>(getStates()[i]).getValue();
    }
    ::llvm::StringRef getStoredState(unsigned i) {
      return ::llvm::cast<::mlir::FlatSymbolRefAttr>(getStored()[i]).getValue();
    }
  }];
}

def Axl_LocalYieldOp : Axl_Op<"yield", [Pure, ReturnLike, Terminator,
    ParentOneOf<["LocalStageOp", "LibraryOp", "FusionOp"]>]> {
  let summary = "Results of a stage, or of what is one command";
  let arguments = (ins Variadic<Axl_Tensor>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
}

//===----------------------------------------------------------------------===//
// What only ranks know
//===----------------------------------------------------------------------===//

def Axl_AxisIndexOp : Axl_Op<"axis_index", [Pure, Ax_FusesByElement]> {
  let summary = "This rank's number along the given axes (scalar i64)";
  let description = "A scalar argument of kernels.";
  let arguments = (ins Ax_AxesAttr:$axes);
  let results = (outs Axl_IndexTensor:$result);
  let assemblyFormat = "custom<Axes>($axes) attr-dict `:` type($result)";
}

def Axl_CheckIndicesOp : Axl_Op<"check_indices", [Pure,
    AllTypesMatch<["indices", "result"]>]> {
  let summary = "The indices, negative ones counted from the end, or an error";
  let description = [{
    Of indices that are not known. The run ends with an error unless every
    element i is in [-s, s), where s = sizes[i mod number of sizes]. Of several
    faults the first in `order`, the number of the plan's op, and in `whole`, the
    type of the whole indices with its layout, is reported. With `is_count` they
    are how many results there are.
  }];
  let arguments = (ins Axl_IndexTensor:$indices, DenseI64ArrayAttr:$sizes,
    TypeAttr:$whole, I64Attr:$order, UnitAttr:$is_count);
  let results = (outs Axl_IndexTensor:$result);
  let assemblyFormat = [{
    $indices `sizes` $sizes `of` $whole `order` $order
    (`is_count` $is_count^)? attr-dict `:` type($result) }];
  let hasVerifier = 1;
}

def Axl_LookUpOp : Axl_Op<"look_up", [Pure]> {
  let summary = "Each element is that of a table whose number is an operand's byte";
  let description = [{
    The bits of an element of eight bits are the number, from 0 to 255, of the table's
    element that the result has in its place; elements have eight bits, too.
  }];
  let arguments = (ins Ax_Tensor:$table, Ax_Tensor:$bytes);
  let results = (outs Ax_Tensor:$result);
  let assemblyFormat = [{
    $bytes `in` $table attr-dict `:` type($bytes) `,` type($table) `->` type($result) }];
  let hasVerifier = 1;
}

def Axl_BlockMatmulOp : Axl_Op<"block_matmul", [Pure]> {
  let summary = "The product of rows with a matrix of few bits, by blocks";
  let description = [{
    x [rows, k]; w [n, k bits / 8] of bytes, of each the lowest bits first; scales, and
    zero points of bytes, [n, blocks]. A number of the matrix is its bits less the zero
    point of its block, times the scale; without zero points these are 2^(bits - 1).
    `bits` is 2, 4 or 8, and a block has a power of two of numbers from 16 to 32768.
    Blocks of x are rounded as `ax.fake_quantize` does with its rows. Result: [rows, n].
    What `axl-multiply-blocks` makes of products.
  }];
  let arguments = (ins Axl_FloatTensor:$x, Axl_Tensor:$w, Axl_FloatTensor:$scales,
    Optional<Axl_Tensor>:$zeros, I64Attr:$bits);
  let results = (outs Axl_FloatTensor:$result);
  let assemblyFormat = [{
    $x `,` $w `scales` $scales (`zeros` $zeros^ `:` type($zeros))? `bits` $bits
    attr-dict `:` type($x) `,` type($w) `,` type($scales) `->` type($result) }];
  let hasVerifier = 1;
}

def Axl_GroupedMatmulOp : Axl_Op<"grouped_matmul", [Pure]> {
  let summary = "Each row times the matrix of its group";
  let description = [{
    x [rows, k], w [groups, k, n], with `transpose_w` [groups, n, k]; `groups` [rows]
    has the number of each row's group, which is one that there is. Result [rows, n]:
    row r is x[r] w[groups[r]]. What `axl-group-products` makes of products with
    matrices that are looked up.
  }];
  let arguments = (ins Axl_FloatTensor:$x, Axl_FloatTensor:$w,
    Axl_IndexTensor:$groups, UnitAttr:$transpose_w);
  let results = (outs Axl_FloatTensor:$result);
  let assemblyFormat = [{
    $x `,` $w `[` $groups `]` (`transpose_w` $transpose_w^)? attr-dict `:`
    type($x) `,` type($w) `,` type($groups) `->` type($result) }];
  let hasVerifier = 1;
}

def Axl_GroupedWeightGradientOp : Axl_Op<"grouped_weight_gradient", [Pure]> {
  let summary = "The gradient of groups' matrices";
  let description = [{
    That of w in `axl.grouped_matmul`, from x [rows, k] and `gradient` [rows, n], that
    of its result: for each group the sum of x[r]^T gradient[r] over its rows, which is
    0 where there are none.
  }];
  let arguments = (ins Axl_FloatTensor:$x, Axl_FloatTensor:$gradient,
    Axl_IndexTensor:$groups, UnitAttr:$transpose_w);
  let results = (outs Axl_FloatTensor:$result);
  let assemblyFormat = [{
    $x `,` $gradient `[` $groups `]` (`transpose_w` $transpose_w^)? attr-dict `:`
    type($x) `,` type($gradient) `,` type($groups) `->` type($result) }];
  let hasVerifier = 1;
}

def Axl_ReportFaultOp : Axl_Op<"report_fault"> {
  let summary = "The run ends with an error if a check has found one";
  let description = [{
    What `axl-compose-checks` makes of `axl.check_indices`, whose attributes it
    has, but for its result: kernels look for a fault, and `word` has the place
    among the rank's `indices` of the first that is out of range, and what it is.
    Any other place says that there is none. It is read when all is done.
  }];
  let arguments = (ins Axl_IndexTensor:$word, TypeAttr:$indices,
    DenseI64ArrayAttr:$sizes, TypeAttr:$whole, I64Attr:$order,
    UnitAttr:$is_count);
  let assemblyFormat = [{
    $word `among` $indices `sizes` $sizes `of` $whole `order` $order
    (`is_count` $is_count^)? attr-dict `:` type($word) }];
  let hasVerifier = 1;
}

def Axl_RandomOp : Axl_Op<"random", [Pure, Ax_FusesByElement]> {
  let summary = "Uniform numbers in [0, 1) by seed, step, id and index";
  let description = [{
    Philox4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3,
    SC 2011): the counter's words are the index (low, high), the id and the step,
    the key is the seed; the upper 24 bits of the first word, as f32. `index`,
    `seed` and `step` are i64, the last two scalars. What localisation makes of
    `dropout` and `uniform`.
  }];
  let arguments = (ins Axl_IndexTensor:$index, Axl_IndexTensor:$seed,
    Axl_IndexTensor:$step, I64Attr:$id);
  let results = (outs Axl_FloatTensor:$result);
  let assemblyFormat = [{
    $index `seed` $seed `step` $step `id` $id attr-dict `:` type($index) `,`
    type($seed) `,` type($step) `->` type($result) }];
}

//===----------------------------------------------------------------------===//
// Attention that hands over what its gradient needs
//===----------------------------------------------------------------------===//

def Axl_LocalAttentionOp : Axl_Op<"attention", [Pure]> {
  let summary = "Attention, and the logarithms of its softmax's sums";
  let description = [{
    `ax.attention` without a cap. `log_sums`, f32, [batch, heads, S]:
    log(sum_t exp(scale q k_t + mask)) over the keys t that the query attends to;
    -inf where there are none. What `axl-compose-attention` makes of attention whose
    gradient is at hand, where the library of the target gives them. The mask that
    it makes leaves no query without keys, so that none of its sums is -inf; what
    queries give that had none is replaced behind `result`.
  }];
  let arguments = (ins Axl_FloatTensor:$q, Axl_FloatTensor:$k,
    Axl_FloatTensor:$v, Optional<Axl_Tensor>:$mask, F64Attr:$scale,
    UnitAttr:$causal, OptionalAttr<I64Attr>:$window,
    UnitAttr:$empty_rows_zero);
  let results = (outs Axl_FloatTensor:$result, Axl_FloatTensor:$log_sums);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`mask` $mask^ `:` type($mask))? `scale` $scale attr-dict
    `:` type($q) `,` type($k) `,` type($v) `->` type($result) `,`
    type($log_sums)
  }];
  let hasVerifier = 1;
}

def Axl_LocalAttentionGradientOp : Axl_Op<"attention_gradient", [Pure]> {
  let summary = "The gradient of attention, from its softmax's sums";
  let description = [{
    `ax.attention_gradient` of what `axl.attention` with the same operands and
    attributes gave as `result` and `log_sums`. Of `result` nothing counts but each
    query's sum(result gradient): where a query's `gradient` is 0 throughout, it may be
    any numbers, and where that is NaN, anything.
  }];
  let arguments = (ins Axl_FloatTensor:$q, Axl_FloatTensor:$k,
    Axl_FloatTensor:$v, Axl_FloatTensor:$result, Axl_FloatTensor:$gradient,
    Optional<Axl_Tensor>:$mask, Axl_FloatTensor:$log_sums, F64Attr:$scale,
    UnitAttr:$causal, OptionalAttr<I64Attr>:$window,
    UnitAttr:$empty_rows_zero);
  let results = (outs Axl_FloatTensor:$dq, Axl_FloatTensor:$dk,
    Axl_FloatTensor:$dv);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $result `,` $gradient
    (`mask` $mask^ `:` type($mask))? `sums` $log_sums `scale` $scale attr-dict
    `:` type($q) `,` type($k) `,` type($v) `,` type($result) `,`
    type($gradient) `,` type($log_sums) `->` type($dq) `,` type($dk) `,`
    type($dv)
  }];
  let hasVerifier = 1;
}

def Axl_UnaryGradientOp : Axl_Op<"unary_gradient", [Pure,
    HasParent<"LibraryOp">,
    AllTypesMatch<["gradient", "operand", "result"]>]> {
  let summary = "The gradient of an activation";
  let description = [{
    `gradient`, that of what `ax.unary` with the same kind gives of `operand`, times
    the derivative there: the gradient of `operand`. Libraries do it along with the
    product that gives `gradient`; elsewhere gradients are written out.
  }];
  let arguments = (ins Ax_UnaryKindAttr:$kind, Axl_FloatTensor:$gradient,
    Axl_FloatTensor:$operand);
  let results = (outs Axl_FloatTensor:$result);
  let assemblyFormat = [{
    `` $kind $gradient `at` $operand attr-dict `:` type($result) }];
  let hasVerifier = 1;
}

def Axl_AccumulateOp : Axl_Op<"accumulate", [Pure, HasParent<"LibraryOp">,
    AllTypesMatch<["value", "sum", "result"]>]> {
  let summary = "Adds to what earlier micro-batches came to";
  let description = [{
    `sum + value`; in the first micro-batch, which is number 0 along `axes`, it is
    `value`, and `sum` has no meaning.
  }];
  let arguments = (ins Axl_FloatTensor:$value, Axl_FloatTensor:$sum,
    Ax_AxesAttr:$axes);
  let results = (outs Axl_FloatTensor:$result);
  let assemblyFormat = [{
    $value `to` $sum `over` custom<Axes>($axes) attr-dict `:` type($result) }];
}

//===----------------------------------------------------------------------===//
// What is one command
//===----------------------------------------------------------------------===//

def Axl_FusionOp : Axl_Op<"fusion", [Pure, IsolatedFromAbove, SingleBlock]> {
  let summary = "Operations that become one kernel";
  let description = [{
    The region's arguments are the operands. `in_place`: for each result the
    number of the operand in whose memory it is made, or -1. An element of such
    an operand is read for nothing but that element of the results. `nests`: the
    kernel's loops, for who reads (`axl-choose-nests`).
  }];
  let arguments = (ins Variadic<Axl_Tensor>:$operands,
    OptionalAttr<DenseI64ArrayAttr>:$in_place,
    OptionalAttr<StrArrayAttr>:$nests);
  let results = (outs Variadic<Axl_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$results,
                                 "::mlir::ValueRange":$operands), [{
    build($_builder, $_state, results, operands, ::mlir::DenseI64ArrayAttr(),
          ::mlir::ArrayAttr());
  }]>];
  let assemblyFormat = [{
    `(` $operands `)` (`in_place` $in_place^)? (`nests` $nests^)?
    attr-dict-with-keyword $body `:` functional-type($operands, $results) }];
  let hasVerifier = 1;
}

def Axl_LibraryOp : Axl_Op<"library", [Pure, IsolatedFromAbove, SingleBlock]> {
  let summary = "An operation, and what a library does around it in one call";
  let description = [{
    A contraction, convolution, attention or pool on the region's arguments, which
    are its operands in order. Behind it the sum with a bias, an activation, the sum
    with a residual, and a transpose of what is written; the activation may be that
    of the sum with the residual instead. What is added is the right operand of its
    sum and an argument more: a bias has a number for each column or channel, a
    residual the type of the result. A residual is read in the order of the result,
    so a transpose of it may stand in front. What the activation is of may be a
    second result of a product. Instead of all of these there may be, behind a
    product, at an argument more, the gradient of an activation or the sum with what
    earlier micro-batches came to. Behind what gives several results these are
    transposed, reshaped and joined: it writes them to where they are then. Each is
    read once.
  }];
  let arguments = (ins Variadic<Axl_Tensor>:$operands);
  let results = (outs Variadic<Axl_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` $operands `)` attr-dict-with-keyword $body `:`
    functional-type($operands, $results) }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Of an operation that gives one.
    ::mlir::TypedValue<::mlir::RankedTensorType> getResult() {
      return ::llvm::cast<::mlir::TypedValue<::mlir::RankedTensorType>>(
          getResults()[0]);
    }
    ::mlir::Operation *getYield() { return getBody().front().getTerminator(); }
    /// What it is all about.
    ::mlir::Operation *getCore();
    /// Null where there is none.
    ::ax::BinaryOp getBias();
    ::ax::UnaryOp getActivation();
    ::ax::BinaryOp getResidual();
    ::ax::TransposeOp getTranspose();
    /// The core's result is multiplied by the derivative of an activation.
    ::ax::UnaryGradientOp getGradient();
    /// The core's result is added to a sum over micro-batches.
    ::ax::AccumulateOp getAccumulation();
    /// What the activation is of is a result, too.
    bool givesInput();
    /// The activation is that of the sum with the residual.
    bool isActivationLast();
    /// What is read as the bias, as the residual, at which a gradient is, or the
    /// sum so far, if there is one.
    ::mlir::OpOperand &getBiasOperand() {
      return getOperation()->getOpOperand(getCore()->getNumOperands());
    }
    ::mlir::OpOperand &getResidualOperand() { return getLastOperand(); }
    ::mlir::OpOperand &getGradientOperand() { return getLastOperand(); }
    ::mlir::OpOperand &getSumOperand() { return getLastOperand(); }
    ::mlir::OpOperand &getLastOperand() {
      return getOperation()->getOpOperand(getNumOperands() - 1);
    }
    /// The region, and so this op, gives `value` from now on.
    void setYielded(::mlir::Value value) {
      getYield()->setOperand(0, value);
      getResult().setType(
          ::llvm::cast<decltype(getResult().getType())>(value.getType()));
    }
  }];
}

#endif // AX_LOCAL_OPS_TD
