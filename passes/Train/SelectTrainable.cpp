//===- SelectTrainable.cpp - Which states the optimizer changes -----------===//
#include "../KnownValue.h"
#include "ax/Dialect/Evaluation.h"
#include "ax/Dialect/TrainingAttrs.h"
#include "ax/Passes/Passes.h"

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

/// States by what is done with them. A parameter is what layers use, or what
/// meets, element by element or put beside, something that parameters made; as
/// such or after arithmetic between weights (1 + scale). So a learned position
/// counts, a table of frequencies does not, nor do statistics, nor does a
/// single number, which exporters write as a weight, too.
class RoleFinder {
public:
  explicit RoleFinder(const llvm::DenseSet<StringAttr> &statistics)
      : statistics(statistics) {}

  llvm::DenseSet<StringAttr> find(ProgramOp program) {
    for (BlockArgument input : program.getBody().getArguments())
      if (isFloatTensor(input))
        fromInput.insert(input);
    for (Operation &op : program.getBody().front())
      visit(&op);
    return std::move(parameters);
  }

private:
  /// Adds what `value` is made of, if only of weights and constants; tables of
  /// frequencies are not taken apart. Of at least so many elements.
  bool addWeights(Value value, int64_t leastElements) {
    bool any = false;
    llvm::SetVector<Value> values;
    if (value && ofWeights.contains(value))
      values.insert(value);
    for (size_t i = 0; i < values.size(); ++i) {
      Operation *op = values[i].getDefiningOp();
      if (auto load = dyn_cast<LoadOp>(op))
        any |= addParameter(load, leastElements);
      if (auto unary = dyn_cast<UnaryOp>(op);
          unary &&
          llvm::is_contained({UnaryKind::sin, UnaryKind::cos}, unary.getKind()))
        continue;
      for (Value operand : op->getOperands())
        if (isFloatTensor(operand))
          values.insert(operand);
    }
    return any;
  }
  bool addParameter(LoadOp load, int64_t leastElements) {
    if (!isFloatTensor(load.getResult()) ||
        tensorType(load.getResult()).getNumElements() < leastElements)
      return false;
    StringAttr name = load.getStateAttr().getAttr();
    if (statistics.contains(name))
      return false;
    parameters.insert(name);
    return true;
  }

  void visit(Operation *op) {
    bool made = false;
    auto use = [&](Value value) { made |= addWeights(value, 1); };
    // A single number is no parameter there.
    auto meet = [&](Value value) { made |= addWeights(value, 2); };
    if (auto linear = dyn_cast<LinearOp>(op)) {
      use(linear.getW());
      use(linear.getBias());
    } else if (auto conv = dyn_cast<ConvOp>(op)) {
      use(conv.getW());
      use(conv.getBias());
    } else if (auto conv = dyn_cast<ConvTransposeOp>(op)) {
      use(conv.getW());
      use(conv.getBias());
    } else if (auto norm = dyn_cast<LayerNormOp>(op)) {
      use(norm.getScale());
      use(norm.getBias());
    } else if (auto norm = dyn_cast<RMSNormOp>(op)) {
      use(norm.getScale());
      use(norm.getBias());
    } else if (auto gather = dyn_cast<GatherOp>(op)) {
      use(gather.getOperand());
    } else if (auto dot = dyn_cast<DotOp>(op)) {
      auto isData = [&](Value value) {
        return active.contains(value) || fromInput.contains(value);
      };
      if (isData(dot.getLhs()))
        use(dot.getRhs());
      else if (isData(dot.getRhs()))
        use(dot.getLhs());
    } else if (isa<BinaryOp, SelectOp, ConcatOp>(op) &&
               llvm::any_of(op->getOperands(),
                            [&](Value v) { return active.contains(v); })) {
      llvm::for_each(op->getOperands(), meet);
    }
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
    if (isa<LoadOp, ConstantOp>(op) ||
        (op->getNumOperands() && llvm::all_of(op->getOperands(), [&](Value v) {
           return ofWeights.contains(v);
         })))
      ofWeights.insert(op->result_begin(), op->result_end());
  }

  const llvm::DenseSet<StringAttr> &statistics;
  llvm::DenseSet<StringAttr> parameters;
  /// Float values that parameters had a part in, or inputs; values that only
  /// weights and constants make.
  llvm::DenseSet<Value> active, fromInput, ofWeights;
};

struct SelectTrainable : ax::impl::SelectTrainableBase<SelectTrainable> {
  using SelectTrainableBase::SelectTrainableBase;

  void runOnOperation() final {
    llvm::DenseSet<StringAttr> statistics, parameters;
    for (StateOp state : getOperation().getBody().getOps<StateOp>())
      if (state->removeAttr(kStatistic))
        statistics.insert(state.getSymNameAttr());
    for (ProgramOp program : getOperation().getBody().getOps<ProgramOp>())
      for (StringAttr name : RoleFinder(statistics).find(program))
        parameters.insert(name);
    llvm::DenseSet<StringRef> matched;
    for (StateOp state : getOperation().getBody().getOps<StateOp>()) {
      bool isTrainable = parameters.contains(state.getSymNameAttr());
      if (!trainable.empty())
        isTrainable = matches(trainable, state.getSymName(), matched);
      if (matches(frozen, state.getSymName(), matched))
        isTrainable = false;
      state.setTrainable(isTrainable);
    }
    for (ArrayRef<std::string> patterns :
         {ArrayRef<std::string>(trainable), ArrayRef<std::string>(frozen)})
      for (const std::string &pattern : patterns)
        if (!matched.contains(pattern)) {
          getOperation().emitError("no weight is called '") << pattern << "'";
          return signalPassFailure();
        }
    warnOfMerged();
  }

  /// Exporters write equal weights once, which those of a fresh model are.
  void warnOfMerged() {
    llvm::MapVector<StringAttr, SmallVector<LoadOp>> loads;
    for (ProgramOp program : getOperation().getBody().getOps<ProgramOp>())
      if (program.getSymName() != evaluationProgram)
        for (auto load : program.getBody().getOps<LoadOp>())
          loads[load.getStateAttr().getAttr()].push_back(load);
    std::string merged;
    for (auto &[name, of] : loads) {
      size_t uses = 0;
      for (LoadOp load : of)
        uses += llvm::range_size(load.getResult().getUses());
      if (uses > 1 &&
          getOperation().lookupSymbol<StateOp>(name).getTrainable() &&
          tensorType(of.front()).getNumElements() > 1 &&
          knownSplat(of.front().getResult()))
        merged += "\n  " + name.str() + ": " + std::to_string(uses) + " times";
    }
    if (!merged.empty())
      getOperation().emitWarning(
          "weights of equal elements are used several times; if an exporter "
          "merged those of several layers, they train as one:")
          << merged << "\nsee 'Models to train' in docs/training.md";
  }

  static bool matches(ArrayRef<std::string> patterns, StringRef name,
                      llvm::DenseSet<StringRef> &matched) {
    bool any = false;
    for (const std::string &pattern : patterns) {
      llvm::Expected<llvm::GlobPattern> glob =
          llvm::GlobPattern::create(pattern);
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
};

} // namespace
