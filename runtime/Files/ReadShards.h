//===- ReadShards.h - Weights as save_pretrained writes them ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_READSHARDS_H
#define AX_RUNTIME_READSHARDS_H

#include "ax/Support/PiecedTensor.h"

#include "llvm/Support/Error.h"

namespace ax::rt {

/// The file to read of a folder, or of an index's path; empty when there is
/// none.
std::string findPretrained(const std::string &path);

/// Says of a folder that has none what was looked for, and what could be given
/// instead.
std::string describeLack(const std::string &folder);

/// All tensors of such a file. BadInput errors name it.
llvm::Expected<NamedPieces> readPretrained(const std::string &path);

/// It, and those that it names.
std::vector<std::string> filesOfPretrained(const std::string &path);

} // namespace ax::rt

#endif // AX_RUNTIME_READSHARDS_H
