//===- SGD.cpp - Along the gradient, with momentum ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sutskever et al., ICML 2013 (momentum), in PyTorch's form: the rate scales
// the momentum, not what is added to it.
//
//===----------------------------------------------------------------------===//
#include "../UpdateRule.h"

#include "ax/Support/Error.h"

using namespace mlir;

namespace ax {

namespace {

class SGD : public UpdateRule {
  void takeOptions(NumberTaker &number) final {
    number.take("momentum", momentum);
    number.take("nesterov", nesterov);
  }
  llvm::Error checkOptions() const final {
    if (nesterov && momentum == 0)
      return makeError(ExitCode::Usage, "sgd: nesterov needs a momentum");
    return llvm::Error::success();
  }

  Value update(WeightUpdate &u) final {
    TensorBuilder &t = u.t;
    Value gradient = u.decayedGradient();
    if (momentum != 0) {
      Value moment = u.keep(
          "momentum", t.add(t.mul(u.kept("momentum"), momentum), gradient));
      gradient = nesterov ? t.add(gradient, t.mul(moment, momentum)) : moment;
    }
    Value rate = t.cast(u.rate(), t.b.getF32Type());
    return t.sub(u.weight, t.mul(gradient, rate));
  }

  double momentum = 0;
  bool nesterov = false;
};

} // namespace

// Declared where the build's list of them is called.
// NOLINTNEXTLINE(misc-use-internal-linkage)
void addSGD(UpdateRules &rules) {
  rules.add("sgd", [] { return std::make_unique<SGD>(); });
}

} // namespace ax
