//===- EmitScatterParts.cpp - A scatter in parts of its result ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of a large result each block of a GPU does a part (`Share`). Rows, the
// numbers that indices choose from, are dealt out in turns: often one is
// written to more than all others, and so are its neighbours. Where all columns
// of an update go to the same row, the block first finds which updates are its
// own.
//
// E.g. the gradient of an embedding: 16384 updates of 768 columns, to 50257
// rows, in 512 parts. Block 3 has rows 3, 515, 1027, ... It looks at 8192
// updates at a time, in 256 lists of 32. A thread counts those of its list that
// go to such a row; it adds up the counts of the lists before, and from there
// on writes the numbers of its own, say 17, 40, 41, ..., some 16 in all. Then a
// thread takes a column, and adds these updates' elements to their rows, in
// this order, four at a time, whose loads need not wait for each other.
//
//===----------------------------------------------------------------------===//

#include "Scatters.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace ax::codegen {

static int64_t countOf(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                         std::multiplies<>());
}

bool hasScattersInParts(FusionOp fusion) {
  Block &block = fusion.getBody().front();
  auto isResult = [&](Operation &op) {
    return op.hasOneUse() && *op.user_begin() == block.getTerminator();
  };
  bool hasAny = false;
  for (Operation &op : block)
    if (isScatter(&op)) {
      hasAny = true;
      if (!isResult(op))
        return false;
    }
  return hasAny;
}

/// On a GPU each iteration does those updates that go to its part of the
/// result.
bool Emitter::isInParts(Operation *op) const {
  return nests.dealing == Dealing::Elements && nests.iterations > 1 &&
         scattersInParts && isScatter(op);
}

Emitter::Share Emitter::shareOf(const Scatter &scatter) {
  constexpr int64_t neighbours = 32;
  Share share;
  share.rows = countOf(scatter.rowShape());
  int64_t columns = countOf(scatter.columnShape());
  int64_t behind = std::max<int64_t>(scatter.countBehind(), 1);
  share.unit = llvm::divideCeil(neighbours, behind);
  // Where each column looks at all of its own updates, rows are parts only if
  // columns are few.
  int64_t columnParts = 1;
  if (!scatter.goTogether)
    columnParts =
        std::clamp<int64_t>(columns / neighbours, 1, nests.iterations);
  share.parts = std::min<int64_t>(nests.iterations / columnParts,
                                  llvm::divideCeil(share.rows, share.unit));
  share.columns = llvm::divideCeil(columns, nests.iterations / share.parts);
  IndexExpr columnPart;
  std::tie(columnPart, share.rowPart) =
      space.divMod(space.linear(outer), share.parts);
  share.firstColumn = columnPart * share.columns;
  return share;
}

/// Whether a place is in a row of the iteration's.
Value Emitter::isOwnRow(const Scatter &scatter, const Share &share,
                        ArrayRef<IndexExpr> place) {
  IndexExpr row = space.linearize(
      place.slice(scatter.firstRowDim, scatter.numRowDims), scatter.rowShape());
  IndexExpr part =
      space.divMod(space.divMod(row, share.unit).first, share.parts).second;
  Value distance = space.materialize(part + share.rowPart * -1);
  return writer.both(writer.isAtLeast(distance, writer.number(0)),
                     writer.isLess(distance, writer.number(1)));
}

void Emitter::emitOwnOperand(const Scatter &scatter, const Share &share,
                             Value base) {
  SmallVector<int64_t> columnShape = scatter.columnShape();
  int64_t units = llvm::divideCeil(share.rows, share.unit * share.parts);
  // As they lie in memory.
  bool isRowLast = scatter.countBehind() == 1;
  SmallVector<int64_t> sizes{units, share.unit};
  sizes.insert(isRowLast ? sizes.begin() : sizes.end(), share.columns);
  Type type = scatter.type();
  emitNest(
      scatter.op, NestRole::First, sizes, {},
      [&](ArrayRef<IndexExpr> at, ValueRange) -> Values {
        const IndexExpr &number = isRowLast ? at.front() : at.back();
        ArrayRef<IndexExpr> inRows = at.slice(isRowLast ? 1 : 0, 2);
        IndexExpr row =
            (inRows[0] * share.parts + share.rowPart) * share.unit + inRows[1];
        IndexExpr column = share.firstColumn + number;
        // What a choice gives is of no use here: what counts is the store.
        guarded(
            {{row, 0, share.rows}, {column, 0, countOf(columnShape)}}, type,
            [&] {
              Indices own =
                  scatter.join(space.delinearize(row, scatter.rowShape()),
                               space.delinearize(column, columnShape));
              storeElement(pull(scatter.operand, own), base,
                           space.linearize(own, scatter.shape), type);
              return writer.zero(type);
            },
            [&] { return writer.zero(type); });
        return {};
      });
}

