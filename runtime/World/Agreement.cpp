//===- Agreement.cpp - What all processes fail with -----------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Agreement.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/BLAKE3.h"

namespace ax::rt {

std::string describePlace(const ProcessPlace &place) {
  return "rank " + std::to_string(place.process) + " on host '" + place.host +
         "'";
}

std::string encode(llvm::Expected<std::string> result) {
  ErrorDescription found = describeError(result.takeError());
  return std::to_string(static_cast<int>(found.code)) + " " +
         (result ? *result : found.message);
}

llvm::Expected<std::string> decode(llvm::StringRef text) {
  auto [number, rest] = text.split(' ');
  int code;
  if (number.getAsInteger(10, code) || code < 0)
    return makeError(ExitCode::RunFailed,
                     "another process has sent what it cannot have meant");
  if (code == static_cast<int>(ExitCode::Success))
    return rest.str();
  return makeError(static_cast<ExitCode>(code), rest);
}

llvm::Expected<std::string>
share(World &world, llvm::StringRef what,
      llvm::function_ref<llvm::Expected<std::string>()> fn) {
  auto text = world.broadcast(what, world.isFirst() ? encode(fn()) : "");
  if (!text)
    return text.takeError();
  return decode(*text);
}

llvm::Expected<std::vector<std::string>>
agreeOnTexts(World &world, llvm::StringRef what,
             llvm::Expected<std::string> mine) {
  if (world.isAlone()) {
    if (!mine)
      return mine.takeError();
    return std::vector<std::string>{std::move(*mine)};
  }
  // Only an error needs its host, whose name has no line's end: results that
  // are equal everywhere cost little.
  std::string host = mine ? "" : world.getPlace().host;
  auto all = world.allGather(what, host + "\n" + encode(std::move(mine)));
  if (!all)
    return all.takeError();
  std::vector<llvm::StringRef> sent;
  for (llvm::StringRef text : *all)
    sent.push_back(text.split('\n').second);
  std::vector<std::string> texts;
  for (size_t i = 0; i < sent.size(); ++i) {
    auto text = decode(sent[i]);
    if (text) {
      texts.push_back(std::move(*text));
      continue;
    }
    if (llvm::all_equal(sent))
      return text.takeError();
    ProcessPlace place;
    place.process = static_cast<int32_t>(i);
    place.host = llvm::StringRef((*all)[i]).split('\n').first.str();
    return addContext(text.takeError(), describePlace(place));
  }
  return texts;
}

llvm::Expected<std::vector<std::string>> gatherLong(World &world,
                                                    llvm::StringRef what,
                                                    std::string value,
                                                    size_t pieceBytes) {
  auto sizes = agreeOnTexts(world, what, std::to_string(value.size()));
  if (!sizes)
    return sizes.takeError();
  constexpr size_t most = size_t(1) << 40;
  size_t longest = 0;
  for (llvm::StringRef text : *sizes) {
    size_t size;
    if (text.getAsInteger(10, size) || size > most)
      return makeError(ExitCode::RunFailed, "another process has sent what it "
                                            "cannot have meant");
    longest = std::max(longest, size);
  }
  std::vector<std::string> all(world.isFirst() ? sizes->size() : 0);
  for (size_t from = 0; from < longest; from += pieceBytes) {
    llvm::StringRef rest =
        llvm::StringRef(value).drop_front(std::min(from, value.size()));
    auto pieces = world.gather(what, rest.take_front(pieceBytes).str());
    if (!pieces)
      return pieces.takeError();
    for (auto [whole, piece] : llvm::zip_equal(all, *pieces))
      whole += piece;
  }
  return all;
}

llvm::Error agree(World &world, llvm::StringRef what, llvm::Error mine) {
  return agreeOnFlags(world, what, true, std::move(mine)).takeError();
}

llvm::Expected<std::vector<bool>>
agreeOnFlags(World &world, llvm::StringRef what, bool flag, llvm::Error mine) {
  if (mine && world.isAlone())
    return mine;
  using Text = llvm::Expected<std::string>;
  auto texts = agreeOnTexts(
      world, what, mine ? Text(std::move(mine)) : Text(flag ? "yes" : "no"));
  if (!texts)
    return texts.takeError();
  std::vector<bool> flags;
  for (llvm::StringRef text : *texts)
    flags.push_back(text == "yes");
  return flags;
}

llvm::Error
agreeOnValues(World &world, llvm::StringRef what,
              llvm::ArrayRef<std::pair<std::string, std::string>> values) {
  std::string mine;
  for (const auto &[name, value] : values)
    mine += name + '\0' + value + '\0';
  // What is equal is not carried to all.
  llvm::BLAKE3 hasher;
  hasher.update(mine);
  auto digests = agreeOnTexts(world, what, llvm::toHex(hasher.final<16>()));
  if (!digests)
    return digests.takeError();
  if (llvm::all_equal(*digests))
    return llvm::Error::success();
  auto all = agreeOnTexts(world, what, world.getPlace().host + '\0' + mine);
  if (!all)
    return all.takeError();
  std::vector<llvm::SmallVector<llvm::StringRef>> lists(all->size());
  for (auto [text, list] : llvm::zip_equal(*all, lists))
    llvm::StringRef(text).split(list, '\0');
  llvm::ArrayRef<llvm::StringRef> first = lists.front();
  for (size_t i = 1; i < lists.size(); ++i) {
    llvm::ArrayRef<llvm::StringRef> other = lists[i];
    // Names and values follow the host.
    for (size_t at = 1; at + 1 < std::max(first.size(), other.size());
         at += 2) {
      auto valueIn = [&](llvm::ArrayRef<llvm::StringRef> list) {
        return at + 1 < list.size() ? list[at + 1] : "nothing";
      };
      if (valueIn(first) == valueIn(other))
        continue;
      ProcessPlace here, there;
      here.host = first.front().str();
      there.process = static_cast<int32_t>(i);
      there.host = other.front().str();
      return makeErrorf(ExitCode::Usage,
                        "{0} has another {1} than {2}: {3} "
                        "instead of {4}",
                        describePlace(there),
                        at < first.size() ? first[at] : other[at],
                        describePlace(here), valueIn(other), valueIn(first));
    }
  }
  return llvm::Error::success();
}

} // namespace ax::rt
