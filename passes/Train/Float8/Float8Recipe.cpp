//===- Float8Recipe.cpp - Options of --precision=fp8 ----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../NumberTaker.h"
#include "ax/Passes/Training.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"

using namespace ax;

/// One of two words, the first if none is given.
static llvm::Expected<bool> takeSecond(CallExpression &call,
                                       llvm::StringRef key,
                                       llvm::StringRef first,
                                       llvm::StringRef second) {
  std::string word = call.take(key);
  if (word.empty() || word == first)
    return false;
  if (word == second)
    return true;
  return makeErrorf(ExitCode::Usage, "fp8: {0}={1} is neither {2} nor {3}", key,
                    word, first, second);
}

static llvm::Error takePatterns(CallExpression &call, llvm::StringRef key,
                                std::vector<std::string> &patterns) {
  std::string text = call.take(key);
  if (text.empty())
    return llvm::Error::success();
  for (llvm::StringRef pattern : llvm::split(text, '|')) {
    if (auto glob = llvm::GlobPattern::create(pattern); !glob)
      return makeErrorf(ExitCode::Usage, "fp8: {0}={1}: {2}", key, pattern,
                        llvm::toString(glob.takeError()));
    patterns.push_back(pattern.str());
  }
  return llvm::Error::success();
}

llvm::Expected<Float8Recipe> Float8Recipe::parse(llvm::StringRef text) {
  llvm::Expected<CallExpression> call = CallExpression::parse(text);
  if (!call)
    return call.takeError();
  Float8Recipe result;
  result.text = text.str();
  llvm::Expected<bool> isOneFormat =
      takeSecond(*call, "format", "hybrid", "e4m3");
  if (!isOneFormat)
    return isOneFormat.takeError();
  result.isHybrid = !*isOneFormat;
  llvm::Expected<bool> mostRecent =
      takeSecond(*call, "amax", "max", "most_recent");
  if (!mostRecent)
    return mostRecent.takeError();
  result.mostRecent = *mostRecent;
  for (auto [key, patterns] : {std::pair("include", &result.include),
                               std::pair("exclude", &result.exclude)})
    if (llvm::Error error = takePatterns(*call, key, *patterns))
      return error;
  NumberTaker number(*call);
  number.takeSigned("margin", result.margin);
  number.take("interval", result.interval);
  number.take("history", result.history);
  if (llvm::Error error = number.finish({}))
    return error;
  constexpr int64_t mostMargin = 64, longest = 1 << 16;
  if (std::abs(result.margin) > mostMargin)
    return makeErrorf(ExitCode::Usage,
                      "fp8: margin={0} is not between {1} and "
                      "{2}",
                      result.margin, -mostMargin, mostMargin);
  if (result.interval < 1)
    return makeError(ExitCode::Usage, "fp8: interval is at least 1");
  if (result.history < 1 || result.history > longest)
    return makeErrorf(ExitCode::Usage,
                      "fp8: history={0} is not between 1 and {1}",
                      result.history, longest);
  return result;
}

bool Float8Recipe::matches(llvm::ArrayRef<std::string> patterns,
                           llvm::ArrayRef<llvm::StringRef> names) {
  return llvm::any_of(patterns, [&](const std::string &pattern) {
    // Each is one that `parse` has seen.
    auto glob = llvm::cantFail(llvm::GlobPattern::create(pattern));
    return llvm::any_of(names,
                        [&](llvm::StringRef name) { return glob.match(name); });
  });
}

bool Float8Recipe::contains(llvm::ArrayRef<llvm::StringRef> names) const {
  return (include.empty() || matches(include, names)) &&
         !matches(exclude, names);
}
