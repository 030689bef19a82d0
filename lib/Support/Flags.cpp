//===- Flags.cpp - Command lines ------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/Flags.h"

#include "llvm/Support/FileSystem.h"

#include <charconv>
#include <utility>

namespace ax {

std::pair<llvm::StringRef, llvm::StringRef> splitAtFile(llvm::StringRef text) {
  for (size_t at = text.find('='); at != llvm::StringRef::npos;
       at = text.find('=', at + 1))
    if (at > 0 && llvm::sys::fs::exists(text.substr(at + 1)))
      return {text.take_front(at), text.substr(at + 1)};
  return text.split('=');
}

std::optional<double> parseNumber(llvm::StringRef text) {
  // LLVM's own takes "" for 0, hexadecimal digits, and words.
  if (text.empty() || text.find_first_not_of("0123456789.+-eE") != text.npos)
    return std::nullopt;
  if (text.consume_front("+") && text.starts_with("-"))
    return std::nullopt;
  double number = 0;
  auto [end, fault] = std::from_chars(text.begin(), text.end(), number);
  if (fault != std::errc() || end != text.end())
    return std::nullopt;
  return number;
}

bool nestsDeeper(llvm::StringRef text, int limit) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"')
      quoted = !quoted;
    else if (quoted)
      i += c == '\\';
    else if (c == '[' || c == '{' || c == '(')
      ++depth;
    else if (c == ']' || c == '}' || c == ')')
      --depth;
    if (depth > limit)
      return true;
  }
  return false;
}

} // namespace ax
