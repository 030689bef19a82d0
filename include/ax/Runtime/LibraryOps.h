//===- LibraryOps.h - What a library is asked to compute --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Plain descriptions of the operations that a device's libraries do. A device
// prepares one (chooses a kernel, packs weights) and then executes it any
// number of times; see Device.h. Equal descriptions share what was prepared.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_LIBRARYOPS_H
#define AX_RUNTIME_LIBRARYOPS_H

#include "ax/Sharding/Layout.h"
#include "ax/Support/DType.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace ax::rt {

/// A strided view: the element at index i lies at sum(i * strides) elements
/// from the start of its buffer argument. Strides are >= 0; 0 broadcasts.
/// Results never have a stride of 0 in a dimension larger than 1.
struct TensorDesc {
  DType dtype = DType::F32;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;

  /// Row-major strides.
  static TensorDesc dense(DType dtype, std::vector<int64_t> sizes);
  int64_t getRank() const { return static_cast<int64_t>(sizes.size()); }
  int64_t numElements() const;
  /// Bytes from the first to the end of the last element; 0 when empty.
  int64_t spanBytes() const;
  bool isDense() const;

  bool operator==(const TensorDesc &o) const {
    return dtype == o.dtype && sizes == o.sizes && strides == o.strides;
  }
};

/// One of the last two dimensions has stride 1 (or size 1).
bool hasUnitStride(const TensorDesc &matrix);

/// Applied to the sum with the bias, in at least f32, before the residual.
enum class Activation { None, Relu, GeluErf, GeluTanh, Silu, Tanh, Sigmoid };

/// What a product has of its activation: the value; the value and what it is
/// of, for the gradient later on; or that gradient: the product is multiplied
/// by the derivative at what the activation was of.
enum class ActivationForm { Value, ValueAndInput, Gradient };

// Products: where what is multiplied (a and b, x and w, x and y of a weight
// gradient) is f16 or bf16, the result may be f32, the sums as they are made.
// Of matrices of eight bits it is; of integers of eight bits it may be i32.

/// c = act(a b + bias) + residual; of a gradient: c = (a b) act'(input).
/// Arguments: a, b, [bias], [residual], c, and where they have it the input,
/// a gradient's before c, a result's behind c. The residual must not overlap c;
/// on a GPU it may be c: the same view of the same memory.
struct MatmulDesc {
  /// All of the same rank >= 2: [batch..., m, k], [batch..., k, n],
  /// [batch..., m, n]. A batch dimension of a or b may be 1. a and b are of
  /// one element type, or of any two floats or integers of eight bits. A
  /// transposed operand is one whose last two strides are swapped.
  TensorDesc a, b, c;
  /// [n], dense, of c's type.
  bool hasBias = false;
  /// Sizes of c. Strides need not be c's.
  bool hasResidual = false;
  TensorDesc residual;
  Activation activation = Activation::None;
  /// With other forms than the value there are an activation of floats and no
  /// residual, with a gradient no bias either.
  ActivationForm form = ActivationForm::Value;
  /// Sizes and type of c: a b + bias, unless the form is the value.
  TensorDesc input;
  /// b never changes between executions, so it may be packed: a State buffer.
  bool constantB = false;

  bool hasInput() const { return form != ActivationForm::Value; }
  bool operator==(const MatmulDesc &o) const;
};

/// A convolution; its gradient in x ("deconvolution"), whose x is the gradient
/// of what the convolution made; its gradient in w.
enum class ConvKind { Forward, Transposed, WeightGradient };

/// Arguments: x, w, [bias], [residual], y; y = act(conv + bias) + residual, or
/// with `activationLast` act(conv + bias + residual). Of a weight gradient: x,
/// y (the gradient of what the convolution made), w, and no more.
/// Strides of x and y choose NCHW, NHWC or any other order.
struct ConvDesc {
  ConvKind kind = ConvKind::Forward;
  /// x: [batch, channels, spatial...];
  /// w: [out channels, channels / groups, kernel...], transposed:
  /// [channels, out channels / groups, kernel...]; y as x.
  TensorDesc x, w, y;
  std::vector<int64_t> strides, dilations, padsLow, padsHigh;
  int64_t groups = 1;
  /// [out channels], dense, of y's type.
  bool hasBias = false;
  /// Sizes and strides of y; may be y itself (same buffer and offset).
  bool hasResidual = false;
  Activation activation = Activation::None;
  bool activationLast = false;
  bool constantW = false;

