//===- LocalPasses.td - From a plan to commands ------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In the order in which they run. The first makes local programs of a plan's;
// the others run on whatever holds local stages, each of which by itself, but
// for those that run on plans.
//
//===----------------------------------------------------------------------===//
#ifndef AX_CODEGEN_LOCALPASSES_TD
#define AX_CODEGEN_LOCALPASSES_TD

include "mlir/Pass/PassBase.td"

def Localize : Pass<"axl-localize", "::ax::PlanOp"> {
  let summary = "What one rank of each stage computes";
  let description = [{
    Puts an `axl.program` in the place of each `ax.program` of a plan that
    `--verify` accepts. Tensors become the parts that a rank holds, collectives
    exchanges of parts along one dimension of a suitably reshaped tensor; padding
    is masked where it would be summed, indices are checked that are not known.
    What nobody reads is left out.
  }];
  let dependentDialects = ["ax::AxlDialect"];
}

def ComposeAttention : Pass<"axl-compose-attention"> {
  let summary = "Attention becomes products and a softmax";
  let description = [{
    For targets whose library has no attention, and its gradient likewise. The
    scores of all queries are in memory then. A key that `causal` hides is
    multiplied by 0: a value that is no number makes its queries none. What cuDNN
    does is left to it, in the type in which factors are multiplied: bf16 or f16,
    heads of up to `largest-head` that are multiples of 8, and no cap; the gradient
    of larger ones than 128 only where those of values are as large. Of a mask it is
    given numbers that it adds, in f32, or in bf16 if they only hide keys, which -2^30
    does; a causal mask of other numbers of keys than of queries is one of these. The
    largest number of each query's is subtracted from them, which leaves its
    softmax as it is (but where all of them are so large that scores would be
    rounded away). What cuDNN gives for queries that attend to nothing is
    replaced, with 0 or NaN, and so is the gradient of that; not where a constant, or
    the lack of a mask, says that there are none. A gradient of what the stage
    computes is given that one's mask, and the sums of its softmax; with `lift-masked`
    1024 more of both where keys are 64 more than a multiple of 128, since there cuDNN
    takes 0 for scores of keys that are none.
  }];
  let options = [
    Option<"cudnn", "cudnn", "bool", "false", "cuDNN is there">,
    Option<"largestHead", "largest-head", "int64_t", "128",
           "Size of the largest heads of which cuDNN does attention">,
    Option<"largestGradientHead", "largest-gradient-head", "int64_t", "128",
           "Size of the largest heads of which it does the gradient">,
    Option<"liftMasked", "lift-masked", "bool", "false",
           "Where it may overflow otherwise, its gradients have larger masks">
  ];
}

def ComposeChecks : Pass<"axl-compose-checks"> {
  let summary = "Checks of indices become what kernels do";
  let description = [{
    For targets whose library has no checks, so that nothing waits for a host that
    does them. Who reads indices reads them modulo the size: those from the end as
    they are meant, and none out of range. A reduction finds the first that was,
    which `axl.report_fault` keeps for the end of the run. Into a dimension of size 0
    there is no index to go on with: such a check stays.
  }];
}

def ComposePools : Pass<"axl-compose-pools"> {
  let summary = "Pools and their gradients become reductions";
  let description = [{
    For targets whose library has no pools. Of windows of up to nine elements, as far
    apart, each element is a slice of the images with steps, and what a gradient reads
    is the number of each window's largest element, which the pool finds if it is in
    the same stage. Of others each element is read where it lies, and a reduction makes
    the maximum, the sum or the mean of them. A gradient is the sum over the windows
    that an element may be in; the place of each window's largest element is in memory
    then. So become transposed
    convolutions of each channel by itself whose weights are all one number, of
    which a mean's gradient is made. Images of 2^31 places and more stay. With
    `channels-last`, pools of stages with convolutions of 16 bits read images whose
    channels lie innermost, as those have them for cuDNN; gradients of larger windows
    do not, which would have all that windows read in memory.
  }];
  let options = [
    Option<"channelsLast", "channels-last", "bool", "false",
           "Convolutions of 16 bits have their channels innermost">
  ];
}

