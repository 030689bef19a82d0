//===- CudnnAttentionGraphs.cpp - Attention, as cuDNN knows it ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// As FlashAttention does it (Dao, arXiv 2307.08691), no matrix of all scores is
// in memory. cuDNN has kernels for that, which it knows by the graph of what
// they compute: forwards
//
//   s = hide(scale q k^T + mask), m = max(s), e = exp(s - m), l = sum(e),
//   out = (e / l) v, stats = m + log(l)
//
// and backwards, from stats,
//
//   p = exp(hide(scale q k^T + mask - stats)), delta = sum(out gradient),
//   ds = scale p (gradient v^T - delta),
//   dv = p^T gradient, dk = ds^T q, dq = ds k.
//
// Sums of dq are not added up by whoever comes first: then results would differ
// from run to run. For that ds is in memory, in the type of the factors. Where
// they may differ, dq is added up in f32, in memory that need not be 0 before.
//
// A mask is read as it lies, of f32 or of the type of the factors, any of its
// dimensions being 1; cuDNN 9.19 plans all of these, forwards and backwards,
// with rows of any length.
//
//===----------------------------------------------------------------------===//

#include "CudnnAttentionGraphs.h"

#include "llvm/ADT/STLExtras.h"

namespace ax::rt::cuda {

using namespace attention;

/// Whether elements of different indices lie in one place.
static bool repeats(const TensorDesc &tensor) {
  for (size_t i = 0; i < tensor.sizes.size(); ++i)
    if (tensor.sizes[i] > 1 && tensor.strides[i] == 0)
      return true;
  return false;
}

static const char *const noRepeats = "cuDNN's attention repeats no operand";

std::string findObstacle(const AttentionDesc &desc) {
  if (desc.q.dtype != DType::F16 && desc.q.dtype != DType::BF16)
    return "cuDNN has attention of f16 and bf16 only";
  if (desc.softcap > 0)
    return "attention with a cap is not left to cuDNN";
  if (desc.hasMask && desc.mask.dtype != DType::F32 &&
      desc.mask.dtype != desc.q.dtype)
    return "cuDNN adds masks of f32, or of the type of queries, and selects by "
           "none";
  if (desc.causal && desc.q.sizes[2] != desc.k.sizes[2])
    return "causal attention is left to cuDNN with as many keys as queries";
  if (desc.window && !desc.causal)
    return "a window is left to cuDNN in causal attention";
  if (desc.q.numElements() == 0 || desc.k.numElements() == 0 ||
      desc.v.numElements() == 0)
    return "cuDNN has no attention to nothing";
  for (const TensorDesc *tensor : {&desc.q, &desc.k, &desc.v, &desc.out})
    if (repeats(*tensor))
      return noRepeats;
  return "";
}

std::string findObstacle(const AttentionGradientDesc &desc) {
  std::string obstacle = findObstacle(desc.forward);
  if (obstacle.empty() && repeats(desc.gradient))
    return noRepeats;
  return obstacle;
}

namespace {

cudnnDataType_t toCudnn(DType type) {
  return type == DType::F32   ? CUDNN_DATA_FLOAT
         : type == DType::F16 ? CUDNN_DATA_HALF
                              : CUDNN_DATA_BFLOAT16;
}

Four sizesOf(const TensorDesc &tensor) {
  Four sizes{};
  llvm::copy(tensor.sizes, sizes.begin());
  return sizes;
}

/// Along a dimension of size 1 any stride will do, but 0.
Four stridesOf(const TensorDesc &tensor) {
  Four strides{};
  int64_t step = 1;
  for (size_t i = strides.size(); i-- > 0;) {
    bool isOne = tensor.sizes[i] == 1;
    strides[i] = isOne ? step : tensor.strides[i];
    step = tensor.sizes[i] * strides[i];
  }
  return strides;
}

/// The graphs of one attention.
class Builder {
public:
  Builder(SharedCudnn cudnn, const AttentionDesc &desc)
      : graph(std::move(cudnn)), desc(desc), type(toCudnn(desc.q.dtype)),
        rows{desc.q.sizes[0], desc.q.sizes[1], desc.q.sizes[2], 1},
        scores{desc.q.sizes[0], desc.q.sizes[1], desc.q.sizes[2],
               desc.k.sizes[2]} {}

