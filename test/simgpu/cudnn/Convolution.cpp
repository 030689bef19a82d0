//===- Convolution.cpp - Convolutions of the simulated cuDNN --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Graph.h"

#include <cmath>

namespace simcudnn {

std::vector<cudnnBackendNumericalNote_t> notesOf(Engine engine) {
  switch (engine) {
  case Engine::AnyOrder:
    return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE,
            CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
  case Engine::TensorCores:
    return {CUDNN_NUMERICAL_NOTE_TENSOR_CORE};
  case Engine::Plain:
    return {};
  }
  return {};
}

Fault checkConvolution(const Node &node) {
  auto bad = [](const char *why) { return Fault{CUDNN_STATUS_BAD_PARAM, why}; };
  auto mismatch = [](const char *why) {
    return Fault{CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, why};
  };
  const Tensor &x = node.images(), &w = node.weights(), &y = node.made();
  const Window &window = node.window;
  size_t rank = x.getRank(), dims = rank - 2;
  constexpr size_t least = 4, most = 5;
  if (w.getRank() != rank || y.getRank() != rank)
    return mismatch("the tensors of a convolution have different ranks");
  if (rank < least || rank > most)
    return mismatch("images have neither 2 dimensions nor 3");
  for (const Sizes *list :
       {&window.strides, &window.dilations, &window.before, &window.behind})
    if (list->size() != dims || window.numDims != static_cast<int64_t>(dims))
      return mismatch("the window has not as many dimensions as the images");
  if (x.sizes[0] != y.sizes[0] || y.sizes[1] != w.sizes[0] ||
      x.sizes[1] % w.sizes[1] || y.sizes[1] % (x.sizes[1] / w.sizes[1]))
    return mismatch("the channels of a convolution do not fit each other");
  for (size_t d = 0; d < dims; ++d) {
    if (window.strides[d] < 1 || window.dilations[d] < 1)
      return bad("a convolution has a stride or a dilation of less than 1");
    if (window.before[d] < 0 || window.behind[d] < 0)
      return bad("a convolution has negative padding");
    int64_t reach = (w.sizes[d + 2] - 1) * window.dilations[d] + 1;
    int64_t room = x.sizes[d + 2] + window.before[d] + window.behind[d] - reach;
    if (room < 0 || y.sizes[d + 2] != room / window.strides[d] + 1)
      return mismatch("a convolution has not as many places as its window");
  }
  return {};
}

std::string findConvolutionObstacle(const Node &node) {
  const Tensor &x = node.images(), &w = node.weights(), &y = node.made();
  if (x.type != CUDNN_DATA_FLOAT && !x.isNarrow())
    return "it is a convolution of neither f32, f16 nor bf16";
  if (w.type != x.type || y.type != x.type)
    return "it is a convolution of several types";
  return "";
}

namespace {

/// Which places of images and of what is made one place of the window joins.
struct Joined {
  size_t image, made;
};

std::vector<Joined> placesOf(const Node &node, int64_t tap) {
  const Sizes &x = node.images().sizes, &w = node.weights().sizes,
              &y = node.made().sizes;
  const Window &window = node.window;
  size_t dims = x.size() - 2;
  Sizes offset(dims), index(dims, 0);
  for (size_t d = dims; d-- > 0; tap /= w[d + 2])
    offset[d] = tap % w[d + 2] * window.dilations[d] - window.before[d];
  std::vector<Joined> places;
  int64_t count = 1;
  for (size_t d = 0; d < dims; ++d)
    count *= y[d + 2];
  for (int64_t i = 0; i < count; ++i) {
    int64_t image = 0;
    bool isInside = true;
    for (size_t d = 0; d < dims; ++d) {
      int64_t at = index[d] * window.strides[d] + offset[d];
      isInside &= at >= 0 && at < x[d + 2];
      image = image * x[d + 2] + at;
    }
    if (isInside)
      places.push_back({static_cast<size_t>(image), static_cast<size_t>(i)});
    for (size_t d = dims; d-- > 0;) {
      if (++index[d] < y[d + 2])
        break;
      index[d] = 0;
    }
  }
  return places;
}

/// To ten bits behind the point.
double roundToTf32(double value) {
  constexpr int bits = 11;
  int exponent = 0;
  double part = std::frexp(value, &exponent);
  return std::isfinite(value)
             ? std::ldexp(std::nearbyint(std::ldexp(part, bits)),
                          exponent - bits)
             : value;
}

} // namespace

std::vector<double> convolve(const Node &node, std::vector<double> first,
                             std::vector<double> second, Engine engine) {
  std::vector<double> result(static_cast<size_t>(node.output.numElements()),
                             engine == Engine::AnyOrder ? std::nan("") : 0.0);
  if (engine == Engine::TensorCores && node.inputs[0].type == CUDNN_DATA_FLOAT)
    for (std::vector<double> *factor : {&first, &second})
      for (double &value : *factor)
        value = roundToTf32(value);
  bool isForward = node.kind == Kind::Convolution;
  bool isOfWeights = node.kind == Kind::WeightGradient;
  double *x = isForward || isOfWeights ? first.data() : result.data();
  double *w = isForward     ? second.data()
              : isOfWeights ? result.data()
                            : first.data();
  double *y = isForward ? result.data() : second.data();
  auto sizeOf = [](const Tensor &tensor, size_t from) {
    size_t count = 1;
    for (size_t d = from; d < tensor.sizes.size(); ++d)
      count *= static_cast<size_t>(tensor.sizes[d]);
    return count;
  };
  const Tensor &weights = node.weights();
  size_t image = sizeOf(node.images(), 2), made = sizeOf(node.made(), 2);
  size_t taps = sizeOf(weights, 2);
  auto batch = static_cast<size_t>(node.made().sizes[0]);
  auto all = static_cast<size_t>(node.images().sizes[1]);
  auto out = static_cast<size_t>(weights.sizes[0]);
  auto in = static_cast<size_t>(weights.sizes[1]);
  size_t outOfGroup = out / (all / in);
  for (size_t tap = 0; tap < taps; ++tap) {
    std::vector<Joined> places = placesOf(node, static_cast<int64_t>(tap));
    for (size_t n = 0; n < batch; ++n)
      for (size_t o = 0; o < out; ++o)
        for (size_t c = 0; c < in; ++c) {
          size_t channel = o / outOfGroup * in + c;
          double *from = x + (n * all + channel) * image;
          double *to = y + (n * out + o) * made;
          double &weight = w[(o * in + c) * taps + tap];
          if (isForward)
            for (Joined at : places)
              to[at.made] += weight * from[at.image];
          else if (isOfWeights)
            for (Joined at : places)
              weight += to[at.made] * from[at.image];
          else
            for (Joined at : places)
              from[at.image] += weight * to[at.made];
        }
  }
  return result;
}

} // namespace simcudnn
