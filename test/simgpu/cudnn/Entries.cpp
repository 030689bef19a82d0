//===- Entries.cpp - The simulated cuDNN's functions ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../LibraryDriver.h"
#include "Descriptors.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <sys/uio.h>
#include <unistd.h>

using namespace simcudnn;

namespace {

using SharedHandle = std::shared_ptr<Handle>;

constexpr uint64_t workspaceAlignment = 256;
/// How many engines there are for a graph that has one.
int64_t countEngines() {
  const char *text = std::getenv("SIMGPU_CUDNN_ENGINES");
  return text ? std::atoi(text) : 2;
}

uint64_t numberOf(const void *address) {
  return reinterpret_cast<uintptr_t>(address);
}

/// Begins a call with a handle, which must be of the thread's context.
cudnnStatus_t enterWith(const char *call, cudnnHandle_t handle,
                        SharedHandle &found) {
  uint64_t context = 0;
  if (cudnnStatus_t status = enter(call, &context))
    return status;
  found = handles().find(handle);
  if (!found)
    return refuse(CUDNN_STATUS_BAD_PARAM, "there is no such handle");
  if (found->context != context)
    return refuse(CUDNN_STATUS_BAD_PARAM,
                  "the handle is of another context than the thread's");
  return CUDNN_STATUS_SUCCESS;
}

/// Begins a call with a descriptor.
cudnnStatus_t enterWith(const char *call, cudnnBackendDescriptor_t descriptor,
                        std::shared_ptr<Descriptor> &found) {
  if (cudnnStatus_t status = enter(call))
    return status;
  found = descriptors().find(descriptor);
  if (!found)
    return refuse(CUDNN_STATUS_BAD_PARAM, "there is no such descriptor");
  return CUDNN_STATUS_SUCCESS;
}

} // namespace

SIMCUDNN_ENTRY size_t cudnnGetVersion() {
  const char *text = std::getenv("SIMGPU_CUDNN_VERSION");
  return text ? std::strtoul(text, nullptr, 10) : CUDNN_VERSION;
}

SIMCUDNN_ENTRY size_t cudnnGetCudartVersion() { return 13000; }

SIMCUDNN_ENTRY void cudnnGetLastErrorString(char *message, size_t size) {
  if (size)
    message[lastReason().copy(message, size - 1)] = '\0';
}

SIMCUDNN_ENTRY cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  uint64_t context = 0;
  if (cudnnStatus_t status = enter("cudnnCreate", &context))
    return status;
  if (!handle)
    return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the handle is nowhere");
  if (!context)
    return refuse(CUDNN_STATUS_NOT_INITIALIZED,
                  "no context is the calling thread's");
  *handle = handles().add({context, nullptr});
  return CUDNN_STATUS_SUCCESS;
}

SIMCUDNN_ENTRY cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  SharedHandle found;
  if (cudnnStatus_t status = enterWith("cudnnDestroy", handle, found))
    return status;
  handles().remove(handle);
  return CUDNN_STATUS_SUCCESS;
}

SIMCUDNN_ENTRY cudnnStatus_t cudnnSetStream(cudnnHandle_t handle,
                                            cudaStream_t stream) {
  SharedHandle found;
  if (cudnnStatus_t status = enterWith("cudnnSetStream", handle, found))
    return status;
  found->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

SIMCUDNN_ENTRY cudnnStatus_t cudnnBackendCreateDescriptor(
    cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *descriptor) {
  if (cudnnStatus_t status = enter("cudnnBackendCreateDescriptor"))
    return status;
  if (!descriptor)
    return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
                  "the descriptor is nowhere");
  if (!isKnown(type))
    return refuse(CUDNN_STATUS_NOT_SUPPORTED,
                  "descriptors of that type are not known here");
  Descriptor made;
  made.type = type;
  *descriptor = descriptors().add(std::move(made));
  return CUDNN_STATUS_SUCCESS;
}

