//===- DimExpression.cpp - Sizes that are made of others ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DimExpression.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace ax;
using llvm::StringRef;

namespace {

using Size = std::optional<int64_t>;

bool isOfWord(char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; }

/// One function for each level of precedence.
class Parser {
public:
  Parser(StringRef text, llvm::function_ref<Size(StringRef)> sizeOf)
      : text(text), sizeOf(sizeOf) {}

  Size run() {
    Size size = sum();
    text = text.ltrim();
    return text.empty() ? size : std::nullopt;
  }

private:
  /// Parentheses inside each other: a file may have any number.
  static constexpr int maxDepth = 32;

  bool take(StringRef token) {
    StringRef rest = text.ltrim();
    if (!rest.consume_front(token))
      return false;
    text = rest;
    return true;
  }

  /// Without blanks it may be of a name: batch-size.
  bool takeMinus() {
    StringRef rest = text.ltrim();
    return rest.size() < text.size() && rest.starts_with("- ") && take("-");
  }

  Size sum() {
    Size size = product();
    while (size) {
      bool isSum = take("+");
      if (!isSum && !takeMinus())
        break;
      Size other = product();
      bool isWrong =
          !other || (isSum ? llvm::AddOverflow(*size, *other, *size)
                           : llvm::SubOverflow(*size, *other, *size));
      if (isWrong)
        return std::nullopt;
    }
    return size;
  }

  Size product() {
    Size size = factor();
    while (size) {
      bool isQuotient = take("//");
      if (!isQuotient && !take("*"))
        break;
      Size other = factor();
      if (!other || (isQuotient && (*other <= 0 || *size < 0)) ||
          (!isQuotient && llvm::MulOverflow(*size, *other, *size)))
        return std::nullopt;
      if (isQuotient)
        *size /= *other;
    }
    return size;
  }

  Size factor() {
    if (take("(")) {
      if (++depth > maxDepth)
        return std::nullopt;
      Size size = sum();
      --depth;
      return take(")") ? size : std::nullopt;
    }
    text = text.ltrim();
    StringRef word = text.take_while(isOfWord);
    text = text.drop_front(word.size());
    if (word.empty())
      return std::nullopt;
    int64_t number;
    if (llvm::isDigit(word.front()))
      return word.getAsInteger(10, number) ? Size() : Size(number);
    return sizeOf(word);
  }

  StringRef text;
  llvm::function_ref<Size(StringRef)> sizeOf;
  int depth = 0;
};

} // namespace

std::optional<int64_t>
import::evaluateDim(StringRef text,
                    llvm::function_ref<Size(StringRef)> sizeOf) {
  Size size = Parser(text, sizeOf).run();
  return size && *size >= 0 ? size : std::nullopt;
}

std::vector<StringRef> import::namesInDim(StringRef text) {
  std::vector<StringRef> names;
  while (!text.empty()) {
    StringRef word = text.take_while(isOfWord);
    text = text.drop_front(std::max<size_t>(word.size(), 1));
    bool isFunction = text.ltrim().starts_with("(");
    if (!word.empty() && !llvm::isDigit(word.front()) && !isFunction)
      names.push_back(word);
  }
  return names;
}