  /// Without stats, cuDNN 9.19 has no kernel for it.
  llvm::Expected<std::unique_ptr<CudnnPlan>> buildForwards() {
    Tensor s = hide(bias(multiply(transposedTensor(K, desc.k))));
    Tensor m = graph.between(rows), l = graph.between(rows);
    graph.reduce(CUDNN_REDUCE_TENSOR_MAX, m, s);
    Tensor e = apply(CUDNN_POINTWISE_EXP, apply(CUDNN_POINTWISE_SUB, s, &m));
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, l, e);
    Tensor log = graph.between(rows);
    graph.pointwise(CUDNN_POINTWISE_LOG, log, l);
    graph.pointwise(CUDNN_POINTWISE_ADD, inRows(Stats), m, &log);
    Tensor p = graph.between(scores, type);
    graph.pointwise(CUDNN_POINTWISE_DIV, p, e, &l);
    graph.matmul(p, tensor(V, desc.v), tensor(Out, desc.out));
    return graph.build();
  }

  llvm::Expected<std::unique_ptr<CudnnPlan>>
  buildBackwards(const AttentionGradientDesc &of, bool nondeterministic) {
    Tensor gradient = tensor(Gradient, of.gradient);
    Tensor q = tensor(Q, desc.q), out = tensor(Out, desc.out);
    Tensor keys = transposedTensor(K, desc.k);
    Tensor one = graph.scalar(One), scale = graph.scalar(Scale);

    Tensor product = graph.between(sizesOf(desc.out));
    graph.pointwise(CUDNN_POINTWISE_MUL, product, gradient, &out);
    Tensor sum = graph.between(rows), delta = inRows(Delta);
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, sum, product);
    // Kept in memory, which cuDNN's pattern wants of an operation's own.
    graph.pointwise(CUDNN_POINTWISE_MUL, delta, sum, &one);

    Tensor stats = inRows(Stats);
    Tensor s = graph.between(scores), scaled = graph.between(scores);
    graph.matmul(q, keys, s);
    graph.pointwise(CUDNN_POINTWISE_MUL, scaled, s, &scale);
    Tensor p = apply(CUDNN_POINTWISE_EXP,
                     hide(apply(CUDNN_POINTWISE_SUB, bias(scaled), &stats)));
    multiplyByGroups(p, gradient, tensor(DV, of.dv));

    Tensor ds = graph.between(scores);
    graph.matmul(gradient, transposedTensor(V, desc.v), ds);
    ds = apply(CUDNN_POINTWISE_SUB, ds, &delta);
    ds = apply(CUDNN_POINTWISE_MUL, ds, &p);
    ds = apply(CUDNN_POINTWISE_MUL, ds, &scale);
    multiplyByGroups(ds, q, tensor(DK, of.dk));
    Tensor last = graph.transposed(keys, type), dq = tensor(DQ, of.dq);
    if (nondeterministic) {
      Four sizes = sizesOf(of.dq);
      Tensor sums =
          graph.tensor(DQSums, sizes, packedStrides(sizes), CUDNN_DATA_FLOAT);
      graph.matmul(ds, last, sums);
      graph.pointwise(CUDNN_POINTWISE_IDENTITY, dq, sums);
    } else {
      graph.matmul(ds, last, dq);
    }
    return graph.build();
  }

private:
  using Tensor = CudnnGraph::Tensor;

