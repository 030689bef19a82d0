//===- AttentionKeys.h - Which keys queries see -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Keys that causality or a window hide from a whole block of queries are never
// touched; nor does attention read those before the first key, and behind the
// last one, that a mask lets anybody see.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_CPU_ATTENTIONKEYS_H
#define AX_RUNTIME_CPU_ATTENTIONKEYS_H

#include "CpuLibrary.h"
#include "PlainMath.h"

#include <algorithm>
#include <limits>

namespace ax::rt {

/// An operation of queries, [batch, heads, S, depth], and keys.
template <typename T>
class AttentionKeys : public CpuOp {
public:
  using S = SumType<T>;

  /// Keys that are read together, from a multiple of it on.
  static constexpr int64_t keyPanel = 32;

protected:
  explicit AttentionKeys(AttentionDesc descIn)
      : desc(std::move(descIn)), heads(desc.q.sizes[1]),
        kvHeads(desc.k.sizes[1]), queries(desc.q.sizes[2]),
        keys(desc.k.sizes[2]) {}

  /// Notes what there is, if there is one.
  void readMask(const void *given) {
    mask = given;
    lastOfFirst = keys;
    firstOfFirst = desc.window ? keys - queries - desc.window + 1 : -queries;
    if (!given || !hasPlaces())
      return;
    const auto &strides = desc.mask.strides;
    auto count = [&](size_t dim) {
      return strides[dim] ? desc.mask.sizes[dim] : int64_t(1);
    };
    // What is not seen by the last query says nothing, and no place further
    // than that all.
    int64_t largest = -queries, smallest = keys + desc.window;
    for (int64_t batch = 0; batch < count(0); ++batch)
      for (int64_t head = 0; head < count(1); ++head)
        for (int64_t key = 0; key < count(3); ++key) {
          int64_t place = static_cast<const int64_t *>(
              given)[batch * strides[0] + head * strides[1] + key * strides[3]];
          largest = std::max(largest, place);
          if (place > key - queries)
            smallest = std::min(smallest, place);
        }
    lastOfFirst = std::min(largest, keys);
    if (desc.causal)
      smallest = std::min(smallest, keys - queries);
    if (desc.window)
      firstOfFirst = smallest - desc.window + 1;
    // Then it says no more than that.
    if (!strides[0] && !strides[1] && !strides[3])
      mask = nullptr;
  }

  /// Calls fn(mask, isSeen), by which isSeen(element, query, key) says whether
  /// the one sees the other. Numbers up to `hidden` hide a key.
  template <typename Fn>
  auto visitMask(S hidden, Fn fn) const {
    if (desc.mask.dtype == DType::Bool)
      return fn(static_cast<const bool *>(mask),
                [](bool attends, int64_t, int64_t) { return attends; });
    if (hasPlaces())
      return fn(static_cast<const int64_t *>(mask),
                [this](int64_t place, int64_t query, int64_t key) {
                  return isInBand(placeOf(place), key - query);
                });
    auto isSeen = [hidden](auto added, int64_t, int64_t) {
      return !(widen<S>(added) <= hidden);
    };
    if (desc.mask.dtype == DType::F32)
      return fn(static_cast<const float *>(mask), isSeen);
    return fn(static_cast<const T *>(mask), isSeen);
  }

  bool hasPlaces() const {
    return desc.hasMask && desc.mask.dtype == DType::I64;
  }
  /// The last key that the first query sees, by what the mask has for one.
  int64_t placeOf(int64_t given) const {
    return desc.causal ? std::min(given, keys - queries) : given;
  }
  /// Of a key that is so much further than a query.
  bool isInBand(int64_t place, int64_t further) const {
    // A difference of 64 bits, which is not negative, may need all of them.
    auto behind = static_cast<uint64_t>(place) - static_cast<uint64_t>(further);
    return further <= place &&
           (desc.window == 0 || behind < static_cast<uint64_t>(desc.window));
  }

  /// Keys begin .. end - 1.
  struct KeyRange {
    int64_t begin, end;
    int64_t size() const { return end - begin; }
  };
  KeyRange allKeys() const { return {0, keys}; }

