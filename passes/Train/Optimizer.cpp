//===- Optimizer.cpp - What the user asks of the optimizer ----------------===//
#include "Optimizer.h"

#include "Call.h"
#include "ax/Support/Error.h"
#include "ax/Support/Nearest.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace ax;

namespace {

std::string shortest(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", number);
  return text;
}

/// Takes numbers out of a call, and remembers the first that is none or lies
/// outside of its range.
class NumberTaker {
public:
  /// What no rate or number of steps comes near.
  static constexpr double unbounded = 1e30;

  explicit NumberTaker(Call &call) : call(call) {}

  void take(llvm::StringRef key, double &value, double least = 0,
            double largest = unbounded) {
    llvm::Expected<double> taken = call.takeNumber(key, value);
    if (!taken)
      return keep(taken.takeError());
    if (*taken < least || *taken > largest)
      return keep(makeErrorf(ExitCode::Usage, "{0}: {1}={2} is not {3}",
                             call.name, key, shortest(*taken),
                             largest < unbounded
                                 ? "between " + shortest(least) + " and " +
                                       shortest(largest)
                                 : shortest(least) + " or more"));
    value = *taken;
  }
  void take(llvm::StringRef key, std::optional<double> &value) {
    double taken = NAN;
    take(key, taken);
    if (!std::isnan(taken))
      value = taken;
  }
  void take(llvm::StringRef key, bool &value) {
    std::string text = call.take(key);
    if (!text.empty() && text != "0" && text != "1")
      return keep(makeErrorf(ExitCode::Usage, "{0}: {1}={2} is neither 0 nor 1",
                             call.name, key, text));
    value = text.empty() ? value : text == "1";
  }
  void take(llvm::StringRef key, int64_t &value) {
    llvm::Expected<int64_t> taken = call.takeInt(key, value);
    if (!taken)
      return keep(taken.takeError());
    if (*taken < 0)
      return keep(makeErrorf(ExitCode::Usage, "{0}: {1}={2} is negative",
                             call.name, key, *taken));
    value = *taken;
  }
  void takeBetas(double &beta1, double &beta2) {
    std::string text = call.take("betas");
    if (text.empty())
      return;
    auto [first, second] = llvm::StringRef(text).split(':');
    double a = 0, b = 0;
    if (!llvm::to_float(first.str(), a) || !llvm::to_float(second.str(), b) ||
        !(a >= 0 && a < 1 && b >= 0 && b < 1))
      return keep(makeErrorf(ExitCode::Usage,
                             "{0}: betas={1}: give two numbers below 1, as "
                             "0.9:0.999",
                             call.name, text));
    beta1 = a;
    beta2 = b;
  }
  llvm::Error finish(llvm::ArrayRef<llvm::StringRef> arguments) {
    if (fault)
      return std::move(fault);
    return call.finish(arguments);
  }

private:
  void keep(llvm::Error error) {
    if (fault)
      llvm::consumeError(std::move(error));
    else
      fault = std::move(error);
  }

  Call &call;
  llvm::Error fault = llvm::Error::success();
};

} // namespace

llvm::Expected<Optimizer> Optimizer::parse(llvm::StringRef text) {
  llvm::Expected<Call> call = Call::parse(text);
  if (!call)
    return call.takeError();
  Optimizer result;
  NumberTaker number(*call);
  auto kind = llvm::StringSwitch<std::optional<OptimizerKind>>(call->name)
                  .Case("sgd", OptimizerKind::SGD)
                  .Case("adam", OptimizerKind::Adam)
                  .Case("adamw", OptimizerKind::AdamW)
                  .Default(std::nullopt);
  result.kind = kind.value_or(OptimizerKind::AdamW);
  if (kind == OptimizerKind::AdamW)
    result.weightDecay = 0.01;
  number.take("lr", result.learningRate);
  number.take("weight_decay", result.weightDecay);
  if (kind == OptimizerKind::SGD) {
    number.take("momentum", result.momentum);
    number.take("nesterov", result.nesterov);
  } else {
    number.takeBetas(result.beta1, result.beta2);
    number.take("eps", result.epsilon);
  }
  llvm::Error error = number.finish({});
  if (!kind) {
    llvm::consumeError(std::move(error));
    return makeErrorf(
        ExitCode::Usage, "there is no optimizer '{0}', but sgd, adam, adamw{1}",
        call->name, suggestNearest(call->name, {"sgd", "adam", "adamw"}));
  }
  if (error)
    return error;
  if (result.nesterov && result.momentum == 0)
    return makeError(ExitCode::Usage, "sgd: nesterov needs a momentum");
  return result;
}

