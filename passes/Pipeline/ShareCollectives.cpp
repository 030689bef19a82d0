//===- ShareCollectives.cpp - Small tensors share one reduction -----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ranks wait for one another at every collective, however little it moves. So
// reductions of one list that are of one kind, over the same axes, become one:
// when the tensors of all are there, if nobody has used the first by then.
// (Gathers do not: in a bucket they would make memory early.)
//
//===----------------------------------------------------------------------===//
#include "ax/Cost/StageCost.h"
#include "ax/Passes/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace ax {
#define GEN_PASS_DEF_SHARECOLLECTIVES
#include "ax/Passes/Passes.h.inc"
} // namespace ax

using namespace mlir;
using namespace ax;

/// Moving so much takes many times as long as waiting for one another: a larger
/// bucket would gain nothing, and keep its first tensor from starting early.
static constexpr int64_t bucketBytes = 1 << 20;

namespace {

/// What the collectives of a bucket have in common.
using Key = std::tuple<StringRef, Attribute, Type, sharding::ReduceKind,
                       DictionaryAttr>;

struct Bucket {
  SmallVector<Operation *> members;
  /// Where they are exchanged.
  Operation *at = nullptr;
  int64_t bytes = 0;
};

class Sharer {
public:
  Sharer(StageOp stage, const sharding::Mesh &mesh)
      : block(stage.getBody().front()), mesh(mesh) {}

  void run();

private:
  int64_t bytesOf(Operation *op) const;
  bool canShare(Operation *op) const;
  Key keyOf(Operation *op) const;
  void share(ArrayRef<Operation *> ops);
  bool isTimeSum(Operation *op) const;
  bool isMadeBefore(Value value, Operation *at) const;
  bool join(Bucket &bucket, Operation *op) const;
  void exchange(Bucket &bucket);

  Block &block;
  const sharding::Mesh &mesh;
};

} // namespace

int64_t Sharer::bytesOf(Operation *op) const {
  return cost::payloadBytes(cast<CollectiveOpInterface>(op), mesh);
}

bool Sharer::canShare(Operation *op) const {
  return isa<AllReduceOp, ReduceScatterOp>(op) && op->getNumOperands() == 1 &&
         cost::isSent(cast<CollectiveOpInterface>(op), mesh) &&
         bytesOf(op) < bucketBytes;
}

Key Sharer::keyOf(Operation *op) const {
  RankedTensorType type = tensorType(op->getOperand(0));
  const sharding::Layout &layout = getLayout(type, mesh);
  NamedAttrList attributes(op->getDiscardableAttrDictionary());
  attributes.erase(kNode);
  return {op->getName().getStringRef(),
          cast<CollectiveOpInterface>(op).getMovedAxes(), type.getElementType(),
          layout.partial.empty() ? sharding::ReduceKind::Sum
                                 : layout.partialKind,
          attributes.getDictionary(op->getContext())};
}

/// Sums over slices in time do nothing here: they go where they are wanted.
bool Sharer::isTimeSum(Operation *op) const {
  auto collective = dyn_cast_or_null<CollectiveOpInterface>(op);
  return collective && !cost::isSent(collective, mesh);
}

bool Sharer::isMadeBefore(Value value, Operation *at) const {
  Operation *maker = value.getDefiningOp();
  if (isTimeSum(maker))
    maker = maker->getOperand(0).getDefiningOp();
  return !maker || maker->isBeforeInBlock(at);
}

bool Sharer::join(Bucket &bucket, Operation *op) const {
  if (bucket.bytes + bytesOf(op) > bucketBytes)
    return false;
  if (bucket.at && !isMadeBefore(op->getOperand(0), bucket.at)) {
    for (Operation *member : bucket.members)
      for (Operation *user : member->getUsers())
        if (user->isBeforeInBlock(op))
          return false;
    bucket.at = op;
  }
  if (!bucket.at)
    bucket.at = op;
  bucket.members.push_back(op);
  bucket.bytes += bytesOf(op);
  return true;
}

/// `CAUSE, and 3 more`.
static StringAttr causeOf(ArrayRef<Operation *> members) {
  auto first = cast<CollectiveOpInterface>(members[0]).getCause();
  size_t others = llvm::count_if(members, [&](Operation *member) {
    return cast<CollectiveOpInterface>(member).getCause() != first;
  });
  if (!first || others == 0)
    return first;
  return StringAttr::get(first.getContext(),
                         first.getValue() + ", and " + Twine(others) + " more");
}

void Sharer::exchange(Bucket &bucket) {
  Bucket full = std::exchange(bucket, Bucket());
  if (full.members.size() < 2)
    return;
  SmallVector<Value> operands;
  SmallVector<Type> types;
  for (Operation *member : full.members) {
    Operation *maker = member->getOperand(0).getDefiningOp();
    if (isTimeSum(maker) && full.at->isBeforeInBlock(maker))
      maker->moveBefore(full.at);
    operands.push_back(member->getOperand(0));
    types.push_back(member->getResult(0).getType());
  }
  Operation *first = full.members.front();
  OperationState state(first->getLoc(), first->getName().getStringRef(),
                       operands, types, first->getAttrs());
  OpBuilder builder(full.at);
  Operation *shared = builder.create(state);
  if (StringAttr cause = causeOf(full.members))
    shared->setAttr("because", cause);
  SetVector<StringRef> nodes;
  for (Operation *member : full.members)
    nodes.insert_range(getMergedNodes(member));
  setNodes(shared, nodes.getArrayRef());
  for (auto [member, result] :
       llvm::zip_equal(full.members, shared->getResults())) {
    member->getResult(0).replaceAllUsesWith(result);
    member->erase();
  }
}

/// One bucket at a time, so that what is decided for it still holds when it is
/// exchanged.
void Sharer::share(ArrayRef<Operation *> ops) {
  Bucket bucket;
  for (Operation *op : ops)
    if (!join(bucket, op)) {
      exchange(bucket);
      join(bucket, op);
    }
  exchange(bucket);
}

void Sharer::run() {
  llvm::MapVector<Key, SmallVector<Operation *>> alike;
  for (Operation &op : block)
    if (canShare(&op))
      alike[keyOf(&op)].push_back(&op);
  for (const auto &[key, ops] : alike)
    share(ops);
}

namespace {
struct ShareCollectives : ax::impl::ShareCollectivesBase<ShareCollectives> {
  void runOnOperation() final {
    sharding::Mesh mesh = getOperation().getMesh();
    getOperation().walk([&](StageOp stage) { Sharer(stage, mesh).run(); });
  }
};
} // namespace
