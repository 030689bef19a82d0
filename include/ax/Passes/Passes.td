//===- Passes.td - The passes of axopt ---------------------*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In the order of the phases. A pass runs on whatever holds programs: a module,
// a plan, or one program.
//
//===----------------------------------------------------------------------===//
#ifndef AX_PASSES_PASSES_TD
#define AX_PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Normalize
//===----------------------------------------------------------------------===//

def Normalize : Pass<"ax-normalize"> {
  let summary = "One form for what exporters write in many";
  let description = [{
    Removes what does nothing (identity reshapes, transposes, casts, broadcasts,
    slices, + 0, * 1), merges chains of movement, moves constants and weights to
    the right, moves reshapes below element-wise operations, lets element-wise
    operations broadcast by themselves and contractions transpose by themselves,
    turns lookups with known indices into slices, leaves sums of what a mean was
    taken from, which are 0, out of gradients, and evaluates what depends on constants
    only.
  }];
  let dependentDialects = ["ax::AxDialect"];
}

//===----------------------------------------------------------------------===//
// Raise
//===----------------------------------------------------------------------===//

def RaiseActivation : Pass<"ax-raise-activation"> {
  let summary = "GELU, SiLU, sigmoid, softplus, softmax from primitives";
  let dependentDialects = ["ax::AxDialect"];
}

def RaiseDropout : Pass<"ax-raise-dropout"> {
  let summary = "Dropout of whole branches (stochastic depth) from primitives";
  let description = [{
    A comparison of `ax.uniform` with a number p, divided by p, becomes
    `ax.dropout` of ones; in the evaluation program, which drops nothing, ones.
  }];
  let dependentDialects = ["ax::AxDialect"];
}

def RaiseNorm : Pass<"ax-raise-norm"> {
  let summary = "Layer and RMS normalisation from primitives";
  let dependentDialects = ["ax::AxDialect"];
}

def RaiseLinear : Pass<"ax-raise-linear"> {
  let summary = "Contractions with a weight become `ax.linear`";
  let description = [{
    A weight is anything computed from states and constants alone. Dimensions
    that a reshape had merged in front of the contraction stay separate, so that
    batch and sequence can be split each by itself. A bias that is added to the
    result, directly or after a reshape, is added right behind it, as a vector, and
    to what a convolution gives as [channels, 1...].
  }];
  let dependentDialects = ["ax::AxDialect"];
}

def RaiseAttention : Pass<"ax-raise-attention"> {
  let summary = "softmax(q k^T) v becomes `ax.attention`";
  let description = [{
    Scales (before or after the scores, one or split over q and k), additive and
    selecting masks, soft caps, rows without anything to attend to, heads merged
    into the batch, and key/value heads repeated for groups of query heads are
    taken in. A mask that is known and exactly causal becomes `causal`. So does
    one that beside later keys hides some from all queries, by an input, and
    leaves a mask of these; where the number that hides is finite, rows that see
    nothing are a mean (`empty_rows_mean`). What it hides that is too far back makes
    a `window`; one that ends elsewhere, as one to both sides does, is counted from
    places, a mask of i64. One that holds more stays a mask: finite mask values mean
    something in rows that are masked as a whole.
  }];
  let dependentDialects = ["ax::AxDialect"];
}

//===----------------------------------------------------------------------===//
// Stage
//===----------------------------------------------------------------------===//

def SetMesh : Pass<"ax-set-mesh", "::ax::PlanOp"> {
  let summary = "The plan's mesh, with the axes that the recipes know";
  let options = [
    Option<"tensor", "tp", "::ax::TensorGrid", "::ax::TensorGrid()",
           "T, or ROWSxCOLUMNSxDEPTH">,
    Option<"data", "dp", "int64_t", "1", "Size of data">,
    Option<"context", "cp", "int64_t", "1", "Size of context">,
    Option<"pipe", "pp", "int64_t", "1", "Size of pipe">,
    Option<"micro", "micro-batches", "int64_t", "1", "Size of micro, in time">,
    ListOption<"order", "order", "std::string", "Space axes, outermost first">
  ];
  let dependentDialects = ["ax::AxDialect"];
}

