//===- Prepare.cpp - What depends on weights alone is computed once -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In each stage, operations on states and constants alone are done by the
// program `@prepare`, which runs when the plan is loaded; what others take of
// them becomes prepared states. In a plan that trains these are states that
// stay as they are. As the stage has its layouts by now, `@prepare` is spread
// over the ranks as the stage was, collectives included.
//
//===----------------------------------------------------------------------===//
#include "../Match.h"
#include "ax/Cost/OpCost.h"
#include "ax/Dialect/Actions.h"
#include "ax/Dialect/FunctionFacts.h"
#include "ax/Dialect/Indexing.h"
#include "ax/Dialect/MeshAxes.h"
#include "ax/Dialect/ProgramNames.h"
#include "ax/Dialect/Random.h"
#include "ax/Dialect/ScaledFactor.h"
#include "ax/Passes/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

namespace ax {
#define GEN_PASS_DEF_PREPARE
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

/// Prepared states have at most so many times the bytes of the weights that
/// they are made of: as many as f32 has of 8-bit integers. More memory than
/// that is not to be had by saying nothing.
static constexpr int64_t maxGrowth = 4;
/// What it does not pay to prepare as a whole is made in passing, where it is
/// read. What that is made of stays as it is then, unless that is work.
static constexpr int64_t maxGrowthOfPart = 1;
/// What takes no more memory is prepared whatever it is made of.
static constexpr int64_t smallBytes = 1 << 20;
/// So is what takes some, if each element is much work: a filter of sines.
static constexpr int64_t smallBytesOfWork = 8 << 20;
/// Statistics of weights may be gathered, weights are not.
static constexpr int64_t maxGatheredBytes = 1024;
/// Constants of more bytes are like weights; others are numbers of a formula.
static constexpr int64_t maxNumberBytes = 1024;

namespace {

/// Chooses the values of one stage.
class Chooser {
public:
  /// `changing`: states that programs store, of a plan that trains. What it
  /// prepares is to take no more memory than what that is made of.
  Chooser(StageOp stage, const sharding::Mesh &mesh,
          const llvm::DenseSet<StringAttr> &changing)
      : block(stage.getBody().front()), mesh(mesh), changing(changing),
        most(changing.empty() ? maxGrowth : maxGrowthOfPart) {}

  void run();

  /// What prepared states are to hold, and what computes it, in the order of
  /// the block.
  SmallVector<Value> chosen;
  SmallVector<Operation *> ops;

private:
  int64_t bytesOf(Value value) const {
    return cost::localBytes(tensorType(value), mesh);
  }
  bool canMove(Operation *op) const;
  bool isFixed(Value value) const {
    return fixed.contains(value.getDefiningOp());
  }
  void want(Value value, int64_t growth);
  int64_t bytesBehind(Value value) const;
  bool isWorthwhile(Value value, int64_t growth) const;
  bool canHold(Value value) const;
  bool isMadeInPassing(Value value) const;
  bool isCostly(Value value) const;
  bool isLookedUp(Value value) const;
  bool isReadOnce(Value value) const;
  bool isOfNarrowProducts(Value value) const;
  bool wantParts(Value factor);
  void collect();

  Block &block;
  const sharding::Mesh &mesh;
  const llvm::DenseSet<StringAttr> &changing;
  /// By how much a value that is prepared may be larger.
  const int64_t most;
  /// Operations that depend on no input, and on no state that changes.
  llvm::DenseSet<Operation *> fixed;
  /// By how much values might grow when they were looked at.
  llvm::DenseMap<Value, int64_t> seen;
  llvm::SetVector<Value> wanted;
};

} // namespace

/// Its result is its operand, seen differently, or it is made in passing.
static bool isFree(Operation *op) {
  return isa<ReshapeOp, BroadcastOp, SliceOp, AllSliceOp>(op);
}

/// What `value` is a view of.
static Value originOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isFree(op))
      break;
    value = op->getOperand(cast<OpResult>(value).getResultNumber());
  }
  return value;
}

bool Chooser::canMove(Operation *op) const {
  // A run that has more results than room fails, not the load of its plan.
  if (!isMemoryEffectFree(op) || isRandom(op) || isa<AtMostOp>(op) ||
      op->getNumRegions() != 0)
    return false;
  if (auto load = dyn_cast<LoadOp>(op);
      load && changing.contains(load.getStateAttr().getAttr()))
    return false;
  for (Value result : op->getResults())
    if (!inTime(getLayout(tensorType(result), mesh).usedAxes(), mesh).empty())
      return false;
  if (!isa<AllGatherOp>(op))
    return true;
  // Weights that are spread for the sake of memory stay so.
  Operation *origin = originOf(op->getOperand(0)).getDefiningOp();
  return origin && !isSource(origin) &&
         bytesOf(op->getResult(0)) <= maxGatheredBytes;
}

