//===- UpdateLists.cpp - What is done once a step, and where --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// From the states that a coordinate holds follows what it has to compute. An
// operation that no stage owns is done by all that need its result; what
// another coordinate owns is sent. So the update is cut into levels, with
// transfers from one level to later ones; everything is done as late as it can
// be, so that little is kept from level to level. What costs nothing is done in
// each level that reads it: a gradient that was added up is kept once, for its
// norm and for the update, which waits for everybody's norms.
//
//===----------------------------------------------------------------------===//
#include "StageLists.h"

using namespace mlir;
using namespace ax;

namespace ax {

class UpdatePlacer {
public:
  UpdatePlacer(StageLists &lists, ProgramOp program, const Placement &placement)
      : lists(lists), placement(placement), body(program.getBody().front()) {}

  void run(const HeldStates &read);

private:
  /// An operation on a coordinate; or, with `value`, what a forward or backward
  /// list made there and other coordinates want.
  struct Node {
    int64_t on = 0;
    Operation *op = nullptr;
    Value value;
    int64_t level = 0;
  };
  using Key = std::tuple<int64_t, Operation *, void *>;

  bool isUpdate(Operation *op) const {
    return op && !placement.isEverywhere(op) &&
           placement.actionOf(op) == Action::Update;
  }
  int64_t coordinateOf(Operation *op, int64_t wanted) const {
    auto stage = placement.stageOf(op);
    return stage ? placement.coordinateOf(*stage) : wanted;
  }
  /// Whether each list of coordinate `on` has what `op` gives for nothing: a
  /// sum over micro-batches of what a list of its own has added up.
  bool isReadyOn(Operation *op, int64_t on) const {
    return placement.isFree(op) && !makerOf(op->getOperand(0), on);
  }
  /// Which node makes `value` for coordinate `on`; none when it is there.
  std::optional<Key> makerOf(Value value, int64_t on) const;
  void addNode(const Key &key);
  /// `on` reads `state`, so it has to know its new value.
  void hold(StringRef state, int64_t on);
  void holdStatesOf(Operation *op, int64_t on);
  void findLevels();
  void fill(const Node &node);
  /// Reads `value` in a list of coordinate `on`.
  void read(Value value, int64_t on, int64_t level);
  StageList &listOf(const Node &node) {
    return lists.list(Action::Update, parts[node.level], node.on);
  }

  StageLists &lists;
  const Placement &placement;
  Block &body;
  llvm::StringMap<StoreOp> stores;
  HeldStates held;
  llvm::DenseMap<Operation *, unsigned> position;
  std::map<Key, size_t> numbers;
  std::vector<Node> nodes;
  /// The numbers of nodes, in the order of the program.
  std::vector<size_t> order;
  /// Level at which a coordinate first has what another one sends.
  std::map<std::pair<int64_t, void *>, int64_t> arrival;
  /// What is free and done in a list though its own is another.
  llvm::DenseSet<std::pair<StageList *, Operation *>> repeated;
  /// The part of each level, without gaps.
  std::map<int64_t, int64_t> parts;
};

} // namespace ax

std::optional<UpdatePlacer::Key> UpdatePlacer::makerOf(Value value,
                                                       int64_t on) const {
  Operation *producer = value.getDefiningOp();
  if (!producer || placement.isEverywhere(producer))
    return std::nullopt;
  int64_t home = coordinateOf(producer, on);
  if (isUpdate(producer))
    return Key(home, producer, nullptr);
  if (home == on)
    return std::nullopt;
  return Key(home, producer, value.getAsOpaquePointer());
}

void UpdatePlacer::hold(StringRef state, int64_t on) {
  if (!held.insert({state.str(), on}).second)
    return;
  if (StoreOp store = stores.lookup(state); store && isUpdate(store))
    addNode({on, store, nullptr});
}

void UpdatePlacer::holdStatesOf(Operation *op, int64_t on) {
  forEachStateRead(op, placement, [&](StringRef state) { hold(state, on); });
}

void UpdatePlacer::addNode(const Key &key) {
  if (!numbers.try_emplace(key, nodes.size()).second)
    return;
  auto [on, op, value] = key;
  nodes.push_back(
      {on, op, value ? Value::getFromOpaquePointer(value) : Value(), 0});
}