def DealWeights : Pass<"ax-deal-weights", "::ax::PlanOp"> {
  let summary = "Linears of unequal parts: each rank has its share of every part";
  let description = [{
    What a layer gives is read as parts that together are all of it: q of 32
    heads, k and v of 8 each. Where these are not equal, no layout has a share of
    each part for each of the ranks that the layer will be split over. Its weight
    gets the order that has (`dealt` of `ax.state`), with scales, zero points and
    a bias, so that parts are slices of what a rank makes. Not where anything else
    reads these states or sums; and as many ranks have shares as attention has
    heads for.
  }];
  let dependentDialects = ["ax::AxDialect"];
}

def AssignStages : Pass<"ax-assign-stages", "::ax::PlanOp"> {
  let summary = "Gives each operation its pipeline stage, as an attribute";
  let description = [{
    Stages are runs of the program's operations, cut so that the dearest is as
    cheap as can be, or after the nodes that `cut` names. Loads and constants
    belong to every stage that uses them.
  }];
  let options = [
    ListOption<"cut", "cut", "std::string", "Node after which a stage ends">,
    Option<"virtualStages", "virtual-stages", "int64_t", "1",
           "Stages of each coordinate on pipe">
  ];
}

//===----------------------------------------------------------------------===//
// Train
//===----------------------------------------------------------------------===//

def MarkCandidates : Pass<"ax-mark-candidates", "::ax::PlanOp"> {
  let summary = "Marks the states that may be trained";
  let description = [{
    Before anything looks at values: what ax-select-trainable may choose, with the
    same options, is marked (`ax.may_be_trained`), and no pass decides anything by
    its value. Roles are known only when layers are raised, so these are all floats
    but those that flags leave out, that the file declares as buffers, and whose
    values say what they are, unless a layer takes them.
  }];
  let options = [
    ListOption<"trainable", "trainable", "std::string", "States to train">,
    ListOption<"frozen", "frozen", "std::string", "States that stay as they are">
  ];
}

def StraightThrough : Pass<"ax-straight-through", "::ax::PlanOp"> {
  let summary = "Quantised numbers pass gradients to what is rounded";
  let description = [{
    What is quantised and dequantised (`QuantizeLinear`, `DequantizeLinear`), and
    made of states that may be trained, gets the same value from floats alone, of
    which the part that rounding adds is marked `ax.no_gradient`: the gradient is
    that of what is rounded, and zero outside of the range of the integers.
  }];
  let dependentDialects = ["ax::AxDialect"];
}

def SelectTrainable : Pass<"ax-select-trainable", "::ax::PlanOp"> {
  let summary = "Marks the states that are trained";
  let description = [{
    What the model's file declares (`ax.weight_kind`: dynamo exports tell
    parameters from buffers), then by role: weights and biases of Linears,
    convolutions and products, scales and biases of norms, embedding tables, what
    these take as data though no input made it, and what has more than one element
    and meets, in element-wise arithmetic or put beside, something that these
    made, or data that it makes more of; as such, or after arithmetic between
    weights alone. Statistics, tables of sines, masks, progressions and grids are
    none. `trainable` names them instead, `frozen` takes some away; both are globs
    over names of states. A remark tells what was decided, and why.
  }];
  let options = [
    ListOption<"trainable", "trainable", "std::string", "States to train">,
    ListOption<"frozen", "frozen", "std::string", "States that stay as they are">
  ];
}

def AddMasterWeights : Pass<"ax-add-master-weights", "::ax::PlanOp"> {
  let summary = "Trained weights of f16 and bf16 are kept in f32";
  let description = [{
    The state becomes f32, read from its file `as` what it was there, and each
    use reads it rounded to that. Where the model itself widens a weight to f32
    before it computes, it gets the f32. What is not trained stays as it is.
  }];
  let dependentDialects = ["ax::AxDialect"];
}

def AddDropout : Pass<"ax-add-dropout", "::ax::PlanOp"> {
  let summary = "Dropout where exporters removed it, and what it depends on";
  let description = [{
    With a `rate`, dropout is put where transformers have it: on the sum of
    embeddings (behind the norm if nothing else reads the sum), on attention
    probabilities, and on what Linears give before it is added to the residual.
    All that is random, also in the model itself, then reads the states
    `random.seed` and `optimizer.step`.
  }];
  let options = [
    Option<"rate", "rate", "::ax::Decimal", "0", "Part of the elements that become 0">
  ];
  let dependentDialects = ["ax::AxDialect"];
}

