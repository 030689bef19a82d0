//===- Adam.cpp - Steps of about one size, by two moments -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Kingma and Ba, arXiv 1412.6980 (Adam); Loshchilov and Hutter, arXiv
// 1711.05101 (AdamW: the decay does not go through the moments).
//
//===----------------------------------------------------------------------===//
#include "../UpdateRule.h"

using namespace mlir;

namespace ax {

namespace {

class Adam : public UpdateRule {
public:
  explicit Adam(bool isDecoupled) : isDecoupled(isDecoupled) {
    if (isDecoupled)
      weightDecay = 0.01;
  }

private:
  void takeOptions(NumberTaker &number) final {
    number.takeBetas(beta1, beta2);
    number.take("eps", epsilon);
  }

  void beginStep(TensorBuilder &t, Value step) final {
    Type f32 = t.b.getF32Type(), f64 = t.b.getF64Type();
    auto scalar = [&](double value) { return t.splat({}, f64, value); };
    auto rest = [&](double beta) {
      return t.sub(scalar(1), t.binary(BinaryKind::pow, scalar(beta), step));
    };
    correction1 = t.cast(t.div(scalar(1), rest(beta1)), f32);
    correction2 =
        t.cast(t.div(scalar(1), t.unary(UnaryKind::sqrt, rest(beta2))), f32);
  }

  Value update(WeightUpdate &u) final {
    TensorBuilder &t = u.t;
    Value w = u.weight;
    Value gradient = isDecoupled ? u.gradient : u.decayedGradient();
    Value mean =
        t.add(t.mul(u.kept("exp_avg"), beta1), t.mul(gradient, 1 - beta1));
    Value square = t.add(t.mul(u.kept("exp_avg_sq"), beta2),
                         t.mul(t.mul(gradient, gradient), 1 - beta2));
    mean = u.keep("exp_avg", mean);
    square = u.keep("exp_avg_sq", square);
    Value rate = u.rate();
    Type f32 = t.b.getF32Type();
    if (isDecoupled && u.weightDecay != 0)
      w = t.mul(w, t.cast(t.sub(t.splat({}, t.b.getF64Type(), 1),
                                t.mul(rate, u.weightDecay)),
                          f32));
    Value stride = t.mul(t.cast(rate, f32), correction1);
    Value root =
        t.add(t.mul(t.unary(UnaryKind::sqrt, square), correction2), epsilon);
    return t.sub(w, t.mul(t.div(mean, root), stride));
  }

  bool isDecoupled;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  /// f32 scalars: 1 / (1 - beta1^step), 1 / sqrt(1 - beta2^step).
  Value correction1, correction2;
};

} // namespace

// Declared where the build's list of them is called.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void addAdam(UpdateRules &rules) {
  rules.add("adam", [] { return std::make_unique<Adam>(false); });
  rules.add("adamw", [] { return std::make_unique<Adam>(true); });
}

} // namespace ax
