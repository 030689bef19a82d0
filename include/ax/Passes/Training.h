//===- Training.h - What the user asks of training --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each value has one `parse`, which flags, strategies' files and options of
// passes share; what is wrong with a text is a Usage error that does not repeat
// it. `toText` gives it as it was written: a plan keeps these texts.
//
//===----------------------------------------------------------------------===//
#ifndef AX_PASSES_TRAINING_H
#define AX_PASSES_TRAINING_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ax {

class UpdateRule;

/// What is made smaller: `cross_entropy(logits,labels,shift=1)`. ax-add-loss
/// says what each does.
struct Loss {
  enum class Kind { CrossEntropy, MSE, L1, BCEWithLogits, Graph };
  Kind kind = Kind::CrossEntropy;
  /// An output of the model, and the input that it is compared with; of `graph`
  /// how the model has made one number of many.
  std::string output = "logits", target = "labels";
  /// Of cross_entropy.
  int64_t ignoreIndex = -100, shift = 0, classDim = -1;
  double labelSmoothing = 0;
  std::string text = "cross_entropy(logits,labels)";

  static llvm::Expected<Loss> parse(llvm::StringRef text);
  std::string toText() const { return text; }
  /// What stands before the parentheses.
  llvm::StringRef name() const;
};

/// A rule of passes/Train/Optimizer/Rules with its options:
/// `adamw(lr=1e-3,betas=0.9:0.999)`.
class Optimizer {
public:
  /// `adamw`.
  Optimizer();

  static llvm::Expected<Optimizer> parse(llvm::StringRef text);
  std::string toText() const { return text; }
  /// Returns a rule with these options, whose caller has it to itself.
  std::unique_ptr<UpdateRule> makeRule() const;

private:
  using Maker = std::function<std::unique_ptr<UpdateRule>()>;
  Optimizer(llvm::StringRef text, Maker make)
      : text(text), make(std::move(make)) {}

  std::string text;
  Maker make;
};

/// Of all rules in passes/Train/Optimizer/Rules, sorted.
std::vector<llvm::StringRef> optimizerNames();

/// `constant`, `linear(warmup=W,steps=N,final=F)` or `cosine(...)`: the
/// learning rate grows over the first W steps, then goes down, so that
/// its F-th part is left after N of them.
struct LearningRateSchedule {
  enum class Decay { None, Linear, Cosine };
  Decay decay = Decay::None;
  int64_t warmup = 0;
  int64_t steps = 0;
  double final = 0;
  std::string text = "constant";

  static llvm::Expected<LearningRateSchedule> parse(llvm::StringRef text);
  std::string toText() const { return text; }
};

/// `PATTERN|rank<2:lr=2e-3,weight_decay=0`: other options for the states whose
/// name matches one of the globs, or that have fewer dimensions.
struct ParameterGroup {
  std::vector<std::string> patterns;
  int64_t belowRank = 0;
  std::optional<double> learningRate, weightDecay;
  std::string text;

  static llvm::Expected<ParameterGroup> parse(llvm::StringRef text);
  std::string toText() const { return text; }
  bool contains(llvm::StringRef name, int64_t rank) const;
};

/// `PATTERN=0,7`: rows (along the first dimension) that stay as they are, of
/// the states whose name matches the glob.
struct FrozenRows {
  std::string pattern;
  std::vector<int64_t> rows;
  std::string text;

  static llvm::Expected<FrozenRows> parse(llvm::StringRef text);
  std::string toText() const { return text; }
  bool contains(llvm::StringRef name) const;
};

/// Of which Linears the factors have eight bits, and by which scales:
/// `fp8(format=hybrid,margin=0,interval=1,history=1024,amax=max,include=A|B,`
/// `exclude=C)`.
struct Float8Recipe {
  /// Gradients are f8E5M2, and not f8E4M3FN as what they are multiplied with.
  bool isHybrid = true;
  /// Scales are smaller by this power of two.
  int64_t margin = 0;
  /// Steps from one scale to the next.
  int64_t interval = 1;
  /// Steps whose amax is kept; scales go by the largest, or by the last one.
  int64_t history = 1024;
  bool mostRecent = false;
  /// Globs over names of Linears, of their nodes and modules: all but these are
  /// left out (if there are any), and these are.
  std::vector<std::string> include, exclude;
  std::string text = "fp8";

  static llvm::Expected<Float8Recipe> parse(llvm::StringRef text);
  /// Whether one of the globs matches one of the names.
  static bool matches(llvm::ArrayRef<std::string> patterns,
                      llvm::ArrayRef<llvm::StringRef> names);
  bool contains(llvm::ArrayRef<llvm::StringRef> names) const;
};

/// What contractions compute in: `fp32`, `bf16`, `fp16` or `fp8(...)`.
struct Precision {
  enum Type { FP32, BF16, FP16, FP8 };
  Type type = FP32;
  /// Of FP8.
  Float8Recipe float8;

  static llvm::Expected<Precision> parse(llvm::StringRef text);
  std::string toText() const;
};

/// Which statistics BatchNormalization takes: the batch's (`train`), those of
/// each of G equal parts of the batch (`train:G`; "ghost batch normalization",
/// Hoffer et al., arXiv 1705.08741), or the running ones (`frozen`).
struct BatchNormMode {
  /// Nothing: as the model says.
  std::optional<bool> isByBatch;
  /// Into how many parts the batch is cut, at least 1.
  int64_t numParts = 1;

  static llvm::Expected<BatchNormMode> parse(llvm::StringRef text);
  std::string toText() const;
};

/// What the backward pass computes again: `none`, `selective`, `full`,
/// `budget:2GiB`, or a glob over names of nodes.
struct RecomputeMode {
  enum Kind { None, Selective, Full, Budget, Matching };
  Kind kind = None;
  /// Of Budget: bytes of a rank.
  int64_t budget = 0;
  /// Of Matching this is the glob.
  std::string text = "none";

  static llvm::Expected<RecomputeMode> parse(llvm::StringRef text);
  std::string toText() const { return text; }
};

/// A number that is written with all of its digits, of which LLVM's options and
/// files have six.
struct Decimal {
  double value = 0;

  Decimal(double value = 0) : value(value) {}
  operator double() const { return value; }
  static llvm::Expected<Decimal> parse(llvm::StringRef text);
  std::string toText() const;
};

struct Training {
  /// Who only looks at a model may leave it away; a plan has one.
  std::optional<Loss> loss;
  Optimizer optimizer;
  LearningRateSchedule learningRateSchedule;
  std::vector<ParameterGroup> groups;
  /// The largest global norm of the gradient; 0: any.
  Decimal clipNorm;
  /// Globs over names of states.
  std::vector<std::string> trainable, frozen;
  std::vector<FrozenRows> frozenRows;
  BatchNormMode batchNorm;
  /// The part that dropout drops where it is put back; 0: none.
  Decimal dropout;
  RecomputeMode recompute;
};

} // namespace ax

#endif // AX_PASSES_TRAINING_H