def AddLoss : Pass<"ax-add-loss"> {
  let summary = "The loss behind the model's outputs";
  let description = [{
    Adds results of the roles `loss_sum` and `loss_count`, both f32 scalars: the
    loss is their quotient, and the sum is what is differentiated. They have
    these names, too; outputs of the model may have them besides. `OUTPUT` is an output
    of the model (`logits`: its only one), `LABELS` or `TARGET` a new input, or
    one that has the type which the loss needs.

    - `cross_entropy(OUTPUT,LABELS,ignore_index=-100,label_smoothing=0,shift=0,
      class_dim=-1)`: labels are i64, of the output's shape without the classes.
      Position i of the last dimension is compared with label i + `shift`.
    - `mse(OUTPUT,TARGET)`, `l1(OUTPUT,TARGET)`, `bce_with_logits(OUTPUT,TARGET)`:
      every element counts.
    - `graph(OUTPUT,mean|sum)`: a loss that the model computes, taken as it is.

    With `scaled`, or where anything of f16 depends on a trained weight, the sum to
    differentiate has the role `scaled_loss_sum`: times the loss scale, which the
    state `optimizer.loss_scale` is the exponent of.
  }];
  let options = [
    Option<"loss", "loss", "::ax::Loss", "::ax::Loss()",
           "cross_entropy(logits,labels)">,
    Option<"scaled", "scaled", "bool", "false",
           "Of gradients in f16: times a scale that changes">
  ];
  let dependentDialects = ["ax::AxDialect"];
}

def Differentiate : Pass<"ax-differentiate"> {
  let summary = "The gradient of the loss in every state that is trained";
  let description = [{
    Reverse mode over the program. Beside its results the program then returns,
    in the order of the plan's states, the gradient of each trainable state that
    the loss depends on, with `ax.gradient_of = @STATE`; a remark names the others, which
    stay as they are. Integers, booleans and operations marked `ax.no_gradient`
    carry no gradient, and nothing is computed for states that are not trainable.
    New operations have `ax.action = "B"`, and stage and name of the operation that
    they go through.
  }];
  let options = [
    Option<"loss", "loss", "std::string", "\"\"",
           "Result to differentiate; by default what ax-add-loss added, else the "
           "only scalar float one">,
    ListOption<"trainable", "trainable", "std::string",
               "States to train: an error where none of a pattern's has a "
               "gradient">
  ];
}

def RoundActivations : Pass<"ax-round-activations", "::ax::PlanOp"> {
  let summary = "One type for all who read a value";
  let description = [{
    Of a program whose products will be of 16 bits: a value that one of them
    reads, rounded, and something else, too, is rounded for all, and so is its
    gradient. That is done to what is made of products and weights alone,
    element by element, by moves, pools or batch norms; in the block of a
    residual network, to what goes on to the next. What other norms, softmax,
    inputs and weights that scale a sum have part in stays in f32.
  }];
  let options = [
    Option<"type", "type", "::ax::Precision", "::ax::Precision()",
           "fp32, bf16, fp16 or fp8">
  ];
  let dependentDialects = ["ax::AxDialect"];
}

def SetFloat8 : Pass<"ax-set-float8", "::ax::PlanOp"> {
  let summary = "Linears, and their gradients, with factors of eight bits";
  let description = [{
    With `fp8`, of a program that trains. A tensor is rounded times a scale that
    goes by its largest magnitudes (amax) in the steps before; results are divided
    by the scales of both factors. What is kept of a tensor is a new state,
    `fp8.WEIGHT`, `fp8.NODE.input` or `fp8.NODE.gradient`: its scale, and then the
    amax of each step, the last one first. Left out are Linears that patterns do
    not name, and those of which a dimension is no multiple of 16.
  }];
  let options = [
    Option<"type", "type", "::ax::Precision", "::ax::Precision()",
           "fp8(format=e4m3,history=16), or another, which does nothing">
  ];
  let dependentDialects = ["ax::AxDialect"];
}

def SetPrecision : Pass<"ax-set-precision", "::ax::PlanOp"> {
  let summary = "Contractions in a narrower type";
  let description = [{
    Of forward and backward pass: operands of Linears, products and convolutions
    are rounded, their results widened again; all else, and so every sum with a
    bias, every norm, softmax and loss, stays in f32, as do weights, gradients'
    sums and the optimizer, and one row times weights that are made of integers of
    eight bits or less, each of which would be rounded for that. With `fp8`, what
    ax-set-float8 has left is bf16.
    Of a plan that does not train, weights are
    rounded at load (ax-prepare).
  }];
  let options = [
    Option<"type", "type", "::ax::Precision", "::ax::Precision()",
           "fp32, bf16, fp16 or fp8">
  ];
  let dependentDialects = ["ax::AxDialect"];
}

