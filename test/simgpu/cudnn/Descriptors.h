//===- Descriptors.h - What the simulated cuDNN is told ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_SIMCUDNN_DESCRIPTORS_H
#define AX_TEST_SIMCUDNN_DESCRIPTORS_H

#include "Graph.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>

/// Marks an entry point: nothing else is seen from outside.
#define SIMCUDNN_ENTRY extern "C" __attribute__((visibility("default")))

namespace simcudnn {

/// Begins a call: the error with which it is to fail. `context` becomes the
/// calling thread's.
cudnnStatus_t enter(const char *call, uint64_t *context = nullptr);
/// Says what is wrong with the call that the thread is in.
cudnnStatus_t refuse(cudnnStatus_t status, const std::string &why);
inline cudnnStatus_t refuse(const Fault &fault) {
  return refuse(fault.status, fault.why);
}
/// What the thread's last call was refused for, or did not do as asked.
const std::string &lastReason();
void setReason(const std::string &why);

struct Handle {
  /// The number of the context that it was made in.
  uint64_t context = 0;
  cudaStream_t stream = nullptr;
};

struct Descriptor;
using SharedDescriptor = std::shared_ptr<const Descriptor>;

struct Attribute {
  std::vector<unsigned char> bytes;
  /// Of one that is descriptors.
  std::vector<SharedDescriptor> descriptors;
  int64_t count = 0;
};

struct Descriptor {
  cudnnBackendDescriptorType_t type = CUDNN_BACKEND_TENSOR_DESCRIPTOR;
  bool isFinal = false;
  std::map<cudnnBackendAttributeName_t, Attribute> attributes;
  /// What it says, once it is final; an engine's, and a plan's, graph.
  Tensor tensor;
  Node node;
  std::shared_ptr<const Graph> graph;
  Engine engine = Engine::Plain;

  bool has(cudnnBackendAttributeName_t name) const {
    return attributes.count(name);
  }
  template <typename T>
  std::vector<T> list(cudnnBackendAttributeName_t name) const {
    const Attribute &attribute = attributes.at(name);
    std::vector<T> values(static_cast<size_t>(attribute.count));
    std::memcpy(values.data(), attribute.bytes.data(), attribute.bytes.size());
    return values;
  }
  template <typename T>
  T get(cudnnBackendAttributeName_t name, T otherwise = {}) const {
    T value = otherwise;
    if (has(name))
      std::memcpy(&value, attributes.at(name).bytes.data(), sizeof(T));
    return value;
  }
  const Descriptor &other(cudnnBackendAttributeName_t name) const {
    return *attributes.at(name).descriptors.front();
  }

  cudnnStatus_t set(cudnnBackendAttributeName_t name,
                    cudnnBackendAttributeType_t type, int64_t count,
                    const void *values);
  cudnnStatus_t finalize();
};

/// Objects that were made and not destroyed yet.
template <typename T, typename Handle>
class Living {
public:
  Handle add(T object) {
    std::lock_guard<std::mutex> held(mutex);
    auto made = std::make_shared<T>(std::move(object));
    auto handle = reinterpret_cast<Handle>(made.get());
    objects.emplace(handle, std::move(made));
    return handle;
  }
  /// Null where there is none.
  std::shared_ptr<T> find(Handle handle) {
    std::lock_guard<std::mutex> held(mutex);
    auto found = objects.find(handle);
    return found == objects.end() ? nullptr : found->second;
  }
  /// Returns whether there was one.
  bool remove(Handle handle) {
    std::lock_guard<std::mutex> held(mutex);
    return objects.erase(handle);
  }

private:
  std::mutex mutex;
  std::unordered_map<Handle, std::shared_ptr<T>> objects;
};

Living<Handle, cudnnHandle_t> &handles();
Living<Descriptor, cudnnBackendDescriptor_t> &descriptors();

/// Whether descriptors of this type can be made here.
bool isKnown(cudnnBackendDescriptorType_t type);
/// Bytes of an element of an attribute; 0: the type is not known here.
size_t bytesOf(cudnnBackendAttributeType_t type);

} // namespace simcudnn

#endif // AX_TEST_SIMCUDNN_DESCRIPTORS_H