/// Addends are no state.
bool Chooser::canHold(Value value) const {
  return getLayout(tensorType(value), mesh).partial.empty();
}

/// Element by element, of views of weights.
bool Chooser::isMadeInPassing(Value value) const {
  llvm::SetVector<Value> behind;
  behind.insert(value);
  for (size_t i = 0; i < behind.size(); ++i) {
    Operation *op = behind[i].getDefiningOp();
    if (isSource(op))
      continue;
    if (!isElementwise(op) && !isFree(op))
      return false;
    behind.insert(op->operand_begin(), op->operand_end());
  }
  return true;
}

/// Whether a function that takes many instructions has a part in each element.
bool Chooser::isCostly(Value value) const {
  llvm::SetVector<Value> behind;
  behind.insert(value);
  for (size_t i = 0; i < behind.size(); ++i) {
    Operation *op = behind[i].getDefiningOp();
    if (functionCostOf(op) == FunctionCost::Many &&
        bytesOf(behind[i]) >= bytesOf(value))
      return true;
    behind.insert(op->operand_begin(), op->operand_end());
  }
  return false;
}

/// Whether each reader of the value, which may read it through views, is one
/// that `suits`, and there is one.
static bool haveReaders(Value value, const llvm::DenseSet<Operation *> &fixed,
                        llvm::function_ref<bool(OpOperand &)> suits) {
  SmallVector<Value> views{value};
  bool any = false;
  while (!views.empty())
    for (OpOperand &use : views.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      if (fixed.contains(user)) {
        if (isFree(user))
          llvm::append_range(views, user->getResults());
        continue;
      }
      if (!suits(use))
        return false;
      any = true;
    }
  return any;
}

/// Only a few elements are taken: a lookup makes them in passing, and needs no
/// other table.
bool Chooser::isLookedUp(Value value) const {
  return haveReaders(value, fixed,
                     [&](OpOperand &use) {
                       auto gather = dyn_cast<GatherOp>(use.getOwner());
                       return gather && use.getOperandNumber() == 0 &&
                              bytesOf(gather.getResult()) < bytesOf(value);
                     }) &&
         isMadeInPassing(value);
}

/// Each element is multiplied once, with one row: a kernel does so in passing,
/// and reads what the weight is made of, which is less.
bool Chooser::isReadOnce(Value value) const {
  return bytesOf(value) > smallBytes &&
         cost::isMadeOfFewer(bytesOf(value), bytesBehind(value)) &&
         haveReaders(value, fixed,
                     [&](OpOperand &use) {
                       auto linear = dyn_cast<LinearOp>(use.getOwner());
                       if (!linear || use.getOperandNumber() != 1)
                         return false;
                       std::vector<int64_t> x =
                           cost::localShape(tensorType(linear.getX()), mesh);
                       x.pop_back();
                       return llvm::product_of(x) == 1;
                     }) &&
         isMadeInPassing(value);
}

/// A device multiplies what it was widened from: a GPU floats of eight bits, a
/// processor integers.
bool Chooser::isOfNarrowProducts(Value value) const {
  return haveReaders(value, fixed, [](OpOperand &use) {
    Operation *op = use.getOwner();
    return isProductOfFloat8(op) || isProductOfIntegers(op) ||
           isRoundedByFewBits(op);
  });
}

/// Bytes of the weights that it is made of; 0: it is made of none.
int64_t Chooser::bytesBehind(Value value) const {
  llvm::SetVector<Value> behind;
  behind.insert(value);
  int64_t bytes = 0;
  bool isOfWeights = false;
  for (size_t i = 0; i < behind.size(); ++i) {
    Operation *op = behind[i].getDefiningOp();
    behind.insert(op->operand_begin(), op->operand_end());
    if (!isSource(op))
      continue;
    auto constant = dyn_cast<ConstantOp>(op);
    if (constant && constant.getValue().isSplat())
      continue;
    bytes += bytesOf(behind[i]);
    isOfWeights |= !constant || bytesOf(behind[i]) > maxNumberBytes;
  }
  return isOfWeights ? bytes : 0;
}

/// Whether it is made of weights, and takes not much more memory than they do,
/// or little, if it is not to be made in passing.
bool Chooser::isWorthwhile(Value value, int64_t growth) const {
  int64_t bytes = bytesBehind(value), needed = bytesOf(value);
  if (bytes == 0 || needed <= growth * bytes)
    return bytes > 0;
  return growth > maxGrowthOfPart && needed <= smallBytesOfWork &&
         (needed <= smallBytes || isCostly(value));
}

