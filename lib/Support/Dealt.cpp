//===- Dealt.cpp - A dimension in the order in which it is dealt ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Support/Dealt.h"

#include "llvm/ADT/STLExtras.h"

namespace ax {

std::optional<std::string>
Dealt::findFault(llvm::ArrayRef<int64_t> shape) const {
  if (dim < 0 || dim >= static_cast<int64_t>(shape.size()))
    return "there is no dimension " + std::to_string(dim);
  int64_t size = shape[static_cast<size_t>(dim)], sum = 0;
  if (hands < 2)
    return "there are at least 2 hands";
  if (parts.empty())
    return "there are no parts";
  for (int64_t part : parts) {
    if (part <= 0 || part % hands != 0)
      return "a part of " + std::to_string(part) + " is not dealt to " +
             std::to_string(hands) + " hands evenly";
    // Together they could be more than a number can be.
    if (part > size - sum)
      return "its parts are more than the " + std::to_string(size) +
             " elements of dimension " + std::to_string(dim);
    sum += part;
  }
  if (sum != size)
    return "its parts are " + std::to_string(sum) + " of the " +
           std::to_string(size) + " elements of dimension " +
           std::to_string(dim);
  return std::nullopt;
}

DealtOrder::DealtOrder(const Dealt &dealt, llvm::ArrayRef<int64_t> shape)
    : hands(dealt.hands), starts({0}) {
  int64_t inner = 1;
  for (int64_t size : shape.drop_front(static_cast<size_t>(dealt.dim) + 1))
    inner *= size;
  for (int64_t part : dealt.parts)
    starts.push_back(starts.back() + part * inner);
}

size_t DealtOrder::partAt(int64_t at) const {
  return static_cast<size_t>(llvm::upper_bound(starts, at) - starts.begin()) -
         1;
}

DealtOrder::Place DealtOrder::whereDealt(int64_t at) const {
  size_t part = partAt(at);
  int64_t share = shareOf(part), inPart = at - starts[part],
          skipped = inPart % share;
  return {inPart / share * (starts.back() / hands) + starts[part] / hands +
              skipped,
          share - skipped};
}

DealtOrder::Place DealtOrder::whereInModel(int64_t at) const {
  int64_t inHand = starts.back() / hands, hand = at / inHand;
  at %= inHand;
  size_t part = partAt(at * hands);
  int64_t share = shareOf(part), skipped = at - starts[part] / hands;
  return {starts[part] + hand * share + skipped, share - skipped};
}

bool DealtOrder::visit(Locate locate, int64_t at, int64_t count,
                       VisitRun fn) const {
  for (int64_t done = 0; done < count;) {
    int64_t begin = (at + done) / starts.back() * starts.back();
    Place place = (this->*locate)(at + done - begin);
    int64_t length = std::min(place.rest, count - done);
    if (!fn(begin + place.at, length, done))
      return false;
    done += length;
  }
  return true;
}

bool DealtOrder::deal(int64_t at, int64_t count, VisitRun fn) const {
  return visit(&DealtOrder::whereDealt, at, count, fn);
}

bool DealtOrder::collect(int64_t at, int64_t count, VisitRun fn) const {
  return visit(&DealtOrder::whereInModel, at, count, fn);
}

} // namespace ax
