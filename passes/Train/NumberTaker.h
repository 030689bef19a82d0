//===- NumberTaker.h - Numbers among the options of a call ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_PASSES_TRAIN_NUMBERTAKER_H
#define AX_PASSES_TRAIN_NUMBERTAKER_H

#include "CallExpression.h"

#include <optional>

namespace ax {

/// Returns the shortest of the texts that read as this number.
std::string shortest(double number);

/// Takes numbers out of a call, and remembers the first that is none or lies
/// outside of its range. What is not given stays as it is.
class NumberTaker {
public:
  /// What no rate or number of steps comes near.
  static constexpr double unbounded = 1e30;

  explicit NumberTaker(CallExpression &call) : call(call) {}

  void take(llvm::StringRef key, double &value, double least = 0,
            double largest = unbounded);
  void take(llvm::StringRef key, std::optional<double> &value);
  /// Takes 0 or 1.
  void take(llvm::StringRef key, bool &value);
  /// Takes a whole number that is not negative.
  void take(llvm::StringRef key, int64_t &value);
  /// Any whole number.
  void takeSigned(llvm::StringRef key, int64_t &value);
  /// `betas=B1:B2`, both below 1.
  void takeBetas(double &beta1, double &beta2);
  /// The first fault; then those of CallExpression::finish.
  llvm::Error finish(llvm::ArrayRef<llvm::StringRef> arguments);

  /// The call with every option that it could have, given or not, in the order
  /// in which they were taken: `sgd(lr=0.1,momentum=0,nesterov=0)`.
  std::string describe() const;

private:
  void note(llvm::StringRef key, double value);
  void keep(llvm::Error error);

  CallExpression &call;
  std::string options;
  llvm::Error fault = llvm::Error::success();
};

} // namespace ax

#endif // AX_PASSES_TRAIN_NUMBERTAKER_H
