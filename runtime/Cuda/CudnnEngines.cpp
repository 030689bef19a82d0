//===- CudnnEngines.cpp - Which of cuDNN's kernels does a graph -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CudnnEngines.h"

#include "llvm/ADT/STLExtras.h"

namespace ax::rt::cuda {

llvm::Expected<std::unique_ptr<CudnnPlan>>
makePlan(const SharedCudnn &cudnn,
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

namespace {

using Descriptor = std::unique_ptr<CudnnDescriptor>;

/// Those of one graph.
class Engines {
public:
  Engines(const SharedCudnn &cudnn, const CudnnDescriptor &graph,
          const EngineLimits &limits)
      : cudnn(cudnn), graph(graph), limits(limits) {}

  /// Returns null where `mode` names none.
  llvm::Expected<std::unique_ptr<CudnnPlan>>
  tryAll(cudnnBackendHeurMode_t mode) {
    llvm::Expected<std::vector<Descriptor>> found = list(mode);
    if (!found)
      return found.takeError();
    for (const Descriptor &config : *found) {
      llvm::Expected<bool> fits = isWithinLimits(*config);
      if (!fits)
        return fits.takeError();
      if (!*fits)
        continue;
      auto plan = makePlan(cudnn, [&](CudnnDescriptor &made) {
        return made.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, *config);
      });
      if (plan && (*plan)->getWorkspaceBytes() <= limits.mostWorkspaceBytes)
        return plan;
      if (!plan)
        why = llvm::toString(plan.takeError());
    }
    return nullptr;
  }
  /// Why none could be made.
  const std::string &getReason() const { return why; }

private:
  llvm::Expected<std::vector<Descriptor>> list(cudnnBackendHeurMode_t mode) {
    auto heuristic =
        CudnnDescriptor::create(cudnn, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    if (!heuristic)
      return heuristic.takeError();
    if (llvm::Error error =
            (*heuristic)->set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph))
      return error;
    if (llvm::Error error =
            (*heuristic)
                ->set<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE,
                                              CUDNN_TYPE_HEUR_MODE, mode))
      return error;
    if (cudnnBackendDescriptor_t card = cudnn->getDescription())
      if (llvm::Error error = (*heuristic)
                                  ->set<cudnnBackendDescriptor_t>(
                                      CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                                      CUDNN_TYPE_BACKEND_DESCRIPTOR, card))
        return error;
    if (llvm::Error error = (*heuristic)->finalize())
      return error;
    std::vector<Descriptor> found;
    llvm::SmallVector<cudnnBackendDescriptor_t> handles;
    for (size_t i = 0; i < limits.mostTried; ++i) {
      auto made =
          CudnnDescriptor::create(cudnn, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
      if (!made)
        return made.takeError();
      handles.push_back((*made)->get());
      found.push_back(std::move(*made));
    }
    int64_t numFound = 0;
    if (llvm::Error error = cudnn->getLibrary().call(
            &Cudnn::cudnnBackendGetAttribute, (*heuristic)->get(),
            CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            static_cast<int64_t>(handles.size()), &numFound,
            static_cast<void *>(handles.data())))
      return error;
    found.resize(std::min(static_cast<size_t>(numFound), found.size()));
    return found;
  }

  /// Whether its engine has none of the notes that it must not have.
  llvm::Expected<bool> isWithinLimits(const CudnnDescriptor &config) const {
    if (limits.without.empty())
      return true;
    auto engine =
        CudnnDescriptor::create(cudnn, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    if (!engine)
      return engine.takeError();
    cudnnBackendDescriptor_t handle = (*engine)->get();
    const Cudnn &library = cudnn->getLibrary();
    int64_t count = 0;
    if (llvm::Error error = library.call(
            &Cudnn::cudnnBackendGetAttribute, config.get(),
            CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            int64_t(1), &count, static_cast<void *>(&handle)))
      return error;
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT] = {};
    if (llvm::Error error = library.call(
            &Cudnn::cudnnBackendGetAttribute, handle,
            CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
            static_cast<int64_t>(std::size(notes)), &count,
            static_cast<void *>(notes)))
      return error;
    // A newer library may know more of them.
    auto has = llvm::ArrayRef(notes).take_front(
        std::min(static_cast<size_t>(count), std::size(notes)));
    return llvm::none_of(limits.without, [&](cudnnBackendNumericalNote_t note) {
      return llvm::is_contained(has, note);
    });
  }

  const SharedCudnn &cudnn;
  const CudnnDescriptor &graph;
  const EngineLimits &limits;
  std::string why = "cuDNN: it knows no kernel for it";
};

} // namespace

llvm::Expected<std::unique_ptr<CudnnPlan>>
findPlan(const SharedCudnn &cudnn, const CudnnDescriptor &graph,
         const EngineLimits &limits) {
  Engines engines(cudnn, graph, limits);
  auto plan = engines.tryAll(CUDNN_HEUR_MODE_A);
  if (!plan && limits.hasFallback) {
    ErrorDescription said = describeError(plan.takeError());
    if (said.code != ExitCode::Unsupported)
      return makeError(said.code, said.message);
    plan = nullptr;
  }
  if (plan && !*plan && limits.hasFallback)
    plan = engines.tryAll(CUDNN_HEUR_MODE_FALLBACK);
  if (plan && !*plan)
    return makeError(ExitCode::Unsupported, engines.getReason());
  return plan;
}

} // namespace ax::rt::cuda
