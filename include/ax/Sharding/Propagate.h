//===- Propagate.h - From pins to assignments and reshardings ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A graph of operations with rules, and pins: what the strategy asks of some
// factors and tensors. Propagation finds an assignment for every operation, the
// layout of every tensor as produced, and which reshardings stand between.
//
// The result does not depend on the order of Graph::ops. Ties are broken, in
// this order, by: level of the pin, fewer seconds, fewer collectives, mesh axis
// order, tensor number (program order).
//
//===----------------------------------------------------------------------===//
#ifndef AX_SHARDING_PROPAGATE_H
#define AX_SHARDING_PROPAGATE_H

#include "ax/Sharding/Reshard.h"
#include "ax/Sharding/Rule.h"

namespace ax::sharding {

enum class TensorRole {
  /// Result of an op.
  Value,
  /// Given from outside (inputs), stored (state), or known (constants): any
  /// rank can have any part of it for nothing, so it is laid out as its
  /// consumers want, unless pinned.
  Input,
  State,
  Constant,
};

struct GraphTensor {
  /// The name that causes give.
  std::string name;
  std::vector<int64_t> shape;
  ElementBytes elementBytes = 4;
  TensorRole role = TensorRole::Value;
  /// Leaves the program: never partial there.
  bool isOutput = false;
};

struct GraphOp {
  /// The name that causes give.
  std::string name;
  Rule rule;
  /// Tensor numbers, as many as the rule has operands and results.
  std::vector<int> operands;
  std::vector<int> results;
  /// What the whole op takes; element-wise ones may leave it 0.
  double flops = 0;
  /// Names of factors ("k") that causes give; may be empty.
  std::vector<std::string> factorNames;
};

struct Graph {
  std::vector<GraphTensor> tensors;
  std::vector<GraphOp> ops;
};

/// The stronger one comes last. What is asked weakly holds where it is asked,
/// and spreads only where nothing else does.
enum class PinLevel { Weak, Recipe, User };

/// Splits a factor exactly so (an unsplit one: never splits it). With `open`,
/// propagation may split it further. With `anyPlace`, only the axes count: they
/// are reserved for this factor, and where they split it is what its neighbours
/// say (a fused qkv weight: by heads, 3 * 512{col}); neighbours may use fewer
/// of them (grouped queries); when no neighbour says anything, `split` holds,
/// or with `elseWhole` nothing splits it (one key/value head for all ranks). Of
/// two pins of one factor the stronger holds; of two equal ones the last.
struct FactorPin {
  int op = 0;
  int factor = 0;
  DimLayout split;
  PinLevel level = PinLevel::Recipe;
  /// Where it comes from, as the user reads it: "--tp=4".
  std::string cause;
  bool open = false;
  bool anyPlace = false;
  bool elseWhole = false;
};

/// The same for one dimension of a tensor: every consumer finds it so, if need
/// be after a resharding. Of a state: its stored layout. Of an input or output:
/// as it is given or taken. A pinned value is never partial for its consumers.
struct TensorPin {
  int tensor = 0;
  int dim = 0;
  DimLayout split;
  PinLevel level = PinLevel::Recipe;
  std::string cause;
  bool open = false;
  /// False: ops do not learn of it. Where it differs from what they make or
  /// want there is a resharding: a gradient summed where it is stored. A
  /// state's pins never spread.
  bool spreads = true;
};

struct Pins {
  std::vector<FactorPin> factors;
  std::vector<TensorPin> tensors;
};

/// Pins of the factors that dimension `dim` of an operand (or result) is made
/// of, so that together they are split by as much of `axes` as divides evenly,
/// major factor first; whole factors are skipped. Heads of grouped queries:
/// {kv heads, group} by col. Of a dimension made of one factor all of `axes`,
/// even when it does not divide, if that factor may be padded.
std::vector<FactorPin> pinOperandDim(const Graph &graph, int op, int operand,
                                     int dim, const SubAxes &axes,
                                     PinLevel level, const std::string &cause);
std::vector<FactorPin> pinResultDim(const Graph &graph, int op, int result,
                                    int dim, const SubAxes &axes,
                                    PinLevel level, const std::string &cause);

struct PropagateOptions {
  /// Seconds of collectives. Required.
  CostFn cost;
  /// What one rank does.
  double flopsPerSecond = 5e10;
  /// Element-wise work: bytes of results and operands through memory.
  double bytesPerSecond = 1e10;
};

/// Operand `operand` of op `op`; op = -1: the program's output.
struct Use {
  int op = -1;
  int operand = 0;
};

/// One resharding, shared by all uses that want its result.
struct Reshard {
  int tensor = 0;
  /// Starts from the result of this earlier entry of Propagation::reshards, or
  /// from the tensor as produced (-1).
  int source = -1;
  Layout from;
  Layout to;
  /// There is at least one; the last one's result is `to`.
  std::vector<Step> steps;
  double seconds = 0;
  std::vector<Use> uses;
  /// What made it necessary: "k of h.0.mlp.c_proj is split (--tp=4)".
  std::string cause;
};

/// The layouts in which ops take and give their tensors: what propagation
/// decides, and all that resharding goes by. What is in it often is there once,
/// and has a number.
struct Shardings {
  std::vector<Layout> layouts;
  std::vector<SubAxes> axes;
  std::vector<std::string> causes;

