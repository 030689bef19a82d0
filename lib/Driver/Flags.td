//===- Flags.td - The command line of axopt -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

include "ax/Support/Flags.td"

def help1_input : Section<
  "Input", "axopt model.onnx --dim batch=8 --shape x=8x3x224x224 -o plan.mlir">;
def help2_layout : Section<
  "Layout", "axopt model.onnx --dp=2 --tp=4 -o plan.mlir">;
def help3_training : Section<
  "Training", "axopt model.onnx --train --loss='mse(y,target)' -o plan.mlir">;
def help4_output : Section<
  "Output", "axopt plan.mlir --verify">;
def help5_looking : Section<
  "Looking into it", "axopt model.onnx --tp=2 --explain">;
def help6_debugging : Section<
  "Debugging", "axopt model.onnx --tp=2 --dump-after=shard -o plan.mlir">;

// Input.
defm dim : Value<"dim", "NAME=N", "Size of a symbolic dimension", help1_input,
                 [Repeatable, Common]>;
defm shape : Value<"shape", "INPUT=SHAPE", "Shape of an input: x=8x128",
                   help1_input, [Repeatable, Common]>;
defm eval : Switch<
  "eval",
  "The model in evaluation mode: nothing is dropped, running statistics count",
  help1_input>;
defm unbatched : Value<
  "unbatched", "INPUT",
  "An input whose first dimension does not count samples", help1_input,
  [Repeatable]>;
defm const : Value<"const", "INPUT=FILE.npy", "An input with a fixed value",
                   help1_input, [Repeatable]>;
defm max : Value<
  "max", "NODE=N",
  "Room for N results of a node of which data decide how many there are: by "
  "name or pattern", help1_input, [Repeatable]>;
defm carry : Value<
  "carry", "OUTPUT=INPUT",
  "An output that is an input of the next step, as a cache of keys, and stays on "
  "its ranks: present.*=past_key_values.*", help1_input, [Repeatable]>;
defm prefill : Value<
  "prefill", "NAME=N",
  "Size of a symbolic dimension in another program, `prefill`, over the same "
  "states: for several tokens of a prompt at a time", help1_input, [Repeatable]>;
defm test_data : Value<
  "test-data", "DIR",
  "Take the shapes of inputs from an ONNX test-case folder", help1_input>;

// Layout.
defm tp : Value<"tp", "T|RxCxZ",
                "Tensor parallel: T ways, or rows x columns x depth",
                help2_layout, [Common]>;
defm tp_long : LongName<"tensor-parallel-size", tp>;
defm dp : Value<"dp", "D", "Data parallel: the batch split D ways",
                help2_layout, [Integer, Common]>;
defm dp_long : LongName<"data-parallel-size", dp>;
defm cp : Value<"cp", "C", "Context parallel: the sequence split C ways",
                help2_layout, [Integer]>;
defm cp_long : LongName<"context-parallel-size", cp>;
defm pp : Value<"pp", "P", "Pipeline stages", help2_layout, [Integer, Common]>;
defm pp_long : LongName<"pipeline-parallel-size", pp>;
defm micro_batches : Value<
  "micro-batches", "M", "Slices of the batch, one after another", help2_layout,
  [Integer]>;
defm schedule : Value<
  "schedule", "SCHEDULE",
  "Order of a pipeline that trains", help2_layout>;
defm virtual_stages : Value<
  "virtual-stages", "V", "Parts of the model that each stage has", help2_layout,
  [Integer]>;
defm auto : Switch<
  "auto", "The fastest layout of --devices=N that fits", help2_layout, [Common]>;
defm devices : Value<
  "devices", "N", "Ranks that --auto has; what flags say of the layout stays",
  help2_layout, [Natural]>;
defm dry_run : Value<
  "dry-run", "K", "Run the best K layouts of --auto here, and take the fastest",
  help2_layout, [Natural]>;
defm memory : Value<
  "memory", "SIZE", "What a rank of --auto may need, as 24GiB (what --machine has)",
  help2_layout>;
defm time_limit : Value<
  "time-limit", "SECONDS", "After these --auto tries no other layout (60)",
  help2_layout>;
defm machine : Value<
  "machine", "FILE.yaml|sm_90",
  "What times and memory are predicted for: a file of ax-collectives "
  "--calibrate, or a GPU", help2_layout>;
defm order : Value<
  "order", "AXES",
  "Axes of the mesh, outermost first (pipe,data,context,depth,row,col)",
  help2_layout>;
defm sequence_parallel : Switch<
  "sequence-parallel",
  "Split what lies between tensor-parallel pairs by sequence", help2_layout>;
defm zero : Value<
  "zero", "1|2|3",
  "Split over data and context: optimizer state and gradients (1, 2), and "
  "weights (3)",
  help2_layout, [Integer], "0,1,2,3">;
defm shard : Value<
  "shard", "PATTERN=LAYOUT",
  "Layout of a layer or tensor: colwise, rowwise, replicate, or the text of a "
  "layout", help2_layout, [Repeatable]>;
defm cut : Value<
  "cut", "NODE", "End a pipeline stage after this node or module", help2_layout,
  [Repeatable]>;
defm precision : Value<
  "precision", "fp32|bf16|fp16|fp8(...)",
  "Of Linears, products and convolutions; of training the weights, sums of "
  "gradients and the optimizer stay in fp32", help2_layout, [Suggested],
  "fp32,bf16,fp16,fp8">;
defm strict : Switch<
  "strict", "What cannot be split as asked is an error", help2_layout>;
