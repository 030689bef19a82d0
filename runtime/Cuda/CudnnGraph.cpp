//===- CudnnGraph.cpp - Operations that cuDNN does in one -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CudnnGraph.h"

#include "CudnnEngines.h"

#include "llvm/ADT/STLExtras.h"

#include <optional>
#include <type_traits>

namespace ax::rt::cuda {

Four packedStrides(const Four &sizes) {
  Four strides{};
  int64_t step = 1;
  for (size_t i = sizes.size(); i-- > 0; step *= sizes[i])
    strides[i] = step;
  return strides;
}

void CudnnGraph::note(llvm::Error error) {
  if (!error)
    return;
  ErrorDescription said = describeError(std::move(error));
  failure = said.message;
  failureCode = said.code;
}

CudnnDescriptor *CudnnGraph::make(cudnnBackendDescriptorType_t type) {
  if (!failure.empty())
    return nullptr;
  auto made = CudnnDescriptor::create(cudnn, type);
  if (!made) {
    note(made.takeError());
    return nullptr;
  }
  text += "\n" + std::to_string(type);
  return descriptors.emplace_back(std::move(*made)).get();
}

template <typename T>
void CudnnGraph::set(CudnnDescriptor *descriptor,
                     cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type,
                     llvm::ArrayRef<T> values) {
  if (!failure.empty())
    return;
  static_assert(!std::is_floating_point_v<T>, "rounded numbers are no text");
  text += " " + std::to_string(name);
  // Handles are others in each run.
  if constexpr (!std::is_pointer_v<T>)
    for (T value : values)
      text += ":" + std::to_string(static_cast<int64_t>(value));
  note(descriptor->set(name, type, values));
}

void CudnnGraph::set(CudnnDescriptor *descriptor,
                     cudnnBackendAttributeName_t name,
                     const CudnnDescriptor *value) {
  if (!failure.empty())
    return;
  auto number = llvm::find_if(descriptors,
                              [&](const Descriptor &candidate) {
                                return candidate.get() == value;
                              }) -
                descriptors.begin();
  text += " " + std::to_string(name) + "=" + std::to_string(number);
  note(descriptor->set(name, *value));
}

void CudnnGraph::finalize(CudnnDescriptor *descriptor) {
  if (failure.empty())
    note(descriptor->finalize());
}

void CudnnGraph::add(CudnnDescriptor *operation) {
  finalize(operation);
  if (failure.empty())
    operations.push_back(operation->get());
}

CudnnDescriptor *CudnnGraph::makeTensor(int64_t number,
                                        llvm::ArrayRef<int64_t> sizes,
                                        llvm::ArrayRef<int64_t> strides,
                                        cudnnDataType_t type, bool isBetween,
                                        bool isScalar) {
  // Of all that is in memory; of a number it is not looked at.
  constexpr int64_t alignment = 16;
  CudnnDescriptor *made = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  set<int64_t>(made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, number);
  set<cudnnDataType_t>(made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE,
                       type);
  set<int64_t>(made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, sizes);
  set<int64_t>(made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides);
  set<int64_t>(made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64,
               alignment);
  set<bool>(made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, isBetween);
  set<bool>(made, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, isScalar);
  finalize(made);
  return made;
}

CudnnGraph::Tensor CudnnGraph::tensor(int64_t number, const Four &sizes,
                                      const Four &strides,
                                      cudnnDataType_t type) {
  return {sizes, strides,
          makeTensor(number, sizes, strides, type, false, false)};
}

CudnnDescriptor *CudnnGraph::image(int64_t number,
                                   llvm::ArrayRef<int64_t> sizes,
                                   llvm::ArrayRef<int64_t> strides,
                                   cudnnDataType_t type) {
  return makeTensor(number, sizes, strides, type, false, false);
}

CudnnGraph::Tensor CudnnGraph::scalar(int64_t number) {
  constexpr Four ones = {1, 1, 1, 1};
  return {ones, ones,
          makeTensor(number, ones, ones, CUDNN_DATA_FLOAT, false, true)};
}

CudnnGraph::Tensor CudnnGraph::between(const Four &sizes,
                                       cudnnDataType_t type) {
  Four strides = packedStrides(sizes);
  return {sizes, strides,
          makeTensor(firstBetween + numBetween++, sizes, strides, type, true,
                     false)};
}

void CudnnGraph::matmul(const Tensor &a, const Tensor &b, const Tensor &c) {
  CudnnDescriptor *how = make(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  set<cudnnDataType_t>(how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
                       CUDNN_DATA_FLOAT);
  finalize(how);
  CudnnDescriptor *made = make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  set(made, CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
  set(made, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a.descriptor);
  set(made, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b.descriptor);
  set(made, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c.descriptor);
  add(made);
}

void CudnnGraph::pointwise(cudnnPointwiseMode_t mode, const Tensor &y,
                           const Tensor &x, const Tensor *b, const Tensor *t,
                           cudnnDataType_t type, int64_t axis) {
  CudnnDescriptor *how = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  set<cudnnPointwiseMode_t>(how, CUDNN_ATTR_POINTWISE_MODE,
                            CUDNN_TYPE_POINTWISE_MODE, mode);
  set<cudnnDataType_t>(how, CUDNN_ATTR_POINTWISE_MATH_PREC,
                       CUDNN_TYPE_DATA_TYPE, type);
  if (axis >= 0)
    set<int64_t>(how, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
  finalize(how);
  CudnnDescriptor *made = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  set(made, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
  set(made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.descriptor);
  if (b)
    set(made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b->descriptor);
  if (t)
    set(made, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t->descriptor);
  set(made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y.descriptor);
  add(made);
}

CudnnGraph::Tensor CudnnGraph::indices(const Tensor &like, int64_t dim) {
  Tensor y = between(like.sizes, CUDNN_DATA_INT32);
  pointwise(CUDNN_POINTWISE_GEN_INDEX, y, like, nullptr, nullptr,
            CUDNN_DATA_FLOAT, dim);
  return y;
}

void CudnnGraph::reduce(cudnnReduceTensorOp_t kind, const Tensor &y,
                        const Tensor &x) {
  CudnnDescriptor *how = make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  set<cudnnDataType_t>(how, CUDNN_ATTR_REDUCTION_COMP_TYPE,
                       CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  set<cudnnReduceTensorOp_t>(how, CUDNN_ATTR_REDUCTION_OPERATOR,
                             CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, kind);
  finalize(how);
  CudnnDescriptor *made = make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  set(made, CUDNN_ATTR_OPERATION_REDUCTION_DESC, how);
  set(made, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x.descriptor);
  set(made, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y.descriptor);
  add(made);
}

CudnnGraph::Tensor CudnnGraph::transposed(const Tensor &x,
                                          cudnnDataType_t type) {
  Four sizes = x.sizes, strides = x.strides;
  std::swap(sizes[2], sizes[3]);
  std::swap(strides[2], strides[3]);
  Tensor y{sizes, strides,
           makeTensor(firstBetween + numBetween++, sizes, strides, type, true,
                      false)};
  CudnnDescriptor *made = make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  set(made, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x.descriptor);
  set(made, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y.descriptor);
  add(made);
  return y;
}

CudnnDescriptor *
CudnnGraph::convolutionWindow(const ConvolutionWindow &window) {
  CudnnDescriptor *how = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  set<cudnnDataType_t>(how, CUDNN_ATTR_CONVOLUTION_COMP_TYPE,
                       CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  set<cudnnConvolutionMode_t>(how, CUDNN_ATTR_CONVOLUTION_CONV_MODE,
                              CUDNN_TYPE_CONVOLUTION_MODE,
                              CUDNN_CROSS_CORRELATION);
  set<int64_t>(how, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64,
               static_cast<int64_t>(window.strides.size()));
  const std::pair<cudnnBackendAttributeName_t, llvm::ArrayRef<int64_t>>
      lists[] = {{CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, window.strides},
                 {CUDNN_ATTR_CONVOLUTION_DILATIONS, window.dilations},
                 {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, window.padsLow},
                 {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, window.padsHigh}};
  for (const auto &[name, numbers] : lists)
    set<int64_t>(how, name, CUDNN_TYPE_INT64, numbers);
  finalize(how);
  return how;
}

/// What each kind's operation is called by: itself, its window, x, w and y,
/// and the numbers that what it makes and what was there are multiplied by.
static constexpr struct {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t window, x, w, y, made, before;
} conventions[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};

void CudnnGraph::convolve(Convolution kind, const ConvolutionWindow &window,
                          const CudnnDescriptor *x, const CudnnDescriptor *w,
                          const CudnnDescriptor *y) {
  const auto &names = conventions[static_cast<size_t>(kind)];
  CudnnDescriptor *how = convolutionWindow(window);
  CudnnDescriptor *made = make(names.type);
  set(made, names.window, how);
  set(made, names.x, x);
  set(made, names.w, w);
  set(made, names.y, y);
  // The same of all.
  constexpr float one = 1, zero = 0;
  if (failure.empty())
    note(made->set<float>(names.made, CUDNN_TYPE_FLOAT, one));
  if (failure.empty())
    note(made->set<float>(names.before, CUDNN_TYPE_FLOAT, zero));
  add(made);
}

llvm::Expected<std::unique_ptr<CudnnPlan>>
CudnnGraph::build(const EngineLimits &limits) {
  auto held = cudnn->lock();
  CudnnDescriptor *graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  set<cudnnBackendDescriptor_t>(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS,
                                CUDNN_TYPE_BACKEND_DESCRIPTOR, operations);
  if (cudnnHandle_t handle = cudnn->get())
    set<cudnnHandle_t>(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE,
                       CUDNN_TYPE_HANDLE, handle);
  finalize(graph);
  if (!failure.empty())
    return makeError(failureCode, failure);
  std::string whole = text;
  for (cudnnBackendNumericalNote_t note : limits.without)
    whole += "\nwithout " + std::to_string(note);
  if (std::optional<std::string> kept = cudnn->getPlans().find(whole)) {
    auto plan = makePlan(cudnn, [&](CudnnDescriptor &made) -> llvm::Error {
      if (llvm::Error error = made.set<char>(
              CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
              llvm::ArrayRef(kept->data(), kept->size())))
        return error;
      cudnnBackendDescriptor_t card = cudnn->getDescription();
      return card ? made.set<cudnnBackendDescriptor_t>(
                        CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                        CUDNN_TYPE_BACKEND_DESCRIPTOR, card)
                  : llvm::Error::success();
    });
    if (plan)
      return plan;
    // Another one takes its place.
    llvm::consumeError(plan.takeError());
  }
  auto plan = findPlan(cudnn, *graph, limits);
  if (!plan)
    return plan.takeError();
  llvm::Expected<std::string> said = (*plan)->describe();
  // Without it the next run makes the plan again.
  if (said)
    cudnn->getPlans().keep(whole, *said);
  else
    llvm::consumeError(said.takeError());
  return plan;
}

} // namespace ax::rt::cuda
