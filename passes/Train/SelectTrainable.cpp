//===- SelectTrainable.cpp - Which states the optimizer changes -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "EqualWeights.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Dialect/Tensors.h"
#include "ax/Dialect/WeightKind.h"
#include "ax/Interpreter/FoldedWeights.h"
#include "ax/Passes/Choices.h"
#include "ax/Passes/Passes.h"
#include "ax/Support/Error.h"
#include "ax/Support/GivenWeights.h"
#include "ax/Support/JoinFirst.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/GlobPattern.h"

namespace ax {
#define GEN_PASS_DEF_SELECTTRAINABLE
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

namespace {

bool isFloatTensor(Value value) {
  return isa<FloatType>(tensorType(value).getElementType());
}

/// Integers and floats of eight bits are what weights were quantised to.
bool mayHaveGradient(Type element) {
  return isa<FloatType>(element) && !isFloat8(element);
}

/// States by what is done with them. A parameter is what layers use, also as
/// their data, or what meets, element by element or put beside, something that
/// parameters made, or data that it makes more of; as such or after arithmetic
/// between weights (1 + scale). What an operator takes as its parameter is one,
/// whatever the operator became (a normalisation becomes arithmetic). So a
/// learned position counts, a table of frequencies does not, nor do statistics,
/// nor does a single number, which exporters write as a weight, too.
class RoleFinder {
public:
  /// `kinds`: what is known of states besides.
  explicit RoleFinder(const llvm::MapVector<StringAttr, WeightKind> &kinds)
      : kinds(kinds) {}

  /// Adds the parameters of `program`.
  void find(ProgramOp program) {
    for (BlockArgument input : program.getBody().getArguments())
      if (isFloatTensor(input))
        fromInput.insert(input);
    for (Operation &op : program.getBody().front())
      visit(&op);
  }
  const llvm::DenseSet<StringAttr> &getParameters() const { return parameters; }
  /// What meets data as parameters do, and is none by its values.
  const llvm::DenseSet<StringAttr> &getVetoed() const { return vetoed; }

private:
  /// How a weight is used.
  enum class Use {
    /// It is the weight of a layer.
    Layer,
    /// It is a layer's data, or in arithmetic with data. A single number is
    /// none there.
    Data,
    /// It is added to scores, of all heads alike: biases that are learnt are of
    /// each head.
    Mask,
  };

  /// Adds what `value` is made of, if only of weights and constants; tables of
  /// frequencies are not taken apart.
  bool addWeights(Value value, Use use) {
    bool any = false;
    llvm::SetVector<Value> values;
    if (value && ofWeights.contains(value))
      values.insert(value);
    for (size_t i = 0; i < values.size(); ++i) {
      Operation *op = values[i].getDefiningOp();
      if (auto load = dyn_cast<LoadOp>(op))
        any |= addParameter(load, use);
      if (isWave(op))
        continue;
      for (Value operand : op->getOperands())
        if (isFloatTensor(operand))
          values.insert(operand);
    }
    return any;
  }
  bool addParameter(LoadOp load, Use use) {
    RankedTensorType type = tensorType(load.getResult());
    if (!mayHaveGradient(type.getElementType()) ||
        (use != Use::Layer && type.getNumElements() < 2))
      return false;
    StringAttr name = load.getStateAttr().getAttr();
    const auto *kind = kinds.find(name);
    bool isSaid =
        kind != kinds.end() && (kind->second == WeightKind::Parameter ||
                                kind->second == WeightKind::LayerParameter);
    if (use == Use::Mask && !isSaid) {
      vetoed.insert(name);
      return false;
    }
    if (kind != kinds.end())
      switch (kind->second) {
      case WeightKind::Parameter:
      case WeightKind::LayerParameter:
      case WeightKind::Repeated:
        break;
      case WeightKind::Buffer:
      case WeightKind::Constant:
      case WeightKind::Statistic:
      case WeightKind::Sines:
      case WeightKind::InitialState:
        return false;
      case WeightKind::Mask:
      case WeightKind::ZeroRow:
      case WeightKind::Progression:
      case WeightKind::Grid:
        // A layer's weight may begin as such.
        if (use != Use::Layer) {
          vetoed.insert(name);
          return false;
        }
      }
    parameters.insert(name);
    return true;
  }

