//===- Agreement.h - What all processes fail with ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_AGREEMENT_H
#define AX_RUNTIME_AGREEMENT_H

#include "ax/Runtime/World.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace ax::rt {

/// `rank 2 on host 'a'`.
std::string describePlace(const ProcessPlace &place);

/// A text, or an error in its place, for an exchange. What no `encode` made is
/// a RunFailed error.
std::string encode(llvm::Expected<std::string> result);
llvm::Expected<std::string> decode(llvm::StringRef text);

/// Returns, in all processes, what process 0 gets of `fn`, which others do not
/// call.
llvm::Expected<std::string>
share(World &world, llvm::StringRef what,
      llvm::function_ref<llvm::Expected<std::string>()> fn);

/// Returns, in all processes, success where none has an error, and else that of
/// the first that has one: in front of what other processes find is which one
/// it is. `what` names the exchange.
llvm::Error agree(World &world, llvm::StringRef what, llvm::Error mine);

} // namespace ax::rt

#endif // AX_RUNTIME_AGREEMENT_H
