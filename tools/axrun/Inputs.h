//===- Inputs.h - Tensors given to a run, and those it makes ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TOOLS_AXRUN_INPUTS_H
#define AX_TOOLS_AXRUN_INPUTS_H

#include "Options.h"
#include "ax/Runtime/Npy.h"

namespace ax {

/// A value for every input, from all the places that the options name. An
/// error lists what is missing, and what does not fit its input.
llvm::Expected<std::vector<HostTensor>>
readInputs(const RunOptions &options, const std::vector<rt::Port> &inputs);

/// Outputs to compare with, by name; none only when the options ask for none.
llvm::Expected<rt::NamedTensors>
readExpected(const RunOptions &options, const std::vector<rt::Port> &outputs);

/// Whether the files that the options ask for can be made, as far as this can
/// be known before there is anything to write, and destroy nothing that the run
/// reads.
llvm::Error checkDestinations(const RunOptions &options,
                              const Session &session);

/// An archive when `path` ends in .npz, the only output when it ends in .npy,
/// else a folder of .npy files.
llvm::Error writeOutputs(const std::string &path,
                         const rt::NamedTensors &tensors);

} // namespace ax

#endif // AX_TOOLS_AXRUN_INPUTS_H
