//===- PrepareOps.cpp - Whose kernels do what on the CPU ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CpuLibrary.h"

#include "ax/Runtime/MatmulView.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"

namespace ax::rt {

namespace {

/// Of the processor, as far as it decides whose kernels are faster.
bool hasWideVectors() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f");
#else
  return false;
#endif
}
bool isIntel() {
#if defined(__x86_64__)
  return __builtin_cpu_is("intel");
#else
  return false;
#endif
}

/// Rows that meet one matrix b.
int64_t rowsOf(const MatmulDesc &original) {
  MatmulDesc desc = collapse(original);
  auto isOne = [](int64_t size) { return size == 1; };
  bool isOneMatrix =
      llvm::all_of(llvm::ArrayRef(desc.b.sizes).drop_back(2), isOne);
  int64_t rows = 1;
  for (int64_t size : llvm::ArrayRef(desc.c.sizes)
                          .drop_back()
                          .take_back(isOneMatrix ? desc.c.sizes.size() : 1))
    rows *= size;
  return rows;
}

/// Whether rows of b lie so far apart that those of a tile want the same few
/// places of the first-level cache: oneDNN 2.6 reads b as it lies, unless many
/// rows meet it.
bool wantsFewPlaces(const MatmulDesc &desc) {
  constexpr int64_t halfPage = 2048 / sizeof(float), most = 320;
  const TensorDesc &b = desc.b;
  return b.strides.back() == 1 && b.sizes.back() >= halfPage &&
         b.strides[b.strides.size() - 2] % halfPage == 0 &&
         rowsOf(desc) <= most;
}

/// Whether our own kernels multiply faster. With one 512-bit multiplier (AMD)
/// oneDNN reaches 97 % of its peak and ours 96 %; with two (Intel) fetching
/// weights ahead counts. Of a few rows reading the weights is all the work, and
/// ours do it at the memory's speed, oneDNN at half of it.
/// With none oneDNN 2.6 packs the weights in each call, and with some shapes
/// does GELU one number at a time; for few rows what it does besides
/// multiplying counts. Ours are slower where tiles are mostly begun and ended,
/// or packed. `isConstant`: b is known, and packed once and for all.
bool prefersPackedMatmul(const MatmulDesc &desc, bool isConstant) {
  constexpr int64_t fewRows = 8;
  int64_t rows = rowsOf(desc);
  if (hasWideVectors())
    return isConstant && (isIntel() || rows <= fewRows);
  int64_t columns = desc.c.sizes.back(), depth = desc.a.sizes.back();
  if (!isConstant)
    return rows >= 32 && depth >= 256 && wantsFewPlaces(desc);
  if (rows == 1)
    return columns <= 128 || (depth >= 512 && columns < 1024);
  if (rows <= 16)
    return columns <= 128 || depth >= 64;
  return (columns >= 128 && depth >= 256) ||
         (depth >= 96 && wantsFewPlaces(desc));
}

/// Of a line of x, with all channels.
int64_t lineBytesOf(const ConvDesc &desc) {
  return desc.x.sizes.back() * desc.x.sizes[1] *
         static_cast<int64_t>(sizeof(float));
}

/// Whether it is a transposed convolution of so many channels and places that
/// oneDNN's reach half of a processor's speed with 512-bit vectors, too.
bool isDeepTransposed(const ConvDesc &desc) {
  constexpr int64_t manyChannels = 512, manyPlaces = 128;
  int64_t inputs = desc.x.sizes[1];
  return desc.kind == ConvKind::Transposed && desc.constantW &&
         inputs / desc.groups >= manyChannels &&
         desc.y.sizes[1] / desc.groups >= 16 &&
         desc.x.numElements() >= manyPlaces * inputs;
}

/// Whether our own kernels convolve faster. Without 512-bit vectors oneDNN's
/// are the best for windows of one place, and for few channels in lines that
/// stay in the first-level cache with their windows' weights; they make dilated
/// and transposed ones, and groups of few channels, at a third of the speed.
bool prefersPackedConv(const ConvDesc &desc) {
  if (hasWideVectors())
    return isDeepTransposed(desc);
  if (desc.kind == ConvKind::WeightGradient)
    return false;
  int64_t places = 1;
  bool isDilated = false;
  for (size_t d = 0; d < desc.dilations.size(); ++d) {
    places *= desc.w.sizes[d + 2];
    isDilated |= desc.dilations[d] > 1 && desc.w.sizes[d + 2] > 1;
  }
  // Weights that change are packed for many windows, or not worth it.
  constexpr int64_t manyWindows = 512;
  if (!desc.constantW && desc.y.numElements() < manyWindows * desc.y.sizes[1])
    return false;
  int64_t inputs = desc.x.sizes[1] / desc.groups;
  int64_t columns = desc.y.sizes[1] / desc.groups;
  bool isTransposed = desc.kind == ConvKind::Transposed;
  // A few columns take runs of whole vectors.
  constexpr int64_t vector = 8;
  if (columns < 16)
    return !isTransposed && (desc.groups > 1 ? columns > 2 && columns < 8
                                             : columns <= 4 && inputs >= 16 &&
                                                   inputs % vector == 0);
  if (isTransposed || isDilated)
    return true;
  constexpr int64_t manyChannels = 128, longLine = 20 << 10;
  bool isVolume = desc.strides.size() == 3 && desc.x.sizes.back() >= 16;
  // Both copy such an x; only of images' colours oneDNN does not.
  bool isCopied = desc.x.strides[1] != 1 && inputs >= 16;
  return places > 1 && (inputs >= manyChannels ||
                        lineBytesOf(desc) > longLine || isVolume || isCopied);
}

/// The same of a weight's gradient, of which oneDNN's are slow where channels
/// are next to each other in long lines, or there are not two dimensions.
bool prefersPackedGradient(const ConvDesc &desc) {
  constexpr int64_t longLine = 14 << 10;
  int64_t places = 1;
  for (size_t d = 2; d < desc.w.sizes.size(); ++d)
    places *= desc.w.sizes[d];
  return !hasWideVectors() && desc.kind == ConvKind::WeightGradient &&
         places > 1 && desc.y.sizes[1] / desc.groups >= 32 &&
         desc.x.sizes[1] / desc.groups >= 16 &&
         (desc.x.strides[1] == 1 || desc.y.strides[1] == 1) &&
         (desc.strides.size() != 2 || lineBytesOf(desc) >= longLine);
}

ExpectedCpuOp prepareOp(const MatmulDesc &desc, const CpuConstant &constant,
                        PackedWeights &packed) {
  // A sum over nothing is 0; oneDNN writes nothing. And it has neither two
  // results nor gradients of activations.
  if (llvm::is_contained(desc.a.sizes, 0) ||
      llvm::is_contained(desc.b.sizes, 0) || desc.hasInput())
    return preparePlainMatmul(desc);
  ExpectedCpuOp op = nullptr;
  if (prefersPackedMatmul(desc, desc.constantB && constant.data))
    op = preparePackedMatmul(desc, constant, packed);
  if (op && !*op)
    op = guardNaN(desc, constant, [&](const MatmulDesc &d) {
      return prepareDnnlMatmul(d, constant, packed);
    });
  return op && !*op ? preparePlainMatmul(desc) : std::move(op);
}

/// Where oneDNN fills up to a block of 16 output channels, or has only its
/// reference, or would turn a signal that lies well.
bool prefersPlain(const ConvDesc &desc) {
  if (desc.x.dtype != DType::F32)
    return false;
  if (desc.kind == ConvKind::Transposed)
    return desc.groups == 1 && desc.y.sizes[1] <= 4 &&
           llvm::all_of(desc.dilations, [](int64_t d) { return d == 1; });
  // With windows further apart sums along a window are as fast.
  constexpr int64_t mostStride = 16;
  if (isFilter(desc))
    return desc.strides[0] <= mostStride;
  return isPlainDepthwiseConv(desc) && desc.strides.size() == 1 &&
         desc.strides[0] == 1 && desc.x.strides[2] == 1 &&
         desc.y.strides[2] == 1;
}

/// `desc` without spatial dimensions of a single place, in x, w and y: kernels
/// go along the last dimension, which so has places to go along, as of signals
/// that are images of width 1.
ConvDesc withoutSinglePlaces(ConvDesc desc) {
  for (size_t d = desc.strides.size(); d-- > 0 && desc.strides.size() > 1;) {
    auto at = static_cast<ptrdiff_t>(d);
    TensorDesc *const views[] = {&desc.x, &desc.w, &desc.y};
    if (desc.padsLow[d] != 0 || llvm::any_of(views, [&](TensorDesc *v) {
          return v->sizes[d + 2] != 1;
        }))
      continue;
    for (TensorDesc *view : views) {
      view->sizes.erase(view->sizes.begin() + 2 + at);
      view->strides.erase(view->strides.begin() + 2 + at);
    }
    for (std::vector<int64_t> *values :
         {&desc.strides, &desc.dilations, &desc.padsLow, &desc.padsHigh})
      values->erase(values->begin() + at);
  }
  return desc;
}

ExpectedCpuOp prepareOp(const ConvDesc &asked, const CpuConstant &constant,
                        PackedWeights &packed) {
  ConvDesc desc = withoutSinglePlaces(asked);
  ExpectedCpuOp op = prepareSpreadConvTransposed(desc);
  if (!op || *op)
    return op;
  if (prefersPackedConv(desc))
    op = preparePackedConv(desc, constant, packed);
  else if (prefersPackedGradient(desc))
    op = preparePackedConvGradient(desc);
  bool isPlain = prefersPlain(desc);
  if (op && !*op && !isPlain)
    op = guardNaN(desc, constant, [&](const ConvDesc &d) {
      return prepareDnnlConv(d, constant, packed);
    });
  // Where oneDNN has none, as for one channel.
  if (op && !*op && !isPlain && desc.groups == 1)
    op = preparePackedConv(desc, constant, packed);
  if (!op || *op)
    return op;
  switch (desc.kind) {
  case ConvKind::Forward:
    return isPlainDepthwiseConv(desc) || isFilter(desc)
               ? preparePlainDepthwiseConv(desc)
               : preparePlainConv(desc);
  case ConvKind::Transposed:
    return preparePlainConvTransposed(desc);
  case ConvKind::WeightGradient:
    return preparePlainConvWeightGradient(desc);
  }
  llvm_unreachable("no such convolution");
}

ExpectedCpuOp prepareOp(const PoolDesc &desc, const CpuConstant &,
                        PackedWeights &) {
  return preparePool(desc);
}

ExpectedCpuOp prepareOp(const AttentionDesc &desc, const CpuConstant &,
                        PackedWeights &) {
  return prepareAttention(desc);
}

ExpectedCpuOp prepareOp(const AttentionGradientDesc &desc, const CpuConstant &,
                        PackedWeights &) {
  return prepareAttentionGradient(desc);
}

ExpectedCpuOp prepareOp(const TopKDesc &desc, const CpuConstant &,
                        PackedWeights &) {
  return prepareTopK(desc);
}

ExpectedCpuOp prepareOp(const NonMaxSuppressionDesc &desc, const CpuConstant &,
                        PackedWeights &) {
  return prepareNonMaxSuppression(desc);
}

ExpectedCpuOp prepareOp(const IndexCheckDesc &desc, const CpuConstant &,
                        PackedWeights &) {
  return prepareIndexCheck(desc);
}

ExpectedCpuOp prepareOp(const LookUpDesc &desc, const CpuConstant &,
                        PackedWeights &) {
  return prepareLookUp(desc);
}

ExpectedCpuOp prepareOp(const BlockMatmulDesc &desc, const CpuConstant &,
                        PackedWeights &) {
  return prepareBlockMatmul(desc);
}

ExpectedCpuOp prepareOp(const GroupedMatmulDesc &desc,
                        const CpuConstant &constant, PackedWeights &packed) {
  return desc.kind == GroupedKind::WeightGradient
             ? prepareGroupedWeightGradient(desc)
             : prepareGroupedMatmul(desc, constant, packed);
}

} // namespace

ExpectedCpuOp prepareCpuOp(const LibraryDesc &desc, const CpuConstant &constant,
                           PackedWeights &packed) {
  return std::visit(
      [&](const auto &d) { return prepareOp(d, constant, packed); }, desc);
}

} // namespace ax::rt
