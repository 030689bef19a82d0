//===- LibraryOps.cpp - What a library is asked to compute ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/LibraryOps.h"

#include "ax/Support/HostTensor.h"

#include <algorithm>

namespace ax::rt {

TensorDesc TensorDesc::dense(DType dtype, std::vector<int64_t> sizes) {
  std::vector<int64_t> strides = rowMajorStrides(sizes);
  return {dtype, std::move(sizes), std::move(strides)};
}

int64_t TensorDesc::numElements() const {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

int64_t TensorDesc::spanBytes() const {
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0)
      return 0;
    last += (sizes[i] - 1) * strides[i];
  }
  return (last + 1) * byteSize(dtype);
}

bool TensorDesc::isDense() const {
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != stride)
      return false;
    stride *= sizes[i];
  }
  return true;
}

bool hasUnitStride(const TensorDesc &matrix) {
  size_t rank = matrix.sizes.size();
  return matrix.strides[rank - 1] == 1 || matrix.strides[rank - 2] == 1 ||
         matrix.sizes[rank - 1] == 1 || matrix.sizes[rank - 2] == 1;
}

bool MatmulDesc::operator==(const MatmulDesc &o) const {
  return a == o.a && b == o.b && c == o.c && hasBias == o.hasBias &&
         hasResidual == o.hasResidual &&
         (!hasResidual || residual == o.residual) &&
         activation == o.activation && form == o.form &&
         (!hasInput() || input == o.input) && constantB == o.constantB;
}

bool ConvDesc::operator==(const ConvDesc &o) const {
  return kind == o.kind && x == o.x && w == o.w && y == o.y &&
         strides == o.strides && dilations == o.dilations &&
         padsLow == o.padsLow && padsHigh == o.padsHigh && groups == o.groups &&
         hasBias == o.hasBias && hasResidual == o.hasResidual &&
         activation == o.activation && activationLast == o.activationLast &&
         constantW == o.constantW;
}

bool PoolDesc::operator==(const PoolDesc &o) const {
  return kind == o.kind && x == o.x && y == o.y &&
         (kind != PoolKind::MaxGradient || dx == o.dx) && kernel == o.kernel &&
         strides == o.strides && dilations == o.dilations &&
         padsLow == o.padsLow && padsHigh == o.padsHigh &&
         countIncludePad == o.countIncludePad;
}

bool AttentionDesc::operator==(const AttentionDesc &o) const {
  return q == o.q && k == o.k && v == o.v && out == o.out &&
         hasMask == o.hasMask && (!hasMask || mask == o.mask) &&
         scale == o.scale && causal == o.causal && window == o.window &&
         softcap == o.softcap && emptyRowsZero == o.emptyRowsZero &&
         emptyRowsMean == o.emptyRowsMean && givesLogSums == o.givesLogSums;
}

bool TopKDesc::operator==(const TopKDesc &o) const {
  return x == o.x && dim == o.dim && k == o.k && smallest == o.smallest;
}

bool NonMaxSuppressionDesc::operator==(const NonMaxSuppressionDesc &o) const {
  return boxes == o.boxes && scores == o.scores && limit == o.limit &&
         iouThreshold == o.iouThreshold && scoreThreshold == o.scoreThreshold;
}

bool IndexCheckDesc::operator==(const IndexCheckDesc &o) const {
  return indices == o.indices && sizes == o.sizes && isCount == o.isCount &&
         layout == o.layout && order == o.order;
}

bool GroupedMatmulDesc::operator==(const GroupedMatmulDesc &o) const {
  return kind == o.kind && x == o.x && w == o.w && y == o.y &&
         groups == o.groups && constantW == o.constantW;
}