/// Indices that are known are not checked when they are used.
static bool isIndex(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    return use.getOperandNumber() == indicesOperand &&
           getIndexedSizes(use.getOwner());
  });
}

/// What a factor of narrow products is made of, and nothing that is wider, as
/// what a quantised weight was made of is. False where it has no one scale.
bool Chooser::wantParts(Value factor) {
  std::optional<ScaledFactor> parts = matchScaledInteger(factor);
  if (!parts)
    parts = matchScaledFloat8(factor);
  if (!parts)
    return false;
  for (Value part : {parts->numbers, parts->zero.value, parts->scale.value})
    if (part)
      want(part, most);
  return true;
}

/// `value`, or else as much of what it is made of as there is to gain.
void Chooser::want(Value value, int64_t growth) {
  Value origin = originOf(value);
  int64_t &before = seen[origin];
  if (before >= growth)
    return;
  before = growth;
  Operation *op = origin.getDefiningOp();
  if (isSource(op) || op->getNumOperands() == 0 || isIndex(value) ||
      isLookedUp(origin))
    return;
  if (canHold(origin) && isWorthwhile(origin, growth) && !isReadOnce(origin)) {
    bool isNarrow = isOfNarrowProducts(origin);
    if (!isNarrow)
      wanted.insert(origin);
    if (!isNarrow || wantParts(origin))
      return;
  }
  for (Value operand : op->getOperands())
    want(operand, isElementwise(originOf(operand).getDefiningOp())
                      ? maxGrowthOfPart
                      : most);
}

void Chooser::collect() {
  llvm::DenseSet<Operation *> needed;
  SmallVector<Operation *> left;
  for (Value value : wanted)
    left.push_back(value.getDefiningOp());
  while (!left.empty()) {
    Operation *op = left.pop_back_val();
    if (needed.insert(op).second)
      for (Value operand : op->getOperands())
        left.push_back(operand.getDefiningOp());
  }
  for (Operation &op : block) {
    if (!needed.contains(&op))
      continue;
    ops.push_back(&op);
    for (Value result : op.getResults())
      if (wanted.contains(result))
        chosen.push_back(result);
  }
}

void Chooser::run() {
  for (Operation &op : block.without_terminator())
    if (canMove(&op) && llvm::all_of(op.getOperands(), [&](Value operand) {
          return isFixed(operand);
        }))
      fixed.insert(&op);
  for (Operation &op : block)
    if (!fixed.contains(&op))
      for (Value operand : op.getOperands())
        if (isFixed(operand))
          want(operand, most);
  collect();
}

namespace {

/// By what operations compute, whatever nodes they are of.
struct SameWork : llvm::DenseMapInfo<Operation *> {
  static constexpr OperationEquivalence::Flags ignored =
      static_cast<OperationEquivalence::Flags>(
          OperationEquivalence::IgnoreLocations |
          OperationEquivalence::IgnoreDiscardableAttrs);
  static unsigned getHashValue(const Operation *op) {
    return OperationEquivalence::computeHash(
        const_cast<Operation *>(op), OperationEquivalence::directHashValue,
        OperationEquivalence::ignoreHashValue, ignored);
  }
  static bool isEqual(const Operation *a, const Operation *b) {
    if (a == b)
      return true;
    auto isNone = [](const Operation *op) {
      return op == getEmptyKey() || op == getTombstoneKey();
    };
    return !isNone(a) && !isNone(b) &&
           OperationEquivalence::isEquivalentTo(
               const_cast<Operation *>(a), const_cast<Operation *>(b),
               OperationEquivalence::exactValueMatch,
               /*markEquivalent=*/nullptr, ignored);
  }
};

/// What `@prepare` computes for one stage, and where it is stored: a weight of
/// several layers is prepared once for all of them.
struct Preparation {
  explicit Preparation(StageOp stage) : stage(stage) {}

  StageOp stage;
  llvm::DenseSet<Operation *, SameWork> ops;
  llvm::DenseMap<Value, FlatSymbolRefAttr> states;
};

struct Prepare : ax::impl::PrepareBase<Prepare> {
  using PrepareBase::PrepareBase;

  void runOnOperation() override;

private:
  std::string nameOf(Value value);
  void move(Preparation &to, const Chooser &chooser);
  /// Computes what is chosen and returns the states that are to hold it.
  SmallVector<FlatSymbolRefAttr> store(Preparation &to, const Chooser &chooser);