SIMCUDNN_ENTRY cudnnStatus_t
cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  // Who tidies up first may still ask why something was not done.
  std::string before = lastReason();
  std::shared_ptr<Descriptor> found;
  if (cudnnStatus_t status =
          enterWith("cudnnBackendDestroyDescriptor", descriptor, found))
    return status;
  descriptors().remove(descriptor);
  setReason(before);
  return CUDNN_STATUS_SUCCESS;
}

SIMCUDNN_ENTRY cudnnStatus_t cudnnBackendSetAttribute(
    cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
    cudnnBackendAttributeType_t type, int64_t count, const void *values) {
  std::shared_ptr<Descriptor> found;
  if (cudnnStatus_t status =
          enterWith("cudnnBackendSetAttribute", descriptor, found))
    return status;
  if (type == CUDNN_TYPE_HANDLE && values && count == 1)
    if (!handles().find(*static_cast<const cudnnHandle_t *>(values)))
      return refuse(CUDNN_STATUS_BAD_PARAM, "there is no such handle");
  return found->set(name, type, count, values);
}

SIMCUDNN_ENTRY cudnnStatus_t
cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  std::shared_ptr<Descriptor> found;
  if (cudnnStatus_t status =
          enterWith("cudnnBackendFinalize", descriptor, found))
    return status;
  return found->finalize();
}

/// Those that the heuristic names.
static std::vector<Engine> enginesOf(const Descriptor &heuristic) {
  bool isFallback = heuristic.get<cudnnBackendHeurMode_t>(
                        CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
  std::vector<Engine> engines(static_cast<size_t>(countEngines()),
                              Engine::Plain);
  if (!heuristic.graph->isConvolution())
    return engines;
  if (isFallback)
    return {Engine::Plain};
  for (size_t i = 0; i < engines.size(); ++i)
    engines[i] = i == 0 ? Engine::AnyOrder : Engine::TensorCores;
  return engines;
}

/// Makes the engine of a configuration known.
static cudnnStatus_t tellEngine(const Descriptor &config, void *values) {
  auto engine =
      descriptors().find(*static_cast<cudnnBackendDescriptor_t *>(values));
  if (!engine || engine->type != CUDNN_BACKEND_ENGINE_DESCRIPTOR)
    return refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
                  "results are descriptors of another type");
  engine->engine = config.engine;
  engine->isFinal = true;
  return CUDNN_STATUS_SUCCESS;
}

static int64_t tellNotes(Engine engine, int64_t wanted, void *values) {
  std::vector<cudnnBackendNumericalNote_t> notes = notesOf(engine);
  auto *to = static_cast<cudnnBackendNumericalNote_t *>(values);
  for (size_t i = 0; i < notes.size() && static_cast<int64_t>(i) < wanted; ++i)
    to[i] = notes[i];
  return static_cast<int64_t>(notes.size());
}

/// Makes descriptors that the caller has engines' configurations.
static cudnnStatus_t findEngines(const Descriptor &heuristic, int64_t wanted,
                                 int64_t *count, void *values) {
  std::vector<std::shared_ptr<Descriptor>> configs;
  auto *given = static_cast<cudnnBackendDescriptor_t *>(values);
  for (int64_t i = 0; i < wanted; ++i) {
    configs.push_back(descriptors().find(given[i]));
    if (!configs.back() ||
        configs.back()->type != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
      return refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
                    "results are descriptors of another type");
  }
  std::string obstacle = heuristic.graph->findObstacle();
  if (!obstacle.empty())
    setReason("no engine: " + obstacle);
  std::vector<Engine> engines;
  if (obstacle.empty())
    engines = enginesOf(heuristic);
  auto numFound = static_cast<int64_t>(engines.size());
  // Who wants none asks how many there are.
  if (wanted > 0)
    numFound = std::min(wanted, numFound);
  if (count)
    *count = numFound;
  configs.resize(static_cast<size_t>(std::min(wanted, numFound)));
  for (size_t i = 0; i < configs.size(); ++i) {
    configs[i]->graph = heuristic.graph;
    configs[i]->engine = engines[i];
    configs[i]->isFinal = true;
  }
  return CUDNN_STATUS_SUCCESS;
}

