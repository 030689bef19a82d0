//===- Flags.td - The command line of axrun -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

include "ax/Support/Flags.td"

def help1_input : Section<
  "Input", "axrun plan.mlir --input x=x.npy --output out/">;
def help2_output : Section<
  "Output", "axrun plan.mlir --inputs x.npz --expect y.npz --rtol=1e-3">;
def help3_generating : Section<
  "Generating", "axrun plan.mlir --generate=32 --prompt tokens.npy">;
def help4_training : Section<
  "Training", "axrun plan.mlir --data train.npz --steps=100 --save run/">;
def help5_running : Section<
  "Running", "axrun plan.mlir --random-inputs=1 --weights=other.safetensors">;
def help6_looking : Section<
  "Looking into it", "axrun plan.mlir --random-inputs=1 --iterations=100">;
def help7_debugging : Section<
  "Debugging", "axrun plan.mlir --list-commands">;

// In which runs a flag is of use; where it is not, it is an error. Those
// without any are for all.
def ForRuns : OptionFlag;
def ForComparing : OptionFlag;
def ForTiming : OptionFlag;
def ForGenerating : OptionFlag;
def ForSamples : OptionFlag;
def ForTraining : OptionFlag;
def ForSaving : OptionFlag;
def ForEvaluation : OptionFlag;
def ForEvaluationInTraining : OptionFlag;
def ForTracedSteps : OptionFlag;
def ForCards : OptionFlag;
def ForProcesses : OptionFlag;

// Input.
defm input : Value<"input", "NAME=FILE.npy", "Value of an input", help1_input,
                   [Repeatable, Common, ForRuns, ForGenerating]>;
defm inputs : Value<"inputs", "FILE.npz", "Values of inputs by name",
                    help1_input, [Common, ForRuns, ForGenerating]>;
defm test_data : Value<
  "test-data", "DIR",
  "ONNX test-case folder: inputs, and outputs to compare with", help1_input,
  [ForRuns]>;
defm random_inputs : Value<
  "random-inputs", "SEED", "Make up inputs that are not given", help1_input,
  [Natural, Common, ForRuns]>;

// Output.
defm output : Value<
  "output", "FILE|DIR",
  "To FILE.npz, FILE.npy (if it is one), or a folder", help2_output,
  [Common, ForRuns, ForGenerating]>;
defm padded : Switch<
  "padded",
  "Outputs whose number of results data decide as the plan has them: with "
  "padding behind, and NAME.count", help2_output, [ForRuns]>;
defm expect : Value<
  "expect", "FILE|DIR", "Outputs to compare with; exit code 1 if they differ",
  help2_output, [Common, ForRuns]>;
defm rtol : Value<"rtol", "TOLERANCE", "Relative tolerance (1e-3)",
                  help2_output, [Number, ForComparing]>;
defm atol : Value<"atol", "TOLERANCE", "Absolute tolerance (1e-5)",
                  help2_output, [Number, ForComparing]>;

// Generating.
defm generate : Value<
  "generate", "N",
  "Tokens behind those of --prompt, of a decoder that was compiled with --carry",
  help3_generating, [Natural]>;
defm prompt : Value<
  "prompt", "FILE.npy", "Tokens to begin with: [batch, length], or [length]",
  help3_generating, [ForGenerating]>;
defm temperature : Value<
  "temperature", "T",
  "Choose tokens at random, by the softmax of logits / T (0: the likeliest)",
  help3_generating, [Number, ForGenerating]>;
defm top_k : Value<
  "top-k", "K", "Of the K likeliest", help3_generating,
  [Natural, ForGenerating]>;
defm top_p : Value<
  "top-p", "P", "Of the fewest with probability P together (1)",
  help3_generating, [Number, ForGenerating]>;
defm stop : Value<
  "stop", "TOKEN", "A sequence ends behind it", help3_generating,
  [Natural, Repeatable, ForGenerating]>;
defm names : Value<
  "names", "ROLE=NAME",
  "What the plan calls its tokens (input_ids), mask (attention_mask), positions "
  "(position_ids) or logits", help3_generating, [Repeatable, ForGenerating]>;

// Training.
defm data : Value<
  "data", "FILE|DIR",
  "Samples by input, or a file of tokens", help4_training,
  [Common, ForSamples]>;