def ComposeProducts : Pass<"axl-compose-products"> {
  let summary = "Weights that are made in passing are not in memory as a whole";
  let description = [{
    Of products with a matrix that the stage makes, element by element, of at most half
    its bytes: numbers of a few bits that have a scale. That of one row becomes a sum,
    of which a kernel makes one from what the matrix is made of; but for a GPU, what is
    multiplied with numbers of the same byte lies apart. Scales of its columns stand
    behind the sum. Rows that look a matrix up each are such sums, too, if there are at
    most 8 for each of the matrices, 2 of four numbers in a byte, for a GPU one. Of more rows of one matrix it becomes
    products with rows of the matrix, one after another in the same memory: of
    `part-bytes`, or all at once where that is 0. With `transpose_w` they are columns of
    the result; else they are added up, each to the sum of those before, where that is
    not rounded. A matrix that does not come apart so stays, and one of so many rows that
    the result is larger.
  }];
  let options = [
    Option<"partBytes", "part-bytes", "int64_t", "0",
           "Bytes of a matrix that are made at a time; 0: all">,
    Option<"gpu", "gpu", "bool", "false", "For a GPU">
  ];
}

def MultiplyBlocks : Pass<"axl-multiply-blocks"> {
  let summary = "Products of rounded rows with numbers of few bits are of integers";
  let description = [{
    For processors. A product whose first factor `ax.fake_quantize` rounded by blocks of
    its terms, and whose second one is made of bytes that hold numbers of two, four or
    eight bits, with a scale of each block of a row, and a zero point, becomes
    `axl.block_matmul`. What lies between them and the product, a rounding to narrower
    floats too, is left out.
  }];
}

def ComposeVectors : Pass<"axl-compose-vectors"> {
  let summary = "Products with one vector are sums";
  let description = [{
    A product of floats, or one of each of a batch, whose second factor is one column
    becomes a sum along what is multiplied, of which a kernel is made: it reads the matrix
    as it lies. So does one whose first factor is one row, if the matrix is looked up. For
    a GPU that is all: what is looked up would be copied for the library.
  }];
  let options = [Option<"gpu", "gpu", "bool", "false", "For a GPU">];
}

def GroupProducts : Pass<"axl-group-products"> {
  let summary = "Products with matrices that are looked up go by groups";
  let description = [{
    A product of floats, one of each of a batch, whose second factor is gathered by
    whole matrices becomes `axl.grouped_matmul`, if there are more look-ups than
    matrices and these have 8 columns or more: each matrix then meets all rows that look
    it up, and none is copied. What is made of those that are looked up, one of each, as
    of bytes with scales, is made of all instead. The sum of outer products by what they
    were looked up by becomes `axl.grouped_weight_gradient`. For a GPU rows of a group
    are put together in tiles, each of which is a product with a copy of its matrix, or,
    where these are many for few rows, both are products with all matrices, of which each
    row keeps those with its own.
  }];
  let options = [Option<"gpu", "gpu", "bool", "false", "For a GPU">];
}

def MultiplyFloat8 : Pass<"axl-multiply-float8"> {
  let summary = "Scales of floats of eight bits stand behind their products";
  let description = [{
    For GPUs whose library multiplies eight bits. A product of two factors that were
    widened from eight bits and have a scale each, one number or one of each row or
    column of the result, becomes one of what was widened, times the scales. What the
    factors were rounded to before they were multiplied is not rounded. Products that
    the library does not do stay.
  }];
}

def MultiplyIntegers : Pass<"axl-multiply-integers"> {
  let summary = "Zero points and scales of integers stand behind their products";
  let description = [{
    For processors that multiply integers of eight bits (AVX-512 VNNI) and GPUs, and
    plans that do not train. A product of two factors that were widened from eight
    bits, less a zero point, times a scale, each one number or one of each row or column
    of the result, becomes one of what was widened, in i32, less what zero points add to
    it, times the scales; likewise a convolution, whose image is padded with its zero
    point, but in groups of several filters by weights with a zero point of their own. A
    first factor with a sign is more by 128, and a second one without is less by that.
    Sums are exact: products of i32 have the bits that they had.

    On a GPU both have signs, and convolutions stay, as do products of more terms than
    i32 has room for in any case. So do those in floats of one row, and those that would
    grow by more than an eighth with terms and columns that are multiples of 16.
  }];
  let options = [Option<"gpu", "gpu", "bool", "false", "As cuBLASLt wants them">];
}

def ComposeTopK : Pass<"axl-compose-top-k"> {
  let summary = "The largest elements are found by comparisons and sums";
  let description = [{
    For targets whose library has no top-k. All elements of a row are compared with
    each other: an element's place in order is the number of those that come before
    it, and equal ones keep the order of their indices. The places of all elements
    are in memory then. Of i1, and of more comparisons than 2^32, it stays.
  }];
}

