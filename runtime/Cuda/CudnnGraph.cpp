//===- CudnnGraph.cpp - Operations that cuDNN does in one -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CudnnGraph.h"

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

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

llvm::Expected<std::unique_ptr<CudnnDescriptor>>
CudnnDescriptor::create(const SharedCudnn &cudnn,
                        cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t made = nullptr;
  if (llvm::Error error = cudnn->getLibrary().call(
          &Cudnn::cudnnBackendCreateDescriptor, type, &made))
    return error;
  return std::make_unique<CudnnDescriptor>(cudnn, made);
}

CudnnDescriptor::~CudnnDescriptor() {
  // A plan's kernels are of the card's context.
  llvm::consumeError(cudnn->enter());
  llvm::consumeError(cudnn->getLibrary().call(
      &Cudnn::cudnnBackendDestroyDescriptor, descriptor));
}

llvm::Error CudnnDescriptor::setRaw(cudnnBackendAttributeName_t name,
                                    cudnnBackendAttributeType_t type,
                                    int64_t count, const void *values) {
  return cudnn->getLibrary().call(&Cudnn::cudnnBackendSetAttribute, descriptor,
                                  name, type, count, values);
}

llvm::Error CudnnDescriptor::finalize() {
  return cudnn->getLibrary().call(&Cudnn::cudnnBackendFinalize, descriptor);
}

llvm::Expected<int64_t>
CudnnDescriptor::getNumber(cudnnBackendAttributeName_t name) const {
  int64_t number = 0, count = 0;
  if (llvm::Error error = cudnn->getLibrary().call(
          &Cudnn::cudnnBackendGetAttribute, descriptor, name, CUDNN_TYPE_INT64,
          int64_t(1), &count, static_cast<void *>(&number)))
    return error;
  return number;
}

llvm::Expected<std::string>
CudnnDescriptor::getText(cudnnBackendAttributeName_t name) const {
  int64_t size = 0;
  auto get = [&](int64_t most, void *to) {
    return cudnn->getLibrary().call(&Cudnn::cudnnBackendGetAttribute,
                                    descriptor, name, CUDNN_TYPE_CHAR, most,
                                    &size, to);
  };
  if (llvm::Error error = get(0, nullptr))
    return error;
  std::string text(static_cast<size_t>(size), '\0');
  if (llvm::Error error = get(size, text.data()))
    return error;
  return text;
}

llvm::Error CudnnPlan::execute(CUstream stream,
                               llvm::ArrayRef<Argument> arguments,
                               CUdeviceptr workspace) const {
  auto pack =
      CudnnDescriptor::create(cudnn, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  if (!pack)
    return pack.takeError();
  llvm::SmallVector<int64_t> numbers;
  llvm::SmallVector<void *> places;
  for (const Argument &argument : arguments) {
    numbers.push_back(argument.number);
    places.push_back(argument.at);
  }
  void *scratch = reinterpret_cast<void *>(workspace);
  CudnnDescriptor &all = **pack;
  if (llvm::Error error = all.set<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
                                           CUDNN_TYPE_INT64, numbers))
    return error;
  if (llvm::Error error = all.set<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                          CUDNN_TYPE_VOID_PTR, places))
    return error;
  if (llvm::Error error = all.set<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                                          CUDNN_TYPE_VOID_PTR, scratch))
    return error;
  if (llvm::Error error = all.finalize())
    return error;
  return cudnn->execute(plan->get(), all.get(), stream);
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

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

CudnnGraph::Tensor CudnnGraph::makeTensor(int64_t number, const Four &sizes,
                                          const Four &strides,
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
  return {sizes, strides, made};
}

CudnnGraph::Tensor CudnnGraph::tensor(int64_t number, const Four &sizes,
                                      const Four &strides,
                                      cudnnDataType_t type) {
  return makeTensor(number, sizes, strides, type, false, false);
}

CudnnGraph::Tensor CudnnGraph::scalar(int64_t number) {
  constexpr Four ones = {1, 1, 1, 1};
  return makeTensor(number, ones, ones, CUDNN_DATA_FLOAT, false, true);
}

CudnnGraph::Tensor CudnnGraph::between(const Four &sizes,
                                       cudnnDataType_t type) {
  return makeTensor(firstBetween + numBetween++, sizes, packedStrides(sizes),
                    type, true, false);
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
  Tensor y = makeTensor(firstBetween + numBetween++, sizes, strides, type, true,
                        false);
  CudnnDescriptor *made = make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  set(made, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x.descriptor);
  set(made, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y.descriptor);
  add(made);
  return y;
}

llvm::Expected<std::unique_ptr<CudnnPlan>> CudnnGraph::build() {
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
  if (std::optional<std::string> kept = cudnn->getPlans().find(whole)) {
    auto plan = makePlan([&](CudnnDescriptor &made) -> llvm::Error {
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
  auto plan = findPlan(*graph);
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

llvm::Expected<std::unique_ptr<CudnnPlan>> CudnnGraph::makePlan(
    llvm::function_ref<llvm::Error(CudnnDescriptor &)> setWhat) {
  auto plan =
      CudnnDescriptor::create(cudnn, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (!plan)
    return plan.takeError();
  if (llvm::Error error = setWhat(**plan))
    return error;
  if (cudnnHandle_t handle = cudnn->get())
    if (llvm::Error error = (*plan)->set<cudnnHandle_t>(
            CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle))
      return error;
  if (llvm::Error error = (*plan)->finalize())
    return error;
  llvm::Expected<int64_t> bytes =
      (*plan)->getNumber(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  if (!bytes)
    return bytes.takeError();
  return std::make_unique<CudnnPlan>(cudnn, std::move(*plan), *bytes);
}

/// Of what the heuristic names the first that can be made: its order is that of
/// expected speed.
llvm::Expected<std::unique_ptr<CudnnPlan>>
CudnnGraph::findPlan(const CudnnDescriptor &graph) {
  const Cudnn &library = cudnn->getLibrary();
  CudnnDescriptor *heuristic = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, &graph);
  set<cudnnBackendHeurMode_t>(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE,
                              CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A);
  if (cudnnBackendDescriptor_t card = cudnn->getDescription())
    set<cudnnBackendDescriptor_t>(heuristic, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, card);
  finalize(heuristic);
  constexpr size_t mostTried = 16;
  llvm::SmallVector<cudnnBackendDescriptor_t, mostTried> found;
  for (size_t i = 0; i < mostTried; ++i)
    if (CudnnDescriptor *made = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR))
      found.push_back(made->get());
  int64_t numFound = 0;
  if (failure.empty())
    note(library.call(&Cudnn::cudnnBackendGetAttribute, heuristic->get(),
                      CUDNN_ATTR_ENGINEHEUR_RESULTS,
                      CUDNN_TYPE_BACKEND_DESCRIPTOR, int64_t(mostTried),
                      &numFound, found.data()));
  if (!failure.empty())
    return makeError(failureCode, failure);
  numFound = std::min(numFound, static_cast<int64_t>(found.size()));
  std::string why = "cuDNN: it knows no kernel for it";
  for (int64_t i = 0; i < numFound; ++i) {
    auto plan = makePlan([&](CudnnDescriptor &made) {
      return made.set<cudnnBackendDescriptor_t>(
          CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
          CUDNN_TYPE_BACKEND_DESCRIPTOR, found[static_cast<size_t>(i)]);
    });
    if (plan)
      return plan;
    why = llvm::toString(plan.takeError());
  }
  return makeError(ExitCode::Unsupported, why);
}

} // namespace ax::rt::cuda