namespace {

const char *toString(Activation activation) {
  switch (activation) {
  case Activation::None:
    return "";
  case Activation::Relu:
    return " relu";
  case Activation::GeluErf:
    return " gelu_erf";
  case Activation::GeluTanh:
    return " gelu_tanh";
  case Activation::Silu:
    return " silu";
  case Activation::Tanh:
    return " tanh";
  case Activation::Sigmoid:
    return " sigmoid";
  }
  __builtin_unreachable();
}

const char *toString(ActivationForm form) {
  switch (form) {
  case ActivationForm::Value:
    return "";
  case ActivationForm::ValueAndInput:
    return " kept";
  case ActivationForm::Gradient:
    return " gradient";
  }
  __builtin_unreachable();
}

std::string typed(const TensorDesc &desc) {
  return shapeToString(desc.sizes) + " " + ax::toString(desc.dtype);
}

std::string epilogue(bool hasBias, Activation activation, bool hasResidual) {
  return std::string(hasBias ? " bias" : "") + toString(activation) +
         (hasResidual ? " residual" : "");
}

TensorDesc topKResult(const TopKDesc &desc, DType dtype) {
  std::vector<int64_t> sizes = desc.x.sizes;
  sizes[static_cast<size_t>(desc.dim)] = desc.k;
  return TensorDesc::dense(dtype, std::move(sizes));
}

std::vector<TensorDesc> argumentsOf(const MatmulDesc &desc) {
  std::vector<TensorDesc> result{desc.a, desc.b};
  if (desc.hasBias)
    result.push_back(TensorDesc::dense(desc.c.dtype, {desc.c.sizes.back()}));
  if (desc.hasResidual)
    result.push_back(desc.residual);
  if (desc.form == ActivationForm::Gradient)
    result.push_back(desc.input);
  result.push_back(desc.c);
  if (desc.form == ActivationForm::ValueAndInput)
    result.push_back(desc.input);
  return result;
}
std::vector<TensorDesc> argumentsOf(const ConvDesc &desc) {
  if (desc.kind == ConvKind::WeightGradient)
    return {desc.x, desc.y, desc.w};
  std::vector<TensorDesc> result{desc.x, desc.w};
  if (desc.hasBias)
    result.push_back(TensorDesc::dense(desc.y.dtype, {desc.y.sizes[1]}));
  if (desc.hasResidual)
    result.push_back(desc.y);
  result.push_back(desc.y);
  return result;
}
std::vector<TensorDesc> argumentsOf(const PoolDesc &desc) {
  if (desc.kind == PoolKind::MaxGradient)
    return {desc.x, desc.y, desc.dx};
  return {desc.x, desc.y};
}
TensorDesc logSumsOf(const AttentionDesc &desc) {
  return TensorDesc::dense(DType::F32,
                           {desc.q.sizes[0], desc.q.sizes[1], desc.q.sizes[2]});
}
std::vector<TensorDesc> argumentsOf(const AttentionDesc &desc) {
  std::vector<TensorDesc> result{desc.q, desc.k, desc.v};
  if (desc.hasMask)
    result.push_back(desc.mask);
  result.push_back(desc.out);
  if (desc.givesLogSums)
    result.push_back(logSumsOf(desc));
  return result;
}
std::vector<TensorDesc> argumentsOf(const AttentionGradientDesc &desc) {
  const AttentionDesc &forward = desc.forward;
  std::vector<TensorDesc> result{forward.q, forward.k, forward.v, forward.out,
                                 desc.gradient};
  if (forward.hasMask)
    result.push_back(forward.mask);
  if (forward.givesLogSums)
    result.push_back(logSumsOf(forward));
  for (const TensorDesc *given : {&desc.dq, &desc.dk, &desc.dv})
    result.push_back(*given);
  return result;
}
std::vector<TensorDesc> argumentsOf(const TopKDesc &desc) {
  return {desc.x, topKResult(desc, desc.x.dtype), topKResult(desc, DType::I64)};
}
std::vector<TensorDesc> argumentsOf(const NonMaxSuppressionDesc &desc) {
  return {desc.boxes, desc.scores,
          TensorDesc::dense(DType::I64, {desc.scores.sizes[0],
                                         desc.scores.sizes[1], desc.limit})};
}
std::vector<TensorDesc> argumentsOf(const IndexCheckDesc &desc) {
  return {desc.indices, desc.indices};
}
std::vector<TensorDesc> argumentsOf(const LookUpDesc &desc) {
  return {desc.table, desc.x,
          TensorDesc::dense(desc.table.dtype, desc.x.sizes)};
}
std::vector<TensorDesc> argumentsOf(const GroupedMatmulDesc &desc) {
  if (desc.kind == GroupedKind::WeightGradient)
    return {desc.x, desc.y, desc.groups, desc.w};
  return {desc.x, desc.w, desc.groups, desc.y};
}

std::vector<TensorDesc> argumentsOf(const BlockMatmulDesc &desc) {
  if (!desc.hasZeros)
    return {desc.x, desc.w, desc.scales, desc.y};
  return {desc.x, desc.w, desc.scales,
          TensorDesc::dense(DType::U8, desc.scales.sizes), desc.y};
}

struct Describe {
  static std::string pairs(const AttentionDesc &d) {
    return shapeToString(d.q.sizes) + " over " + typed(d.k) +
           (d.causal ? " causal" : "") +
           (d.window ? " window " + std::to_string(d.window) : "") +
           (d.hasMask ? " masked" : "");
  }
  std::string operator()(const MatmulDesc &d) const {
    std::string a =
        d.a.dtype == d.b.dtype ? shapeToString(d.a.sizes) : typed(d.a);
    return "matmul " + a + " x " + typed(d.b) +
           epilogue(d.hasBias, d.activation, d.hasResidual) + toString(d.form);
  }
  std::string operator()(const ConvDesc &d) const {
    if (d.kind == ConvKind::WeightGradient)
      return "conv_weight_gradient " + shapeToString(d.x.sizes) + ", " +
             shapeToString(d.y.sizes) + " -> " + typed(d.w);
    return std::string(d.kind == ConvKind::Transposed ? "conv_transpose "
                                                      : "conv ") +
           shapeToString(d.x.sizes) + " * " + typed(d.w) +
           epilogue(d.hasBias, d.activation, d.hasResidual);
  }
  std::string operator()(const PoolDesc &d) const {
    const char *kinds[] = {"max_pool ", "avg_pool ", "sum_pool ",
                           "max_pool_gradient "};
    return kinds[static_cast<int>(d.kind)] + typed(d.x) + " by " +
           shapeToString(d.kernel);
  }
  std::string operator()(const AttentionDesc &d) const {
    return "attention " + pairs(d);
  }
  std::string operator()(const AttentionGradientDesc &d) const {
    return "attention_gradient " + pairs(d.forward);
  }
  std::string operator()(const TopKDesc &d) const {
    return "top_k " + std::to_string(d.k) + " of " + typed(d.x);
  }
  std::string operator()(const NonMaxSuppressionDesc &d) const {
    return "non_max_suppression " + std::to_string(d.limit) + " of " +
           typed(d.boxes) + " by " + shapeToString(d.scores.sizes);
  }
  std::string operator()(const IndexCheckDesc &d) const {
    if (d.isCount)
      return "at_most " + std::to_string(d.sizes.front() - 1);
    return "check_indices " + typed(d.indices) + " below " +
           shapeToString(d.sizes);
  }
  std::string operator()(const LookUpDesc &d) const {
    return "look_up " + typed(d.x);
  }
  std::string operator()(const GroupedMatmulDesc &d) const {
    if (d.kind == GroupedKind::WeightGradient)
      return "grouped_weight_gradient " + shapeToString(d.x.sizes) + ", " +
             shapeToString(d.y.sizes) + " -> " + typed(d.w);
    return "grouped_matmul " + shapeToString(d.x.sizes) + " x " + typed(d.w);
  }
  std::string operator()(const BlockMatmulDesc &d) const {
    return "block_matmul " + shapeToString(d.x.sizes) + " x " +
           shapeToString({d.x.sizes[1], d.w.sizes[0]}) + " u" +
           std::to_string(d.bits);
  }
};

struct Flops {
  int64_t operator()(const MatmulDesc &d) const {
    return 2 * d.c.numElements() * d.a.sizes.back();
  }
  int64_t operator()(const ConvDesc &d) const {
    const TensorDesc &weights = d.w;
    int64_t perChannel =
        weights.numElements() / std::max<int64_t>(1, weights.sizes[0]);
    const TensorDesc &places = d.kind == ConvKind::Transposed ? d.x : d.y;
    return 2 * places.numElements() * perChannel;
  }
  int64_t operator()(const PoolDesc &) const { return 0; }
  static int64_t scores(const AttentionDesc &d) {
    return d.q.sizes[0] * d.q.sizes[1] * d.q.sizes[2] * d.k.sizes[2];
  }
  int64_t operator()(const AttentionDesc &d) const {
    return 2 * scores(d) * (d.q.sizes[3] + d.v.sizes[3]);
  }
  int64_t operator()(const AttentionGradientDesc &d) const {
    return 2 * scores(d.forward) *
           (3 * d.forward.q.sizes[3] + 2 * d.forward.v.sizes[3]);
  }
  int64_t operator()(const TopKDesc &) const { return 0; }
  int64_t operator()(const NonMaxSuppressionDesc &) const { return 0; }
  int64_t operator()(const IndexCheckDesc &) const { return 0; }
  int64_t operator()(const LookUpDesc &) const { return 0; }
  int64_t operator()(const GroupedMatmulDesc &d) const {
    return 2 * d.x.numElements() * d.y.sizes.back();
  }
  int64_t operator()(const BlockMatmulDesc &d) const {
    return 2 * d.x.numElements() * d.y.sizes.back();
  }
};

} // namespace