  struct Op {
    /// Numbers of layouts.
    std::vector<int> operands, results;
    /// For each factor that is split, and that a pin led to: the numbers of its
    /// axes and of the pin's cause.
    std::vector<std::pair<int, int>> because;
  };
  /// The ops, as in Graph::ops.
  std::vector<Op> ops;
  /// Numbers of the layouts of Graph::tensors: as produced, given (Input) or
  /// stored (State).
  std::vector<int> tensors;

  const Layout &operand(int op, int operand) const {
    return layouts[ops[op].operands[operand]];
  }
  const Layout &tensor(int tensor) const { return layouts[tensors[tensor]]; }
};

struct Decided {
  Shardings shardings;
  /// Pins that could not be followed, and why.
  std::vector<std::string> warnings;
  /// Changes of assignments that were tried: a measure of the work.
  int64_t numTries = 0;
};

struct Resharding {
  /// Sources come before what starts from them; by tensor.
  std::vector<Reshard> reshards;
  /// Predicted.
  double seconds = 0;
  /// An op whose layouts are none that its rule allows, and why; there are no
  /// reshards then.
  std::optional<std::pair<int, std::string>> fault;
};

struct AssignedOp {
  Assignment assignment;
  /// For each factor that is split, the cause of the pin that led there;
  /// empty for others.
  std::vector<std::string> causes;
};

/// What Decided and Resharding say, by factors.
struct Propagation {
  /// The ops, as in Graph::ops. Layouts wanted of operands: operandLayout().
  std::vector<AssignedOp> ops;
  /// The layouts of Graph::tensors: as produced, given (Input) or stored
  /// (State).
  std::vector<Layout> tensors;
  /// Sources come before what starts from them; by tensor.
  std::vector<Reshard> reshards;
  /// Pins that could not be followed, and why.
  std::vector<std::string> warnings;
  /// Predicted seconds of all reshardings.
  double reshardSeconds = 0;
  /// Changes of assignments that were tried: a measure of the work.
  int64_t numTries = 0;
};

/// Propagates through graphs on one mesh, and remembers what it learns of their
/// layouts, rules and reshardings: programs of one plan have most in common.
class Propagator {
public:
  Propagator(const Mesh &mesh, const PropagateOptions &options);
  ~Propagator();

  /// Rules, tensor numbers and pins fit the graph (asserted); the graph has no
  /// cycle. What was propagated before makes no difference to the result.
  Decided decide(const Graph &graph, const Pins &pins);
  /// What stands between ops. Layouts are legal; of what an op makes, those of
  /// its results count.
  Resharding reshard(const Graph &graph, const Pins &pins,
                     const Shardings &shardings);
  Propagation propagate(const Graph &graph, const Pins &pins);

  Resharder &getResharder();

private:
  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// The same, once.
Propagation propagate(const Graph &graph, const Mesh &mesh, const Pins &pins,
                      const PropagateOptions &options);

} // namespace ax::sharding

#endif // AX_SHARDING_PROPAGATE_H