def AddOptimizer : Pass<"ax-add-optimizer", "::ax::PlanOp"> {
  let summary = "From gradients to new values of the states";
  let description = [{
    Takes the gradients of states and the results of the roles `loss_sum` and
    `loss_count`, stores those that are marked `ax.statistic` in the state of their
    name, drops the model's outputs, and returns results of the roles `loss`,
    `gradient_norm` (before clipping) and `learning_rate`, named so. Gradients are
    divided by the count once, and by the loss scale if there is one, which is
    returned as `loss_scale`. Moments and the number of steps are new states,
    `STATE.exp_avg` and so on. New operations have `ax.action = "U"`.

    Optimizers: docs/training.md lists them; each is a file of
    passes/Train/Optimizer/Rules. Learning-rate schedules: `constant`,
    `linear(warmup=W,steps=N,final=F)`, `cosine(...)`. Groups: `PATTERN|rank<N:`
    `lr=...,weight_decay=...`; the last that matches a state counts. Frozen rows
    have no gradient, no decay, and moments that stay zero.
  }];
  let options = [
    Option<"optimizer", "optimizer", "::ax::Optimizer", "::ax::Optimizer()",
           "adamw(lr=1e-3,weight_decay=0.01)">,
    Option<"learningRateSchedule", "lr-schedule", "::ax::LearningRateSchedule",
           "::ax::LearningRateSchedule()", "cosine(warmup=100,steps=1000)">,
    ListOption<"groups", "param-group", "::ax::ParameterGroup",
               "Other options for some states">,
    Option<"clipNorm", "clip-norm", "::ax::Decimal", "0",
           "Largest global norm of the gradient; 0: any">,
    ListOption<"frozenRows", "frozen-rows", "::ax::FrozenRows",
               "Rows of states that stay as they are: PATTERN=ROW,ROW">
  ];
  let dependentDialects = ["ax::AxDialect"];
}

//===----------------------------------------------------------------------===//
// Shard
//===----------------------------------------------------------------------===//

include "ax/Passes/Shard.td"

//===----------------------------------------------------------------------===//
// Recompute
//===----------------------------------------------------------------------===//

def RecomputeForward : Pass<"ax-recompute-forward", "::ax::PlanOp"> {
  let summary = "What the backward pass computes again instead of keeping it";
  let description = [{
    Copies forward operations, as `ax.action = "B"` and `recomputed`, right
    before the first backward operation that needs them. The forward pass is cut
    where little crosses; what crosses is kept, and so are results of reductions
    between ranks, and what jumps (comparisons, indices, whole numbers of floats):
    done again it could differ from what the forward pass went by. After Shard:
    copies have the layouts of what they copy. In every mode, what gathers weights
    that are in parts over `data` (ZeRO 3) is done again.

    - `none`: everything is kept that the backward pass needs.
    - `selective`: what is cheap per byte is computed again: norms, activations,
      all that is no contraction and does not sum much up.
    - `full`: everything between cuts. Gathers are done again, too.
    - `budget:SIZE` (`2GiB`, `500MB`): as much, by bytes per time, as makes the
      memory of a rank fit.
    - anything else: a glob over names of nodes and modules.
  }];
  let options = [
    Option<"mode", "mode", "::ax::RecomputeMode", "::ax::RecomputeMode()",
           "selective">
  ];
  // To predict memory, code is generated.
  let dependentDialects = ["ax::AxlDialect"];
}

//===----------------------------------------------------------------------===//
// Optimize
//===----------------------------------------------------------------------===//

def SinkProducts : Pass<"ax-sink-products"> {
  let summary = "A product stands where its bias or residual is added";
  let description = [{
    Code generation makes one command of a linear or conv, its bias, the activation
    behind it and the sum with a residual, if the library does these in one call. So
    the product waits for what they wait for; collectives are priced and overlapped
    where that is to be seen.
  }];
  let dependentDialects = ["ax::AxDialect"];
}