  llvm::StringSet<> taken;
};
} // namespace

/// That of the weight which it is made of.
std::string Prepare::nameOf(Value value) {
  std::string name = "constant";
  llvm::SetVector<Value> behind;
  behind.insert(value);
  for (size_t i = 0; i < behind.size(); ++i) {
    Operation *op = behind[i].getDefiningOp();
    if (auto load = dyn_cast<LoadOp>(op)) {
      name = load.getState().str();
      break;
    }
    behind.insert(op->operand_begin(), op->operand_end());
  }
  name += ".prepared";
  std::string unique = name;
  for (int number = 1; !taken.insert(unique).second; ++number)
    unique = name + "." + std::to_string(number);
  return unique;
}

SmallVector<FlatSymbolRefAttr> Prepare::store(Preparation &to,
                                              const Chooser &chooser) {
  PlanOp plan = getOperation();
  OpBuilder states(*plan.getBody().getOps<ProgramOp>().begin());
  OpBuilder builder(to.stage.getBody().front().getTerminator());
  IRMapping mapping;
  for (Operation *op : chooser.ops) {
    Operation *made = builder.clone(*op, mapping);
    auto [same, isNew] = to.ops.insert(made);
    if (isNew)
      continue;
    mapping.map(op->getResults(), (*same)->getResults());
    made->erase();
  }
  return llvm::map_to_vector(chooser.chosen, [&](Value chosen) {
    Value value = mapping.lookup(chosen);
    FlatSymbolRefAttr &name = to.states[value];
    if (name)
      return name;
    auto state = StateOp::create(states, chosen.getLoc(), nameOf(chosen),
                                 tensorType(chosen));
    state.setPrepared(true);
    int64_t on = to.stage.getOn();
    state.setStages(ArrayRef<int64_t>(on));
    name = FlatSymbolRefAttr::get(state.getSymNameAttr());
    StoreOp::create(builder, chosen.getLoc(), name, value);
    return name;
  });
}

/// `to` computes and stores what is then loaded.
void Prepare::move(Preparation &to, const Chooser &chooser) {
  // Named by weights, not by what takes their place.
  SmallVector<FlatSymbolRefAttr> names = store(to, chooser);
  for (auto [chosen, name] : llvm::zip_equal(chooser.chosen, names)) {
    Value value = chosen;
    OpBuilder here(value.getDefiningOp());
    value.replaceAllUsesWith(
        LoadOp::create(here, value.getLoc(), value.getType(), name)
            .getResult());
  }
  for (Operation *op : llvm::reverse(chooser.ops))
    if (op->use_empty())
      op->erase();
}

void Prepare::runOnOperation() {
  PlanOp plan = getOperation();
  sharding::Mesh mesh = plan.getMesh();
  llvm::DenseSet<StringAttr> changing;
  plan.walk(
      [&](StoreOp store) { changing.insert(store.getStateAttr().getAttr()); });
  for (Operation &op : plan.getBody().front())
    if (auto name = SymbolTable::getSymbolName(&op))
      taken.insert(name.getValue());
  SmallVector<std::pair<StageOp, Chooser>> stages;
  bool any = false;
  for (ProgramOp program : plan.getBody().getOps<ProgramOp>())
    for (StageOp stage : program.getBody().getOps<StageOp>()) {
      Chooser &chooser =
          stages.emplace_back(stage, Chooser(stage, mesh, changing)).second;
      chooser.run();
      any |= !chooser.chosen.empty();
    }
  if (!any)
    return;
  plan.needVersion(PlanOp::preparedVersion);
  OpBuilder builder = OpBuilder::atBlockEnd(&plan.getBody().front());
  auto prepare = ProgramOp::create(builder, plan.getLoc(), preparationProgram,
                                   builder.getFunctionType({}, {}));
  builder.setInsertionPointToEnd(&prepare.getBody().front());
  std::vector<Preparation> made;
  for (int64_t on = 0, e = mesh.axisSize(meshAxis::pipe); on < e; ++on) {
    auto stage =
        StageOp::create(builder, plan.getLoc(), TypeRange(),
                        "prepare" + std::to_string(on), on, ValueRange());
    // Once, however many micro-batches there are.
    setAction(stage, {Action::Update, 0});
    OpBuilder inside = OpBuilder::atBlockEnd(&stage.getBody().emplaceBlock());
    YieldOp::create(inside, plan.getLoc(), ValueRange());
    made.emplace_back(stage);
  }
  ReturnOp::create(builder, plan.getLoc(), ValueRange());
  for (auto &[stage, chooser] : stages)
    move(made[stage.getOn()], chooser);
}
