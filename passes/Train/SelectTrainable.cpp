//===- SelectTrainable.cpp - Which states the optimizer changes -----------===//
#include "ax/Passes/Passes.h"

#include "llvm/ADT/DenseSet.h"
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

/// States by what is done with them. A parameter is what layers use, as such or
/// after arithmetic between weights (1 + scale), or what meets, in element-wise
/// arithmetic, something that parameters made: so a learned position counts, a
/// table of frequencies does not, nor does a single number, which exporters
/// write as a weight, too.
class RoleFinder {
public:
  llvm::DenseSet<StringAttr> find(ProgramOp program) {
    for (BlockArgument input : program.getBody().getArguments())
      if (isFloatTensor(input))
        fromInput.insert(input);
    for (Operation &op : program.getBody().front())
      visit(&op);
    return std::move(parameters);
  }

private:
  static bool isView(Operation *op) {
    return isa<ReshapeOp, TransposeOp, BroadcastOp, SliceOp, CastOp>(op);
  }
  static bool isConstant(Value value) {
    return value.getDefiningOp() && isa<ConstantOp>(value.getDefiningOp());
  }
  /// The load that `value` is a view of, shifted or scaled by constants.
  static LoadOp loadBehind(Value value) {
    Operation *op = value.getDefiningOp();
    while (op) {
      if (isView(op))
        op = op->getOperand(0).getDefiningOp();
      else if (isa<BinaryOp>(op) && isConstant(op->getOperand(1)))
        op = op->getOperand(0).getDefiningOp();
      else if (isa<BinaryOp>(op) && isConstant(op->getOperand(0)))
        op = op->getOperand(1).getDefiningOp();
      else
        break;
    }
    return dyn_cast_or_null<LoadOp>(op);
  }
  bool addParameter(LoadOp load, int64_t leastElements) {
    if (!load || !isFloatTensor(load.getResult()) ||
        tensorType(load.getResult()).getNumElements() < leastElements)
      return false;
    parameters.insert(load.getStateAttr().getAttr());
    return true;
  }
  /// All that a layer's weight is made of, if only of weights and constants.
  bool addLayerWeight(Value weight) {
    bool any = false;
    llvm::SetVector<Value> values;
    if (weight && ofWeights.contains(weight))
      values.insert(weight);
    for (size_t i = 0; i < values.size(); ++i) {
      Operation *op = values[i].getDefiningOp();
      if (auto load = dyn_cast<LoadOp>(op))
        any |= addParameter(load, 1);
      for (Value operand : op->getOperands())
        if (isFloatTensor(operand))
          values.insert(operand);
    }
    return any;
  }

  void visit(Operation *op) {
    bool made = false;
    auto use = [&](Value value) { made |= addLayerWeight(value); };
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
      made |= addParameter(loadBehind(gather.getOperand()), 1);
    } else if (auto dot = dyn_cast<DotOp>(op)) {
      auto isData = [&](Value value) {
        return active.contains(value) || fromInput.contains(value);
      };
      if (isData(dot.getLhs()))
        use(dot.getRhs());
      else if (isData(dot.getRhs()))
        use(dot.getLhs());
    } else if (auto binary = dyn_cast<BinaryOp>(op)) {
      if (active.contains(binary.getLhs()))
        made |= addParameter(loadBehind(binary.getRhs()), 2);
      else if (active.contains(binary.getRhs()))
        made |= addParameter(loadBehind(binary.getLhs()), 2);
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

  llvm::DenseSet<StringAttr> parameters;
  /// Float values that parameters had a part in, or inputs; values that only
  /// weights and constants make.
  llvm::DenseSet<Value> active, fromInput, ofWeights;
};

struct SelectTrainable : ax::impl::SelectTrainableBase<SelectTrainable> {
  using SelectTrainableBase::SelectTrainableBase;

  void runOnOperation() final {
    llvm::DenseSet<StringAttr> parameters;
    for (ProgramOp program : getOperation().getBody().getOps<ProgramOp>())
      for (StringAttr name : RoleFinder().find(program))
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