  static bool isWave(Operation *op) {
    auto unary = dyn_cast<UnaryOp>(op);
    return unary && llvm::is_contained({UnaryKind::sin, UnaryKind::cos},
                                       unary.getKind());
  }
  bool isData(Value value) const {
    return active.contains(value) || fromInput.contains(value);
  }
  /// Whether only waves take the result, as it is or times a number: so are
  /// frequencies taken, which as a rule are fixed.
  static bool isAngle(Operation *op, int depth = 0) {
    return depth < 8 &&
           llvm::all_of(
               op->getUsers(),
               [&](Operation *user) {
                 bool keeps =
                     isa<ReshapeOp, BroadcastOp, CastOp>(user) ||
                     (isa<BinaryOp>(user) &&
                      llvm::any_of(user->getOperands(), [](Value operand) {
                        return operand.getDefiningOp<ConstantOp>() != nullptr;
                      }));
                 return isWave(user) || (keeps && isAngle(user, depth + 1));
               });
  }
  /// The result has more elements than any data it is made of, and is not only
  /// the angle of waves.
  bool makesMore(Operation *op) const {
    int64_t most = 0;
    for (Value operand : op->getOperands())
      if (isData(operand))
        most = std::max(most, tensorType(operand).getNumElements());
    return most > 0 && tensorType(op->getResult(0)).getNumElements() > most &&
           !isAngle(op);
  }

  /// What `op` adds to a product that nothing else reads, as its bias; null
  /// where it does something else.
  static Value biasOf(Operation *op) {
    if (auto sum = dyn_cast<BinaryOp>(op))
      for (Value operand : op->getOperands())
        if (Operation *product = operand.getDefiningOp();
            product && operand.hasOneUse())
          if (Value bias = findBias(product, sum))
            return bias;
    return {};
  }

  /// Whether each of several heads has the same mask.
  static bool isOfAllHeads(AttentionOp attention) {
    if (!attention.getMask() || shapeOf(attention.getQ())[1] == 1)
      return false;
    ArrayRef<int64_t> shape = shapeOf(attention.getMask());
    constexpr size_t behind = 2;
    return shape.size() <= behind || shape[shape.size() - behind - 1] == 1;
  }

  bool isLayerParameter(Operation *op) const {
    auto load = dyn_cast<LoadOp>(op);
    return load && kinds.lookup(load.getStateAttr().getAttr()) ==
                       WeightKind::LayerParameter;
  }

  void visit(Operation *op) {
    bool made = false;
    auto isOfLayer = [&](Value value) { return ofLayers.contains(value); };
    auto layer = [&](Value value) { made |= addWeights(value, Use::Layer); };
    auto meet = [&](Value value) { made |= addWeights(value, Use::Data); };
    auto norm = [&](auto op) {
      meet(op.getX());
      layer(op.getScale());
      layer(op.getBias());
    };
    if (auto found = dyn_cast<LayerOpInterface>(op)) {
      meet(found.getX());
      layer(found.getW());
    } else if (Value bias = biasOf(op)) {
      layer(bias);
    } else if (auto layerNorm = dyn_cast<LayerNormOp>(op)) {
      norm(layerNorm);
    } else if (auto rmsNorm = dyn_cast<RMSNormOp>(op)) {
      norm(rmsNorm);
    } else if (auto gather = dyn_cast<GatherOp>(op)) {
      layer(gather.getOperand());
    } else if (auto attention = dyn_cast<AttentionOp>(op)) {
      for (Value operand :
           {attention.getQ(), attention.getK(), attention.getV()})
        meet(operand);
      made |= addWeights(attention.getMask(),
                         isOfAllHeads(attention) ? Use::Mask : Use::Data);
    } else if (auto dot = dyn_cast<DotOp>(op)) {
      if (isData(dot.getLhs()))
        layer(dot.getRhs());
      else if (isData(dot.getRhs()))
        layer(dot.getLhs());
    } else if (isa<BinaryOp, SelectOp, ConcatOp>(op) &&
               (llvm::any_of(op->getOperands(),
                             [&](Value v) { return active.contains(v); }) ||
                makesMore(op))) {
      llvm::for_each(op->getOperands(), meet);
    }
    made |= llvm::any_of(op->getOperands(), isOfLayer) &&
            llvm::any_of(op->getOperands(), [&](Value v) { return isData(v); });
    auto spread = [&](llvm::DenseSet<Value> &set, bool starts) {
      starts |= llvm::any_of(op->getOperands(),
                             [&](Value v) { return set.contains(v); });
      if (starts)
        for (Value result : op->getResults())
          if (isFloatTensor(result))
            set.insert(result);
    };
    spread(active, made);
    spread(fromInput, false);
    if (isSource(op) ||
        (op->getNumOperands() && llvm::all_of(op->getOperands(), [&](Value v) {
           return ofWeights.contains(v);
         }))) {
      ofWeights.insert(op->result_begin(), op->result_end());
      if (isLayerParameter(op) || llvm::any_of(op->getOperands(), isOfLayer))
        ofLayers.insert(op->result_begin(), op->result_end());
    }
  }