  /// Outside of these the mask hides all keys from all queries of the heads
  /// that share one, as from a cache that is not full what is behind: their
  /// exponentials are 0. It begins with a panel, so that vectors of scores are
  /// the same, and so are sums. A query that sees nothing may be an average of
  /// all: then all are in it.
  KeyRange seenKeys(int64_t batch, int64_t kvHead) const {
    auto isEmpty = [&](int64_t row) { return begin(row) >= limit(row); };
    if (!mask && desc.emptyRowsMean && (isEmpty(0) || isEmpty(queries - 1)))
      return allKeys();
    if (!mask) {
      int64_t end = std::max(limit(queries - 1), std::min<int64_t>(keys, 1));
      int64_t first = std::min(begin(0), std::max<int64_t>(end - 1, 0));
      return {first / keyPanel * keyPanel, end};
    }
    // What the first query sees says nothing about others with a window, and
    // where one sees nothing, what hides keys matters, if it is a number.
    bool hidesAll = desc.mask.dtype == DType::Bool && !desc.emptyRowsMean;
    if (desc.window && queries > 1 && !hidesAll)
      return allKeys();
    // As exporters hide them: the lowest number of f32, beside which a score is
    // nothing, or of bf16; or infinity.
    constexpr S hidden = static_cast<S>(-1e38);
    return visitMask(hidden, [&](const auto *values, auto isSeen) {
      return seenKeys(batch, kvHead, values, isSeen);
    });
  }
  template <typename E, typename Fn>
  KeyRange seenKeys(int64_t batch, int64_t kvHead, const E *values,
                    Fn isSeen) const {
    const auto &strides = desc.mask.strides;
    int64_t perKv = heads / kvHeads, step = strides[3];
    int64_t numHeads = strides[1] ? perKv : 1,
            numQueries = strides[2] ? queries : 1;
    KeyRange range{keys, 0};
    for (int64_t head = 0; head < numHeads; ++head)
      for (int64_t query = 0; query < numQueries; ++query) {
        const E *row = values + batch * strides[0] +
                       (kvHead * perKv + head) * strides[1] +
                       query * strides[2];
        int64_t first = begin(query), last = keys;
        // Of a mask that is the same for all queries, the first sees least, and
        // the last one most.
        int64_t most = limit(query);
        int64_t lastQuery = numQueries == 1 ? queries - 1 : query;
        while (first < most && !isSeen(row[first * step], query, first))
          ++first;
        if (first >= most)
          return allKeys();
        // By places others may see a key before.
        if (hasPlaces())
          first = 0;
        while (last > range.end &&
               !isSeen(row[(last - 1) * step], lastQuery, last - 1))
          --last;
        range = {std::min(first, range.begin), last};
      }
    return {range.begin / keyPanel * keyPanel, range.end};
  }

  /// The keys from which, and up to which, query `row` may see some.
  int64_t begin(int64_t row) const {
    return std::clamp<int64_t>(row + firstOfFirst, 0, keys);
  }
  int64_t limit(int64_t row) const {
    int64_t last = std::min(keys - 1, row + lastOfFirst);
    if (desc.causal)
      last = std::min(last, row + keys - queries);
    return std::max<int64_t>(last + 1, 0);
  }

  /// Which keys a row reads: those that a window and causality let it see, or
  /// all, to which it attends alike.
  struct RowKeys {
    int64_t begin, end;
    bool isMean;
    int64_t size() const { return end - begin; }
  };
  /// Those of `rows` rows, which they count from where what is returned begins:
  /// the keys of a range that some of them read, from a panel on.
  KeyRange findRowKeys(int64_t batch, int64_t head, int64_t first, int64_t rows,
                       KeyRange range, RowKeys *to) const {
    bool isShared = desc.hasMask && desc.mask.strides[2] == 0 && !hasPlaces();
    int64_t firstSeen = 0;
    KeyRange block{range.end, range.begin};
    for (int64_t r = 0; r < rows; ++r) {
      int64_t from = begin(first + r), end = limit(first + r);
      bool isMean = false;
      if (desc.emptyRowsMean) {
        if (mask && (r == 0 || !isShared || firstSeen < from))
          firstSeen = findFirstSeen(batch, head, first + r, from);
        isMean = std::max(firstSeen, from) >= end;
      }
      if (isMean) {
        from = range.begin;
        end = range.end;
      }
      end = std::clamp(end, range.begin, range.end);
      to[r] = {std::clamp(from, range.begin, end), end, isMean};
      block.begin = std::min(block.begin, to[r].begin);
      block.end = std::max(block.end, end);
    }
    // Ranges begin with a panel, too.
    block.begin = block.begin / keyPanel * keyPanel;
    for (int64_t r = 0; r < rows; ++r) {
      to[r].begin -= block.begin;
      to[r].end -= block.begin;
    }
    return block;
  }
  /// The first key from `key` on that the mask does not hide from a query;
  /// `keys`: none.
  int64_t findFirstSeen(int64_t batch, int64_t head, int64_t query,
                        int64_t key) const {
    const auto &strides = desc.mask.strides;
    int64_t offset =
        batch * strides[0] + head * strides[1] + query * strides[2];
    return visitMask(
        -std::numeric_limits<S>::infinity(),
        [&](const auto *values, auto isSeen) {
          while (key < keys &&
                 !isSeen(values[offset + key * strides[3]], query, key))
            ++key;
          return key;
        });
  }

  AttentionDesc desc;
  int64_t heads, kvHeads, queries, keys;
  const void *mask = nullptr;
  /// The last key that the first query sees; others see one more than the one
  /// before. No less than all where no mask says so.
  int64_t lastOfFirst = 0;
  /// The first that it sees, likewise; so few without a window that all begin
  /// with 0.
  int64_t firstOfFirst = 0;
};

} // namespace ax::rt

#endif // AX_RUNTIME_CPU_ATTENTIONKEYS_H
