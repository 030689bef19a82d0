//===- Shard.td - From a mesh to layouts -------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In the order in which they run, behind the pass that runs them all.
//
//===----------------------------------------------------------------------===//
#ifndef AX_PASSES_SHARD_TD
#define AX_PASSES_SHARD_TD

include "mlir/Pass/PassBase.td"

def Shard : Pass<"ax-shard", "::ax::PlanOp"> {
  let summary = "Layouts for every tensor, collectives where they differ";
  let description = [{
    All steps, one after another: `ax-decompose-split`, `ax-recipe`,
    `ax-user-pins`, `ax-update-pins`, `ax-propagate`, `ax-insert-reshards`.
    Afterwards every tensor type of the plan has a layout, and every operation
    obeys its rule.
  }];
  let options = [
    Option<"sequenceParallel", "sequence-parallel", "bool", "false",
           "Split what lies between tensor-parallel pairs along the sequence">,
    Option<"zero", "zero", "int64_t", "0",
           "Split over data: optimizer state and gradients (1, 2), weights (3)">,
    ListOption<"pins", "shard", "::ax::ShardPin",
               "Layout of a layer or tensor: PATTERN=LAYOUT">,
    Option<"strict", "strict", "bool", "false",
           "What cannot be split as asked is an error, not a warning">
  ];
}

def DecomposeSplit : Pass<"ax-decompose-split", "::ax::PlanOp"> {
  let summary = "Softmax and norms over what will be split, as small exchanges";
  let description = [{
    Softmax and norms over a dimension that the recipe will split become their
    primitives, so that a row costs an exchange of one or two numbers. What needs
    all of these at once has `ax.gathered`, the number of a dimension. A slice that takes
    every second of such a dimension, or every so many, is one of pairs.
  }];
}

def RecipePins : Pass<"ax-recipe", "::ax::PlanOp"> {
  let summary = "Pins of the strategy that the mesh stands for";
  let description = [{
    Pins (`ax.pins`: `#ax.pin` of tensors, `#ax.factor_pin` of operations) for the
    axes of the plan's mesh: factors of weight contractions, attention heads and
    groups of convolutions over `row` and `col`, the batch over `data`, `depth` and
    `micro`, weights over `depth`, and with `sequence-parallel` what lies between
    tensor-parallel pairs. Each has its reason. Pins that are there stay, and of
    two equal ones the last holds: another strategy can be a pass of its own, in
    place of this one or behind it.
  }];
  let options = [
    Option<"sequenceParallel", "sequence-parallel", "bool", "false",
           "Split what lies between tensor-parallel pairs along the sequence">,
    Option<"strict", "strict", "bool", "false",
           "What cannot be split as asked is an error, not a warning">
  ];
}

def UserPins : Pass<"ax-user-pins", "::ax::PlanOp"> {
  let summary = "Pins that flags ask for, stronger than the recipe's";
  let options = [
    ListOption<"pins", "shard", "::ax::ShardPin",
               "Layout of a layer or tensor: PATTERN=LAYOUT">
  ];
}

def UpdatePins : Pass<"ax-update-pins", "::ax::PlanOp"> {
  let summary = "Pins of where a program that trains updates its weights";
  let description = [{
    A weight's gradient is summed to where the weight is stored, and there it is
    updated. With `zero` > 0 that is one part over `data` for each rank, as are the
    moments (stages 1 and 2 of Rajbhandari et al., arXiv 1910.02054); with 3 the
    weights are stored so, too. What `data` does not divide stays whole. Where
    weights are is what propagation finds with the pins that are there, so this
    comes behind all others.
  }];
  let options = [
    Option<"zero", "zero", "int64_t", "0",
           "Split over data: optimizer state and gradients (1, 2), weights (3)">
  ];
}

def Propagate : Pass<"ax-propagate", "::ax::PlanOp"> {
  let summary = "From pins to the layouts in which operations take and give";
  let description = [{
    Writes an `#ax.sharding` on every operation and input, `ax.sharding`, with the
    reason of every split. Values have no layouts yet, and what an operand has and
    what its user takes may differ. A state is stored in one way: the first program
    that loads it decides, and the others are pinned to it.
  }];
  let options = [
    Option<"strict", "strict", "bool", "false",
           "What cannot be split as asked is an error, not a warning">
  ];
}

def InsertReshards : Pass<"ax-insert-reshards", "::ax::PlanOp"> {
  let summary = "Layouts become types, and collectives stand where they differ";
  let description = [{
    By `ax.sharding` alone, whoever has written it: an operation whose layouts its
    rule does not allow is an error. Uses that want one layout share a resharding,
    and one may start from the result of another. Removes `ax.sharding` and
    `ax.pins`.
  }];
  let options = [
    Option<"zero", "zero", "int64_t", "0",
           "2, 3: gradients are scattered before micro-batches are summed">
  ];
  let dependentDialects = ["ax::AxDialect"];
}

def CarryStates : Pass<"ax-carry-states", "::ax::PlanOp"> {
  let summary = "What a step leaves for the next becomes a state";
  let description = [{
    After Shard: an output that is an input of the next step (`ax.carried`) is
    stored in a state of the input's name, which is zero at first, and the input is
    loaded from it. Until then both are values like any other, laid out as who reads
    and makes them has them; the state has the layout of the input, to which what is
    stored is brought. Programs that carry the same input have one state. With
    micro-batches each would leave another value: that is an error.
  }];
  let dependentDialects = ["ax::AxDialect"];
}

def SumPartials : Pass<"ax-sum-partials", "::ax::PlanOp"> {
  let summary = "Partial sums are added before they are reduced";
  let description = [{
    After Shard: in a tree of additions of which some terms are reduced over the
    same axes before they are added, these are added as they are, and reduced
    once. The gradient's global norm has a term for each parameter, and needs one
    reduction for each set of axes that parameters are split over.
  }];
}

def ExchangeNarrow : Pass<"ax-exchange-narrow", "::ax::PlanOp"> {
  let summary = "What is widened is exchanged before that";
  let description = [{
    After Shard: an all-gather, all-to-all or permute of what casts, additions and
    multiplications make, element by element, of something with fewer bytes, as
    DequantizeLinear does of integers, becomes one of that; these operations are done
    behind it. What else they read is the same along what is exchanged, and in the
    same stage or a constant. Keys and values in f32 that attention alone reads are
    exchanged in its `product_type`.
  }];
}

#endif // AX_PASSES_SHARD_TD
