//===- UpdateRule.h - How an optimizer changes a weight ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each file of Rules/ has one rule, or a family, and is found there by the
// build: docs/add-an-optimizer.md.
//
//===----------------------------------------------------------------------===//
#ifndef AX_PASSES_TRAIN_OPTIMIZER_UPDATERULE_H
#define AX_PASSES_TRAIN_OPTIMIZER_UPDATERULE_H

#include "../NumberTaker.h"
#include "ax/Gradients/TensorBuilder.h"

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace ax {

/// One weight in one step, as a rule sees it. All tensors are f32 and of the
/// weight's shape.
class WeightUpdate {
public:
  using Value = mlir::Value;

  WeightUpdate(TensorBuilder &t, Value weight, Value gradient,
               double weightDecay)
      : t(t), weight(weight), gradient(gradient), weightDecay(weightDecay) {}
  virtual ~WeightUpdate() = default;

  /// The learning rate of this weight in this step, an f64 scalar.
  virtual Value rate() = 0;
  /// What was kept of this weight under that name in the step before; zero
  /// before the first.
  virtual Value kept(llvm::StringRef name) = 0;
  /// Keeps `value` for the next step. Gives what is stored, which is what to
  /// read from there on.
  virtual Value keep(llvm::StringRef name, Value value) = 0;
  /// The gradient with `weightDecay` times the weight added: a penalty on its
  /// square.
  virtual Value decayedGradient() = 0;

  TensorBuilder &t;
  Value weight;
  /// The mean over samples, clipped.
  Value gradient;
  double weightDecay;
};

class UpdateRule {
public:
  virtual ~UpdateRule();

  /// Takes what options it has besides `lr` and `weight_decay`.
  virtual void takeOptions(NumberTaker &) {}
  /// A Usage error for options that do not go together.
  virtual llvm::Error checkOptions() const { return llvm::Error::success(); }

  /// Once a step, before the weights: what all of them share. `step` is an f64
  /// scalar, counted from 1.
  virtual void beginStep(TensorBuilder &, mlir::Value /*step*/) {}
  /// The weight's new value.
  virtual mlir::Value update(WeightUpdate &u) = 0;

  double learningRate = 1e-3;
  double weightDecay = 0;
  /// Its name and all of its options: `sgd(lr=0.1,weight_decay=0,...)`, and
  /// what else decides a step.
  std::string text;
};

/// The rules by name.
class UpdateRules {
public:
  struct Entry {
    /// Gives a rule as it is without options.
    std::function<std::unique_ptr<UpdateRule>()> make;
    std::function<std::unique_ptr<UpdateRule>(const UpdateRule &)> copy;
  };

  static const UpdateRules &get();
  /// Null where there is none.
  const Entry *find(llvm::StringRef name) const {
    auto found = entries.find(name.str());
    return found == entries.end() ? nullptr : &found->second;
  }
  /// Sorted.
  std::vector<llvm::StringRef> names() const;

  /// `make` gives a `std::unique_ptr` of the rule's own class.
  template <typename MakeTy>
  void add(llvm::StringRef name, MakeTy make) {
    using Rule = std::decay_t<decltype(*make())>;
    entries.emplace(name.str(), Entry{make, [](const UpdateRule &rule) {
                                        return std::make_unique<Rule>(
                                            static_cast<const Rule &>(rule));
                                      }});
  }

private:
  std::map<std::string, Entry> entries;
};

} // namespace ax

#endif // AX_PASSES_TRAIN_OPTIMIZER_UPDATERULE_H
