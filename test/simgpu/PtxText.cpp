//===- PtxText.cpp - What a text for GPUs says of itself ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "PtxText.h"

#include "llvm/ADT/StringExtras.h"

namespace simgpu {

namespace {

/// Words, and marks of one character, one after another.
class Tokens {
public:
  explicit Tokens(llvm::StringRef rest) : rest(rest) { next(); }

  llvm::StringRef current;

  /// Makes `current` what follows; empty behind the last one.
  void next() {
    skipSpace();
    size_t length =
        rest.find_if_not([](char c) { return llvm::isAlnum(c) || isSign(c); });
    if (length == llvm::StringRef::npos)
      length = rest.size();
    current = rest.take_front(std::max<size_t>(length, 1));
    rest = rest.drop_front(current.size());
  }
  llvm::StringRef take() {
    llvm::StringRef taken = current;
    next();
    return taken;
  }
  bool takeIf(llvm::StringRef token) {
    bool isThere = current == token;
    if (isThere)
      next();
    return isThere;
  }

private:
  static bool isSign(char c) { return llvm::StringRef("._$%").contains(c); }
  void skipSpace() {
    for (;;) {
      rest = rest.ltrim();
      if (rest.starts_with("//"))
        rest = rest.drop_front(std::min(rest.find('\n'), rest.size()));
      else if (rest.starts_with("/*"))
        rest =
            rest.drop_front(std::min(rest.find("*/", 2), rest.size() - 2) + 2);
      else
        return;
    }
  }

  llvm::StringRef rest;
};

/// `.u64 .ptr .global .align 64 NAME` or `.align 8 .b8 NAME[16]`.
bool readParameter(Tokens &tokens, PtxParameter &parameter) {
  if (!tokens.takeIf(".param"))
    return false;
  while (tokens.current.starts_with(".")) {
    llvm::StringRef word = tokens.take().drop_front();
    uint64_t bits = 0;
    if (word == "ptr")
      parameter.isPointer = true;
    else if (word == "align" &&
             tokens.take().getAsInteger(10, parameter.alignment))
      return false;
    else if (llvm::StringRef("subf").contains(word.take_front()) &&
             !word.drop_front().getAsInteger(10, bits))
      parameter.bytes = bits / 8;
  }
  tokens.next();
  uint64_t count = 1;
  if (tokens.takeIf("[") &&
      (tokens.take().getAsInteger(10, count) || !tokens.takeIf("]")))
    return false;
  parameter.bytes *= count;
  return parameter.bytes > 0 && parameter.alignment > 0;
}

bool readEntry(Tokens &tokens, PtxEntry &entry) {
  entry.name = tokens.take().str();
  if (!tokens.takeIf("(") || tokens.takeIf(")"))
    return true;
  do {
    if (!readParameter(tokens, entry.parameters.emplace_back()))
      return false;
  } while (tokens.takeIf(","));
  return tokens.takeIf(")");
}

bool readVersion(llvm::StringRef word, unsigned &version) {
  auto [major, minor] = word.split('.');
  unsigned first = 0, second = 0;
  if (major.getAsInteger(10, first) || minor.getAsInteger(10, second))
    return false;
  version = first * 10 + second;
  return true;
}

bool readTarget(llvm::StringRef word, PtxText &text) {
  if (!word.consume_front("sm_"))
    return false;
  text.isForOneCard = !word.empty() && llvm::isAlpha(word.back());
  return !word.drop_back(text.isForOneCard).getAsInteger(10, text.capability);
}

} // namespace

std::string PtxText::read(llvm::StringRef text) {
  unsigned addressSize = 0;
  for (Tokens tokens(text); !tokens.current.empty();) {
    llvm::StringRef word = tokens.take();
    if (word == ".version" && !readVersion(tokens.take(), version))
      return "its .version is none";
    if (word == ".target" && !readTarget(tokens.take(), *this))
      return "its .target is none";
    if (word == ".address_size" && tokens.take().getAsInteger(10, addressSize))
      return "its .address_size is none";
    if (word == ".entry" && !readEntry(tokens, entries.emplace_back()))
      return "the parameters of entry " + entries.back().name + " are none";
  }
  if (!version)
    return "it has no .version";
  if (!capability)
    return "it has no .target";
  if (addressSize != 64)
    return "its .address_size is not 64";
  return "";
}

} // namespace simgpu
