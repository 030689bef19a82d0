//===- TestKernels.cpp - Kernels as the simulated driver runs them --------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An object file as it is behind the text of an image; TestKernelImage.cpp has
// the text.
//
//===----------------------------------------------------------------------===//
#include <cstdint>

extern "C" {
int32_t simgpu_tid_x();
int32_t simgpu_ntid_x();
int32_t simgpu_ctaid_x();
int32_t simgpu_nctaid_x();
}

/// NAME_call, which takes an address of each parameter.
#define KERNEL(name) extern "C" void name##_call(const void *const *parameters)

template <typename T>
static T parameter(const void *const *parameters, int number) {
  return *static_cast<const T *>(parameters[number]);
}

static int32_t threadNumber() {
  return simgpu_ctaid_x() * simgpu_ntid_x() + simgpu_tid_x();
}

KERNEL(add) {
  const auto *a = parameter<const float *>(parameters, 0);
  const auto *b = parameter<const float *>(parameters, 1);
  auto *sum = parameter<float *>(parameters, 2);
  int32_t count = parameter<int32_t>(parameters, 3);
  for (int32_t i = threadNumber(); i < count;
       i += simgpu_nctaid_x() * simgpu_ntid_x())
    sum[i] = a[i] + b[i];
}

KERNEL(poke) {
  auto *memory = parameter<volatile uint8_t *>(parameters, 0);
  memory[parameter<int64_t>(parameters, 1)] = 0;
}

KERNEL(peek) {
  auto *memory = parameter<volatile uint8_t *>(parameters, 0);
  (void)memory[parameter<int64_t>(parameters, 1)];
}

/// Who comes when: the first number counts them.
KERNEL(line_up) {
  auto *numbers = parameter<int32_t *>(parameters, 0);
  numbers[++numbers[0]] = threadNumber();
}
