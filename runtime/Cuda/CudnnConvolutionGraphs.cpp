//===- CudnnConvolutionGraphs.cpp - Convolutions of cuDNN -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CudnnConvolutionGraphs.h"

#include "llvm/ADT/STLExtras.h"

#include <numeric>

namespace ax::rt::cuda {

using namespace convolution;

namespace {

using Numbers = llvm::SmallVector<int64_t, 5>;

/// The convolution that a transposed one, too, is a gradient of: `images` are
/// what it reads, `made` is what it gives.
struct Parts {
  explicit Parts(const ConvDesc &desc)
      : images(desc.kind == ConvKind::Transposed ? desc.y : desc.x),
        made(desc.kind == ConvKind::Transposed ? desc.x : desc.y) {}
  const TensorDesc &images, &made;
};

/// What is added behind the images, so that there are as many places for the
/// window as `made` has. More than one number will do, as what the window
/// reaches last is padding in any case: best is as much as in front, for which
/// cuDNN has most kernels.
int64_t paddingBehind(const ConvDesc &desc, size_t dim) {
  Parts parts(desc);
  int64_t reach = (desc.w.sizes[dim + 2] - 1) * desc.dilations[dim] + 1;
  int64_t least = (parts.made.sizes[dim + 2] - 1) * desc.strides[dim] + reach -
                  parts.images.sizes[dim + 2] - desc.padsLow[dim];
  int64_t most = least + desc.strides[dim] - 1;
  return std::clamp(desc.padsLow[dim], least, most);
}

/// Whether elements of different indices lie in one place.
bool repeats(const TensorDesc &tensor) {
  for (size_t i = 0; i < tensor.sizes.size(); ++i)
    if (tensor.sizes[i] > 1 && tensor.strides[i] == 0)
      return true;
  return false;
}

cudnnDataType_t toCudnn(DType type) {
  return type == DType::F16    ? CUDNN_DATA_HALF
         : type == DType::BF16 ? CUDNN_DATA_BFLOAT16
                               : CUDNN_DATA_FLOAT;
}

/// cuDNN has images of two dimensions at least.
bool isOfSignals(const ConvDesc &desc) { return desc.strides.size() == 1; }

Numbers sizesOf(const TensorDesc &tensor) {
  Numbers sizes(tensor.sizes.begin(), tensor.sizes.end());
  if (sizes.size() == 3)
    sizes.insert(sizes.begin() + 2, 1);
  return sizes;
}

/// Along a dimension of size 1 any stride will do: it is as where the others
/// are one behind another in their order, by which cuDNN knows layouts.
Numbers stridesOf(const TensorDesc &tensor) {
  Numbers sizes = sizesOf(tensor);
  Numbers strides(tensor.strides.begin(), tensor.strides.end());
  if (strides.size() == 3)
    strides.insert(strides.begin() + 2, 0);
  auto isLast = [&] {
    for (size_t i = 2; i < sizes.size(); ++i)
      if (sizes[i] > 1 && sizes[1] > 1)
        return strides[i] > strides[1];
    return sizes[1] > 1 && strides[1] == 1;
  };
  Numbers order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  if (isLast())
    std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  int64_t step = 1;
  for (int64_t dim : llvm::reverse(order)) {
    auto i = static_cast<size_t>(dim);
    if (sizes[i] == 1)
      strides[i] = step;
    step = sizes[i] * strides[i];
  }
  return strides;
}

} // namespace

std::string findObstacle(const ConvDesc &desc) {
  switch (desc.x.dtype) {
  case DType::F32:
  case DType::F16:
  case DType::BF16:
    break;
  default:
    return "convolutions of f32, f16 and bf16 are left to cuDNN";
  }
  if (desc.hasBias || desc.hasResidual || desc.activation != Activation::None)
    return "convolutions are left to cuDNN with nothing along with them";
  constexpr size_t mostDimensions = 3;
  if (desc.strides.size() > mostDimensions)
    return "cuDNN has convolutions in up to 3 dimensions";
  for (const TensorDesc *tensor : {&desc.x, &desc.w, &desc.y}) {
    if (tensor->numElements() == 0)
      return "cuDNN has no convolution of nothing";
    if (repeats(*tensor))
      return "cuDNN's convolutions repeat no operand";
  }
  for (size_t dim = 0; dim < desc.strides.size(); ++dim)
    if (desc.padsLow[dim] < 0 || paddingBehind(desc, dim) < 0)
      return "cuDNN has no negative padding";
  return "";
}

llvm::Expected<std::unique_ptr<CudnnPlan>>
planConvolution(const SharedCudnn &cudnn, const ConvDesc &desc, bool tf32) {
  ConvolutionWindow window;
  if (isOfSignals(desc)) {
    window.strides.push_back(1);
    window.dilations.push_back(1);
    window.padsLow.push_back(0);
    window.padsHigh.push_back(0);
  }
  for (size_t dim = 0; dim < desc.strides.size(); ++dim) {
    window.strides.push_back(desc.strides[dim]);
    window.dilations.push_back(desc.dilations[dim]);
    window.padsLow.push_back(desc.padsLow[dim]);
    window.padsHigh.push_back(paddingBehind(desc, dim));
  }
  CudnnGraph graph(cudnn);
  auto tensor = [&](int64_t number, const TensorDesc &as) {
    return graph.image(number, sizesOf(as), stridesOf(as), toCudnn(as.dtype));
  };
  CudnnDescriptor *x = tensor(X, desc.x), *w = tensor(W, desc.w),
                  *y = tensor(Y, desc.y);
  switch (desc.kind) {
  case ConvKind::Forward:
    graph.convolve(Convolution::Forward, window, x, w, y);
    break;
  case ConvKind::Transposed:
    graph.convolve(Convolution::ImageGradient, window, y, w, x);
    break;
  case ConvKind::WeightGradient:
    graph.convolve(Convolution::WeightGradient, window, x, w, y);
    break;
  }
  EngineLimits limits;
  // Results are the same in each run, and of f32 right to its last bits.
  limits.without = {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC,
                    CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
                    CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
                    CUDNN_NUMERICAL_NOTE_FFT, CUDNN_NUMERICAL_NOTE_WINOGRAD};
  if (desc.x.dtype == DType::F32 && !tf32)
    limits.without.push_back(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  limits.mostTried = 64;
  limits.hasFallback = true;
  limits.mostWorkspaceBytes = int64_t(1) << 30;
  return graph.build(limits);
}

} // namespace ax::rt::cuda
