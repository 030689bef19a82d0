//===- Nests.cpp - Which loops a kernel has -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two things are chosen: how many iterations there are, which threads share,
// and the loops within one. What decides both is what indices need, and only
// going through the kernel tells that, so the Emitter does, with a writer that
// writes nothing, until it wants nothing more.
//
// An example: softmax of [8, 128, 512]. With rows, the choice begins with the
// most iterations, one for each of 2^19 elements. But the sum of a row does not
// depend on the last index: 512 iterations would do it over again. So fewer are
// taken, a prefix of the dimensions each time, and 8 * 128 = 1024 are left,
// each with loops over 512 for the maximum, the sum and the result.
//
// Without rows it begins with one iteration, to see which loops the results
// have: gelu of [8, 128, 512] has one loop over all, whose elements become the
// iterations, and nothing is left within one. Where there are several loops,
// outer ones become iterations as long as the loops within stay long enough to
// pay for what an iteration costs.
//
// That is for a processor. For a GPU, whose threads are many, it begins with
// the most iterations either way: neighbouring threads then do neighbouring
// elements. What is a row's, or a sum's, several threads do together
// (ThreadGroups.h), and at last a thread gets several neighbours
// (EmitLanes.cpp), and a block a tile of what lies in another order
// (EmitTiles.cpp). A scatter has as many iterations as its result has parts
// (`chooseParts`).
//
// It ends: with iterations as they are, loops only get finer (IndexSpace.cpp).
// They are made fewer a bounded number of times, one for each dimension, and
// chosen anew once; what depends on their number begins again then.
//
//===----------------------------------------------------------------------===//

#include "Nests.h"

#include "Emitter.h"
#include "ThreadGroups.h"
#include "ax/Support/Error.h"

using namespace mlir;

namespace ax::codegen {

/// Each way through refines something; sizes have few divisors, so few suffice.
/// More than these are a fault of ours, and an error instead of a hang.
static constexpr int maxAttempts = 64;

std::pair<SmallVector<int64_t>, SmallVector<int64_t>>
splitShape(ArrayRef<int64_t> shape, int64_t total) {
  SmallVector<int64_t> first, rest;
  int64_t left = total, points = 1;
  for (int64_t size : shape)
    points *= size;
  // E.g. [8, 6, 5] at 16: 8 and 2 are in front, 3 and 5 are left.
  for (int64_t size : shape) {
    if (left == 1) {
      rest.push_back(size);
    } else if (size != 0 && left % size == 0) {
      first.push_back(size);
      left /= size;
    } else if (size % left == 0) {
      first.push_back(left);
      rest.push_back(size / left);
      left = 1;
    } else {
      return {{total}, {points / total}};
    }
  }
  return {first, rest};
}

namespace {

/// Writes nothing. Bodies of loops and both sides of choices are gone through
/// once, as when code is written, so that the same is asked of indices.
class DraftWriter final : public KernelWriter {
public:
  Value number(int64_t) final { return {}; }
  Value addIndex(Value, Value) final { return {}; }
  Value mulIndex(Value, Value) final { return {}; }
  Value divIndex(Value, Value) final { return {}; }
  Value remIndex(Value, Value) final { return {}; }
  Value addWrapped(Value, Value) final { return {}; }
  Value minSigned(Value, Value) final { return {}; }
  Value maxSigned(Value, Value) final { return {}; }
  Value isLess(Value, Value) final { return {}; }
  Value isAtLeast(Value, Value) final { return {}; }
  Value both(Value, Value) final { return {}; }
  Value select(Value, Value, Value) final { return {}; }
  Value wide(Value) final { return {}; }
  Value narrow(Value) final { return {}; }

  Value unary(UnaryKind, Value, Type) final { return {}; }
  Value expFlushed(Value) final { return {}; }
  Value binary(BinaryKind, Value, Value, Type) final { return {}; }
  Value compare(CompareKind, Value, Value, Type) final { return {}; }
  Value convert(Value, Type, Type) final { return {}; }
  Value combine(ReduceOpKind, Value, Value, Type) final { return {}; }
  Value neutral(ReduceOpKind, Type) final { return {}; }
  Value zero(Type) final { return {}; }
  Value constant(Attribute, Type) final { return {}; }
  Value random(Value, Value, Value, int64_t) final { return {}; }

