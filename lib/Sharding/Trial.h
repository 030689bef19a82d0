//===- Trial.h - Changes of assignments, weighed ----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What a change of ops does to the predicted seconds of everything: of the ops,
// and of the reshardings of all tensors beside them. A move is made up change
// by change, weighed, and taken back; the best of several is then made.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_SHARDING_TRIAL_H
#define AX_LIB_SHARDING_TRIAL_H

#include "PropagateState.h"

namespace ax::sharding::detail {

class Trial {
public:
  explicit Trial(State &state);

  struct Change {
    int op;
    std::vector<Split> factors;
    Passing passing;
  };
  struct Move {
    std::vector<Change> changes;
    double gain = 0;
  };
  /// A changed op with what it was before.
  struct Saved {
    int op;
    std::vector<Split> factors;
    Passing passing;
    const OpLayouts *layouts;
  };

  /// Changes an op, which is not changed yet. Without `passing` it passes what
  /// it passed, but for sums over an axis that splits it now.
  void change(int op, std::vector<Split> factors,
              const Passing *passing = nullptr);
  bool isChanged(int op) const { return places[op] >= 0; }
  /// What is changed, in that order.
  const std::vector<Saved> &changes() const { return saved; }

  /// Takes all changes back.
  void undo();
  /// The same; before that, they become the best move if they gain more.
  void weigh(Move &best);
  /// Makes a move for good.
  void make(const Move &move);

  /// Seconds of all reshardings of the tensor.
  double secondsOf(int tensor) const { return secondsOfTree[tensor]; }

  /// How many changes have been weighed so far, and how many moves made.
  int64_t numWeighed = 0;
  int numMoves = 0;
  /// The number of moves made when the op was changed last.
  int changedAt(int op) const { return movesOf[op]; }

  /// Begins a list of all ops that anything looks at from now on.
  void beginReading();
  void readTensor(int tensor);
  const std::vector<int> &getRead() const { return read; }

private:
  void readOp(int op);
  void takeBack();
  const std::vector<int> &changedTensors();

  /// In seconds: a picosecond, as the prices of paths have. What is less may
  /// come from adding the same numbers in another order, and a change that
  /// gains nothing must not be made, undone and made again.
  static constexpr double leastGain = 1e-12;

  State &state;
  const Graph &graph;
  /// Of each op's own work and of each tensor's reshardings, as they are but
  /// for what is changed.
  std::vector<double> secondsOfOp, secondsOfTree;
  std::vector<int> movesOf;
  std::vector<Saved> saved;
  /// Where in `saved` each op is.
  std::vector<int> places;
  /// Room of functions that are called often.
  std::vector<int> tensorsOfMove;
  std::vector<std::pair<int, int>> opsOfMove;
  std::vector<int> read;
  /// The number of the list that each op was in last.
  std::vector<int> readIn;
  int numLists = 0;
};

} // namespace ax::sharding::detail

#endif // AX_LIB_SHARDING_TRIAL_H