std::string toString(const LibraryDesc &desc) {
  return std::visit(Describe(), desc);
}

int numArguments(const LibraryDesc &desc) {
  return std::visit(
      [](const auto &d) { return static_cast<int>(argumentsOf(d).size()); },
      desc);
}

TensorDesc argumentDesc(const LibraryDesc &desc, int index) {
  return std::visit(
      [&](const auto &d) { return argumentsOf(d)[static_cast<size_t>(index)]; },
      desc);
}

int numResults(const LibraryDesc &desc) {
  if (std::holds_alternative<AttentionGradientDesc>(desc))
    return 3;
  const auto *product = std::get_if<MatmulDesc>(&desc);
  if (product && product->form == ActivationForm::ValueAndInput)
    return 2;
  const auto *attention = std::get_if<AttentionDesc>(&desc);
  bool areTwo = attention ? attention->givesLogSums
                          : std::holds_alternative<TopKDesc>(desc);
  return areTwo ? 2 : 1;
}

int packedArgument(const LibraryDesc &desc) {
  if (const auto *matmul = std::get_if<MatmulDesc>(&desc))
    return matmul->constantB ? 1 : -1;
  if (const auto *conv = std::get_if<ConvDesc>(&desc))
    return conv->constantW ? 1 : -1;
  if (const auto *grouped = std::get_if<GroupedMatmulDesc>(&desc))
    return grouped->constantW ? 1 : -1;
  return -1;
}

int64_t countFlops(const LibraryDesc &desc) {
  return std::visit(Flops(), desc);
}

} // namespace ax::rt