def NarrowEpilogues : Pass<"axl-narrow-epilogues"> {
  let summary = "What stands behind a product of 16 bits is done in its type";
  let description = [{
    Mixed precision widens what a Linear gives, adds a bias in f32 and rounds that, or
    the activation of it, for the next product. Where all readers round what they make
    of the sum, it is of a bias that is rounded, and it and the activation are made in
    the product's type: so as the product's epilogue, which has f32 until it writes, as
    in PyTorch's mixed precision. Gradients of such an activation read the sum widened.
    Sums that are read in f32 stay; on processors, what attention alone reads is f32
    from the product on, and where nothing trains, convolutions in bf16 are such
    products, behind which their library adds what the block before gave, too. Equal
    operations are done once before.
  }];
  let options = [Option<"gpu", "gpu", "bool", "false", "Attention is narrow, too">];
}

def SkipWidening : Pass<"axl-skip-widening"> {
  let summary = "Floats that are widened and then as narrow again are not";
  let description = [{
    Also where they are transposed, reshaped, cut or joined in between: that is then
    done with what is narrow.
  }];
}

def WidenProducts : Pass<"axl-widen-products"> {
  let summary = "What processors multiply faster in f32 is of f32";
  let description = [{
    Products, convolutions and attention of f16, for which libraries of processors
    have nothing, and convolutions of each channel by itself of bf16 with dilations,
    which take hundreds of times as long as in f32, with what is done along with them.
    Results are rounded as before. A product of one row of f16 becomes a sum, whose
    kernel reads the weight as it is.
  }];
}

def NarrowConvolutions : Pass<"axl-narrow-convolutions"> {
  let summary = "Convolutions of 16 bits give 16 bits";
  let description = [{
    For cuDNN, which has no others where it counts. What ranks or micro-batches add up
    of a convolution's gradient is f32, and rounded first.
  }];
}

def PadProducts : Pass<"axl-pad-products"> {
  let summary = "Rows of large products begin at multiples of 16 bytes";
  let description = [{
    For cuBLASLt, whose fast kernels on factors of 16 bits want that: a vocabulary of
    50257 makes a product several times as slow as one of 50264. Dimensions along
    which a factor or the result lies are padded with zeros to a multiple of 8, and
    the result is a part of what comes out. Who makes a factor writes the padding
    along with it. Products of batches, those of fewer than 64 rows, columns or terms
    of a sum, those of less than 2^32 multiplications, and those that would grow by more
    than an eighth stay.

    Of integers of eight bits all products have multiples of 16 terms and columns then,
    as cuBLASLt has no others, and 32 rows at least.
  }];
}

def JoinEpilogues : Pass<"axl-join-epilogues"> {
  let summary = "What a library does along with a product is done with it";
  let description = [{
    The product, the sum with a bias behind it, an activation, the sum with a residual
    and an activation of that become one `axl.library`: as far as the library does
    them in one call (`Library` in include/ax/Cost/Epilogue.h) and each alone reads
    what the one before gives.
  }];
  let options = [
    Option<"gpu", "gpu", "bool", "false", "What cuBLASLt does, and not oneDNN">
  ];
}

def ReadRounded : Pass<"axl-read-rounded"> {
  let summary = "Sums over rows read what was rounded for products";
  let description = [{
    For GPUs, whose kernels wait for memory: a bias's gradient is the sum over all rows
    of what a Linear's own gradients multiply, in bf16 or f16. It reads that, and adds
    it up in f32, so that nobody writes it a second time in f32. The sum is of numbers
    that were rounded, as in PyTorch's mixed precision.
  }];
}

def JoinActivations : Pass<"axl-join-activations"> {
  let summary = "Products keep what activations are of, and have their gradients";
  let description = [{
    For cuBLASLt, and GELU by tanh in 16 bits. Behind a Linear whose sum others read
    as well, as gradients do, the product gives both that and its activation. What a
    gradient multiplies by the derivative of an activation, however it is written,
    and rounds for products is the result of one, too: `axl.unary_gradient`.
  }];
}