/// All columns of the iteration's part that updates have, dealt out to its
/// threads.
void Emitter::emitColumns(const Scatter &scatter, const Share &share,
                          function_ref<void(ArrayRef<IndexExpr>)> body) {
  SmallVector<int64_t> shape = scatter.columnShape();
  SmallVector<int64_t> sizes = scatter.columnSizes();
  Type type = scatter.type();
  emitTogether(scatter.op, NestRole::Update, share.columns,
               [&](const IndexExpr &number) {
                 IndexExpr column = share.firstColumn + number;
                 SmallVector<Bound> bounds{{column, 0, countOf(shape)}};
                 Indices at = space.delinearize(column, shape);
                 for (auto [d, size] : llvm::enumerate(sizes))
                   bounds.push_back({at[d], 0, size});
                 guarded(
                     bounds, type,
                     [&] {
                       body(at);
                       return writer.zero(type);
                     },
                     [&] { return writer.zero(type); });
               });
}

/// Each column goes on by itself. Several updates are looked at together, whose
/// loads need not wait for each other: of all updates, a part has few.
void Emitter::emitUpdatesByColumn(const Scatter &scatter, const Share &share,
                                  Value base) {
  constexpr int64_t most = 16;
  Type type = scatter.type();
  int64_t count = countOf(scatter.orderedSizes());
  int64_t together = share.parts > 1 ? std::gcd(count, most) : 1;
  auto nothing = [&] { return writer.zero(type); };
  emitColumns(scatter, share, [&](ArrayRef<IndexExpr> column) {
    auto pointOf = [&](const IndexExpr &number) {
      return scatter.join(space.delinearize(number, scatter.orderedSizes()),
                          column);
    };
    emitLoop(scatter.op, NestRole::InOrder, count / together, {},
             [&](const IndexExpr &group, ValueRange) -> Values {
               Value hits = writer.number(0);
               for (int64_t k = 0; k != together; ++k) {
                 Indices place =
                     scatter.placeOf(pointOf(group * together + IndexExpr(k)));
                 hits = writer.select(isOwnRow(scatter, share, place),
                                      writer.number(1), hits);
               }
               choose(
                   writer.isAtLeast(hits, writer.number(1)), type,
                   [&] {
                     emitLoop(scatter.op, NestRole::InGroup, together, {},
                              [&](const IndexExpr &k, ValueRange) -> Values {
                                Indices point = pointOf(group * together + k);
                                Indices place = scatter.placeOf(point);
                                choose(
                                    isOwnRow(scatter, share, place), type,
                                    [&] {
                                      emitUpdate(
                                          scatter, base,
                                          space.linearize(place, scatter.shape),
                                          scatter.valueOf(point));
                                      return nothing();
                                    },
                                    nothing);
                                return {};
                              });
                     return nothing();
                   },
                   nothing);
               return {};
             });
  });
}

/// The updates that a round looks at, in lists, and where the numbers of those
/// that are the iteration's lie.
struct Emitter::Lists {
  int64_t count, length;
  /// Of a list, how many there are, and where the next one's begin; all
  /// numbers.
  Value counts, ends, chosen;
};

/// Calls `body` with the number of each update of the list, whether it is the
/// iteration's, and what the update before gave: an i32.
Value Emitter::emitList(
    const Scatter &scatter, const Share &share, const IndexExpr &first,
    int64_t length, Value start,
    function_ref<Value(const IndexExpr &, Value, Value)> body) {
  Type i1 = IntegerType::get(fusion.getContext(), 1);
  int64_t count = countOf(scatter.orderedSizes());
  Indices columns(scatter.columnSizes().size());
  return emitLoop(scatter.op, NestRole::List, length, start,
                  [&](const IndexExpr &k, ValueRange carried) -> Values {
                    IndexExpr number = first + k;
                    Value isOwn = guarded(
                        {{number, 0, count}}, i1,
                        [&] {
                          Indices at =
                              space.delinearize(number, scatter.orderedSizes());
                          return isOwnRow(
                              scatter, share,
                              scatter.placeOf(scatter.join(at, columns)));
                        },
                        [&] { return writer.zero(i1); });
                    return {body(number, isOwn, carried.front())};
                  })
      .front();
}