  bool operator==(const ConvDesc &o) const;
};

enum class PoolKind { Max, Avg, Sum, MaxGradient };

/// Arguments: x, y, both [batch, channels, spatial...]; of MaxGradient: x, y
/// (the gradient of what max made), dx: of each window it goes to the first
/// largest element, or to its last NaN. Padding never wins a
/// maximum, adds nothing to a sum, and counts in a mean only with
/// countIncludePad; elements that a window reaches past padsHigh (ceil mode)
/// never count. Any element type for Max and Sum; Avg: floats; MaxGradient: f32
/// or f64.
struct PoolDesc {
  PoolKind kind = PoolKind::Max;
  TensorDesc x, y;
  /// Sizes of x; only of MaxGradient.
  TensorDesc dx;
  std::vector<int64_t> kernel, strides, dilations, padsLow, padsHigh;
  bool countIncludePad = false;

  bool operator==(const PoolDesc &o) const;
};

/// softmax(scale q k^T + mask) v by heads.
/// Arguments: q, k, v, [mask], out, [log sums]. Query head h uses key/value
/// head h / (heads / kv heads).
struct AttentionDesc {
  /// q: [batch, heads, S, d]; k: [batch, kv heads, T, d]; v: [batch, kv heads,
  /// T, dv]; out: [batch, heads, S, dv]. All of one floating type.
  TensorDesc q, k, v, out;
  /// [batch, heads, S, T] with strides of 0 where it broadcasts: Bool (true =
  /// attend), q's type or F32 (added), or I64 m, the same for all queries:
  /// query i sees key t if t <= i + m.
  bool hasMask = false;
  TensorDesc mask;
  double scale = 1;
  /// Query i attends to keys <= i + T - S; others do not count, NaN neither.
  bool causal = false;
  /// When > 0, beside one of these or both: of keys <= p, as they say, query i
  /// attends to those > p - window; others do not count. p is i + T - S, i + m,
  /// or the lesser.
  int64_t window = 0;
  /// When > 0, scores become softcap tanh(scores / softcap) before the mask.
  double softcap = 0;
  /// A row with nothing to attend to gives 0 instead of NaN.
  bool emptyRowsZero = false;
  /// It attends to all keys alike, also to what causality hides: a mean.
  bool emptyRowsMean = false;
  /// Gives, too, for each query the logarithm of the sum of exp(score) over the
  /// keys it attends to, -inf where there are none: [batch, heads, S], f32,
  /// dense. Its gradient is given them then.
  bool givesLogSums = false;

  bool operator==(const AttentionDesc &o) const;
};

/// The gradients of q, k and v, from what attention gave, out, and that one's
/// gradient. Arguments: q, k, v, out, gradient, [mask], [log sums], dq, dk, dv.
struct AttentionGradientDesc {
  AttentionDesc forward;
  /// Sizes of out.
  TensorDesc gradient;
  /// Sizes and types of q, k and v. They may be parts of one tensor.
  TensorDesc dq, dk, dv;

  bool operator==(const AttentionGradientDesc &o) const {
    return forward == o.forward && gradient == o.gradient && dq == o.dq &&
           dk == o.dk && dv == o.dv;
  }
};

/// The k largest (smallest) elements along `dim`, in order; equal ones in order
/// of their indices; NaN counts as the largest. Arguments: x, values, indices
/// (i64). All dense.
struct TopKDesc {
  TensorDesc x;
  int64_t dim = 0;
  int64_t k = 1;
  bool smallest = false;

  bool operator==(const TopKDesc &o) const;
};

/// Which boxes are taken, see ax.non_max_suppression. Arguments: boxes [images,
/// n, 4], scores [images, classes, n] of the same float type, result [images,
/// classes, limit] of i64, all dense.
struct NonMaxSuppressionDesc {
  TensorDesc boxes, scores;
  int64_t limit = 0;
  double iouThreshold = 0;
  std::optional<double> scoreThreshold;

  bool operator==(const NonMaxSuppressionDesc &o) const;
};

