//===- JoinLinears.cpp - Products of one input that are done as one -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An example: queries, keys and values of 128 words, of weights of 384 x 384.
//
//   q = x wq + bq               w = concat wq, wk, wv    once, as weights are
//   k = x wk + bk        ->     b = concat bq, bk, bv    the same in each step
//   v = x wv + bv               y = x w + b              of which q, k and v
//                                                        are slices
//
// A GPU takes as long for one product as for the three, each of which leaves
// most of it idle. So they are small: what the last of them gives is in memory
// from the first on. The weights that lie beside each other are as large as
// those that they are made of, and no weight is in two such, but in equal ones:
// `axl-compute-once` makes them once. Who reads a slice finds rows further
// apart, which libraries and kernels take as they are; what is exchanged or
// given has to be in one piece, and is not made so.
//
//===----------------------------------------------------------------------===//
#include "ForEachStage.h"
#include "Library.h"
#include "ax/Codegen/LocalPasses.h"
#include "ax/Dialect/Tensors.h"
#include "llvm/ADT/MapVector.h"

namespace ax::codegen {
#define GEN_PASS_DEF_JOINLINEARS
#include "ax/Codegen/LocalPasses.h.inc"
} // namespace ax::codegen

using namespace mlir;
using namespace ax;
using namespace ax::codegen;

/// Whether slices of its result will do, whose rows are at multiples of what
/// libraries read at once.
static bool canBeSlice(Value result) {
  constexpr int64_t bytes = 16;
  int64_t rows = llvm::product_of(shapeOf(result).drop_back());
  return rows != 0 && byteSizeOf(result) / rows % bytes == 0 &&
         llvm::none_of(readersOf(result),
                       llvm::IsaPred<LocalYieldOp, LocalCollectiveOpInterface>);
}

/// Whether it is a small product with small weights, with a bias and an
/// activation at most.
static bool isJoinable(Operation *op, const llvm::DenseSet<Value> &fixed) {
  // Reading it takes a GPU about as long as launching a kernel.
  constexpr int64_t smallBytes = 4 << 20;
  // As many elements as half of a large card's multiprocessors do at a time.
  constexpr int64_t fewElements = 1 << 20;
  auto linear = dyn_cast_if_present<LinearOp>(getLibraryCore(op));
  if (!linear || !canBeSlice(op->getResult(0)) ||
      tensorType(op->getResult(0)).getNumElements() > fewElements ||
      byteSizeOf(op->getOperand(1)) > smallBytes ||
      !llvm::all_of(op->getOperands().drop_front(),
                    [&](Value operand) { return fixed.contains(operand); }))
    return false;
  auto library = dyn_cast<LibraryOp>(op);
  if (!library)
    return true;
  bool isMore = library.getResidual() || library.getTranspose() ||
                library.getGradient() || library.getAccumulation() ||
                library.givesInput();
  // A bias of rank 1 is one along the columns.
  return !isMore && (!library.getBias() ||
                     tensorType(library.getBiasOperand().get()).getRank() == 1);
}

static RankedTensorType withColumns(Type type, int64_t columns) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  shape.back() = columns;
  return tensor.clone(shape);
}

/// Whether they differ in nothing but how many columns they give.
static bool areAlike(Operation *a, Operation *b) {
  auto linear = cast<LinearOp>(getLibraryCore(a));
  auto other = cast<LinearOp>(getLibraryCore(b));
  if (a->getOperand(0) != b->getOperand(0) ||
      a->getNumOperands() != b->getNumOperands() ||
      linear.getTransposeW() != other.getTransposeW() ||
      withColumns(a->getResult(0).getType(), 1) !=
          withColumns(b->getResult(0).getType(), 1))
    return false;
  for (auto [x, y] : llvm::zip_equal(a->getOperands(), b->getOperands()))
    if (elementType(x) != elementType(y))
      return false;
  auto library = dyn_cast<LibraryOp>(a), second = dyn_cast<LibraryOp>(b);
  if (!library || !second)
    return !library && !second;
  auto kindOf = [](LibraryOp op) {
    UnaryOp activation = op.getActivation();
    return activation ? activation->getAttrDictionary() : DictionaryAttr();
  };
  return static_cast<bool>(library.getBias()) ==
             static_cast<bool>(second.getBias()) &&
         kindOf(library) == kindOf(second);
}

/// Makes `value`, which is made of states alone, before `place`.
static void hoist(Value value, Operation *place) {
  Operation *maker = value.getDefiningOp();
  if (!maker || maker->isBeforeInBlock(place))
    return;
  for (Value operand : maker->getOperands())
    hoist(operand, place);
  maker->moveBefore(place);
}

