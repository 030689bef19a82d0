//===- Train.h - Steps of a program that trains -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program trains when it stores states and gives `loss`, a scalar.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SESSION_TRAIN_H
#define AX_SESSION_TRAIN_H

#include "ax/Runtime/Npy.h"
#include "ax/Session/Session.h"

#include <chrono>
#include <optional>

namespace ax {

/// What a file of samples holds: arrays, or nothing but tokens.
enum class Tokens { No, U16, U32 };
/// What becomes of samples that make no whole batch at the end of an epoch.
enum class LastBatch { Drop, Pad };
/// What becomes of a step whose loss or gradient is no finite number. In either
/// case it changes nothing.
enum class OnNonfinite { Stop, Skip };
enum class Metric { Loss, Accuracy, Perplexity };
/// Returns the name by which --metric takes it.
llvm::StringRef toString(Metric metric);

struct EvalOptions {
  /// Like TrainOptions::data.
  std::string data;
  /// Loss comes always.
  std::vector<Metric> metrics;
};

struct TrainOptions {
  /// An .npz archive or a folder of .npy files with an array for each input of
  /// the program: the samples, [samples, ...], of which a step takes as many as
  /// the input's first dimension says. Or a file of tokens.
  std::string data;
  Tokens tokens = Tokens::No;
  /// How many steps there are to be in all, those before a checkpoint that is
  /// resumed included.
  int64_t steps = 0;
  /// If not 0, the run goes this many times through the data instead.
  int64_t epochs = 0;
  /// Samples come in the order of a permutation that depends on `seed` and the
  /// epoch alone; otherwise as they are in the file. Nothing: as the checkpoint
  /// says that is resumed.
  std::optional<bool> shuffle;
  std::optional<uint64_t> seed;
  LastBatch last = LastBatch::Drop;
  OnNonfinite onNonfinite = OnNonfinite::Stop;
  /// A line of JSON for each step, or of a table (.csv): step, epoch, its
  /// scalar outputs, seconds, samples a second, memory.
  std::string log;
  /// Folder that gets a file of the same for TensorBoard.
  std::string tensorboard;
  /// Steps between lines of the log and of the console.
  int64_t logEvery = 1;
  /// Folder of checkpoints; one at the end, and every so many steps.
  std::string save;
  int64_t saveEvery = 0;
  int64_t saveKeep = 2;
  /// The states afterwards, in one .safetensors file.
  std::string saveWeights;
  /// Measured at the end, and every so many steps.
  std::optional<EvalOptions> eval;
  int64_t evalEvery = 0;
  /// Steps, the first being 1, of which `onTraced` is told once, behind the
  /// last of them or where the run ends: with the time of each that was done,
  /// and the executor's trace and command times of these alone. 0: the last
  /// step.
  int64_t traceFirst = 0, traceLast = 0;
  std::function<llvm::Error(const std::vector<std::chrono::nanoseconds> &)>
      onTraced;
  /// Whether only what goes wrong is told, and what is measured.
  bool quiet = false;
  std::function<void(const std::string &)> warn;
};

bool isTraining(const rt::Program &program);

/// The files that `data` of a TrainOptions or EvalOptions is in.
std::vector<std::string> filesOfData(const std::string &data,
                                     const std::vector<rt::Port> &inputs);

/// All is done, or the run was asked to end: by SIGTERM, or else by SIGINT or
/// SIGUSR1.
enum class TrainEnd { Done, Interrupted, Terminated };

/// Trains until so many steps are done, or until SIGINT, SIGTERM or SIGUSR1 at
/// any process, after which it saves, too; a second one ends the process.
/// BadInput errors when data does not fit the program, or the checkpoint that
/// is resumed is of another model; RunFailed when the loss is no finite number.
llvm::Expected<TrainEnd> train(Session &session, const TrainOptions &options,
                               llvm::raw_ostream &progress);

/// Measures the states as they are; the session runs an evaluation program.
/// `warn` is told of arrays that it does not take.
llvm::Error evaluate(Session &session, const EvalOptions &options,
                     Tokens tokens, llvm::raw_ostream &progress,
                     const std::function<void(const std::string &)> &warn);

/// The session's outputs for any number of samples, its last batch filled up;
/// `warn` is told of outputs that have no dimension for samples. A Usage error
/// when the session runs a program that trains.
llvm::Expected<rt::NamedTensors>
predict(Session &session, const std::string &data, Tokens tokens,
        const std::function<void(const std::string &)> &warn);

/// The weights as they are now, also those that are not trained, into one
/// .safetensors file; nothing of what an optimizer keeps. Of several processes
/// all make the call, and process 0 writes what it finds in `checkpoint`, a
/// checkpoint of these states, or in one that is made for this, where that is
/// empty, beside the file.
llvm::Error saveWeights(const rt::Executor &executor, const std::string &path,
                        const std::string &checkpoint = "");

} // namespace ax

#endif // AX_SESSION_TRAIN_H