defm strategy : Value<
  "strategy", "FILE",
  "Read the flags of layout and training from a YAML file; flags beside it win",
  help2_layout>;
defm save_strategy : Value<
  "save-strategy", "FILE",
  "Write the flags of layout and training to a YAML file", help2_layout>;

// Training.
defm train : Switch<"train", "A plan that trains the model", help3_training,
                    [Common]>;
defm loss : Value<
  "loss", "LOSS", "cross_entropy(logits,labels), mse(y,target), ...",
  help3_training, [Common, Suggested],
  "cross_entropy,mse,l1,bce_with_logits,graph">;
defm optimizer : Value<
  "optimizer", "OPTIMIZER", "Rule of a step", help3_training,
  [Common, Suggested]>;
defm lr_schedule : Value<
  "lr-schedule", "SCHEDULE",
  "constant, linear(...) or cosine(warmup=W,steps=N,final=F)", help3_training,
  [Suggested], "constant,linear,cosine">;
defm param_group : Value<
  "param-group", "PATTERN|rank<N:lr=..,weight_decay=..",
  "Other options of the optimizer for some weights", help3_training,
  [Repeatable]>;
defm clip_norm : Value<
  "clip-norm", "NORM", "Largest global norm of the gradient (0: any)",
  help3_training, [Number]>;
defm dropout : Value<
  "dropout", "RATE",
  "Put dropout back where exporters removed it: on embeddings, attention "
  "probabilities, and Linears before the sum with the residual",
  help3_training, [Number]>;
defm batchnorm : Value<
  "batchnorm", "train[:PARTS]|frozen",
  "BatchNormalization by the batch's statistics (train), those of each of so "
  "many parts of it, or the running ones (frozen); as the model says if not "
  "given", help3_training, [Suggested],
  "train,frozen">;
defm recompute : Value<
  "recompute", "MODE",
  "What the backward pass computes again instead of keeping it: none, "
  "selective, full, a glob over names of nodes, or budget:2GiB (as much as "
  "makes a rank fit)", help3_training, [Suggested], "none,selective,full">;
defm checkpoint : LongName<"checkpoint", recompute>;
defm trainable : Value<"trainable", "PATTERN", "Weights to train",
                       help3_training, [Repeatable]>;
defm frozen : Value<"frozen", "PATTERN", "Weights not to train", help3_training,
                    [Repeatable]>;

defm frozen_rows : Value<
  "frozen-rows", "PATTERN=ROW,..", "Rows of weights that stay as they are",
  help3_training, [Repeatable]>;

// Output.
def o : JoinedOrSeparate<["-"], "o">, MetaVarName<"FILE">,
        HelpText<"Where the plan goes (-: standard output)">,
        Group<help4_output>, Flags<[Common]>;
defm output : LongName<"output", o>;
defm compile : Switch<
  "compile", "Compile the plan's kernels too: -o model.axc runs without a "
  "compiler", help4_output>;
defm target : Value<
  "target", "PROCESSOR,..",
  "What --compile is for: native, x86-64, x86-64-v2, x86-64-v3 or x86-64-v4; a "
  "GPU: sm_80, sm_90 or sm_100; of several, runs take what fits best",
  help4_output, [CommaSeparated, Repeatable, Suggested],
  "native,x86-64,x86-64-v2,x86-64-v3,x86-64-v4,sm_80,sm_90,sm_100">;
defm embed_weights : Switch<
  "embed-weights", "With --compile: the weights are in the file, too",
  help4_output>;
defm verify : Switch<"verify", "Only check the plan", help4_output, [Common]>;
defm export_onnx : Value<
  "export-onnx", "FILE.onnx", "Only write the model again, with --weights",
  help4_output, [Common]>;
defm weights : Value<"weights", "FILE|DIR", "Trained weights for --export-onnx",
                     help4_output>;
defm partial : Switch<
  "partial", "Weights that --weights does not have stay what they are",
  help4_output>;
defm quiet : Switch<"quiet", "No summary", help4_output>;
defm tied : Value<
  "tied", "WEIGHT=WEIGHT",
  "A weight that --weights lacks gets the values of another one that it has",
  help4_output, [Repeatable]>;
defm leave_out : Value<
  "leave-out", "PATTERN",
  "Tensors of --weights that are not part of the model, by globs over their "
  "names", help4_output, [Repeatable]>;

// Looking into it.
defm explain : OptionalValue<
  "explain", "text|json",
  "How layers are split, why each collective is there", help5_looking,
  "text,json", [Common]>;
defm inspect : OptionalValue<
  "inspect", "text|all|json",
  "Only tell what is in the model, by name",
  help5_looking, "text,all,json", [Common]>;
defm report : Value<
  "report", "FILE", "JSON of what every rank holds and does", help5_looking>;

// Debugging.
defm dump_after : Value<
  "dump-after", "PHASE", "Print the IR after phases, or steps within them",
  help6_debugging, [CommaSeparated, Repeatable, Common],
  "import,normalize,raise,stage,train,decompose-split,recipe,user-pins,"
  "update-pins,propagate,insert-reshards,shard,recompute,optimize,pipeline">;
defm dump_tensors : Value<
  "dump-tensors", "PATTERN",
  "Intermediate values that the plan gives beside its outputs, by value, node "
  "or module; axrun --output=DIR writes them", help6_debugging, [Repeatable]>;
def mlir : Joined<["--"], "mlir-">, MetaVarName<"NAME">,
           HelpText<"MLIR's own flags, such as --mlir-timing and "
                    "--mlir-print-ir-after=PASS">,
           Group<help6_debugging>, Flags<[Repeatable]>;
