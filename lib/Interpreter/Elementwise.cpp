//===- Elementwise.cpp - Interpreting element-wise ops --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Kernels.h"
#include "ax/Support/Philox.h"

#include "ax/Local/Local.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;

namespace ax::interpreter {

static double sigmoid(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}

UnaryFn unaryFunction(UnaryKind kind) {
  switch (kind) {
  case UnaryKind::neg:
    return [](double x) { return -x; };
  case UnaryKind::abs:
    return [](double x) { return std::fabs(x); };
  case UnaryKind::sign:
    return [](double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; };
  case UnaryKind::exp:
    return [](double x) { return std::exp(x); };
  case UnaryKind::log:
    return [](double x) { return std::log(x); };
  case UnaryKind::log1p:
    return [](double x) { return std::log1p(x); };
  case UnaryKind::expm1:
    return [](double x) { return std::expm1(x); };
  case UnaryKind::sqrt:
    return [](double x) { return std::sqrt(x); };
  case UnaryKind::rsqrt:
    return [](double x) { return 1 / std::sqrt(x); };
  case UnaryKind::reciprocal:
    return [](double x) { return 1 / x; };
  case UnaryKind::sin:
    return [](double x) { return std::sin(x); };
  case UnaryKind::cos:
    return [](double x) { return std::cos(x); };
  case UnaryKind::tan:
    return [](double x) { return std::tan(x); };
  case UnaryKind::asin:
    return [](double x) { return std::asin(x); };
  case UnaryKind::acos:
    return [](double x) { return std::acos(x); };
  case UnaryKind::atan:
    return [](double x) { return std::atan(x); };
  case UnaryKind::sinh:
    return [](double x) { return std::sinh(x); };
  case UnaryKind::cosh:
    return [](double x) { return std::cosh(x); };
  case UnaryKind::tanh:
    return [](double x) { return std::tanh(x); };
  case UnaryKind::asinh:
    return [](double x) { return std::asinh(x); };
  case UnaryKind::acosh:
    return [](double x) { return std::acosh(x); };
  case UnaryKind::atanh:
    return [](double x) { return std::atanh(x); };
  case UnaryKind::erf:
    return [](double x) { return std::erf(x); };
  case UnaryKind::sigmoid:
    return sigmoid;
  case UnaryKind::relu:
    return [](double x) { return x < 0 ? 0 : x; };
  case UnaryKind::gelu:
    return [](double x) { return 0.5 * x * std::erfc(-x * M_SQRT1_2); };
  case UnaryKind::gelu_tanh:
    return [](double x) {
      double inner = M_SQRT1_2 * M_2_SQRTPI * (x + 0.044715 * x * x * x);
      return x * sigmoid(2 * inner);
    };
  case UnaryKind::silu:
    return [](double x) { return x * sigmoid(x); };
  case UnaryKind::softplus:
    return [](double x) {
      return (x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x)));
    };
  case UnaryKind::ceil:
    return [](double x) { return std::ceil(x); };
  case UnaryKind::floor:
    return [](double x) { return std::floor(x); };
  case UnaryKind::round:
    return [](double x) { return std::nearbyint(x); };
  case UnaryKind::trunc:
    return [](double x) { return std::trunc(x); };
  case UnaryKind::is_nan:
    return [](double x) { return double(std::isnan(x)); };
  case UnaryKind::is_pos_inf:
    return [](double x) { return double(std::isinf(x) && x > 0); };
  case UnaryKind::is_neg_inf:
    return [](double x) { return double(std::isinf(x) && x < 0); };
  case UnaryKind::logical_not:
  case UnaryKind::bit_not:
    return nullptr;
  }
  llvm_unreachable("unary kind");
}

/// Of integers, and of bool as 0 and 1.
template <typename W>
static W (*integerUnaryFunction(UnaryKind kind))(W) {
  switch (kind) {
  case UnaryKind::neg:
    return [](W x) { return static_cast<W>(-static_cast<uint64_t>(x)); };
  case UnaryKind::abs:
    return [](W x) {
      return std::is_signed_v<W> && x < W(0)
                 ? static_cast<W>(-static_cast<uint64_t>(x))
                 : x;
    };
  case UnaryKind::sign:
    return [](W x) { return static_cast<W>((x > W(0)) - (x < W(0))); };
  case UnaryKind::relu:
    return [](W x) { return x < W(0) ? W(0) : x; };
  case UnaryKind::bit_not:
    return [](W x) { return static_cast<W>(~x); };
  case UnaryKind::logical_not:
    return [](W x) { return static_cast<W>(x == 0); };
  case UnaryKind::is_nan:
  case UnaryKind::is_pos_inf:
  case UnaryKind::is_neg_inf:
    return [](W) { return W(0); };
  default:
    // Rounding, and functions that the verifier refuses.
    return [](W x) { return x; };
  }
}