  Value tensor(unsigned) final { return {}; }
  Value scalar(unsigned) final { return {}; }
  Value scratch(int64_t) final { return {}; }
  Value table(ConstantOp) final { return {}; }
  Value address(Value, Value, Type) final { return {}; }
  Value load(Value, Value, Type) final { return {}; }
  void store(Value, Value, Value, Type) final {}

  void
  iterations(int64_t,
             function_ref<void(Value, std::pair<Value, Value>)> body) final {
    body({}, {});
  }
  Values loop(Value, Value, ValueRange carried, LoopBody body) final {
    return body({}, carried);
  }
  void dealtLoop(int64_t, int64_t, function_ref<void(ValueRange)> body) final {
    Value point;
    body(point);
  }
  Values dealtReduction(ArrayRef<DealtPoints> points, ValueRange carried,
                        Combining) final {
    for (const DealtPoints &some : points)
      some.body({}, carried);
    return Values(carried.size());
  }
  MaxAndSum dealtMaxAndSum(ArrayRef<DealtPoints> points) final {
    for (const DealtPoints &some : points)
      some.body({}, {});
    return {};
  }
  void meet() final {}
  Value choice(Value, Type, Scalar inside, Scalar outside) final {
    inside();
    outside();
    return {};
  }
  void branch(Value, function_ref<void()> inside,
              function_ref<void()> outside) final {
    if (inside)
      inside();
    if (outside)
      outside();
  }
  Operation *openPlace() final { return nullptr; }
  void at(Operation *, function_ref<void()> body) final { body(); }
  void closePlace(Operation *) final {}
};

class NestChooser {
public:
  NestChooser(FusionOp fusion, Dealing dealing)
      : fusion(fusion), yield(fusion.getBody().front().getTerminator()) {
    nests.dealing = dealing;
  }

  llvm::Expected<KernelNests> choose() {
    if (yield->getNumOperands() == 0)
      return nests;
    chooseFirstIterations();
    for (int i = 0; i != maxAttempts; ++i)
      if (isSettled())
        return std::move(nests);
    return makeErrorf(ExitCode::Internal,
                      "the loops of the kernel of node '{0}' do not settle",
                      getNodeName(fusion));
  }

private:
  ArrayRef<int64_t> shapeOfFirst() {
    return tensorType(yield->getOperand(0)).getShape();
  }
  int64_t pointsOf(Value result) { return tensorType(result).getNumElements(); }

  /// With rows, or dealt out as elements, as many iterations as there are
  /// elements; what rows need makes it fewer. Otherwise one: loops tell
  /// (`chooseFlatIterations`). Each result is to have equally many elements in
  /// each iteration.
  void chooseFirstIterations() {
    areChosen = nests.dealing == Dealing::Elements ||
                llvm::any_of(fusion.getBody().front(),
                             [](Operation &op) { return isRowOp(&op); });
    if (areChosen) {
      nests.iterations = pointsOf(yield->getOperand(0));
      while (nests.iterations > 1 &&
             llvm::any_of(yield->getOperands(), [&](Value result) {
               return pointsOf(result) % nests.iterations != 0;
             }))
        takeFewerIterations();
    }
    if (nests.dealing == Dealing::Elements && hasScattersInParts(fusion))
      chooseParts();
    nests.iterations = std::max<int64_t>(nests.iterations, 1);
    setOuter();
  }

  /// Each part of a scatter's result costs a look at all updates: a few for
  /// each of a card's multiprocessors, and none too small for its threads.
  /// Scatters may have any number of parts.
  void chooseParts() {
    constexpr int64_t mostParts = 512, leastElements = 1024;
    int64_t parts = mostParts;
    for (Value result : yield->getOperands())
      parts = std::min(parts, pointsOf(result) / leastElements);
    auto suits = [&](Value result) {
      Operation *op = result.getDefiningOp();
      return (op && isScatter(op)) || pointsOf(result) % parts == 0;
    };
    while (parts > 1 && !llvm::all_of(yield->getOperands(), suits))
      --parts;
    nests.iterations = parts;
    nests.areParts = true;
  }

