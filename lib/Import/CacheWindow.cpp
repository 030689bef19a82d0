//===- CacheWindow.cpp - Keys and values of the last positions ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "CacheWindow.h"

using namespace ax;
using namespace ax::import;

static Value number(Emitter &b, int64_t value) {
  return b.scalar(DType::I64, static_cast<double>(value));
}

Value CacheWindow::numHeld(Emitter &b, Value count) const {
  int64_t gone = rows - window + 1;
  // As often as there was no room.
  Value times = b.div(b.add(count, static_cast<double>(gone - 1 - rows)),
                      number(b, gone));
  Value isMore = b.compare(CompareKind::gt, count, number(b, rows));
  return b.sub(count,
               b.select(isMore, b.mul(times, number(b, gone)), number(b, 0)));
}

Value CacheWindow::slide(Emitter &b, Value all) const {
  Value kept = numHeld(b, after), row = b.iota(DType::I64, {1, rows}, 1);
  Value position = b.add(b.sub(after, kept), row);
  Value isOld = b.compare(CompareKind::lt, position, before);
  Value place = b.add(b.sub(position, before),
                      b.select(isOld, numHeld(b, before), number(b, rows)));
  // Behind those that are held there is nothing.
  Value isHeld = b.compare(CompareKind::lt, row, kept);
  place = b.select(isHeld, place, number(b, 0));
  if (!place || !all)
    return {};
  Shape wide(Emitter::shapeOf(all)), column{wide[0], 1, rows, 1};
  wide[2] = rows;
  Value y = wide[0] == 1
                ? b.gather(all, b.reshape(place, {rows}), 2)
                : b.gatherElements(
                      all, b.broadcast(b.reshape(place, column), wide), 2);
  return b.select(b.reshape(isHeld, column), y, b.like(y, 0));
}

Value CacheWindow::visible(Emitter &b, int64_t count) const {
  if (!before)
    return {};
  int64_t batch = Emitter::shapeOf(before)[0];
  Value held = numHeld(b, before), row = b.iota(DType::I64, {1, rows}, 1);
  Value old = b.add(b.sub(before, held), row);
  Value fresh = b.add(before, b.iota(DType::I64, {1, count}, 1));
  // Rows that hold nothing are behind all queries.
  Value never = b.add(before, static_cast<double>(count));
  old = b.select(b.compare(CompareKind::lt, row, held), old, never);
  Value key = b.reshape(b.concat({old, fresh}, 1), {batch, 1, 1, rows + count});
  Value query = b.reshape(fresh, {batch, 1, count, 1});
  Value first = b.add(query, static_cast<double>(-window));
  return b.binary(BinaryKind::logical_and,
                  b.compare(CompareKind::le, key, query),
                  b.compare(CompareKind::gt, key, first));
}