  Tensor tensor(int64_t number, const TensorDesc &as) {
    return graph.tensor(number, sizesOf(as), stridesOf(as), type);
  }
  Tensor transposedTensor(int64_t number, const TensorDesc &as) {
    Four sizes = sizesOf(as), strides = stridesOf(as);
    std::swap(sizes[2], sizes[3]);
    std::swap(strides[2], strides[3]);
    return graph.tensor(number, sizes, strides, type);
  }
  /// A number for each query.
  Tensor inRows(int64_t number) {
    return graph.tensor(number, rows, packedStrides(rows), CUDNN_DATA_FLOAT);
  }
  Tensor apply(cudnnPointwiseMode_t mode, const Tensor &x,
               const Tensor *b = nullptr) {
    Tensor y = graph.between(scores);
    graph.pointwise(mode, y, x, b);
    return y;
  }
  /// scale q k^T
  Tensor multiply(const Tensor &keys) {
    Tensor s = graph.between(scores), scale = graph.scalar(Scale);
    graph.matmul(tensor(Q, desc.q), keys, s);
    return apply(CUDNN_POINTWISE_MUL, s, &scale);
  }
  /// With what the mask adds. A dimension along which that is the same has
  /// size 1.
  Tensor bias(const Tensor &s) {
    if (!desc.hasMask)
      return s;
    TensorDesc mask = desc.mask;
    for (size_t d = 0; d < mask.sizes.size(); ++d)
      if (mask.strides[d] == 0)
        mask.sizes[d] = 1;
    Tensor added =
        graph.tensor(Mask, sizesOf(mask), stridesOf(mask), toCudnn(mask.dtype));
    return apply(CUDNN_POINTWISE_ADD, s, &added);
  }
  /// What is behind a query's own place becomes -inf, and what is before its
  /// window.
  Tensor hide(const Tensor &s) {
    if (!desc.causal)
      return s;
    Tensor query = graph.indices(s, 2), key = graph.indices(s, 3);
    Tensor y = keepWhere(CUDNN_POINTWISE_CMP_GE, query, key, s);
    if (!desc.window)
      return y;
    query = graph.indices(y, 2), key = graph.indices(y, 3);
    Tensor window = graph.scalar(Window), end = graph.between(scores);
    graph.pointwise(CUDNN_POINTWISE_ADD, end, key, &window);
    return keepWhere(CUDNN_POINTWISE_CMP_GT, end, query, y);
  }
  Tensor keepWhere(cudnnPointwiseMode_t comparison, const Tensor &a,
                   const Tensor &b, const Tensor &s) {
    Tensor isSeen = graph.between(scores, CUDNN_DATA_BOOLEAN);
    graph.pointwise(comparison, isSeen, a, &b, nullptr, CUDNN_DATA_BOOLEAN);
    Tensor hidden = graph.scalar(Hidden), y = graph.between(scores);
    graph.pointwise(CUDNN_POINTWISE_BINARY_SELECT, y, s, &hidden, &isSeen);
    return y;
  }
  /// result = x^T y; of several query heads the sum.
  void multiplyByGroups(const Tensor &x, const Tensor &y,
                        const Tensor &result) {
    Tensor factor = graph.transposed(x, type);
    if (result.sizes[1] == scores[1]) {
      graph.matmul(factor, y, result);
      return;
    }
    Four sizes = result.sizes;
    sizes[1] = scores[1];
    Tensor all = graph.between(sizes, type);
    graph.matmul(factor, y, all);
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, result, all);
  }

  CudnnGraph graph;
  const AttentionDesc &desc;
  cudnnDataType_t type;
  Four rows, scores;
};

} // namespace

llvm::Expected<std::unique_ptr<CudnnPlan>>
planAttention(const SharedCudnn &cudnn, const AttentionDesc &desc) {
  return Builder(cudnn, desc).buildForwards();
}

llvm::Expected<std::unique_ptr<CudnnPlan>>
planAttentionGradient(const SharedCudnn &cudnn,
                      const AttentionGradientDesc &desc,
                      bool nondeterministic) {
  return Builder(cudnn, desc.forward).buildBackwards(desc, nondeterministic);
}

} // namespace ax::rt::cuda
