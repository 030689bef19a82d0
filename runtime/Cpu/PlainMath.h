//===- PlainMath.h - Contractions of any element type -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For the types that libraries lack. Operands are widened to the type in which
// sums are made, multiplied by a vectorised kernel, and narrowed again.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_PLAINMATH_H
#define AX_RUNTIME_PLAINMATH_H

#include "CpuLibrary.h"
#include "ax/Runtime/VectorKernels.h"

#include "ax/Runtime/LibraryOps.h"
#include "ax/Support/Error.h"

#include <cmath>
#include <type_traits>

namespace ax::rt {

/// The type in which sums of products of T are made. Integers wrap, so unsigned
/// ones do for both.
template <typename T>
using SumType = std::conditional_t<
    std::is_same_v<T, double>, double,
    std::conditional_t<!std::is_integral_v<T>, float,
                       std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>>;

/// See MultiplyFn.
template <typename S>
void multiply(const S *a, const S *b, int64_t bStride, S *c, int64_t rows,
              int64_t k, int64_t n) {
  const VectorKernels &kernels = vectorKernels();
  if constexpr (std::is_same_v<S, float>)
    kernels.multiplyF32(a, b, bStride, c, rows, k, n);
  else if constexpr (std::is_same_v<S, double>)
    kernels.multiplyF64(a, b, bStride, c, rows, k, n);
  else if constexpr (std::is_same_v<S, uint32_t>)
    kernels.multiplyI32(a, b, bStride, c, rows, k, n);
  else
    kernels.multiplyI64(a, b, bStride, c, rows, k, n);
}

/// c = a b, dense; n is a multiple of `wholeVectors<S>()`.
template <typename S>
void multiplyWide(const S *a, const S *b, S *c, int64_t rows, int64_t k,
                  int64_t n) {
  if constexpr (std::is_same_v<S, float>)
    vectorKernels().multiplyPanelF32(a, k, b, n, c, n, rows, k, n);
  else if constexpr (std::is_same_v<S, double>)
    vectorKernels().multiplyPanelF64(a, k, b, n, c, n, rows, k, n);
  else
    multiply(a, b, n, c, rows, k, n);
}

/// Elements of the columns that `multiplyWide` makes at a time.
template <typename S>
int64_t wholeVectors() {
  if constexpr (std::is_floating_point_v<S>)
    return vectorKernels().panelUnit * static_cast<int64_t>(sizeof(float)) /
           static_cast<int64_t>(sizeof(S));
  return 1;
}

template <typename S>
S applyActivation(Activation activation, S x) {
  if constexpr (std::is_integral_v<S>) {
    return activation == Activation::Relu &&
                   static_cast<std::make_signed_t<S>>(x) < 0
               ? S(0)
               : x;
  } else {
    switch (activation) {
    case Activation::None:
      return x;
    case Activation::Relu:
      return x < 0 ? S(0) : x;
    case Activation::GeluErf:
      return S(0.5) * x * (1 + std::erf(x * S(0.70710678118654752440)));
    case Activation::GeluTanh:
      return S(0.5) * x *
             (1 + std::tanh(S(0.79788456080286535588) *
                            (x + S(0.044715) * x * x * x)));
    case Activation::Silu:
      return x / (1 + std::exp(-x));
    case Activation::Tanh:
      return std::tanh(x);
    case Activation::Sigmoid:
      return 1 / (1 + std::exp(-x));
    }
    __builtin_unreachable();
  }
}

/// The derivative of the activation at x, a float.
template <typename S>
S activationDerivative(Activation activation, S x) {
  switch (activation) {
  case Activation::None:
    return 1;
  case Activation::Relu:
    return x > 0 ? S(1) : S(0);
  case Activation::GeluErf:
    return S(0.5) * (1 + std::erf(x * S(0.70710678118654752440))) +
           x * S(0.39894228040143267794) * std::exp(S(-0.5) * x * x);
  case Activation::GeluTanh: {
    const S scale = S(0.79788456080286535588), cubic = S(0.044715);
    S t = std::tanh(scale * (x + cubic * x * x * x));
    return S(0.5) * (1 + t) +
           S(0.5) * x * (1 - t * t) * scale * (1 + 3 * cubic * x * x);
  }
  case Activation::Silu: {
    S s = 1 / (1 + std::exp(-x));
    return s * (1 + x * (1 - s));
  }
  case Activation::Tanh: {
    S t = std::tanh(x);
    return 1 - t * t;
  }
  case Activation::Sigmoid: {
    S s = 1 / (1 + std::exp(-x));
    return s * (1 - s);
  }
  }
  __builtin_unreachable();
}

/// Element of a strided view, widened; sign extension makes wrapping sums
/// right.
template <typename S, typename T>
S widen(T value) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<S>(static_cast<int64_t>(value));
  else
    return static_cast<S>(value);
}
template <typename T, typename S>
T narrow(S value) {
  return static_cast<T>(value);
}

/// A convolution's activation and residual, null where there is none.
template <typename S, typename R>
S finishSum(const ConvDesc &desc, S sum, const R *residual) {
  if (!desc.activationLast)
    sum = applyActivation(desc.activation, sum);
  if (residual)
    sum += widen<S>(*residual);
  if (desc.activationLast)
    sum = applyActivation(desc.activation, sum);
  return sum;
}

/// Calls fn with the C++ types of what is multiplied and of the result, which
/// is the same, or float where narrow floats give their sum unrounded.
template <typename Fn>
auto visitFactors(DType factors, DType result, Fn &&fn) {
  return visitDType(factors, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>)
      if (result == DType::F32)
        return fn(tag, TypeTag<float>());
    return fn(tag, tag);
  });
}

/// An `Op<T, R>` of `desc`, by the types of its factors and of its result.
template <template <typename, typename> class Op, typename Desc>
ExpectedCpuOp prepareProducts(const Desc &desc, DType factors, DType result) {
  return visitFactors(factors, result, [&](auto tag, auto to) -> ExpectedCpuOp {
    using T = typename decltype(tag)::type;
    using R = typename decltype(to)::type;
    if constexpr (std::is_same_v<T, bool>)
      return makeError(ExitCode::Unsupported, "no products of booleans");
    else
      return std::make_unique<Op<T, R>>(desc);
  });
}

/// Integer activations other than relu mean nothing.
inline bool isSupported(DType dtype, Activation activation) {
  return dtype != DType::Bool &&
         (isFloat(dtype) || activation == Activation::None ||
          activation == Activation::Relu);
}

} // namespace ax::rt

#endif // AX_RUNTIME_PLAINMATH_H
