//===- SelectTrainable.cpp - Which states the optimizer changes -----------===//
#include "ax/Passes/Passes.h"

#include "llvm/ADT/DenseSet.h"
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

/// States by what is done with them. A parameter is what layers use as such, or
/// what meets, in element-wise arithmetic, something that parameters made: so a
/// learned position counts, a table of frequencies does not, nor does a single
/// number, which exporters write as a weight, too.
class RoleFinder {
public:
  llvm::DenseSet<StringAttr> find(ProgramOp program) {
    for (Operation &op : program.getBody().front())
      visit(&op);
    return std::move(parameters);
  }

private:
  /// The load that `value` is a view of.
  static LoadOp loadBehind(Value value) {
    Operation *op = value.getDefiningOp();
    while (
        isa_and_nonnull<ReshapeOp, TransposeOp, BroadcastOp, SliceOp, CastOp>(
            op))
      op = op->getOperand(0).getDefiningOp();
    return dyn_cast_or_null<LoadOp>(op);
  }
  bool addParameter(Value value, int64_t leastElements = 1) {
    LoadOp load = value ? loadBehind(value) : LoadOp();
    if (!load || !isFloatTensor(load.getResult()) ||
        tensorType(load.getResult()).getNumElements() < leastElements)
      return false;
    parameters.insert(load.getStateAttr().getAttr());
    return true;
  }

  void visit(Operation *op) {
    bool made = false;
    auto use = [&](Value value) { made |= addParameter(value); };
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
    } else if (auto binary = dyn_cast<BinaryOp>(op)) {
      if (active.contains(binary.getLhs()))
        made |= addParameter(binary.getRhs(), 2);
      else if (active.contains(binary.getRhs()))
        made |= addParameter(binary.getLhs(), 2);
    }
    made |= llvm::any_of(op->getOperands(),
                         [&](Value v) { return active.contains(v); });
    if (made)
      for (Value result : op->getResults())
        if (isFloatTensor(result))
          active.insert(result);
  }

  llvm::DenseSet<StringAttr> parameters;
  llvm::DenseSet<Value> active;
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
