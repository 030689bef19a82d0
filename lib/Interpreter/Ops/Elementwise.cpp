//===- Elementwise.cpp - Interpreting element-wise ops --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Kernels.h"
#include "ax/Support/Philox.h"

#include "ax/Local/Local.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;

namespace ax::interpreter {

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

static HostTensor binary(Value result, BinaryKind kind, Operands in) {
  HostTensor to = emptyLike(result);
  visitDType(in[0].getType(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    zip<T, T>(in[0], in[1], to, binaryFunction<Wide<T>>(kind));
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
      .Case([&](UnaryOp o) { return Results{interpretUnary(o, in[0])}; })
      .Case([&](UnaryGradientOp o) {
        return Results{interpretUnaryGradient(o.getKind(), in[0], in[1])};
      })
      .Case([&](BinaryOp o) {
        return Results{binary(o.getResult(), o.getKind(), in)};
      })
      // Not in the first micro-batch.
      .Case([&](AccumulateOp o) {
        return Results{binary(o.getResult(), BinaryKind::add, in)};
      })
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
