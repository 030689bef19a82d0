//===- TestKernelImage.h - Images for the simulated driver ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_TESTKERNELIMAGE_H
#define AX_TEST_TESTKERNELIMAGE_H

#include "DriverCalls.h"

namespace ax::rt {

/// The parts of an image that has the kernels of TestKernels.cpp, which tests
/// change.
struct TestKernelImage {
  std::string text;
  std::string object;

  TestKernelImage();
  /// Replaces what the text has once.
  TestKernelImage &replace(const std::string &old, const std::string &by);
  /// Text, a NUL, the object, and some more bytes.
  std::string join() const { return text + '\0' + object + std::string(64, 0); }
};

/// What a test calls to run them.
class KernelCalls : public DriverCalls {
public:
  explicit KernelCalls(const std::string &order = "eager",
                       std::map<std::string, std::string> settings = {});

  /// An entry point by its name, called.
  template <typename Function, typename... Args>
  CUresult callNamed(const char *name, Function *, Args... args) {
    return reinterpret_cast<Function *>(findInSimgpu(name))(args...);
  }
#define AX_CALL_KERNELS(NAME)                                                  \
  template <typename... Args>                                                  \
  CUresult NAME(Args... args) {                                                \
    return callNamed("cu" #NAME, static_cast<decltype(cu##NAME) *>(nullptr),   \
                     args...);                                                 \
  }
  AX_CALL_KERNELS(ModuleLoadDataEx)
  AX_CALL_KERNELS(ModuleGetFunction)
  AX_CALL_KERNELS(ModuleUnload)
  AX_CALL_KERNELS(LaunchKernel)
#undef AX_CALL_KERNELS

  CUresult load(const TestKernelImage &image);
  CUfunction find(const char *name);
  /// Launches with values of these types, in one dimension.
  template <typename... Values>
  CUresult launch(const char *name, unsigned blocks, unsigned threads,
                  Values... values) {
    void *parameters[] = {&values...};
    return LaunchKernel(find(name), blocks, 1U, 1U, threads, 1U, 1U, 0U, stream,
                        static_cast<void **>(parameters),
                        static_cast<void **>(nullptr));
  }
  CUdeviceptr allocate(size_t bytes);

  CUmodule module = nullptr;
};

/// The result, and that the report is `CALL: why`, with `why` somewhere in it.
void expectRefused(CUresult result, CUresult expected, const std::string &why);

} // namespace ax::rt

#endif // AX_TEST_TESTKERNELIMAGE_H
