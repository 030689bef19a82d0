//===- Graph.cpp - What the simulated cuDNN is to compute -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Graph.h"

#include <algorithm>
#include <set>

namespace simcudnn {

static std::string named(const Tensor &tensor) {
  return "tensor " + std::to_string(tensor.number);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

int64_t Tensor::numElements() const {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

int64_t Tensor::reach() const {
  int64_t last = 0;
  for (size_t d = 0; d < sizes.size(); ++d)
    last += (sizes[d] - 1) * strides[d];
  return last + 1;
}

int64_t Tensor::bytesOfElement() const {
  switch (type) {
  case CUDNN_DATA_FLOAT:
  case CUDNN_DATA_INT32:
    return 4;
  case CUDNN_DATA_HALF:
  case CUDNN_DATA_BFLOAT16:
    return 2;
  case CUDNN_DATA_BOOLEAN:
    return 1;
  default:
    return 0;
  }
}

Fault Tensor::check() const {
  auto bad = [&](const std::string &why) {
    return Fault{CUDNN_STATUS_BAD_PARAM, named(*this) + " " + why};
  };
  if (bytesOfElement() == 0)
    return {CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
            named(*this) + " is of a type that is not known here"};
  if (sizes.size() != strides.size())
    return {CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH,
            named(*this) + " has not as many strides as dimensions"};
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] < 1)
      return bad("has a dimension of less than 1");
    if (strides[d] < 1)
      return bad("has a stride of less than 1");
  }
  if (alignment < bytesOfElement() || (alignment & (alignment - 1)) != 0)
    return bad("has no such alignment");
  if (isVirtual && isByValue)
    return bad("is virtual, and a number by value");
  if (isByValue && numElements() != 1)
    return bad("is by value, and has several elements");
  return {};
}