  /// An iteration of other size has other loops: all of them are forgotten.
  void setOuter() {
    nests.outer = LoopPlan(splitShape(shapeOfFirst(), nests.iterations).first);
    nests.inner.clear();
    nests.group = ThreadGroup();
    isGrouped = false;
  }

  /// Who does an iteration, once it is known how much that is. Nests that are
  /// dealt out are in one piece: they are chosen anew.
  bool chooseThreads(const Emitter &emitter) {
    if (isGrouped || nests.dealing != Dealing::Elements)
      return false;
    isGrouped = true;
    nests.group = chooseGroup(nests.iterations, emitter.getMostPoints(),
                              emitter.getWidest(), emitter.getColumnLanes(),
                              nests.scratchBytes);
    if (int64_t lanes = emitter.getByteLanes();
        lanes > 1 && nests.group.isMany() && !nests.group.isColumn())
      nests.group =
          chooseGroupOfLanes(nests.iterations, emitter.getMostPoints() / lanes);
    if (nests.group.isMany())
      nests.inner.clear();
    return nests.group.isMany();
  }

  /// The next shorter prefix of the first result's dimensions.
  bool takeFewerIterations() {
    if (nests.iterations <= 1)
      return false;
    int64_t product = 1, best = 1;
    for (int64_t size : shapeOfFirst()) {
      product *= size;
      if (product >= nests.iterations)
        break;
      best = product;
    }
    nests.iterations = best;
    return true;
  }

  /// Makes iterations of results without rows: of their first loop, when it
  /// leaves inner loops long enough.
  bool chooseFlatIterations() {
    areChosen = true;
    int64_t total = pointsOf(yield->getOperand(0));
    if (total <= 1 || llvm::any_of(yield->getOperands(), [&](Value result) {
          return pointsOf(result) != total;
        }))
      return false;
    auto number =
        std::distance(fusion.getBody().front().begin(), yield->getIterator());
    auto found =
        nests.inner.find({number, 0, SmallVector<int64_t, 4>(shapeOfFirst())});
    // There is none where all elements stay what they are.
    if (found == nests.inner.end())
      return false;
    const LoopPlan &plan = found->second;
    auto groups = plan.groups();
    llvm::erase_if(groups,
                   [&](auto &group) { return plan.sizeOf(group) == 1; });
    int64_t product = 1;
    for (auto [i, group] : llvm::enumerate(groups)) {
      bool isCut = llvm::any_of(
          ArrayRef(plan.atoms).slice(group.first, group.second - group.first),
          [](const LoopPlan::Atom &atom) { return !atom.cuts.empty(); });
      int64_t inner = total / (product * plan.sizeOf(group));
      // One loop in all: its elements are the iterations. Otherwise dividing up
      // the iteration's number is to be rare: each loop but the first takes a
      // quotient and a remainder of it. A loop that is cut stays inside, for
      // only loops within an iteration are written in pieces.
      constexpr int64_t leastWithin = 64;
      if (!isCut &&
          (groups.size() == 1 || inner >= (i == 0 ? leastWithin : 1024))) {
        product *= plan.sizeOf(group);
        continue;
      }
      // Else what is in front of a loop that goes over several dimensions.
      for (int k = group.first; i == 0 && !isCut && k != group.second; ++k) {
        int64_t size = plan.atoms[k].size;
        if (total / (product * size) < leastWithin)
          break;
        product *= size;
      }
      break;
    }
    nests.iterations = product;
    return product > 1;
  }

  /// A loop of two or three points leaves LLVM nothing to vectorise: they
  /// become lanes, and the loop around them the innermost. It does not matter
  /// when lanes store, as each point reads and writes its own place; not so
  /// where nests within a point store, those of blocks of rows.
  bool makeLanesOfPairs() {
    constexpr int64_t fewPoints = 3, manyPoints = 8;
    bool isMore = false;
    for (auto &[key, planned] : nests.inner) {
      auto &plan = planned;
      Operation &op =
          *std::next(fusion.getBody().front().begin(), std::get<0>(key));
      bool isOfElements = isa<ReduceOp>(op) &&
                          NestRole(std::get<1>(key)) != NestRole::RowBlocks;
      if (&op != yield && !isOfElements)
        continue;
      auto groups = plan.groups();
      llvm::erase_if(groups,
                     [&](auto &group) { return plan.sizeOf(group) == 1; });
      if (plan.numLanes() > 1 || groups.size() < 2)
        continue;
      int64_t last = plan.sizeOf(groups.back());
      if (last <= fewPoints &&
          plan.sizeOf(groups[groups.size() - 2]) >= manyPoints)
        isMore |= plan.makeLanes(last);
    }
    return isMore;
  }

