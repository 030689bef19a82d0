//===- CallExpression.cpp - `name(first,second,key=value)` ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CallExpression.h"

#include "ax/Support/Error.h"
#include "ax/Support/Flags.h"
#include "ax/Support/Nearest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ax;

llvm::Expected<CallExpression> CallExpression::parse(llvm::StringRef text) {
  CallExpression call;
  auto [name, rest] = text.split('(');
  call.name = name.trim().str();
  bool hasParentheses = text.contains('(');
  rest = rest.rtrim();
  if (call.name.empty() || (hasParentheses && !rest.consume_back(")")) ||
      rest.contains('(') || rest.contains(')'))
    return makeError(ExitCode::Usage,
                     "give NAME(A,B,KEY=VALUE,...); several numbers of one "
                     "option are KEY=1:2");
  if (rest.trim().empty())
    return call;
  for (llvm::StringRef part : llvm::split(rest, ',')) {
    auto parts = part.split('=');
    llvm::StringRef key = parts.first.trim(), value = parts.second.trim();
    bool isOption = part.contains('=');
    if (!isOption && !call.options.empty() && parseNumber(key))
      return makeErrorf(ExitCode::Usage,
                        "several numbers of one option have ':' between them: "
                        "{0}={1}:{2}",
                        call.options.back().first, call.options.back().second,
                        key);
    if (key.empty() || (isOption && value.empty()) ||
        (!isOption && !call.options.empty()))
      return makeErrorf(ExitCode::Usage,
                        "'{0}' is neither KEY=VALUE nor a name in front of "
                        "those",
                        part.trim());
    if (!isOption) {
      call.arguments.push_back(key.str());
      continue;
    }
    if (llvm::any_of(call.options,
                     [&](const auto &other) { return other.first == key; }))
      return makeErrorf(ExitCode::Usage, "{0} is given twice", key);
    call.options.emplace_back(key, value);
  }
  return call;
}

std::string CallExpression::take(llvm::StringRef key) {
  known.push_back(key.str());
  auto found = llvm::find_if(
      options, [&](const auto &option) { return option.first == key; });
  if (found == options.end())
    return "";
  std::string value = found->second;
  options.erase(found);
  return value;
}

llvm::Expected<double> CallExpression::takeNumber(llvm::StringRef key,
                                                  double otherwise) {
  std::string text = take(key);
  if (text.empty())
    return otherwise;
  if (std::optional<double> value = parseNumber(text))
    return *value;
  return makeErrorf(ExitCode::Usage, "{0}: {1}={2}: give a number", name, key,
                    text);
}

llvm::Expected<int64_t> CallExpression::takeInt(llvm::StringRef key,
                                                int64_t otherwise) {
  std::string text = take(key);
  int64_t value = otherwise;
  if (!text.empty() && !llvm::to_integer(text, value, 10))
    return makeErrorf(ExitCode::Usage, "{0}: {1}={2}: give a whole number",
                      name, key, text);
  return value;
}

llvm::Error
CallExpression::finish(llvm::ArrayRef<llvm::StringRef> names) const {
  if (arguments.size() != names.size())
    return makeErrorf(ExitCode::Usage, "{0}({1}) has {2} arguments, not {3}",
                      name, llvm::join(names, ","), names.size(),
                      arguments.size());
  if (options.empty())
    return llvm::Error::success();
  const std::string &key = options.front().first;
  return makeErrorf(
      ExitCode::Usage, "{0}: there is no option '{1}'{2}{3}", name, key,
      known.empty() ? "" : ", but " + llvm::join(known, ", "),
      suggestNearest(key, llvm::to_vector_of<llvm::StringRef>(known)));
}
