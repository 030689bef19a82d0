//===- Weights.h - Other weights for a plan's states ------------*- C++ -*-===//
#ifndef AX_LIB_SESSION_WEIGHTS_H
#define AX_LIB_SESSION_WEIGHTS_H

#include "ax/Runtime/Program.h"
#include "ax/Session/Session.h"

namespace ax {

using Warn = std::function<void(const std::string &)>;

/// Replaces the files of the programs' states by the tensors of `path`
/// (.safetensors, .npz, or a checkpoint), matched as GivenWeights.h says with
/// what the model has, whose files are in `folder`. `names` are those of all of
/// the plan's states. A BadInput error lists states that it lacks or has with
/// another type (but for bf16 and f16 in place of f32) or shape, and trained
/// weights that no program has. The plan's own constants stay.
llvm::Error useWeights(llvm::ArrayRef<rt::Program *> programs,
                       const std::string &path,
                       const std::map<std::string, std::string> &ties,
                       const std::set<std::string> &names,
                       const std::string &folder, const Warn &warn);

/// Every state that `program` changes as it is in the checkpoint, and the
/// weights that its run was given and did not train. It must be of the same
/// model, whose files are in `folder`, and optimizer: otherwise a BadInput error
/// lists what is different.
llvm::Expected<Resumed> resumeFrom(rt::Program &program,
                                   const std::string &path,
                                   const std::string &folder, const Warn &warn);

} // namespace ax

#endif // AX_LIB_SESSION_WEIGHTS_H