  bool isSettled() {
    DraftWriter draft;
    Emitter emitter(fusion, nests, draft);
    emitter.run();
    nests.scratchBytes = emitter.getScratchBytes();
    if (emitter.refineNests())
      return false;
    if (emitter.wantsFewerIterations() ? takeFewerIterations()
                                       : !areChosen && chooseFlatIterations()) {
      setOuter();
      return false;
    }
    if (chooseThreads(emitter))
      return false;
    // These are the last to be chosen, as they depend on all loops.
    int64_t before = nests.tiledSize;
    nests.tiledSize = emitter.getWantedTiledSize();
    if (nests.tiledSize != before)
      return false;
    if (nests.dealing == Dealing::Pieces)
      return !makeLanesOfPairs();
    return !(emitter.makeLanes() || emitter.makeTile());
  }

  FusionOp fusion;
  Operation *yield;
  KernelNests nests;
  bool areChosen = false, isGrouped = false;
};

} // namespace

llvm::Expected<KernelNests> chooseNests(FusionOp fusion, Dealing dealing) {
  return NestChooser(fusion, dealing).choose();
}

static std::string nameOf(NestRole role) {
  switch (role) {
  case NestRole::Whole:
    return "whole";
  case NestRole::Elements:
    return "elements";
  case NestRole::Clear:
    return "clear";
  case NestRole::RowBlocks:
    return "blocks of rows";
  case NestRole::ClearBlock:
    return "clear block";
  case NestRole::RowsOfBlock:
    return "rows of block";
  case NestRole::AddBlock:
    return "add block";
  case NestRole::ElementBlocks:
    return "blocks of elements";
  case NestRole::RowsLeft:
    return "rows left";
  case NestRole::First:
    return "first";
  case NestRole::Update:
    return "update";
  case NestRole::InOrder:
    return "in order";
  case NestRole::InGroup:
    return "in group";
  case NestRole::Round:
    return "round";
  case NestRole::Lists:
    return "lists";
  case NestRole::List:
    return "list";
  }
  llvm_unreachable("no such role");
}

void describe(const KernelNests &nests, FusionOp fusion) {
  auto print = [](const LoopPlan &plan) {
    std::string text;
    llvm::raw_string_ostream os(text);
    plan.print(os);
    return text;
  };
  std::string first =
      std::to_string(nests.iterations) + " iterations: " + print(nests.outer);
  if (nests.tiledSize)
    first += ", in tiles of a loop over " + std::to_string(nests.tiledSize);
  if (nests.group.isMany())
    first += ", each by " + std::to_string(nests.group.threads) + " threads" +
             (nests.group.isColumn()
                  ? ", " + std::to_string(nests.group.columns) + " columns"
                  : "");
  if (nests.scratchBytes)
    first += ", " + std::to_string(nests.scratchBytes) + " bytes of scratch";
  std::vector<std::string> ofResults{std::move(first)};
  std::map<int64_t, std::vector<std::string>> ofOps;
  Block &block = fusion.getBody().front();
  int64_t last = std::distance(block.begin(), block.end()) - 1;
  for (const auto &[key, plan] : nests.inner) {
    auto [number, which, sizes] = key;
    if (number == last)
      ofResults.push_back("result " + std::to_string(which) + ": " +
                          print(plan));
    else
      ofOps[number].push_back(nameOf(NestRole(which)) + ": " + print(plan));
  }
  Builder builder(fusion.getContext());
  auto listOf = [&](const std::vector<std::string> &lines) {
    return builder.getStrArrayAttr(
        SmallVector<StringRef>(lines.begin(), lines.end()));
  };
  fusion.setNestsAttr(listOf(ofResults));
  for (auto [number, op] : llvm::enumerate(block))
    if (auto it = ofOps.find(static_cast<int64_t>(number)); it != ofOps.end())
      op.setDiscardableAttr(kNests, listOf(it->second));
}

} // namespace ax::codegen
