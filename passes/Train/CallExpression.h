//===- CallExpression.h - `name(first,second,key=value)` --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How losses and optimizers are written on the command line.
//
//===----------------------------------------------------------------------===//
#ifndef AX_PASSES_TRAIN_CALLEXPRESSION_H
#define AX_PASSES_TRAIN_CALLEXPRESSION_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <utility>
#include <vector>

namespace ax {

struct CallExpression {
  std::string name;
  std::vector<std::string> arguments;
  /// Those not taken yet, in the order given.
  std::vector<std::pair<std::string, std::string>> options;
  /// Those that somebody asked for.
  std::vector<std::string> known;

  /// A Usage error for what is no call; it does not repeat the text.
  static llvm::Expected<CallExpression> parse(llvm::StringRef text);

  /// The option's value, which is taken out; `otherwise` when it is not given.
  llvm::Expected<double> takeNumber(llvm::StringRef key, double otherwise);
  llvm::Expected<int64_t> takeInt(llvm::StringRef key, int64_t otherwise);

  /// An error unless there are as many arguments as `names` and no option is
  /// left.
  llvm::Error finish(llvm::ArrayRef<llvm::StringRef> names) const;

  /// The option's text, which is taken out; empty when it is not given.
  std::string take(llvm::StringRef key);
};

} // namespace ax

#endif // AX_PASSES_TRAIN_CALLEXPRESSION_H
