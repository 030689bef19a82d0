//===- Reduction.cpp - Sums as NCCL makes them ----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Reduction.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

// Of plain numbers only; nothing of it is linked.
#include "ax/Support/Float16.h"

namespace simnccl {

size_t bytesOf(ncclDataType_t type) {
  switch (type) {
  case ncclInt8:
  case ncclUint8:
    return 1;
  case ncclFloat16:
  case ncclBfloat16:
    return 2;
  case ncclInt32:
  case ncclUint32:
  case ncclFloat32:
    return 4;
  case ncclInt64:
  case ncclUint64:
  case ncclFloat64:
    return 8;
  default:
    return 0;
  }
}

template <typename T>
static T combineTwo(T a, T b, ncclRedOp_t reduction) {
  if (reduction == ncclSum)
    return static_cast<T>(a + b);
  if constexpr (std::is_floating_point_v<T>)
    return reduction == ncclMax ? std::fmax(a, b) : std::fmin(a, b);
  else
    return reduction == ncclMax ? std::max(a, b) : std::min(a, b);
}

template <typename T>
static void combineAll(unsigned char *into, const unsigned char *from,
                       size_t count, ncclRedOp_t reduction) {
  for (size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, into + i * sizeof(T), sizeof(T));
    std::memcpy(&b, from + i * sizeof(T), sizeof(T));
    a = combineTwo(a, b, reduction);
    std::memcpy(into + i * sizeof(T), &a, sizeof(T));
  }
}

template <float (*Widen)(uint16_t), uint16_t (*Narrow)(float)>
static void combineNarrow(unsigned char *into, const unsigned char *from,
                          size_t count, ncclRedOp_t reduction) {
  for (size_t i = 0; i < count; ++i) {
    uint16_t a, b;
    std::memcpy(&a, into + i * 2, 2);
    std::memcpy(&b, from + i * 2, 2);
    a = Narrow(combineTwo(Widen(a), Widen(b), reduction));
    std::memcpy(into + i * 2, &a, 2);
  }
}

void combine(ncclDataType_t type, ncclRedOp_t reduction, unsigned char *into,
             const unsigned char *from, size_t count) {
  switch (type) {
  case ncclInt8:
    return combineAll<int8_t>(into, from, count, reduction);
  case ncclUint8:
    return combineAll<uint8_t>(into, from, count, reduction);
  case ncclInt32:
    return combineAll<int32_t>(into, from, count, reduction);
  case ncclUint32:
    return combineAll<uint32_t>(into, from, count, reduction);
  case ncclInt64:
    return combineAll<int64_t>(into, from, count, reduction);
  case ncclUint64:
    return combineAll<uint64_t>(into, from, count, reduction);
  case ncclFloat32:
    return combineAll<float>(into, from, count, reduction);
  case ncclFloat64:
    return combineAll<double>(into, from, count, reduction);
  case ncclFloat16:
    return combineNarrow<ax::f16BitsToFloat, ax::floatToF16Bits>(
        into, from, count, reduction);
  case ncclBfloat16:
    return combineNarrow<ax::bf16BitsToFloat, ax::floatToBF16Bits>(
        into, from, count, reduction);
  default:
    return;
  }
}

} // namespace simnccl
