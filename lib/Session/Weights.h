//===- Weights.h - Other weights for a plan's states ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SESSION_WEIGHTS_H
#define AX_LIB_SESSION_WEIGHTS_H

#include "ax/Runtime/Checkpoint.h"
#include "ax/Runtime/Program.h"
#include "ax/Runtime/World.h"
#include "ax/Session/Session.h"

#include <map>
#include <set>

namespace ax {

using Warn = std::function<void(const std::string &)>;

/// What `useWeights` is given.
struct WeightsRequest {
  /// .safetensors, .npz, or a checkpoint.
  std::string path;
  std::map<std::string, std::string> ties;
  std::vector<std::string> leaveOut;
  /// The names of all of the plan's states.
  std::set<std::string> names;
  /// Where the model's files are.
  std::string folder;
  Warn warn;
  /// Those of this process; there may be others.
  std::vector<int32_t> ranks;
};

/// Replaces the files of the programs' states by the tensors of the file,
/// matched as GivenWeights.h says with what the model has; of several
/// processes, which all make the call, each reads what its ranks have. A
/// BadInput error lists states that it lacks or has with another type (but for
/// bf16 and f16 in place of f32) or shape, what it has and the plan does not
/// take, and constants of the plan that it has other values for; it is the same
/// in all processes.
llvm::Error useWeights(llvm::ArrayRef<rt::Program *> programs,
                       const WeightsRequest &request, rt::World &world);

/// Lets all processes read the same checkpoint: of those that process 0 finds,
/// the first that is whole for all.
void readTogether(rt::CheckpointReading &reading, rt::World &world);

/// Every state that the first of the programs changes as it is in the
/// checkpoint, and in all of them the weights that its run was given and did
/// not train. It must be of the same model, whose files are in `folder`, and
/// optimizer: otherwise a BadInput error lists what is different.
llvm::Expected<Resumed> resumeFrom(llvm::ArrayRef<rt::Program *> programs,
                                   const std::string &path,
                                   const std::string &folder,
                                   const rt::CheckpointReading &reading);

} // namespace ax

#endif // AX_LIB_SESSION_WEIGHTS_H