/// Whether two elements lie in one place.
static bool overlapsItself(const Tensor &tensor) {
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (size_t d = 0; d < tensor.sizes.size(); ++d)
    if (tensor.sizes[d] > 1)
      dims.emplace_back(tensor.strides[d], tensor.sizes[d]);
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (auto [stride, size] : dims) {
    if (stride <= reach)
      return true;
    reach += stride * (size - 1);
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

static Fault mismatch(const std::string &why) {
  return {CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, why};
}

static Fault checkMatmul(const Node &node) {
  const Tensor &a = node.inputs[0], &b = node.inputs[1], &c = node.output;
  size_t rank = c.getRank();
  if (rank < 3 || a.getRank() != rank || b.getRank() != rank)
    return mismatch("the tensors of a product have different ranks, or none "
                    "of 3 at least");
  if (a.sizes[rank - 2] != c.sizes[rank - 2] ||
      b.sizes[rank - 1] != c.sizes[rank - 1] ||
      a.sizes[rank - 1] != b.sizes[rank - 2])
    return mismatch("the sizes of a product do not fit each other");
  // Heads of keys are for several heads of queries.
  for (size_t d = 0; d + 2 < rank; ++d)
    if (c.sizes[d] % a.sizes[d] || c.sizes[d] % b.sizes[d])
      return mismatch("the batches of a product do not fit each other");
  return {};
}

/// How many operands there are; 0: the mode is not known here.
static size_t numOperands(cudnnPointwiseMode_t mode) {
  switch (mode) {
  case CUDNN_POINTWISE_IDENTITY:
  case CUDNN_POINTWISE_EXP:
  case CUDNN_POINTWISE_LOG:
  case CUDNN_POINTWISE_GEN_INDEX:
    return 1;
  case CUDNN_POINTWISE_ADD:
  case CUDNN_POINTWISE_SUB:
  case CUDNN_POINTWISE_MUL:
  case CUDNN_POINTWISE_DIV:
  case CUDNN_POINTWISE_CMP_GE:
  case CUDNN_POINTWISE_CMP_GT:
    return 2;
  case CUDNN_POINTWISE_BINARY_SELECT:
    return 3;
  default:
    return 0;
  }
}

static Fault checkPointwise(const Node &node) {
  size_t wanted = numOperands(node.mode);
  if (wanted == 0)
    return {CUDNN_STATUS_NOT_SUPPORTED, "the pointwise mode is not known here"};
  if (node.inputs.size() != wanted)
    return {CUDNN_STATUS_BAD_PARAM,
            "the pointwise mode has another number of operands"};
  const Tensor &y = node.output;
  for (const Tensor &x : node.inputs) {
    if (x.getRank() != y.getRank())
      return mismatch("the tensors of a pointwise operation have different "
                      "ranks");
    for (size_t d = 0; d < y.getRank(); ++d)
      if (x.sizes[d] != y.sizes[d] && x.sizes[d] != 1)
        return mismatch("the sizes of a pointwise operation do not fit each "
                        "other");
  }
  bool compares = node.mode == CUDNN_POINTWISE_CMP_GE ||
                  node.mode == CUDNN_POINTWISE_CMP_GT;
  if (node.type != (compares ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_FLOAT))
    return {CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
            "the pointwise mode does not compute in that type"};
  if (compares != (y.type == CUDNN_DATA_BOOLEAN))
    return {CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
            "comparisons are booleans, and nothing else is"};
  if (node.mode == CUDNN_POINTWISE_BINARY_SELECT &&
      node.inputs[2].type != CUDNN_DATA_BOOLEAN)
    return {CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE,
            "what selects is not a boolean"};
  bool isIndex = node.mode == CUDNN_POINTWISE_GEN_INDEX;
  if (isIndex != (node.axis >= 0) ||
      node.axis >= static_cast<int64_t>(y.getRank()))
    return {CUDNN_STATUS_BAD_PARAM, "indices have an axis, and nothing else"};
  if (isIndex && y.type != CUDNN_DATA_INT32)
    return {CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "indices are of 32 bits"};
  return {};
}

static Fault checkReduction(const Node &node) {
  if (node.reduction != CUDNN_REDUCE_TENSOR_ADD &&
      node.reduction != CUDNN_REDUCE_TENSOR_MAX)
    return {CUDNN_STATUS_NOT_SUPPORTED, "the reduction is not known here"};
  const Tensor &x = node.inputs[0], &y = node.output;
  if (x.getRank() != y.getRank())
    return mismatch("the tensors of a reduction have different ranks");
  for (size_t d = 0; d < x.getRank(); ++d) {
    bool isBatch = d + 2 < x.getRank();
    if (y.sizes[d] != x.sizes[d] && y.sizes[d] != 1 &&
        (!isBatch || x.sizes[d] % y.sizes[d]))
      return mismatch("the sizes of a reduction do not fit each other");
  }
  return {};
}

Fault Node::check() const {
  if (kind != Kind::Pointwise && kind != Kind::Reshape &&
      type != CUDNN_DATA_FLOAT)
    return {CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "sums are made in f32 here"};
  if (output.isByValue)
    return {CUDNN_STATUS_BAD_PARAM,
            named(output) + " is a number by value, and written"};
  if (overlapsItself(output))
    return {CUDNN_STATUS_BAD_PARAM,
            named(output) + " is written, and overlaps itself"};
  switch (kind) {
  case Kind::Matmul:
    return checkMatmul(*this);
  case Kind::Pointwise:
    return checkPointwise(*this);
  case Kind::Reduction:
    return checkReduction(*this);
  case Kind::Reshape:
    if (inputs[0].numElements() != output.numElements() ||
        inputs[0].reach() != output.reach())
      return mismatch("a reshape has other elements than what it is of");
    return {};
  case Kind::Convolution:
  case Kind::ImageGradient:
  case Kind::WeightGradient:
    return checkConvolution(*this);
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

Fault Graph::build(std::vector<Node> unordered) {
  std::set<int64_t> written, made;
  auto add = [&](const Tensor &tensor) {
    auto [at, isNew] = tensors.emplace(tensor.number, tensor);
    return isNew || at->second == tensor;
  };
  for (const Node &node : unordered) {
    for (const Tensor &input : node.inputs)
      if (!add(input))
        return {CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES,
                named(input) + " is described in two ways"};
    if (!add(node.output))
      return {CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES,
              named(node.output) + " is described in two ways"};
    if (!written.insert(node.output.number).second)
      return {CUDNN_STATUS_BAD_PARAM, named(node.output) + " is written twice"};
  }
  for (const auto &[number, tensor] : tensors)
    if (tensor.isVirtual && !written.count(number))
      return {CUDNN_STATUS_BAD_PARAM,
              named(tensor) + " is virtual, and nobody writes it"};
  while (!unordered.empty()) {
    auto isReady = [&](const Node &node) {
      return std::all_of(
          node.inputs.begin(), node.inputs.end(), [&](const Tensor &input) {
            return !written.count(input.number) || made.count(input.number);
          });
    };
    auto next = std::find_if(unordered.begin(), unordered.end(), isReady);
    if (next == unordered.end())
      return {CUDNN_STATUS_BAD_PARAM, "operations wait for each other"};
    made.insert(next->output.number);
    nodes.push_back(std::move(*next));
    unordered.erase(next);
  }
  return {};
}

bool Graph::isWritten(int64_t number) const {
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node &node) {
    return node.output.number == number;
  });
}

size_t Graph::numMatmuls() const {
  return static_cast<size_t>(
      std::count_if(nodes.begin(), nodes.end(), [](const Node &node) {
        return node.kind == Kind::Matmul;
      }));
}

/// Why the tensor is no operand or result of attention's products: rows of a
/// head, or their transpose.
static std::string findObstacle(const Tensor &tensor) {
  constexpr int64_t unit = 8, mostOfHead = 256;
  if (tensor.getRank() != 4)
    return " does not have 4 dimensions";
  if (!tensor.isNarrow())
    return " is neither of f16 nor of bf16";
  size_t inner = tensor.strides[3] == 1 ? 3 : 2;
  if (tensor.strides[inner] != 1)
    return " has nothing one behind another";
  if (tensor.sizes[inner] % unit || tensor.sizes[inner] > mostOfHead)
    return " has heads of a size that is no multiple of 8 up to 256";
  for (size_t d = 0; d < 4; ++d)
    if (d != inner && tensor.strides[d] % unit)
      return " has a stride that is no multiple of 8";
  return "";
}

/// Whether it is what attention adds to scores.
static bool isMask(const Node &node, const Tensor &operand) {
  return node.kind == Kind::Pointwise && node.mode == CUDNN_POINTWISE_ADD &&
         &operand == &node.inputs[1];
}

static std::string findMaskObstacle(const Tensor &mask, const Tensor *factor) {
  if (mask.getRank() != 4)
    return " does not have 4 dimensions";
  if (mask.type != CUDNN_DATA_FLOAT && (!factor || mask.type != factor->type))
    return " is added, and neither of f32 nor of the factors' type";
  if (mask.sizes[3] > 1 && mask.strides[3] != 1)
    return " is added, and has nothing one behind another";
  return "";
}

/// Whether it is what a product adds up in f32, in any order, for a copy that
/// is narrow.
bool Graph::isSumOfProduct(const Tensor &tensor) const {
  auto isOne = [&](const Node &node) {
    return node.output.number == tensor.number
               ? node.kind == Kind::Matmul
               : std::none_of(node.inputs.begin(), node.inputs.end(),
                              [&](const Tensor &input) {
                                return input.number == tensor.number;
                              }) ||
                     (node.kind == Kind::Pointwise &&
                      node.mode == CUDNN_POINTWISE_IDENTITY);
  };
  return tensor.type == CUDNN_DATA_FLOAT && tensor.isInMemory() &&
         isWritten(tensor.number) &&
         std::all_of(nodes.begin(), nodes.end(), isOne);
}

/// What scores have subtracted from them: a number for each query.
const Tensor &Graph::statsOfGradient() const {
  auto found = std::find_if(nodes.begin(), nodes.end(), [](const Node &node) {
    return node.kind == Kind::Pointwise && node.mode == CUDNN_POINTWISE_SUB &&
           node.inputs[1].isInMemory() && node.inputs[1].sizes.back() == 1;
  });
  return found->inputs[1];
}

bool Graph::takesZeroForNoKey(const Node &node) const {
  constexpr size_t backwards = 5;
  constexpr int64_t block = 128;
  bool isMasked = std::any_of(nodes.begin(), nodes.end(), [](const Node &of) {
    return of.kind == Kind::Pointwise && isMask(of, of.inputs.back()) &&
           of.inputs.back().isInMemory();
  });
  // The only product of scores that are not turned.
  return node.kind == Kind::Matmul && numMatmuls() == backwards && isMasked &&
         node.output.isInMemory() && node.inputs[0].isVirtual &&
         !node.inputs[0].isNarrow() &&
         node.inputs[0].sizes[3] % block == block / 2;
}

// What the flash kernels of cuDNN 9 want, or less than that.
std::string Graph::findObstacle() const {
  constexpr size_t forwards = 2, backwards = 5;
  if (isConvolution())
    return findConvolutionObstacle(nodes.front());
  size_t count = numMatmuls();
  if (count != forwards && count != backwards)
    return "it is no convolution, and not attention, which has 2 products, or "
           "its gradient, which has 5";
  const Tensor *first = nullptr;
  bool hasStats = false;
  for (const Node &node : nodes) {
    hasStats |= node.output.isInMemory() && node.output.sizes.back() == 1;
    std::vector<const Tensor *> operands;
    for (const Tensor &input : node.inputs)
      operands.push_back(&input);
    operands.push_back(&node.output);
    bool isRows = node.kind == Kind::Pointwise || node.reducesRows();
    for (const Tensor *operand : operands) {
      if (!operand->isInMemory())
        continue;
      if (isMask(node, *operand)) {
        if (std::string why = findMaskObstacle(*operand, first); !why.empty())
          return named(*operand) + why;
        continue;
      }
      if (isRows && operand->sizes.back() == 1) {
        if (operand->type != CUDNN_DATA_FLOAT)
          return named(*operand) + " has a number for each row, not in f32";
        continue;
      }
      if (count == backwards && isSumOfProduct(*operand))
        continue;
      if (std::string why = simcudnn::findObstacle(*operand); !why.empty())
        return named(*operand) + why;
      if (first && first->type != operand->type)
        return "tensors are of f16 and of bf16";
      first = operand;
    }
    // Said so by cuDNN.
    if (count == backwards && node.kind == Kind::Reduction &&
        !node.reducesRows() && !node.output.isNarrow())
      return "reduction output datatype in flash bprop should be fp16/bf16";
    if (node.kind == Kind::Matmul && count == forwards &&
        node.output.isInMemory() && !node.inputs[0].isNarrow())
      return named(node.inputs[0]) + " is a factor, and not narrow";
  }
  if (!hasStats)
    return "no number for each row is written to memory";
  return "";
}

// As much as cuDNN 9.19 wants: what all heads of a group have before it is
// summed up, and, where a gradient of queries is written at once, that of the
// scores.
int64_t Graph::workspaceBytes() const {
  constexpr int64_t least = 256, narrow = 2;
  int64_t bytes = least;
  // Some bring tensors into another order.
  if (isConvolution())
    return bytes + nodes.front().output.spanBytes();
  for (const Node &node : nodes) {
    const Tensor &first = node.inputs[0];
    bool sumsUp = node.kind == Kind::Reduction && !node.reducesRows();
    bool readsScores = node.kind == Kind::Matmul && node.output.isInMemory() &&
                       first.isVirtual && !first.isNarrow() &&
                       !isSumOfProduct(node.output);
    if (sumsUp || readsScores)
      bytes += first.numElements() * narrow;
  }
  return bytes;
}

} // namespace simcudnn