llvm::Expected<ParameterGroup> ParameterGroup::parse(llvm::StringRef text) {
  ParameterGroup result;
  auto [names, options] = text.rsplit(':');
  if (names.empty() || options.empty())
    return makeErrorf(ExitCode::Usage,
                      "parameter group '{0}': give PATTERN|rank<N:lr=...,"
                      "weight_decay=...",
                      text);
  for (llvm::StringRef name : llvm::split(names, '|')) {
    if (name.consume_front("rank<")) {
      if (!llvm::to_integer(name, result.belowRank, 10) || result.belowRank < 1)
        return makeErrorf(ExitCode::Usage,
                          "parameter group '{0}': rank< needs a number", text);
      continue;
    }
    if (llvm::Expected<llvm::GlobPattern> glob =
            llvm::GlobPattern::create(name);
        !glob)
      return makeErrorf(ExitCode::Usage, "parameter group '{0}': {1}", text,
                        llvm::toString(glob.takeError()));
    result.patterns.push_back(name.str());
  }
  llvm::Expected<Call> call = Call::parse(("group(" + options + ")").str());
  if (!call)
    return call.takeError();
  NumberTaker number(*call);
  number.take("lr", result.learningRate);
  number.take("weight_decay", result.weightDecay);
  if (llvm::Error error = number.finish({}))
    return error;
  return result;
}

bool ParameterGroup::contains(llvm::StringRef name, int64_t rank) const {
  if (rank < belowRank)
    return true;
  return llvm::any_of(patterns, [&](const std::string &pattern) {
    return llvm::cantFail(llvm::GlobPattern::create(pattern)).match(name);
  });
}

llvm::Expected<std::vector<std::string>>
ax::findGroup(PlanOp plan, const ParameterGroup &group) {
  std::vector<std::string> names;
  for (StateOp state : plan.getBody().getOps<StateOp>())
    if (group.contains(state.getSymName(), state.getTensorType().getRank()))
      names.push_back(state.getSymName().str());
  if (names.empty() && !group.patterns.empty())
    return makeErrorf(ExitCode::Usage,
                      "--param-group: no weight is called '{0}'",
                      llvm::join(group.patterns, "|"));
  return names;
}

llvm::Expected<FrozenRows> FrozenRows::parse(llvm::StringRef text) {
  FrozenRows result;
  auto [name, rows] = text.rsplit('=');
  result.pattern = name.str();
  bool isSound = !name.empty() && !rows.empty();
  for (llvm::StringRef row : llvm::split(rows, ','))
    if (int64_t number; llvm::to_integer(row, number, 10) && number >= 0)
      result.rows.push_back(number);
    else
      isSound = false;
  if (!isSound)
    return makeErrorf(ExitCode::Usage,
                      "frozen rows '{0}': give PATTERN=ROW,ROW,...", text);
  if (auto glob = llvm::GlobPattern::create(name); !glob)
    return makeErrorf(ExitCode::Usage, "frozen rows '{0}': {1}", text,
                      llvm::toString(glob.takeError()));
  return result;
}

bool FrozenRows::contains(llvm::StringRef name) const {
  return llvm::cantFail(llvm::GlobPattern::create(pattern)).match(name);
}

llvm::Expected<std::vector<StateOp>>
FrozenRows::find(llvm::ArrayRef<StateOp> states) const {
  std::vector<StateOp> found;
  for (StateOp state : states) {
    if (!contains(state.getSymName()))
      continue;
    mlir::RankedTensorType type = state.getTensorType();
    int64_t size = type.getRank() ? type.getDimSize(0) : 0;
    if (int64_t row = *llvm::max_element(rows); row >= size)
      return makeErrorf(ExitCode::Usage,
                        "frozen rows '{0}': '{1}' has {2} rows, and no row {3}",
                        pattern, state.getSymName(), size, row);
    found.push_back(state);
  }
  if (found.empty())
    return makeErrorf(ExitCode::Usage,
                      "frozen rows '{0}': no weight that is trained is called "
                      "so",
                      pattern);
  return found;
}

llvm::Expected<LearningRateSchedule>
LearningRateSchedule::parse(llvm::StringRef text) {
  llvm::Expected<Call> call = Call::parse(text);
  if (!call)
    return call.takeError();
  LearningRateSchedule result;
  NumberTaker number(*call);
  if (call->name == "linear")
    result.decay = Decay::Linear;
  else if (call->name == "cosine")
    result.decay = Decay::Cosine;
  else if (call->name != "constant")
    return makeErrorf(
        ExitCode::Usage,
        "there is no learning-rate schedule '{0}', but constant, "
        "linear, cosine{1}",
        call->name,
        suggestNearest(call->name, {"constant", "linear", "cosine"}));
  number.take("warmup", result.warmup);
  if (result.decay != Decay::None) {
    number.take("steps", result.steps);
    number.take("final", result.final, 0, 1);
  }
  if (llvm::Error error = number.finish({}))
    return error;
  if (result.decay != Decay::None && result.steps <= result.warmup)
    return makeErrorf(ExitCode::Usage,
                      "{0}: steps={1} is not more than warmup={2}: give "
                      "steps=N, the step at which it ends",
                      call->name, result.steps, result.warmup);
  return result;
}