  const llvm::MapVector<StringAttr, WeightKind> &kinds;
  llvm::DenseSet<StringAttr> parameters, vetoed;
  /// Float values that parameters had a part in, or inputs; values that only
  /// weights and constants make, and of these those that an operator's own
  /// parameters had a part in.
  llvm::DenseSet<Value> active, fromInput, ofWeights, ofLayers;
};

/// Weights, by why they are trained or not.
class Decisions {
public:
  void add(bool isTrained, StringRef why, StringAttr name) {
    (isTrained ? trained : left)[why].push_back(name);
  }

  void say(InFlightDiagnostic &&to) const {
    to << "trained: " << text(trained) << "\nnot trained: " << text(left);
  }

private:
  using Groups = llvm::MapVector<StringRef, SmallVector<StringAttr>>;

  static std::string text(const Groups &groups) {
    // What nobody wrote down is worth a look.
    std::string result;
    for (const auto &[why, names] : groups)
      result += (result.empty() ? "" : "; ") + std::to_string(names.size()) +
                " " + why.str() + " (" + joinFirst(names) + ")";
    return result.empty() ? "none" : result;
  }

  Groups trained, left;
};

/// Why a state is not trained.
StringRef reasonAgainst(std::optional<WeightKind> kind) {
  switch (kind.value_or(WeightKind::Parameter)) {
  case WeightKind::Buffer:
    return "buffers, as the file says";
  case WeightKind::Constant:
    return "made of no parameter, as the file says";
  case WeightKind::Statistic:
    return "statistics";
  case WeightKind::Sines:
    return "tables of sines";
  case WeightKind::Mask:
    return "masks";
  case WeightKind::ZeroRow:
    return "rows of zeros, which meet data";
  case WeightKind::Progression:
    return "progressions";
  case WeightKind::Grid:
    return "grids of coordinates";
  case WeightKind::InitialState:
    return "zeros that recurrent layers begin with";
  case WeightKind::Parameter:
  case WeightKind::LayerParameter:
  case WeightKind::Repeated:
    break;
  }
  return "by what is done with them";
}

/// `matched` gets the patterns that did.
bool matchesAny(ArrayRef<std::string> patterns, StringRef name,
                llvm::DenseSet<StringRef> &matched) {
  bool any = false;
  for (const std::string &pattern : patterns) {
    llvm::Expected<llvm::GlobPattern> glob = llvm::GlobPattern::create(pattern);
    // A malformed pattern matches nothing, which is then said.
    if (!glob)
      llvm::consumeError(glob.takeError());
    else if (glob->match(name)) {
      matched.insert(pattern);
      any = true;
    }
  }
  return any;
}

} // namespace

llvm::Expected<std::vector<WeightChoice>>
ax::chooseTrainable(PlanOp plan, ArrayRef<std::string> trainable,
                    ArrayRef<std::string> frozen) {
  auto states = plan.getBody().getOps<StateOp>();
  llvm::MapVector<StringAttr, WeightKind> kinds;
  for (StateOp state : states)
    if (auto name = state->getAttrOfType<StringAttr>(kWeightKind))
      if (auto kind = parseWeightKind(name.getValue()))
        kinds[state.getSymNameAttr()] = *kind;
  RoleFinder roles(kinds);
  for (ProgramOp program : plan.getBody().getOps<ProgramOp>())
    roles.find(program);
  std::vector<WeightChoice> choices;
  llvm::DenseSet<StringRef> matched;
  for (StateOp state : states) {
    StringAttr name = state.getSymNameAttr();
    WeightChoice choice;
    choice.state = state;
    if (auto *known = kinds.find(name); known != kinds.end())
      choice.kind = known->second;
    // Layers take integers, too.
    bool isDeclared = choice.kind == WeightKind::Parameter ||
                      (choice.kind == WeightKind::LayerParameter &&
                       mayHaveGradient(state.getTensorType().getElementType()));
    choice.isTrained = isDeclared || roles.getParameters().contains(name);
    choice.isByFlags = !trainable.empty();
    choice.isVetoed = roles.getVetoed().contains(name);
    bool isSaid = choice.kind && choice.kind != WeightKind::Repeated;
    choice.why =
        !choice.isTrained ? reasonAgainst(choice.isVetoed && !isSaid
                                              ? std::optional(WeightKind::Mask)
                                              : choice.kind)
        : choice.kind == WeightKind::Parameter ? "parameters, as the file says"
                                               : "by what is done with them";
    if (!trainable.empty()) {
      choice.isTrained = matchesAny(trainable, name, matched) &&
                         !isFloat8(state.getTensorType().getElementType());
      choice.why = "by --trainable";
    }
    if (matchesAny(frozen, name, matched)) {
      choice.isTrained = false;
      choice.isByFlags = true;
      choice.why = "by --frozen";
    }
    choices.push_back(choice);
  }
  for (ArrayRef<std::string> patterns : {trainable, frozen})
    for (const std::string &pattern : patterns)
      if (!matched.contains(pattern))
        return makeErrorf(ExitCode::Usage,
                          "no weight is called '{0}' that could be trained: "
                          "--inspect=all lists them",
                          pattern);
  return choices;
}

namespace {

struct SelectTrainable : ax::impl::SelectTrainableBase<SelectTrainable> {
  using SelectTrainableBase::SelectTrainableBase;