template <typename T, typename R, typename Fn>
static void map(const HostTensor &x, HostTensor &to, Fn fn) {
  ArrayRef<T> in = x.values<T>();
  MutableArrayRef<R> out = to.mutableValues<R>();
  for (size_t i = 0; i < in.size(); ++i)
    out[i] = static_cast<R>(fn(load(in[i])));
}

static HostTensor unary(UnaryOp op, const HostTensor &x) {
  HostTensor to = emptyLike(op.getResult());
  bool toBool = to.getType() == DType::Bool;
  visitDType(x.getType(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto fn = [&] {
      if constexpr (std::is_same_v<Wide<T>, double>)
        return unaryFunction(op.getKind());
      else
        return integerUnaryFunction<Wide<T>>(op.getKind());
    }();
    if (toBool)
      map<T, bool>(x, to, fn);
    else
      map<T, T>(x, to, fn);
  });
  return to;
}

template <typename W>
static W power(W base, W exponent) {
  if constexpr (std::is_same_v<W, double>) {
    return std::pow(base, exponent);
  } else {
    if (std::is_signed_v<W> && exponent < W(0)) {
      if (base == W(1))
        return 1;
      bool isMinusOne = base == static_cast<W>(-1);
      return isMinusOne ? (exponent & 1 ? base : W(1)) : W(0);
    }
    uint64_t result = 1, factor = static_cast<uint64_t>(base);
    for (uint64_t rest = exponent; rest; rest >>= 1, factor *= factor)
      if (rest & 1)
        result *= factor;
    return static_cast<W>(result);
  }
}

/// Integer division and remainders by 0 give 0.
template <typename W>
static W divide(W a, W b) {
  if constexpr (std::is_same_v<W, double>)
    return a / b;
  else if (b == 0)
    return 0;
  else if (std::is_signed_v<W> && b == static_cast<W>(-1))
    return static_cast<W>(-static_cast<uint64_t>(a));
  else
    return a / b;
}

template <typename W>
static W truncMod(W a, W b) {
  if constexpr (std::is_same_v<W, double>)
    return std::fmod(a, b);
  else if (b == 0 || (std::is_signed_v<W> && b == static_cast<W>(-1)))
    return 0;
  else
    return a % b;
}

template <typename W>
static W floorMod(W a, W b) {
  W rest = truncMod(a, b);
  return rest != 0 && (rest < W(0)) != (b < W(0)) ? rest + b : rest;
}