defm predict : Value<
  "predict", "FILE.npz|DIR",
  "Where the model's outputs for all samples of --data go", help4_training,
  [ForSamples]>;
defm tokens : Value<
  "tokens", "TYPE",
  "--data and --eval are files of nothing but tokens, of two or four bytes "
  "each", help4_training, [ForSamples, ForEvaluation], "uint16,uint32">;
defm steps : Value<"steps", "N", "Steps to train", help4_training,
                   [Integer, Common, ForTraining]>;
defm epochs : Value<
  "epochs", "N", "Times to go through the data, instead of --steps",
  help4_training, [Integer, ForTraining]>;
defm log_every : Value<
  "log-every", "N", "Steps between lines of the log and the console (1)",
  help4_training, [Integer, ForTraining]>;
defm no_shuffle : Switch<
  "no-shuffle", "Samples in the order of the file", help4_training,
  [ForTraining]>;
defm seed : Value<
  "seed", "SEED",
  "Decides the order of samples, and all that is random (0)", help4_training,
  [Natural, ForTraining, ForGenerating]>;
defm log : Value<"log", "FILE", "A line for each step: JSON, or a table (.csv)",
                 help4_training, [Common, ForTraining]>;
defm tensorboard : Value<
  "tensorboard", "DIR", "What --log tells, as events for TensorBoard",
  help4_training, [ForTraining]>;
defm last : Value<
  "last", "WHAT",
  "Samples that make no whole batch at the end of an epoch are left out (drop, "
  "the default), or come with ignored ones beside them (pad)",
  help4_training, [ForTraining], "drop,pad">;
defm on_nonfinite : Value<
  "on-nonfinite", "WHAT",
  "Steps whose loss or gradient is no finite number end the run (stop, the "
  "default), or change nothing (skip)", help4_training, [ForTraining],
  "stop,skip">;
defm save : Value<"save", "DIR", "Folder for checkpoints", help4_training,
                  [Common, ForTraining]>;
defm save_every : Value<
  "save-every", "N", "Steps between checkpoints (none before the end)",
  help4_training, [Integer, ForSaving]>;
defm save_keep : Value<
  "save-keep", "N", "Newest checkpoints that stay (2; 0: all)", help4_training,
  [Integer, ForSaving]>;
defm save_weights : Value<
  "save-weights", "FILE.safetensors", "The states afterwards, in one file",
  help4_training, [ForTraining]>;
defm resume : Value<
  "resume", "DIR", "Checkpoint, or folder of them, to go on from",
  help4_training, [Common, ForTraining]>;
defm eval : Value<
  "eval", "FILE|DIR",
  "Samples to measure with; without --data that is all", help4_training,
  [ForEvaluation]>;
defm eval_every : Value<
  "eval-every", "N", "Steps between measurements (none before the end)",
  help4_training, [Integer, ForEvaluationInTraining]>;
defm metric : Value<
  "metric", "NAME,..",
  "What --eval measures beside the loss: accuracy (part of the labels that are "
  "predicted), perplexity (exponential of the loss), loss", help4_training,
  [CommaSeparated, Repeatable, ForEvaluation], "loss,accuracy,perplexity">;
defm quiet : Switch<"quiet", "No lines about steps, only about --eval",
                    help4_training, [ForTraining]>;

// Running.
defm weights : Value<
  "weights", "FILE|DIR", "Other weights of the same names and shapes",
  help5_running, [Common]>;
defm random_weights : Value<
  "random-weights", "SEED",
  "Make up all weights, whose files need not be there: to measure with",
  help5_running, [Natural]>;
defm model_dir : Value<"model-dir", "DIR", "Folder of the plan's weight files",
                       help5_running>;
defm tied : Value<
  "tied", "WEIGHT=WEIGHT",
  "A weight that --weights lacks gets the values of another one that it has",
  help5_running, [Repeatable]>;
defm leave_out : Value<
  "leave-out", "PATTERN",
  "Tensors of --weights that are not part of the model, by globs over their "
  "names", help5_running, [Repeatable]>;
defm program : Value<
  "program", "NAME", "Which program of the plan to run (the first)",
  help5_running>;
defm device : Value<
  "device", "NAME", "What ranks compute on (cpu, or what AXRUN_DEVICE says)",
  help5_running>;
