//===- Lion.cpp - The sign of a moment ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chen et al., arXiv 2302.06675, program 1: every element moves by the rate
// itself. One moment: half of what Adam keeps.
//
//===----------------------------------------------------------------------===//
#include "../UpdateRule.h"

using namespace mlir;

namespace ax {

namespace {

class Lion : public UpdateRule {
public:
  Lion() { learningRate = 1e-4; }

private:
  void takeOptions(NumberTaker &number) final {
    number.takeBetas(beta1, beta2);
  }

  Value update(WeightUpdate &u) final {
    TensorBuilder &t = u.t;
    Value moment = u.kept("exp_avg");
    auto mix = [&](double beta) {
      return t.add(t.mul(moment, beta), t.mul(u.gradient, 1 - beta));
    };
    Value direction = t.unary(UnaryKind::sign, mix(beta1));
    u.keep("exp_avg", mix(beta2));
    if (u.weightDecay != 0)
      direction = t.add(direction, t.mul(u.weight, u.weightDecay));
    Value rate = t.cast(u.rate(), t.b.getF32Type());
    return t.sub(u.weight, t.mul(direction, rate));
  }

  double beta1 = 0.9, beta2 = 0.99;
};

} // namespace

// Declared where the build's list of them is called.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void addLion(UpdateRules &rules) {
  rules.add("lion", [] { return std::make_unique<Lion>(); });
}

} // namespace ax