template <typename W, typename Fn>
static W onBits(W a, W b, Fn fn) {
  if constexpr (std::is_same_v<W, double>)
    llvm_unreachable("bits of a float");
  else
    return static_cast<W>(
        fn(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
}

template <typename W>
static W shiftRight(W a, W b) {
  if constexpr (std::is_same_v<W, double>) {
    llvm_unreachable("bits of a float");
  } else {
    auto count = static_cast<uint64_t>(b);
    return count < 64 ? a >> count : a < W(0) ? static_cast<W>(-1) : W(0);
  }
}

template <typename W>
static bool isNan(W x) {
  return x != x;
}

template <typename W>
static W (*binaryFunction(BinaryKind kind))(W, W) {
  switch (kind) {
  case BinaryKind::add:
    return [](W a, W b) {
      if constexpr (std::is_same_v<W, double>)
        return a + b;
      else
        return onBits(a, b, [](uint64_t x, uint64_t y) { return x + y; });
    };
  case BinaryKind::sub:
    return [](W a, W b) {
      if constexpr (std::is_same_v<W, double>)
        return a - b;
      else
        return onBits(a, b, [](uint64_t x, uint64_t y) { return x - y; });
    };
  case BinaryKind::mul:
    return [](W a, W b) {
      if constexpr (std::is_same_v<W, double>)
        return a * b;
      else
        return onBits(a, b, [](uint64_t x, uint64_t y) { return x * y; });
    };
  case BinaryKind::div:
    return divide<W>;
  case BinaryKind::pow:
    return power<W>;
  case BinaryKind::max:
    return [](W a, W b) { return isNan(a) || a > b ? a : b; };
  case BinaryKind::min:
    return [](W a, W b) { return isNan(a) || a < b ? a : b; };
  case BinaryKind::floor_mod:
    return floorMod<W>;
  case BinaryKind::trunc_mod:
    return truncMod<W>;
  case BinaryKind::logical_and:
    return [](W a, W b) { return W(a != 0 && b != 0); };
  case BinaryKind::logical_or:
    return [](W a, W b) { return W(a != 0 || b != 0); };
  case BinaryKind::logical_xor:
    return [](W a, W b) { return W((a != 0) != (b != 0)); };
  case BinaryKind::bit_and:
    return [](W a, W b) {
      return onBits(a, b, [](uint64_t x, uint64_t y) { return x & y; });
    };
  case BinaryKind::bit_or:
    return [](W a, W b) {
      return onBits(a, b, [](uint64_t x, uint64_t y) { return x | y; });
    };
  case BinaryKind::bit_xor:
    return [](W a, W b) {
      return onBits(a, b, [](uint64_t x, uint64_t y) { return x ^ y; });
    };
  case BinaryKind::shl:
    return [](W a, W b) {
      return onBits(a, b,
                    [](uint64_t x, uint64_t y) { return y < 64 ? x << y : 0; });
    };
  case BinaryKind::shr:
    return shiftRight<W>;
  }
  llvm_unreachable("binary kind");
}

template <typename W>
static bool (*compareFunction(CompareKind kind))(W, W) {
  switch (kind) {
  case CompareKind::eq:
    return [](W a, W b) { return a == b; };
  case CompareKind::ne:
    return [](W a, W b) { return a != b; };
  case CompareKind::lt:
    return [](W a, W b) { return a < b; };
  case CompareKind::le:
    return [](W a, W b) { return a <= b; };
  case CompareKind::gt:
    return [](W a, W b) { return a > b; };
  case CompareKind::ge:
    return [](W a, W b) { return a >= b; };
  }
  llvm_unreachable("compare kind");
}

template <typename T, typename R, typename Fn>
static void zip(const HostTensor &x, const HostTensor &y, HostTensor &to,
                Fn fn) {
  HostTensor lhs = broadcastTo(x, to.getShape());
  HostTensor rhs = broadcastTo(y, to.getShape());
  ArrayRef<T> a = lhs.values<T>(), b = rhs.values<T>();
  MutableArrayRef<R> out = to.mutableValues<R>();
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = store<R>(fn(load(a[i]), load(b[i])));
}

static HostTensor binary(BinaryOp op, Operands in) {
  HostTensor to = emptyLike(op.getResult());
  visitDType(in[0].getType(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    zip<T, T>(in[0], in[1], to, binaryFunction<Wide<T>>(op.getKind()));
  });
  return to;
}

static HostTensor compare(CompareOp op, Operands in) {
  HostTensor to = emptyLike(op.getResult());
  visitDType(in[0].getType(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    zip<T, bool>(in[0], in[1], to, compareFunction<Wide<T>>(op.getKind()));
  });
  return to;
}

static HostTensor select(SelectOp op, Operands in) {
  HostTensor to = emptyLike(op.getResult());
  HostTensor condition = broadcastTo(in[0], to.getShape());
  HostTensor onTrue = broadcastTo(in[1], to.getShape());
  HostTensor onFalse = broadcastTo(in[2], to.getShape());
  visitDType(to.getType(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    ArrayRef<bool> c = condition.values<bool>();
    ArrayRef<T> a = onTrue.values<T>(), b = onFalse.values<T>();
    MutableArrayRef<T> out = to.mutableValues<T>();
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = c[i] ? a[i] : b[i];
  });
  return to;
}

static HostTensor random(RandomOp op, Operands in) {
  HostTensor to = emptyLike(op.getResult());
  ArrayRef<int64_t> index = in[0].values<int64_t>();
  MutableArrayRef<float> out = to.mutableValues<float>();
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = philox::uniform(index[i], in[1].values<int64_t>()[0],
                             in[2].values<int64_t>()[0], op.getId());
  return to;
}

static HostTensor uniform(UniformOp op, Operands in) {
  HostTensor to = emptyLike(op.getResult());
  MutableArrayRef<float> out = to.mutableValues<float>();
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = philox::uniform(i, in[0].values<int64_t>()[0],
                             in[1].values<int64_t>()[0], op.getId());
  return to;
}

static HostTensor dropout(DropoutOp op, Operands in) {
  HostTensor to = emptyLike(op.getResult());
  double rate = op.getRate().convertToDouble(), scale = 1 / (1 - rate);
  visitDType(to.getType(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    ArrayRef<T> from = in[0].values<T>();
    MutableArrayRef<T> out = to.mutableValues<T>();
    for (size_t i = 0; i < out.size(); ++i)
      out[i] = philox::uniform(i, in[1].values<int64_t>()[0],
                               in[2].values<int64_t>()[0],
                               op.getId()) < static_cast<float>(rate)
                   ? store<T>(0)
                   : store<T>(load(from[i]) * static_cast<Wide<T>>(scale));
  });
  return to;
}

std::optional<Results> interpretElementwise(Operation *op, Operands in) {
  return llvm::TypeSwitch<Operation *, std::optional<Results>>(op)
      .Case([&](UnaryOp o) { return Results{unary(o, in[0])}; })
      .Case([&](BinaryOp o) { return Results{binary(o, in)}; })
      .Case([&](CompareOp o) { return Results{compare(o, in)}; })
      .Case([&](SelectOp o) { return Results{select(o, in)}; })
      .Case([&](RandomOp o) { return Results{random(o, in)}; })
      .Case([&](UniformOp o) { return Results{uniform(o, in)}; })
      .Case([&](DropoutOp o) { return Results{dropout(o, in)}; })
      .Case([&](CastOp o) {
        return Results{in[0].cast(elementDType(o.getResult()))};
      })
      .Default([](Operation *) { return std::nullopt; });
}

} // namespace ax::interpreter