defm devices : Value<
  "devices", "CARD,..",
  "Which card each rank uses, from 0; several may share one (rank i uses card "
  "i, where there are as many)", help5_running, [ForCards]>;
defm comm : Value<
  "comm", "NAME",
  "How ranks communicate (local; nccl, between cards; mpi or tcp, where a "
  "launcher has started several processes; or what AXRUN_COMM says)", help5_running>;
defm control : Value<
  "control", "HOST:PORT",
  "Where process 0 of several is found by the others, if not at any of its "
  "addresses and a port that is free, or without MPI at MASTER_ADDR, MASTER_PORT "
  "+ 1", help5_running, [ForProcesses]>;
defm threads_per_rank : Value<
  "threads-per-rank", "N",
  "Threads of one rank (0: its share of the cores)",
  help5_running, [Integer, Common]>;
defm flush_denormals : Switch<
  "flush-denormals",
  "Subnormal numbers are 0, which many processors are much faster with",
  help5_running>;
defm tf32 : Switch<
  "tf32", "Products of f32 may round factors to TF32, where that is faster",
  help5_running>;
defm nondeterministic : Switch<
  "nondeterministic",
  "Results may be rounded otherwise in each run, where that is faster: gradients "
  "of attention by cuDNN",
  help5_running>;
defm launch_blocking : Switch<
  "launch-blocking",
  "Wait for each command, so that an error of the device names what made it",
  help5_running>;
defm capture : Value<
  "capture", "WHEN",
  "A step is one graph of the device from the second on: where it can be (auto, "
  "the default), likewise, with why it cannot (on), or never (off)",
  help5_running, [], "auto,on,off">;
defm no_host_fallback : Switch<
  "no-host-fallback",
  "What the device lacks is an error, and not done by the CPU", help5_running>;
defm timeout : Value<
  "timeout", "SECONDS",
  "Seconds without progress of any rank, or word of a process, that end the "
  "run (60; 600 with several processes; 0: never)",
  help5_running, [Number]>;
defm flight_recorder : Value<
  "flight-recorder", "DIR",
  "Folder for what each rank did last: at a failure, and on SIGUSR2",
  help5_running>;
defm cache_dir : Value<"cache-dir", "DIR", "Folder of compiled kernels",
                       help5_running>;

// Looking into it.
defm warmup : Value<"warmup", "N", "Runs before those measured", help6_looking,
                    [Integer, ForTiming]>;
defm iterations : Value<"iterations", "N", "Runs to measure", help6_looking,
                        [Integer, Common, ForRuns]>;
defm in_flight : Value<
  "in-flight", "N", "Runs at the same time, when measuring (one per stage)",
  help6_looking, [Integer, ForTiming]>;
defm profile : OptionalValue<
  "profile", "N",
  "What takes the time, in N lines (20; 0: all)", help6_looking,
  "", [Natural, Common, ForRuns, ForTraining, ForGenerating]>;
defm json : Value<"json", "FILE", "Measurements as JSON", help6_looking,
                  [ForRuns, ForTraining, ForGenerating]>;
defm trace : Value<
  "trace", "FILE", "What each rank did when, for Perfetto", help6_looking,
  [ForRuns, ForTraining, ForGenerating]>;
defm trace_steps : Value<
  "trace-steps", "A..B",
  "Steps of training that --trace, --profile and --json are of (the last)",
  help6_looking, [ForTracedSteps]>;

// Debugging.
defm list_commands : Switch<
  "list-commands", "Print what every stage does, and stop", help7_debugging,
  [Common]>;
defm target : Value<
  "target", "PROCESSOR",
  "What kernels are compiled for, if not for the device: x86-64-v3, sm_90, ...",
  help7_debugging, [Suggested],
  "native,x86-64,x86-64-v2,x86-64-v3,x86-64-v4,sm_80,sm_90,sm_100">;
defm dump_after : Value<
  "dump-after", "STEP", "Print what one rank of each stage does after steps",
  help7_debugging, [CommaSeparated, Repeatable]>;
defm timing : Switch<
  "mlir-timing", "Tell what each of these steps takes", help7_debugging>;
defm separate_kernels : Switch<
  "separate-kernels", "No fusion: every operation is a kernel",
  help7_debugging>;