def JoinLinears : Pass<"axl-join-linears"> {
  let summary = "Products of one input by small weights become one";
  let description = [{
    For GPUs, behind `axl-join-epilogues`: of up to eight products of at most 2^20
    elements weights of up to 4 MiB that no step changes are put beside each other,
    and so are biases, which `axl-compute-once` does in the first step. Who reads one
    of the products reads a part of each row then; a product that is exchanged, or
    given, stays by itself, and so does what would take a weight a second time.
  }];
}

def ChannelsLast : Pass<"axl-channels-last"> {
  let summary = "Images with their channels innermost";
  let description = [{
    Convolutions and pools read and write [batch, spatial..., channels] in
    memory, which libraries do fastest without reordering. Between them the
    transposes move down through what works on elements, and vanish where they
    meet their inverse. Norms of such images become reductions and element-wise
    operations in the order of memory.

    Of those that cuDNN does this is right for 16 bits, and weights, and their
    gradients, have the channels of the images innermost as well: whoever rounds them
    writes them so. Convolutions of f32, which cuDNN would turn back, stay.
  }];
  let options = [
    Option<"cudnn", "cudnn", "bool", "false", "cuDNN does convolutions">
  ];
}

def WriteTransposed : Pass<"axl-write-transposed"> {
  let summary = "Results that are only wanted in another order are written so";
  let description = [{
    Transposed ones of contractions and attention, if rows stay rows: no product is
    fast that writes columns. Attention's gradient reads its result transposed as
    well. What that gradient gives is written to where it is joined, as with the
    projections of q, k and v in one.
  }];
}

def OrderProducts : Pass<"axl-order-products"> {
  let summary = "Operands of products in an order that libraries can read";
  let description = [{
    Puts a transpose before operands of `ax.dot` that no dense tensor would make
    fit: views are read through it, all else is written so. Of products whose
    factors cuBLASLt takes in eight bits, it is put before those of which what is
    summed over would not lie innermost: of integers, and of floats before sm_100, and
    from sm_120 on, no other order is taken. So a tensor and its transpose are in
    memory, both in eight bits, where one product sums over its rows and another over
    its columns.
  }];
  let options = [
    Option<"float8", "float8", "bool", "false",
           "cuBLASLt multiplies floats of eight bits, from sm_90 on">
  ];
}

def ReshapeOnes : Pass<"axl-reshape-ones"> {
  let summary = "What moves or reduces dimensions of one element is a reshape";
  let description = [{
    As many kernels go on with a reshape that would end at a transpose or begin a loop
    at a reduction: those of a batch norm's numbers, one for each channel.
  }];
}

def MergeEqual : Pass<"axl-merge-equal"> {
  let summary = "Unused operations are removed, equal ones done once";
  let description = [{
    Those with different numbers in `axl.apart`, which this takes away, are not equal.
  }];
}

def PickElements : Pass<"axl-pick-elements"> {
  let summary = "A sum of which one term is not zero reads that element";
  let description = [{
    What a loss of shards selects by comparing all indices with a label is gathered,
    where the index is in the shard, and 0 elsewhere.
  }];
}

def TabulateBytes : Pass<"axl-tabulate-bytes"> {
  let summary = "What is made of a number of eight bits is looked up";
  let description = [{
    For processors. Where an element of eight bits is made of one other of eight bits,
    and of parameters that are one number each, by more operations than it takes to read
    a table, the results of all 256 are worked out, and each element is that of its
    number: activations between quantisations, and what they are multiplied with.
  }];
}

def RoundFloat8 : Pass<"axl-round-float8"> {
  let summary = "Products of eight bits give f32, which is rounded behind them";
  let description = [{
    For processors, which do such products in f32 (`axl-widen-factors`): what gives
    bf16 gives the sum, and a cast stands behind it.
  }];
}

def WidenFactors : Pass<"axl-widen-factors"> {
  let summary = "Factors of eight bits become what libraries multiply";
  let description = [{
    Of Linears and products: f32 for processors, bf16 for GPUs, which both have all
    of these numbers; the sums are f32 as before. With `float8` factors stay that
    cuBLASLt multiplies as they are: one is f8E4M3FN at least, and the terms of a
    sum, rows of the result and columns in its last dimension are multiples of 16.
  }];
  let options = [
    Option<"gpu", "gpu", "bool", "false", "bf16, and not f32">,
    Option<"float8", "float8", "bool", "false",
           "cuBLASLt multiplies factors of eight bits, from sm_90 on">
  ];
}

include "ax/Codegen/Kernels.td"

#endif // AX_CODEGEN_LOCALPASSES_TD
