//===- Agreement.h - What all processes fail with ---------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_RUNTIME_AGREEMENT_H
#define AX_RUNTIME_AGREEMENT_H

#include "ax/Runtime/World.h"

#include "llvm/ADT/ArrayRef.h"
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
/// the first that has one: in front of what others do not find is which one it
/// is. `what` names the exchange.
llvm::Error agree(World &world, llvm::StringRef what, llvm::Error mine);

/// Returns what all have, by their numbers, where none has an error; else that
/// error, as of `agree`.
llvm::Expected<std::vector<std::string>>
agreeOnTexts(World &world, llvm::StringRef what,
             llvm::Expected<std::string> mine);

/// World::gather of values that may be longer than an exchange carries: in
/// pieces, as many for all.
llvm::Expected<std::vector<std::string>>
gatherLong(World &world, llvm::StringRef what, std::string value,
           size_t pieceBytes = size_t(32) << 20);

/// The same of a flag.
llvm::Expected<std::vector<bool>>
agreeOnFlags(World &world, llvm::StringRef what, bool flag, llvm::Error mine);

/// A Usage error in all processes where one has another value of a name than
/// process 0. All give the same names in the same order, without zero bytes.
llvm::Error
agreeOnValues(World &world, llvm::StringRef what,
              llvm::ArrayRef<std::pair<std::string, std::string>> values);

} // namespace ax::rt

#endif // AX_RUNTIME_AGREEMENT_H
