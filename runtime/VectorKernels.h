//===- VectorKernels.h - Loops compiled for several processors --*- C++ -*-===//
//
// The same source, VectorKernels.inc, is compiled for AVX-512, AVX2 and any
// processor; `vectorKernels()` is the best that this machine runs.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_VECTORKERNELS_H
#define AX_RUNTIME_VECTORKERNELS_H

#include "ax/Support/DType.h"

#include <cstdint>

namespace ax::rt {

/// sources[0] op sources[1] op ...: always in this order, element by element.
/// The destination may be one of the sources.
using ReduceFn = void (*)(const void *const *sources, int32_t numSources,
                          void *destination, int64_t count);

enum class ReduceOp { Sum, Max, Min };
constexpr int numReduceOps = 3;
constexpr int numDTypes = 13;

struct VectorKernels {
  /// Null: Bool sums.
  ReduceFn reduce[numReduceOps][numDTypes];
  void (*f16ToF32)(const uint16_t *from, float *to, int64_t count);
  void (*f32ToF16)(const float *from, uint16_t *to, int64_t count);
  void (*bf16ToF32)(const uint16_t *from, float *to, int64_t count);
  void (*f32ToBF16)(const float *from, uint16_t *to, int64_t count);
};

const VectorKernels &vectorKernels();

} // namespace ax::rt

#endif // AX_RUNTIME_VECTORKERNELS_H