void UpdatePlacer::run(const HeldStates &read) {
  for (auto [i, op] : llvm::enumerate(body)) {
    position[&op] = i;
    if (auto store = dyn_cast<StoreOp>(op))
      stores[store.getState()] = store;
  }
  for (const auto &[state, on] : read)
    hold(state, on);
  // Outputs are given by the last coordinate, where the loss is known.
  SmallVector<std::pair<Value, Key>> outputs;
  for (Value value : body.getTerminator()->getOperands())
    if (isUpdate(value.getDefiningOp())) {
      outputs.push_back(
          {value, *makerOf(value, placement.numCoordinates() - 1)});
      addNode(outputs.back().second);
    }
  size_t done = 0;
  auto expand = [&] {
    for (; done < nodes.size(); ++done) {
      Node node = nodes[done];
      if (node.value)
        continue;
      holdStatesOf(node.op, node.on);
      for (Value operand : node.op->getOperands())
        if (auto maker = makerOf(operand, node.on))
          addNode(*maker);
    }
  };
  expand();
  // What only its own update reads.
  for (Operation &op : body)
    if (auto store = dyn_cast<StoreOp>(op); store && isUpdate(store)) {
      bool isHeld = false;
      for (int64_t on = 0; on < placement.numCoordinates(); ++on)
        isHeld |= held.count({store.getState().str(), on}) > 0;
      if (!isHeld)
        hold(store.getState(), coordinateOf(store, 0));
      expand();
    }
  if (nodes.empty())
    return;
  findLevels();
  for (size_t i : order)
    fill(nodes[i]);
  for (auto &[value, key] : outputs) {
    StageList &giver = listOf(nodes[numbers.at(key)]);
    giver.gives.insert(value);
    lists.givers[value] = &giver;
  }
}

void UpdatePlacer::findLevels() {
  for (size_t i = 0; i < nodes.size(); ++i)
    order.push_back(i);
  llvm::stable_sort(order, [&](size_t a, size_t b) {
    return position[nodes[a].op] < position[nodes[b].op];
  });
  auto forMakers = [&](const Node &node, auto fn) {
    if (node.value)
      return;
    for (Value operand : node.op->getOperands())
      if (auto maker = makerOf(operand, node.on))
        fn(nodes[numbers.at(*maker)]);
  };
  int64_t last = 0;
  for (size_t i : order) {
    Node &node = nodes[i];
    forMakers(node, [&](Node &maker) {
      node.level =
          std::max(node.level, maker.level + (maker.on != node.on ? 1 : 0));
    });
    last = std::max(last, node.level);
  }
  for (Node &node : nodes)
    node.level = last;
  for (size_t i : llvm::reverse(order)) {
    Node &node = nodes[i];
    parts[node.level];
    forMakers(node, [&](Node &maker) {
      maker.level =
          std::min(maker.level, node.level - (maker.on != node.on ? 1 : 0));
    });
    if (node.value)
      continue;
    for (Value operand : node.op->getOperands())
      if (auto maker = makerOf(operand, node.on);
          maker && std::get<0>(*maker) != node.on) {
        auto key = std::pair(node.on, operand.getAsOpaquePointer());
        int64_t &level = arrival.try_emplace(key, node.level).first->second;
        level = std::min(level, node.level);
      }
  }
  int64_t part = 0;
  for (auto &[level, number] : parts)
    number = part++;
}

void UpdatePlacer::read(Value value, int64_t on, int64_t level) {
  StageList &here = lists.list(Action::Update, parts[level], on);
  if (placement.isEverywhere(value))
    return;
  Operation *producer = value.getDefiningOp();
  if (!producer)
    return lists.take(here, value, nullptr);
  auto maker = makerOf(value, on);
  if (!maker)
    return lists.take(here, value, &lists.homeOf(producer));
  const Node &node = nodes[numbers.at(*maker)];
  if (node.on == on) {
    if (node.level == level)
      return;
    if (!isReadyOn(producer, on))
      return lists.take(here, value, &listOf(node));
    if (!repeated.insert({&here, producer}).second)
      return;
    read(producer->getOperand(0), on, level);
    here.ops.push_back(producer);
    return;
  }
  int64_t first = arrival.at({on, value.getAsOpaquePointer()});
  StageList &receiver = lists.list(Action::Update, parts[first], on);
  lists.take(receiver, value, &listOf(node));
  if (first != level)
    lists.take(here, value, &receiver);
}

void UpdatePlacer::fill(const Node &node) {
  StageList &here = listOf(node);
  if (node.value)
    return lists.take(here, node.value, &lists.homeOf(node.op));
  for (Value operand : node.op->getOperands())
    read(operand, node.on, node.level);
  here.ops.push_back(node.op);
}

void ax::placeUpdates(StageLists &lists, ProgramOp program,
                      const Placement &placement, const HeldStates &held) {
  UpdatePlacer(lists, program, placement).run(held);
}
