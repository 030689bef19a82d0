//===- CudnnGraph.h - Operations that cuDNN does in one ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// cuDNN is told what to do as a graph of operations on tensors, and makes of it
// one plan, if it knows a kernel for all of that.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_CUDA_CUDNNGRAPH_H
#define AX_RUNTIME_CUDA_CUDNNGRAPH_H

#include "Cudnn.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"

#include <array>
#include <limits>

namespace ax::rt::cuda {

/// A descriptor of the library, which is destroyed with this.
class CudnnDescriptor {
public:
  CudnnDescriptor(SharedCudnn cudnn, cudnnBackendDescriptor_t descriptor)
      : cudnn(std::move(cudnn)), descriptor(descriptor) {}
  static llvm::Expected<std::unique_ptr<CudnnDescriptor>>
  create(const SharedCudnn &cudnn, cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor();
  CudnnDescriptor(const CudnnDescriptor &) = delete;
  CudnnDescriptor &operator=(const CudnnDescriptor &) = delete;

  cudnnBackendDescriptor_t get() const { return descriptor; }
  template <typename T>
  llvm::Error set(cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, llvm::ArrayRef<T> values) {
    return setRaw(name, type, static_cast<int64_t>(values.size()),
                  values.data());
  }
  llvm::Error set(cudnnBackendAttributeName_t name,
                  const CudnnDescriptor &other) {
    cudnnBackendDescriptor_t value = other.get();
    return setRaw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
  }
  llvm::Error finalize();
  /// An attribute that is a number, or text.
  llvm::Expected<int64_t> getNumber(cudnnBackendAttributeName_t name) const;
  llvm::Expected<std::string> getText(cudnnBackendAttributeName_t name) const;

private:
  llvm::Error setRaw(cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, int64_t count,
                     const void *values);

  SharedCudnn cudnn;
  cudnnBackendDescriptor_t descriptor;
};

/// What a graph became.
class CudnnPlan {
public:
  CudnnPlan(SharedCudnn cudnn, std::unique_ptr<CudnnDescriptor> plan,
            int64_t workspaceBytes)
      : cudnn(std::move(cudnn)), plan(std::move(plan)),
        workspaceBytes(workspaceBytes) {}

  /// What cuDNN wants workspaces to be aligned to.
  static constexpr int64_t workspaceAlignment = 256;

  int64_t getWorkspaceBytes() const { return workspaceBytes; }
  /// What the library makes the plan of again, on the same card.
  llvm::Expected<std::string> describe() const {
    return plan->getText(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
  }
  /// A tensor by its number, and where it is: on the card, or of a number the
  /// host's, which is read during the call.
  struct Argument {
    int64_t number;
    void *at;
  };
  llvm::Error execute(CUstream stream, llvm::ArrayRef<Argument> arguments,
                      CUdeviceptr workspace) const;

private:
  SharedCudnn cudnn;
  std::unique_ptr<CudnnDescriptor> plan;
  int64_t workspaceBytes;
};

/// What is asked of a kernel beside what it computes.
struct EngineLimits {
  /// None of these may be said of it.
  llvm::SmallVector<cudnnBackendNumericalNote_t, 6> without;
  /// Of those that the heuristic names.
  size_t mostTried = 16;
  /// Where none of them can be made, those that do what others do not.
  bool hasFallback = false;
  int64_t mostWorkspaceBytes = std::numeric_limits<int64_t>::max();
};

/// A convolution; from what it made, the gradient of its images; of its
/// weights.
enum class Convolution { Forward, ImageGradient, WeightGradient };

/// Of each spatial dimension.
struct ConvolutionWindow {
  llvm::SmallVector<int64_t, 3> strides, dilations, padsLow, padsHigh;
};

/// The sizes, or strides, of a tensor.
using Four = std::array<int64_t, 4>;
Four packedStrides(const Four &sizes);

/// Operations, in an order in which operands come first. The first error is
/// kept for `build`.
class CudnnGraph {
public:
  struct Tensor {
    Four sizes, strides;
    CudnnDescriptor *descriptor = nullptr;
  };

