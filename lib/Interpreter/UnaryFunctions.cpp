//===- UnaryFunctions.cpp - Functions of one element on numbers -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Kernels.h"

#include "ax/Dialect/UnaryFunctions.h"

using namespace mlir;

namespace ax::interpreter {

namespace {

/// The arithmetic of UnaryFunction.h on numbers: of doubles, and of the 64 bits
/// in which an integer (or a bool, as 0 and 1) of type T is computed.
template <typename T>
class Arithmetic {
public:
  using W = Wide<T>;

  W number(W, double value) { return static_cast<W>(value); }
  W neg(W x) {
    if constexpr (isFloat)
      return -x;
    else
      return static_cast<W>(-static_cast<uint64_t>(x));
  }
  W abs(W x) {
    if constexpr (isFloat)
      return std::fabs(x);
    else
      return std::is_signed_v<W> && x < W(0) ? neg(x) : x;
  }
  W bitNot(W x) {
    if constexpr (std::is_same_v<T, bool>)
      return x == 0;
    else
      return static_cast<W>(~x);
  }
  double add(double x, double y) { return x + y; }
  double mul(double x, double y) { return x * y; }
  double div(double x, double y) { return x / y; }
  double sqrt(double x) { return std::sqrt(x); }
  double ceil(double x) { return std::ceil(x); }
  double floor(double x) { return std::floor(x); }
  double round(double x) { return std::nearbyint(x); }
  double trunc(double x) { return std::trunc(x); }
  double unary(UnaryKind kind, double x) { return unaryFunction(kind)(x); }
  double library(const char *, double (*function)(double), double x) {
    return function(x);
  }
  template <typename Other>
  bool compare(CompareKind kind, W x, Other other) {
    W y = static_cast<W>(other);
    switch (kind) {
    case CompareKind::eq:
      return x == y;
    case CompareKind::ne:
      return x != y;
    case CompareKind::lt:
      return x < y;
    case CompareKind::le:
      return x <= y;
    case CompareKind::gt:
      return x > y;
    case CompareKind::ge:
      return x >= y;
    }
    llvm_unreachable("compare kind");
  }
  W select(bool condition, W x, W y) { return condition ? x : y; }

private:
  static constexpr bool isFloat = std::is_same_v<W, double>;
};

} // namespace

/// Null where the function is not of elements of type T.
template <typename T, typename Function>
static constexpr auto functionOn() -> Wide<T> (*)(Wide<T>) {
  constexpr FunctionOperands of = Function::facts.operands;
  constexpr bool isFloat = std::is_same_v<Wide<T>, double>;
  constexpr bool isBool = std::is_same_v<T, bool>;
  constexpr bool isDefined =
      isFloat
          ? of == FunctionOperands::Floats || of == FunctionOperands::Numbers
      : isBool
          ? of == FunctionOperands::Bools || of == FunctionOperands::Integers
          : of == FunctionOperands::Integers || of == FunctionOperands::Numbers;
  if constexpr (isDefined)
    return [](Wide<T> x) -> Wide<T> {
      Arithmetic<T> arithmetic;
      return Function::value(arithmetic, x);
    };
  else
    return nullptr;
}

template <typename T>
static auto functionOn(UnaryKind kind) {
  using Fn = Wide<T> (*)(Wide<T>);
  static constexpr auto functions = tabulateUnary<Fn>(
      [](auto function) { return functionOn<T, decltype(function)>(); });
  return functions[static_cast<uint32_t>(kind)];
}

UnaryFn unaryFunction(UnaryKind kind) { return functionOn<double>(kind); }

HostTensor interpretUnary(UnaryOp op, const HostTensor &x) {
  HostTensor to = emptyLike(op.getResult());
  visitDType(x.getType(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto fn = functionOn<T>(op.getKind());
    auto map = [&](auto out) {
      ArrayRef<T> in = x.values<T>();
      for (size_t i = 0; i < in.size(); ++i)
        out[i] = static_cast<std::decay_t<decltype(out[i])>>(fn(load(in[i])));
    };
    if (to.getType() == DType::Bool)
      map(to.mutableValues<bool>());
    else
      map(to.mutableValues<T>());
  });
  return to;
}

HostTensor interpretUnaryGradient(UnaryKind kind, const HostTensor &dy,
                                  const HostTensor &x) {
  using Fn = double (*)(double, double);
  static constexpr auto gradients = tabulateUnary<Fn>([](auto function) -> Fn {
    using Function = decltype(function);
    // Of what is no activation nobody asks for it.
    if constexpr (functionOn<double, Function>() == nullptr ||
                  std::is_same_v<decltype(Function::gradient),
                                 const NoGradient>)
      return nullptr;
    else
      return [](double dy, double x) -> double {
        Arithmetic<double> arithmetic;
        return Function::gradient(arithmetic, x, Function::value(arithmetic, x),
                                  dy);
      };
  });
  Fn gradient = gradients[static_cast<uint32_t>(kind)];
  HostTensor to(dy.getType(), dy.getShape());
  for (int64_t i = 0, e = to.numElements(); i < e; ++i)
    to.setDouble(i, gradient(dy.getDouble(i), x.getDouble(i)));
  return to;
}

} // namespace ax::interpreter