/// Makes one product of several, where the first was.
static void join(ArrayRef<Operation *> members) {
  Operation *first = members.front();
  SmallVector<Location> locations;
  int64_t columns = 0;
  for (Operation *member : members) {
    locations.push_back(member->getLoc());
    columns += shapeOf(member->getResult(0)).back();
    for (Value operand : member->getOperands().drop_front())
      hoist(operand, first);
  }
  OpBuilder builder(first);
  Location loc = builder.getFusedLoc(locations);
  bool isTransposed = cast<LinearOp>(getLibraryCore(first)).getTransposeW();
  Operation *whole = first->clone();
  builder.insert(whole);
  whole->setLoc(loc);
  for (unsigned i = 1; i < whole->getNumOperands(); ++i) {
    SmallVector<Value> parts;
    for (Operation *member : members)
      parts.push_back(member->getOperand(i));
    builder.setInsertionPoint(whole);
    bool isAlongRows = i == 1 && !isTransposed;
    setLibraryOperand(
        whole, i,
        ConcatOp::create(builder, loc, parts, /*dim=*/isAlongRows ? 1 : 0));
  }
  whole->walk([&](Operation *op) {
    for (Value result : op->getResults())
      result.setType(withColumns(result.getType(), columns));
  });
  builder.setInsertionPointAfter(whole);
  SmallVector<int64_t> starts(tensorType(whole->getResult(0)).getRank(), 0),
      ones(starts.size(), 1);
  for (Operation *member : members) {
    Value result = member->getResult(0);
    result.replaceAllUsesWith(
        SliceOp::create(builder, member->getLoc(), result.getType(),
                        whole->getResult(0), starts, ones));
    starts.back() += shapeOf(result).back();
  }
  for (Operation *member : members)
    member->erase();
}

namespace {

/// Products that become one.
using Members = SmallVector<Operation *>;

/// Of what weights beside each other are made, and how much of each is left.
class WeightBudget {
public:
  /// Whether all of the members' weights fit, which takes them; or lie beside
  /// each other already.
  bool take(ArrayRef<Operation *> members) {
    SmallVector<Value> weights;
    for (Operation *member : members)
      weights.push_back(member->getOperand(1));
    if (llvm::is_contained(taken, weights))
      return true;
    llvm::SmallDenseMap<Value, int64_t> left;
    for (Value weight : weights) {
      Value source = sourceOf(weight);
      int64_t &bytes = left.try_emplace(source, leftOf(source)).first->second;
      bytes -= byteSizeOf(weight);
      if (bytes < 0)
        return false;
    }
    for (auto [source, bytes] : left)
      all[source] = bytes;
    taken.push_back(std::move(weights));
    return true;
  }

private:
  int64_t leftOf(Value source) const {
    auto known = all.find(source);
    return known == all.end() ? byteSizeOf(source) : known->second;
  }

  /// The largest state that it is made of.
  static Value sourceOf(Value weight) {
    Value largest;
    SmallVector<Value> open{weight};
    while (!open.empty()) {
      Value value = open.pop_back_val();
      if (Operation *maker = value.getDefiningOp())
        llvm::append_range(open, maker->getOperands());
      else if (!largest || byteSizeOf(value) > byteSizeOf(largest))
        largest = value;
    }
    return largest;
  }

  llvm::DenseMap<Value, int64_t> all;
  SmallVector<SmallVector<Value>> taken;
};

struct JoinLinearsPass : codegen::impl::JoinLinearsBase<JoinLinearsPass> {
  void runOnOperation() override {
    forEachStage(getOperation(), [](LocalStageOp stage) {
      // Their weights are operands of the kernel that puts them together, and
      // all results are in memory at once.
      constexpr size_t most = 8;
      llvm::DenseSet<Value> fixed = findFixed(stage, [](Operation *op) {
        return isElementwise(op) || isViewOp(op);
      });
      // Those of one input, of which some differ in more than their columns.
      llvm::MapVector<Value, SmallVector<Members, 1>> groups;
      for (Operation &op : stage.getBlock()) {
        if (!isJoinable(&op, fixed))
          continue;
        SmallVector<Members, 1> &known = groups[op.getOperand(0)];
        auto *alike = llvm::find_if(known, [&](const Members &members) {
          return members.size() < most && areAlike(members.front(), &op);
        });
        if (alike == known.end())
          known.push_back({&op});
        else
          alike->push_back(&op);
      }
      WeightBudget budget;
      for (auto &[x, known] : groups)
        for (const Members &members : known)
          if (members.size() > 1 && budget.take(members))
            join(members);
    });
  }
};

} // namespace
