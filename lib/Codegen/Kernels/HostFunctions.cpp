//===- HostFunctions.cpp - C++ that kernels call --------------------------===//

#include "HostFunctions.h"

#include "mlir/IR/BuiltinTypes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace ax::codegen {

DType hostTypeOf(mlir::Type type) {
  if (type.isF32())
    return DType::F32;
  if (type.isF64())
    return DType::F64;
  if (type.isF16())
    return DType::F16;
  if (type.isBF16())
    return DType::BF16;
  bool isUnsigned = type.isUnsignedInteger();
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return DType::Bool;
  case 8:
    return isUnsigned ? DType::U8 : DType::I8;
  case 16:
    return isUnsigned ? DType::U16 : DType::I16;
  case 32:
    return isUnsigned ? DType::U32 : DType::I32;
  default:
    return isUnsigned ? DType::U64 : DType::I64;
  }
}

template <typename T>
static void topK(const T *input, int64_t n, int64_t k, bool smallest, T *values,
                 int64_t *indices) {
  // Total order: NaN above everything.
  auto less = [](T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return a < b;
    } else {
      double x = static_cast<double>(a), y = static_cast<double>(b);
      return std::isnan(y) ? !std::isnan(x) : x < y;
    }
  };
  // Rows are long and called often: the memory is kept per thread.
  static thread_local std::vector<int64_t> order;
  order.resize(n);
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + k, order.end(),
                    [&](int64_t i, int64_t j) {
                      T a = input[i], b = input[j];
                      if (smallest ? less(a, b) : less(b, a))
                        return true;
                      if (smallest ? less(b, a) : less(a, b))
                        return false;
                      return i < j;
                    });
  for (int64_t i = 0; i != k; ++i) {
    values[i] = input[order[i]];
    indices[i] = order[i];
  }
}

extern "C" void ax_kernel_top_k(int64_t type, const void *input, int64_t n,
                                int64_t k, int64_t smallest, void *values,
                                int64_t *indices) {
  visitDType(static_cast<DType>(type), [&](auto tag) {
    using T = typename decltype(tag)::type;
    topK(static_cast<const T *>(input), n, k, smallest != 0,
         static_cast<T *>(values), indices);
  });
}

} // namespace ax::codegen