SIMCUDNN_ENTRY cudnnStatus_t cudnnBackendGetAttribute(
    cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
    cudnnBackendAttributeType_t type, int64_t wanted, int64_t *count,
    void *values) {
  std::shared_ptr<Descriptor> found;
  if (cudnnStatus_t status =
          enterWith("cudnnBackendGetAttribute", descriptor, found))
    return status;
  if (!found->isFinal)
    return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                  "the descriptor is not final");
  bool isPlan = found->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
  bool isResults = found->type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR &&
                   name == CUDNN_ATTR_ENGINEHEUR_RESULTS;
  bool isWorkspace = isPlan && name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE;
  bool isText = isPlan && name == CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION;
  bool isEngine = found->type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR &&
                  name == CUDNN_ATTR_ENGINECFG_ENGINE;
  bool isNotes = found->type == CUDNN_BACKEND_ENGINE_DESCRIPTOR &&
                 name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE;
  if (!isResults && !isWorkspace && !isText && !isEngine && !isNotes)
    return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the attribute is not told here");
  if (type != (isResults || isEngine ? CUDNN_TYPE_BACKEND_DESCRIPTOR
               : isWorkspace         ? CUDNN_TYPE_INT64
               : isNotes             ? CUDNN_TYPE_NUMERICAL_NOTE
                                     : CUDNN_TYPE_CHAR))
    return refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
                  "the attribute is of another type");
  if (wanted < 0 || ((isWorkspace || isEngine) && wanted != 1))
    return refuse(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                  "the attribute has another number of elements");
  if (wanted > 0 && !values)
    return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
                  "the attribute's elements are nowhere");
  if (isResults)
    return findEngines(*found, wanted, count, values);
  int64_t told = 1;
  if (isEngine) {
    if (cudnnStatus_t status = tellEngine(*found, values))
      return status;
  } else if (isNotes) {
    told = tellNotes(found->engine, wanted, values);
  } else if (isText) {
    std::string text = toText(*found->graph, found->engine);
    told = static_cast<int64_t>(text.size());
    text.copy(static_cast<char *>(values), static_cast<size_t>(wanted));
  } else {
    *static_cast<int64_t *>(values) = found->graph->workspaceBytes();
  }
  if (count)
    *count = told;
  return CUDNN_STATUS_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Executions
//===----------------------------------------------------------------------===//

namespace {

/// What one execution uses.
class Execution {
public:
  Execution(const Descriptor &plan, const Descriptor &pack)
      : graph(plan.graph), engine(plan.engine),
        numbers(pack.list<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS)),
        places(pack.list<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)),
        workspace(pack.get<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE)) {}

  Fault check() {
    if (!workspace)
      return {CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "the workspace is nowhere"};
    if (numberOf(workspace) % workspaceAlignment)
      return {CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
              "the workspace is not aligned to 256 bytes"};
    add(workspace, graph->workspaceBytes());
    size_t numPlaced = 0;
    for (const auto &[number, tensor] : graph->tensors)
      numPlaced += !tensor.isVirtual;
    for (size_t i = 0; i < numbers.size(); ++i) {
      auto known = graph->tensors.find(numbers[i]);
      std::string name = "tensor " + std::to_string(numbers[i]);
      if (known == graph->tensors.end() || known->second.isVirtual)
        return {CUDNN_STATUS_BAD_PARAM,
                name + " is nothing that the graph has in memory"};
      if (!places[i])
        return {CUDNN_STATUS_BAD_PARAM_NULL_POINTER, name + " is nowhere"};
      if (Fault fault = place(known->second, places[i], name))
        return fault;
    }
    if (numbers.size() != numPlaced)
      return {CUDNN_STATUS_BAD_PARAM, "not all of the graph's tensors are "
                                      "given"};
    return checkOverlaps();
  }

  /// On the stream, with where the ranges really are.
  SimgpuWork work() const {
    return [graph = graph, engine = engine, inMemory = inMemory,
            byValue = byValue](const std::vector<unsigned char *> &at) {
      auto values = byValue;
      std::map<int64_t, unsigned char *> all;
      for (auto &[number, bytes] : values)
        all[number] = bytes.data();
      for (size_t i = 0; i < inMemory.size(); ++i)
        all[inMemory[i]] = at[i + 1];
      // NaN in every type.
      std::memset(at[0], 0xff, static_cast<size_t>(graph->workspaceBytes()));
      evaluate(*graph, engine, all);
    };
  }

  /// That of the workspace comes first.
  std::vector<SimgpuRange> ranges;

