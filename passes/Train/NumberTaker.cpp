//===- NumberTaker.cpp - Numbers among the options of a call --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "NumberTaker.h"

#include "ax/Support/Error.h"
#include "ax/Support/Flags.h"

#include <array>
#include <charconv>
#include <cmath>

using namespace ax;

std::string ax::shortest(double number) {
  std::array<char, 32> text;
  return {text.data(), std::to_chars(text.begin(), text.end(), number).ptr};
}

void NumberTaker::take(llvm::StringRef key, double &value, double least,
                       double largest) {
  llvm::Expected<double> taken = call.takeNumber(key, value);
  if (!taken)
    return keep(taken.takeError());
  if (*taken < least || *taken > largest)
    return keep(makeErrorf(ExitCode::Usage, "{0}: {1}={2} is not {3}",
                           call.name, key, shortest(*taken),
                           largest < unbounded ? "between " + shortest(least) +
                                                     " and " + shortest(largest)
                                               : shortest(least) + " or more"));
  value = *taken;
  note(key, value);
}

void NumberTaker::take(llvm::StringRef key, std::optional<double> &value) {
  double taken = NAN;
  take(key, taken);
  if (!std::isnan(taken))
    value = taken;
}

void NumberTaker::take(llvm::StringRef key, bool &value) {
  std::string text = call.take(key);
  if (!text.empty() && text != "0" && text != "1")
    return keep(makeErrorf(ExitCode::Usage, "{0}: {1}={2} is neither 0 nor 1",
                           call.name, key, text));
  value = text.empty() ? value : text == "1";
  note(key, value);
}

void NumberTaker::takeSigned(llvm::StringRef key, int64_t &value) {
  llvm::Expected<int64_t> taken = call.takeInt(key, value);
  if (!taken)
    return keep(taken.takeError());
  value = *taken;
  note(key, static_cast<double>(value));
}

void NumberTaker::take(llvm::StringRef key, int64_t &value) {
  takeSigned(key, value);
  if (value < 0)
    keep(makeErrorf(ExitCode::Usage, "{0}: {1}={2} is negative", call.name, key,
                    value));
}

void NumberTaker::takeBetas(double &beta1, double &beta2) {
  std::string text = call.take("betas");
  auto noteBoth = [&] {
    note("betas", beta1);
    options += ":" + shortest(beta2);
  };
  if (text.empty())
    return noteBoth();
  auto [first, second] = llvm::StringRef(text).split(':');
  std::optional<double> a = parseNumber(first), b = parseNumber(second);
  if (!a || !b || !(*a >= 0 && *a < 1 && *b >= 0 && *b < 1))
    return keep(makeErrorf(ExitCode::Usage,
                           "{0}: betas={1}: give two numbers below 1, as "
                           "0.9:0.999",
                           call.name, text));
  beta1 = *a;
  beta2 = *b;
  noteBoth();
}

std::string NumberTaker::describe() const {
  return call.name + "(" + options + ")";
}

void NumberTaker::note(llvm::StringRef key, double value) {
  options += (options.empty() ? "" : ",") + key.str() + "=" + shortest(value);
}

llvm::Error NumberTaker::finish(llvm::ArrayRef<llvm::StringRef> arguments) {
  if (fault)
    return std::move(fault);
  return call.finish(arguments);
}

void NumberTaker::keep(llvm::Error error) {
  if (fault)
    llvm::consumeError(std::move(error));
  else
    fault = std::move(error);
}