  explicit CudnnGraph(SharedCudnn cudnn) : cudnn(std::move(cudnn)) {}

  /// One in memory, by a number below `firstBetween`.
  Tensor tensor(int64_t number, const Four &sizes, const Four &strides,
                cudnnDataType_t type);
  /// An f32 of the host's.
  Tensor scalar(int64_t number);
  /// One that is nowhere.
  Tensor between(const Four &sizes, cudnnDataType_t type = CUDNN_DATA_FLOAT);

  /// c = a b, summed up in f32.
  void matmul(const Tensor &a, const Tensor &b, const Tensor &c);
  /// y = mode(x), mode(x, b) or mode(x, b, t), in f32 unless `type` says; of
  /// modes that want one, along dimension `axis`.
  void pointwise(cudnnPointwiseMode_t mode, const Tensor &y, const Tensor &x,
                 const Tensor *b = nullptr, const Tensor *t = nullptr,
                 cudnnDataType_t type = CUDNN_DATA_FLOAT, int64_t axis = -1);
  /// The number of each place along a dimension, as i32.
  Tensor indices(const Tensor &like, int64_t dim);
  void reduce(cudnnReduceTensorOp_t kind, const Tensor &y, const Tensor &x);
  /// x with its last two dimensions exchanged.
  Tensor transposed(const Tensor &x, cudnnDataType_t type);

  /// One in memory of any rank: [batch, channels, spatial...], of weights
  /// [channels of y, channels of x in each group, spatial...].
  CudnnDescriptor *image(int64_t number, llvm::ArrayRef<int64_t> sizes,
                         llvm::ArrayRef<int64_t> strides, cudnnDataType_t type);
  /// y = x * w, summed up in f32, or what of the three `kind` says from the
  /// others. There are as many groups as w has channels of x less.
  void convolve(Convolution kind, const ConvolutionWindow &window,
                const CudnnDescriptor *x, const CudnnDescriptor *w,
                const CudnnDescriptor *y);

  /// Takes the plan that was kept for the same graph, if it is still one.
  /// Unsupported where cuDNN knows no kernel for it.
  llvm::Expected<std::unique_ptr<CudnnPlan>>
  build(const EngineLimits &limits = {});

  static constexpr int64_t firstBetween = 100;

private:
  using Descriptor = std::unique_ptr<CudnnDescriptor>;

  CudnnDescriptor *make(cudnnBackendDescriptorType_t type);
  /// Does nothing behind an error.
  template <typename T>
  void set(CudnnDescriptor *descriptor, cudnnBackendAttributeName_t name,
           cudnnBackendAttributeType_t type, llvm::ArrayRef<T> values);
  void set(CudnnDescriptor *descriptor, cudnnBackendAttributeName_t name,
           const CudnnDescriptor *value);
  void finalize(CudnnDescriptor *descriptor);
  void add(CudnnDescriptor *operation);
  CudnnDescriptor *makeTensor(int64_t number, llvm::ArrayRef<int64_t> sizes,
                              llvm::ArrayRef<int64_t> strides,
                              cudnnDataType_t type, bool isBetween,
                              bool isScalar);
  CudnnDescriptor *convolutionWindow(const ConvolutionWindow &window);
  void note(llvm::Error error);

  SharedCudnn cudnn;
  std::vector<Descriptor> descriptors;
  llvm::SmallVector<cudnnBackendDescriptor_t> operations;
  int64_t numBetween = 0;
  /// All that was said, in order.
  std::string text;
  std::string failure;
  ExitCode failureCode = ExitCode::Unsupported;
};

} // namespace ax::rt::cuda

#endif // AX_RUNTIME_CUDA_CUDNNGRAPH_H