def TransposeFloat8 : Pass<"ax-transpose-float8"> {
  let summary = "Weights of eight bits lie as products of eight bits read them";
  let description = [{
    GPUs multiply factors of eight bits of which what is summed over lies innermost.
    A Linear's quantised weight, which is widened and times a scale, is transposed
    where it is loaded, and the Linear takes it so. For plans that do not train:
    there that is done once, by `ax-prepare`.
  }];
  let dependentDialects = ["ax::AxDialect"];
}

//===----------------------------------------------------------------------===//
// Pipeline
//===----------------------------------------------------------------------===//

def OutlineStages : Pass<"ax-outline-stages", "::ax::PlanOp"> {
  let summary = "Operations into ax.stage, values between stages into transfers";
  let description = [{
    A value that crosses several stages is forwarded through each. What depends
    on no input is computed wherever it is used. State lists the stages that
    load it; state that nothing loads is dropped.

    A program that trains becomes several stages on each coordinate: forward,
    backward (`ax.action = "B"`) and update (`"U"`). What the backward pass needs
    of the forward pass is kept by the ranks that made it. The update is what
    comes after sums over micro-batches; it is cut (`ax.part`) where one
    coordinate needs what another one makes. Without `--pp` forward and backward
    stay together, and with one micro-batch all of it. The schedule says which
    coordinate has which stages, and whether what the stage before does not wait
    for (gradients of weights) is a list of its own (`"W"`).
  }];
  let options = [
    Option<"schedule", "schedule", "::ax::ScheduleChoice",
           "::ax::ScheduleChoice()", "One of lib/Cost/Schedules">
  ];
}

def Prepare : Pass<"ax-prepare", "::ax::PlanOp"> {
  let summary = "What depends on weights alone is computed once, at load";
  let description = [{
    In each stage, operations on states and constants move to the program
    `@prepare`, which runs once when the states are loaded; what the stage takes of
    them becomes prepared states, in the layout that they have. States that a program
    stores change, and nothing is prepared of them; nor, in a plan with such states,
    what takes more memory than what it is made of.

    A value is prepared if it has at most four times the bytes of the states and
    constants that it is made of (f32 of 8-bit integers), or at most 1 MiB; else
    the rule is asked of what it is made of. Views (reshape, slice, broadcast)
    stay where they are used. Not prepared are addends, indices that are
    constants, what an all-gather gives (weights that are spread for the sake of
    memory stay so; statistics of them of up to a kilobyte are gathered), and
    tables computed element by element of which only rows are looked up: 8-bit
    embeddings stay what they are, and the lookup's kernel makes numbers of the
    rows.
  }];
  let dependentDialects = ["ax::AxDialect"];
}

def Overlap : Pass<"ax-overlap", "::ax::PlanOp"> {
  let summary = "Collectives start early and are waited for late";
  let description = [{
    In every stage: what reduces starts as soon as its operand is there. What
    gathers takes more memory than before: it starts as early as it takes, by the
    cost model, where a started collective makes progress while its rank computes
    (option `overlaps-collectives`), and right before its first use elsewhere. If
    contractions lie between the start and the first use of the result, the
    collective is only started, and `ax.wait` is put before the use. A gradient that
    is reduced to less (`ax.reduce_scatter`) is waited for before the second next such
    one starts: as a whole it holds memory until then. Other operations stay where
    they are.
  }];
  let options = [
    Option<"overlapsCollectives", "overlaps-collectives", "bool", "false",
           "Started collectives make progress while a rank computes">
  ];
  let dependentDialects = ["ax::AxDialect"];
}

def ShareCollectives : Pass<"ax-share-collectives", "::ax::PlanOp"> {
  let summary = "Small tensors share one reduction";
  let description = [{
    In each list of operations: all-reduces, or reduce-scatters, over the same
    axes, of one element type and one kind of sum, become one, up to 1 MiB a rank.
    It stands where the tensors of all are there and nobody has used a result. So
    the gradients of a step take one reduction for each bucket.
  }];
}

def Schedule : Pass<"ax-schedule", "::ax::PlanOp"> {
  let summary = "The order of each stage's actions";
  let description = [{
    And for how many micro-batches what a stage's lists leave for each other is
    kept. Schedules are lib/Cost/Schedules, as docs/training.md describes them.
  }];
  let options = [
    Option<"policy", "schedule", "::ax::ScheduleChoice",
           "::ax::ScheduleChoice()", "One of lib/Cost/Schedules">
  ];
}

#endif // AX_PASSES_PASSES_TD