private:
  void add(const void *at, int64_t bytes) {
    ranges.push_back({numberOf(at), static_cast<size_t>(bytes)});
  }

  Fault place(const Tensor &tensor, void *at, const std::string &name) {
    if (tensor.isByValue) {
      // It is read now; memory of a card the host cannot read. Where the system
      // does not let a process ask so, that is a fault.
      std::vector<unsigned char> bytes(
          static_cast<size_t>(tensor.bytesOfElement()));
      iovec to{bytes.data(), bytes.size()}, from{at, bytes.size()};
      if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) < 0) {
        if (errno == EFAULT)
          return {CUDNN_STATUS_BAD_PARAM,
                  name + " is a number by value, and not the host's"};
        std::memcpy(bytes.data(), at, bytes.size());
      }
      byValue[tensor.number] = std::move(bytes);
      return {};
    }
    if (numberOf(at) % static_cast<uint64_t>(tensor.alignment))
      return {CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
              name + " is less aligned than it was said to be"};
    inMemory.push_back(tensor.number);
    add(at, tensor.spanBytes());
    return {};
  }

  /// What is written, or rubbish, overlaps nothing. A tensor with gaps may have
  /// others in these.
  Fault checkOverlaps() const {
    auto isSolid = [&](size_t i) {
      if (i == 0)
        return true;
      const Tensor &tensor = graph->tensors.at(inMemory[i - 1]);
      return tensor.reach() == tensor.numElements();
    };
    for (size_t i = 0; i < ranges.size(); ++i)
      for (size_t j = 0; j < ranges.size(); ++j) {
        bool isWritten = i == 0 || graph->isWritten(inMemory[i - 1]);
        if (i == j || !isWritten || !isSolid(i) || (i > 0 && !isSolid(j)))
          continue;
        if (ranges[i].address < ranges[j].address + ranges[j].bytes &&
            ranges[j].address < ranges[i].address + ranges[i].bytes)
          return {CUDNN_STATUS_BAD_PARAM,
                  i == 0 ? "the workspace overlaps a tensor"
                         : "tensor " + std::to_string(inMemory[i - 1]) +
                               " is written, and overlaps another"};
      }
    return {};
  }

  std::shared_ptr<const Graph> graph;
  Engine engine;
  std::vector<int64_t> numbers;
  std::vector<void *> places;
  void *workspace;
  /// Numbers of tensors, whose ranges come behind the workspace's.
  std::vector<int64_t> inMemory;
  std::map<int64_t, std::vector<unsigned char>> byValue;
};

} // namespace

SIMCUDNN_ENTRY cudnnStatus_t
cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                    cudnnBackendDescriptor_t pack) {
  SharedHandle found;
  if (cudnnStatus_t status = enterWith("cudnnBackendExecute", handle, found))
    return status;
  std::shared_ptr<Descriptor> what = descriptors().find(plan),
                              with = descriptors().find(pack);
  if (!what || what->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
    return refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
                  "what is executed is not a plan");
  if (!with || with->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
    return refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
                  "what it is executed with is no variant pack");
  if (!what->isFinal || !with->isFinal)
    return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                  "the plan or the variant pack is not final");
  Execution execution(*what, *with);
  if (Fault fault = execution.check())
    return refuse(fault);
  static auto *enqueue =
      simgpu::findDriverFunction<decltype(simgpuEnqueue)>("simgpuEnqueue");
  SimgpuWork work = execution.work();
  if (enqueue(found->stream, "a graph of cuDNN", execution.ranges,
              [work] { return SimgpuPiece{work, nullptr}; }))
    return refuse(CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER,
                  "the driver does not take the work");
  return CUDNN_STATUS_SUCCESS;
}