/// Copies indices, negative ones counted from the end; an IndexFault when some
/// are out of range, for which there is 0. Element i is one into a dimension of
/// sizes[i mod number of sizes]. Arguments: indices (i32 or i64), result, both
/// dense.
struct IndexCheckDesc {
  TensorDesc indices;
  std::vector<int64_t> sizes;
  /// They count results, of which there may be one less than the size.
  bool isCount = false;
  /// The layout of the whole indices, and this check's number among those of
  /// the program: of several faults the first one is told.
  sharding::Layout layout;
  int64_t order = 0;

  bool operator==(const IndexCheckDesc &o) const;
};

/// The bits of each element of x are the number of that of a table of 256 which
/// the result has. Arguments: table, x (both i8 or u8), result, of the table's
/// type and in x's shape, all dense.
struct LookUpDesc {
  TensorDesc table, x;

  bool operator==(const LookUpDesc &o) const {
    return table == o.table && x == o.x;
  }
};

/// The product of rows with a matrix each; its gradient in the matrices.
enum class GroupedKind { Forward, WeightGradient };

/// Rows of x are of groups, each of which has a matrix of w: y[r] = x[r]
/// w[group of r]. Arguments: x, w, groups, y; of a weight gradient x, y (the
/// gradient of what the product made), groups, w: w[g] is the sum of x[r]^T
/// y[r] over the rows r of g, 0 where there are none.
struct GroupedMatmulDesc {
  GroupedKind kind = GroupedKind::Forward;
  /// x: [rows, k]; w: [groups, k, n], of which k or n is innermost; y: [rows,
  /// n]. All of one floating type, but that the result of f16 or bf16 may be
  /// f32. The result is dense, or w's last two strides are swapped.
  TensorDesc x, w, y;
  /// [rows], i32 or i64, dense: from 0 on, below the number of groups.
  TensorDesc groups;
  /// w never changes between executions, so it may be packed.
  bool constantW = false;

  bool operator==(const GroupedMatmulDesc &o) const;
};

/// y = x w^T of numbers of few bits with scales: blocks of a row of w, of
/// as many numbers each, have a scale; those of x are rounded to integers of
/// eight bits first, as ax.fake_quantize has it. Arguments: x, w, scales,
/// [zeros], y, all dense.
struct BlockMatmulDesc {
  /// x: [rows, k]; w: [n, k bits / 8] of U8, of each byte the lowest bits
  /// first; scales: [n, blocks]; y: [rows, n]. All but w are F32.
  TensorDesc x, w, scales, y;
  /// 2, 4 or 8.
  int64_t bits = 4;
  /// Zero points of U8, [n, blocks]; else they are 2^(bits - 1).
  bool hasZeros = false;

  bool operator==(const BlockMatmulDesc &o) const {
    return x == o.x && w == o.w && scales == o.scales && y == o.y &&
           bits == o.bits && hasZeros == o.hasZeros;
  }
};

using LibraryDesc =
    std::variant<MatmulDesc, ConvDesc, PoolDesc, AttentionDesc, TopKDesc,
                 NonMaxSuppressionDesc, IndexCheckDesc, AttentionGradientDesc,
                 LookUpDesc, GroupedMatmulDesc, BlockMatmulDesc>;

/// Returns why no device can do it: sizes, strides, types that do not fit each
/// other, or overflow; empty when there is no fault. The functions below, and
/// devices, are for what has none.
std::string findFault(const LibraryDesc &desc);
/// `matmul 128x512 x 512x2048 f32 bias gelu_erf`: for traces and errors.
std::string toString(const LibraryDesc &desc);
/// Number of arguments that an execution takes.
int numArguments(const LibraryDesc &desc);
/// The view of argument `index`.
TensorDesc argumentDesc(const LibraryDesc &desc, int index);
/// Number of the last arguments, which are results.
int numResults(const LibraryDesc &desc);
/// Index of the argument that preparation may pack, -1 when there is none.
int packedArgument(const LibraryDesc &desc);
/// Multiplications and additions of one execution (0 for those that do
/// none).
int64_t countFlops(const LibraryDesc &desc);

} // namespace ax::rt

#endif // AX_RUNTIME_LIBRARYOPS_H
