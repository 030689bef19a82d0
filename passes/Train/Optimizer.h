//===- Optimizer.h - What the user asks of the optimizer --------*- C++ -*-===//
#ifndef AX_PASSES_TRAIN_OPTIMIZER_H
#define AX_PASSES_TRAIN_OPTIMIZER_H

#include "ax/Dialect/Ax.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace ax {

enum class OptimizerKind { SGD, Adam, AdamW };

/// `adamw(lr=1e-3,betas=0.9:0.999,eps=1e-8,weight_decay=0.01)`, with PyTorch's
/// meaning and defaults of every option.
struct Optimizer {
  OptimizerKind kind = OptimizerKind::AdamW;
  double learningRate = 1e-3;
  double weightDecay = 0;
  /// Adam, AdamW.
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  /// SGD.
  double momentum = 0;
  bool nesterov = false;

  static llvm::Expected<Optimizer> parse(llvm::StringRef text);
};

/// `PATTERN|rank<2:lr=2e-3,weight_decay=0`: other options for the states whose
/// name matches one of the globs, or that have fewer dimensions.
struct ParameterGroup {
  std::vector<std::string> patterns;
  int64_t belowRank = 0;
  std::optional<double> learningRate, weightDecay;

  static llvm::Expected<ParameterGroup> parse(llvm::StringRef text);
  bool contains(llvm::StringRef name, int64_t rank) const;
};

/// Names of the plan's states that `group` contains; a Usage error when its
/// globs name none.
llvm::Expected<std::vector<std::string>> findGroup(PlanOp plan,
                                                   const ParameterGroup &group);

/// `PATTERN=0,7`: rows (along the first dimension) that stay as they are, of
/// the states whose name matches the glob.
struct FrozenRows {
  std::string pattern;
  std::vector<int64_t> rows;

  static llvm::Expected<FrozenRows> parse(llvm::StringRef text);
  bool contains(llvm::StringRef name) const;
  /// Those of `states`, which are trained, that it names; a Usage error when
  /// there are none, or when one has no such row.
  llvm::Expected<std::vector<StateOp>>
  find(llvm::ArrayRef<StateOp> states) const;
};

/// `constant`, `linear(warmup=W,steps=N,final=F)` or `cosine(...)`: the
/// learning rate grows over the first W steps, then goes down to its F-th part
/// at step N.
struct LearningRateSchedule {
  enum class Decay { None, Linear, Cosine };
  Decay decay = Decay::None;
  int64_t warmup = 0;
  int64_t steps = 0;
  double final = 0;

  static llvm::Expected<LearningRateSchedule> parse(llvm::StringRef text);
};

} // namespace ax

#endif // AX_PASSES_TRAIN_OPTIMIZER_H
