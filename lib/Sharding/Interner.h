//===- Interner.h - Values as numbers, answers by pairs of them -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SHARDING_INTERNER_H
#define AX_LIB_SHARDING_INTERNER_H

#include "ax/Sharding/Layout.h"

#include <deque>
#include <unordered_map>

namespace ax::sharding::detail {

inline size_t mixHash(size_t seed, size_t value) {
  seed ^= value + 0x9e3779b97f4a7c15 + (seed << 6) + (seed >> 2);
  return seed * 0xff51afd7ed558ccd;
}

struct HashOfNumbers {
  template <typename Number>
  size_t operator()(const std::vector<Number> &numbers) const {
    size_t hash = numbers.size();
    for (Number number : numbers)
      hash = mixHash(hash, static_cast<size_t>(number));
    return hash;
  }
};

struct HashOfAxes {
  size_t operator()(const SubAxes &axes) const {
    size_t hash = axes.size();
    for (const SubAxis &axis : axes) {
      hash = mixHash(hash, std::hash<std::string>()(axis.axis));
      hash = mixHash(hash, static_cast<size_t>(axis.pre));
      hash = mixHash(hash, static_cast<size_t>(axis.size));
    }
    return hash;
  }
};

struct HashOfDim {
  size_t operator()(const DimLayout &dim) const {
    size_t hash = dim.factors.size();
    for (const Factor &factor : dim.factors) {
      hash = mixHash(hash, static_cast<size_t>(factor.size));
      hash = mixHash(hash, HashOfAxes()(factor.axes));
    }
    return hash;
  }
};

/// Gives equal values one number, in the order in which they first come.
template <typename Id, typename Value, typename Hash>
class Interner {
public:
  Id operator()(const Value &value) {
    auto [at, isNew] = ids.try_emplace(value, Id(values.size()));
    if (isNew)
      values.push_back(&at->first);
    return at->second;
  }
  const Value &operator[](Id id) const {
    return *values[static_cast<size_t>(id)];
  }
  size_t size() const { return values.size(); }

private:
  std::unordered_map<Value, Id, Hash> ids;
  std::vector<const Value *> values;
};

/// Answers to questions about two numbers.
template <typename Answer>
class PairMemo {
public:
  template <typename A, typename B, typename Compute>
  const Answer &get(A a, B b, Compute compute) {
    uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(a)) << 32 |
                   static_cast<uint32_t>(b);
    if (auto at = answers.find(key); at != answers.end())
      return at->second;
    return answers.emplace(key, compute()).first->second;
  }

private:
  struct Hash {
    size_t operator()(uint64_t key) const { return mixHash(0, key); }
  };
  std::unordered_map<uint64_t, Answer, Hash> answers;
};

} // namespace ax::sharding::detail

#endif // AX_LIB_SHARDING_INTERNER_H