  void runOnOperation() final {
    PlanOp plan = getOperation();
    auto choices = chooseTrainable(plan, trainable, frozen);
    if (!choices) {
      plan.emitError(describeError(choices.takeError()).message);
      return signalPassFailure();
    }
    SmallVector<StringRef> trainedZeros, leftZeros;
    Decisions decisions;
    for (const WeightChoice &choice : *choices) {
      StateOp state = choice.state;
      state->removeAttr(kWeightKind);
      state->removeAttr(kMayBeTrained);
      state.setTrainable(choice.isTrained);
      StringAttr name = state.getSymNameAttr();
      if (choice.kind == WeightKind::ZeroRow && !choice.isByFlags) {
        if (choice.isTrained)
          trainedZeros.push_back(name);
        else if (choice.isVetoed)
          leftZeros.push_back(name);
      }
      // Positions and masks of integers are not what one would look for.
      if (choice.isTrained ||
          isa<FloatType>(state.getTensorType().getElementType()))
        decisions.add(choice.isTrained, choice.why, name);
    }
    decisions.say(plan.emitRemark());
    for (const WeightChoice &choice : *choices)
      if (choice.kind == WeightKind::Repeated && choice.isTrained)
        plan.emitWarning("'")
            << StateOp(choice.state).getSymName()
            << "': equal parts, as if an exporter had repeated one weight (for "
               "each sample, say), train as separate ones; see 'Models to "
               "train' "
               "in docs/training.md";
    warnOfZeros(trainedZeros, "is trained as the bias of a layer");
    warnOfZeros(leftZeros, "is not trained, as a buffer that meets data");
    warnOfDecided(*choices);
    warnOfMerged(plan);
    warnOfTwins(plan);
  }

  /// Shapes and choices of branches, say, which Import asks weights for.
  void warnOfDecided(ArrayRef<WeightChoice> choices) {
    auto decided = getOperation()->getAttrOfType<DictionaryAttr>(kFolded);
    for (const WeightChoice &choice : choices)
      if (StateOp state = choice.state;
          choice.isTrained && decided && decided.contains(state.getSymName()))
        state.emitWarning("'")
            << state.getSymName()
            << "' is trained, but a part of the plan goes by its value in the "
               "model";
  }

  /// Neither values nor uses tell parameters that are new from buffers.
  void warnOfZeros(ArrayRef<StringRef> names, StringRef decision) {
    for (StringRef name : names)
      getOperation().emitWarning("'")
          << name << "', a row of zeros, " << decision
          << ", but may be either: --trainable and --frozen say which; see "
             "'Models to train' in docs/training.md";
  }
};

} // namespace
