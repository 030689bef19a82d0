//===- Graph.h - What the simulated cuDNN is to compute ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMCUDNN_GRAPH_H
#define AX_TEST_SIMCUDNN_GRAPH_H

#include <cudnn_graph.h>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace simcudnn {

/// Why something cannot be; empty: it can.
struct Fault {
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  std::string why;

  explicit operator bool() const { return status != CUDNN_STATUS_SUCCESS; }
};

using Sizes = std::vector<int64_t>;

struct Tensor {
  int64_t number = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  Sizes sizes, strides;
  int64_t alignment = 1;
  bool isVirtual = false, isByValue = false;

  bool operator==(const Tensor &o) const {
    return number == o.number && type == o.type && sizes == o.sizes &&
           strides == o.strides && alignment == o.alignment &&
           isVirtual == o.isVirtual && isByValue == o.isByValue;
  }
  size_t getRank() const { return sizes.size(); }
  bool isInMemory() const { return !isVirtual && !isByValue; }
  int64_t numElements() const;
  /// Elements from the first to the last one.
  int64_t reach() const;
  int64_t bytesOfElement() const;
  int64_t spanBytes() const { return reach() * bytesOfElement(); }
  bool isNarrow() const {
    return type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
  }
  Fault check() const;
};

enum class Kind {
  Matmul,
  Pointwise,
  Reduction,
  Reshape,
  Convolution,
  ImageGradient,
  WeightGradient
};

/// Of a convolution, for each spatial dimension.
struct Window {
  int64_t numDims = 0;
  Sizes strides, dilations, before, behind;
};

struct Node {
  Kind kind = Kind::Matmul;
  cudnnPointwiseMode_t mode = CUDNN_POINTWISE_IDENTITY;
  cudnnReduceTensorOp_t reduction = CUDNN_REDUCE_TENSOR_ADD;
  /// What it computes in.
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  /// Of indices; -1: none was said.
  int64_t axis = -1;
  Window window;
  /// Of a convolution's three tensors, images, weights and what it makes, the
  /// ones that are read, in this order.
  std::vector<Tensor> inputs;
  Tensor output;

  Fault check() const;
  bool isConvolution() const { return kind >= Kind::Convolution; }
  const Tensor &images() const {
    return kind == Kind::ImageGradient ? output : inputs[0];
  }
  const Tensor &weights() const {
    return kind == Kind::WeightGradient  ? output
           : kind == Kind::ImageGradient ? inputs[0]
                                         : inputs[1];
  }
  const Tensor &made() const {
    return kind == Kind::Convolution ? output : inputs[1];
  }
  /// Whether the last dimension's elements become one.
  bool reducesRows() const {
    return kind == Kind::Reduction && output.sizes.back() == 1;
  }
};

/// Operations in an order in which operands come first.
struct Graph {
  std::map<int64_t, Tensor> tensors;
  std::vector<Node> nodes;

  Fault build(std::vector<Node> unordered);
  bool isSumOfProduct(const Tensor &tensor) const;
  /// Whether it is the gradient of queries of masked attention to 64 keys more
  /// than a multiple of 128, and the logarithms of sums that it reads.
  bool takesZeroForNoKey(const Node &node) const;
  const Tensor &statsOfGradient() const;
  bool isWritten(int64_t number) const;
  size_t numMatmuls() const;
  bool isConvolution() const {
    return nodes.size() == 1 && nodes.front().isConvolution();
  }
  /// Why there is no kernel for it; empty: there is one.
  std::string findObstacle() const;
  /// Bytes that its kernel wants beside the tensors.
  int64_t workspaceBytes() const;
};

/// What does a graph. All engines do attention alike.
enum class Engine {
  /// Adds up in any order: its sums are rubbish, as nobody is to take it.
  AnyOrder,
  /// Of f32 has ten bits behind the point.
  TensorCores,
  /// For which the heuristic is asked in vain.
  Plain
};
std::vector<cudnnBackendNumericalNote_t> notesOf(Engine engine);

/// Which engine does which operations, as text, and what that says; nothing if
/// it says none.
struct Said {
  Engine engine = Engine::Plain;
  std::vector<Node> nodes;
};
std::string toText(const Graph &graph, Engine engine);
std::optional<Said> parsePlan(const std::string &text);

Fault checkConvolution(const Node &node);
/// Why no engine does it; empty: they do.
std::string findConvolutionObstacle(const Node &node);
/// The elements of what the node gives, from those of what it reads.
std::vector<double> convolve(const Node &node, std::vector<double> first,
                             std::vector<double> second, Engine engine);

/// Does all of the graph. `places` has where each tensor is that is in memory
/// or a number.
void evaluate(const Graph &graph, Engine engine,
              const std::map<int64_t, unsigned char *> &places);

} // namespace simcudnn

#endif // AX_TEST_SIMCUDNN_GRAPH_H
