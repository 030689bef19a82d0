//===- States.h - Values of states, from the model's files ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_INTERPRETER_STATES_H
#define AX_INTERPRETER_STATES_H

#include "ax/Dialect/Ax.h"
#include "ax/Support/HostTensor.h"
#include "ax/Support/MappedFile.h"

namespace ax::interpreter {

/// Returns the bytes of the state in its file, which `file` keeps mapped, in
/// the model's order. The state is of an imported model, whose plan names the
/// folder. Errors as of MappedFile.
llvm::Expected<llvm::ArrayRef<uint8_t>>
bytesOf(StateOp state, std::shared_ptr<MappedFile> &file);

/// Returns its elements, dealt as it is; BadModel where its type has none at
/// run time.
llvm::Expected<HostTensor> readState(StateOp state);

} // namespace ax::interpreter

#endif // AX_INTERPRETER_STATES_H
