//===- Train.h - Steps of a program that trains -----------------*- C++ -*-===//
//
// A program trains when it stores states and gives `loss`, a scalar.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SESSION_TRAIN_H
#define AX_SESSION_TRAIN_H

#include "ax/Session/Session.h"

namespace ax {

struct TrainOptions {
  /// An .npz archive with an array for each input of the program: the samples,
  /// [samples, ...], of which a step takes as many as the input's first
  /// dimension says.
  std::string data;
  int64_t steps = 0;
  /// In the order of a permutation that depends on `seed` and the epoch alone;
  /// otherwise as they are in the file.
  bool shuffle = true;
  uint64_t seed = 0;
  /// A line of JSON for each step: step, its scalar outputs, seconds.
  std::string log;
  /// The states afterwards, in this folder.
  std::string save;
};

bool isTraining(const rt::Program &program);

/// Runs `steps` steps. What is left of the data at the end of an epoch and
/// makes no whole batch is left out. BadInput errors when arrays are missing,
/// do not fit the inputs, or hold less than one batch; RunFailed when the loss
/// is no finite number: the log and the states of the steps before are kept.
llvm::Error train(Session &session, const TrainOptions &options,
                  llvm::raw_ostream &progress);

/// Every state that training changes, into one .safetensors file.
llvm::Error saveStates(rt::Executor &executor, const std::string &path);

} // namespace ax

#endif // AX_SESSION_TRAIN_H