/// Finds the iteration's updates among those of a round.
void Emitter::emitChoosing(const Scatter &scatter, const Share &share,
                           const IndexExpr &first, const Lists &lists) {
  Type i32 = IntegerType::get(fusion.getContext(), 32);
  auto add = [&](Value x, Value y) {
    return writer.binary(BinaryKind::add, x, y, i32);
  };
  Value zero = writer.zero(i32);
  Value one = writer.constant(IntegerAttr::get(i32, 1), i32);
  auto eachList = [&](function_ref<void(const IndexExpr &)> body) {
    emitTogether(scatter.op, NestRole::Lists, lists.count, body);
    writer.meet();
  };
  eachList([&](const IndexExpr &list) {
    Value count =
        emitList(scatter, share, first + list * lists.length, lists.length,
                 zero, [&](const IndexExpr &, Value isOwn, Value before) {
                   return add(before, writer.select(isOwn, one, zero));
                 });
    writer.store(count, lists.counts, space.materialize(list), i32);
  });
  eachList([&](const IndexExpr &list) {
    Value own = space.materialize(list);
    Value before =
        writer
            .loop(writer.number(0), own, zero,
                  [&](Value other, ValueRange sum) -> Values {
                    return {add(sum.front(),
                                writer.load(lists.counts, other, i32))};
                  })
            .front();
    Value end = emitList(
        scatter, share, first + list * lists.length, lists.length, before,
        [&](const IndexExpr &number, Value isOwn, Value next) {
          return choose(
              isOwn, i32,
              [&] {
                Value stored = writer.convert(
                    writer.wide(space.materialize(number + first * -1)), i64,
                    i32);
                writer.store(stored, lists.chosen, indexOf(next, i32), i32);
                return add(next, one);
              },
              [&] { return next; });
        });
    writer.store(end, lists.ends, own, i32);
  });
}

/// Where all columns of an update go to the same row.
void Emitter::emitUpdatesTogether(const Scatter &scatter, const Share &share,
                                  Value base) {
  constexpr int64_t mostListed = 8192, mostLists = 256, together = 4;
  Type i32 = IntegerType::get(fusion.getContext(), 32);
  int64_t count = countOf(scatter.orderedSizes());
  Lists lists{};
  lists.count = std::min(count, mostLists);
  lists.length = llvm::divideCeil(std::min(count, mostListed), lists.count);
  int64_t listed = lists.count * lists.length;
  lists.counts = allocateScratch(lists.count, i32);
  lists.ends = allocateScratch(lists.count, i32);
  lists.chosen = allocateScratch(listed, i32);
  auto update = [&](const IndexExpr &round, ArrayRef<IndexExpr> column,
                    Value first, int64_t some) {
    memos.emplace_back();
    SmallVector<std::pair<IndexExpr, Value>> updates;
    for (int64_t k = 0; k != some; ++k) {
      Value chosen = writer.load(lists.chosen,
                                 writer.addIndex(first, writer.number(k)), i32);
      IndexExpr number =
          round * listed + space.addOpaque(indexOf(chosen, i32), 0, listed - 1);
      Indices point = scatter.join(
          space.delinearize(number, scatter.orderedSizes()), column);
      updates.emplace_back(
          space.linearize(scatter.placeOf(point), scatter.shape),
          scatter.valueOf(point));
    }
    for (auto &[offset, value] : updates)
      emitUpdate(scatter, base, offset, value);
    memos.pop_back();
  };
  emitLoop(
      scatter.op, NestRole::Round, llvm::divideCeil(count, listed), {},
      [&](const IndexExpr &round, ValueRange) -> Values {
        emitChoosing(scatter, share, round * listed, lists);
        Value total = indexOf(
            writer.load(lists.ends, writer.number(lists.count - 1), i32), i32);
        emitColumns(scatter, share, [&](ArrayRef<IndexExpr> column) {
          Value size = writer.number(together);
          Value groups = writer.divIndex(total, size);
          writer.loop(
              writer.number(0), groups, {}, [&](Value i, ValueRange) -> Values {
                update(round, column, writer.mulIndex(i, size), together);
                return {};
              });
          writer.loop(writer.mulIndex(groups, size), total, {},
                      [&](Value i, ValueRange) -> Values {
                        update(round, column, i, 1);
                        return {};
                      });
        });
        // Who is ahead meets the others before numbers are written anew.
        return {};
      });
}

} // namespace ax::codegen
