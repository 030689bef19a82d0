//===- ContribPositions.cpp - Biases of attention by distance -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../OpTable.h"

#include <cmath>

using namespace ax;
using namespace ax::import;

/// The bucket of keys that are `distance` behind their query: one for each of
/// the near ones, the others by the logarithm (Raffel et al., "Exploring the
/// Limits of Transfer Learning with a Unified Text-to-Text Transformer", 2020,
/// section 2.1), in f32 as models compute it.
static int64_t bucketOf(int64_t distance, int64_t buckets, int64_t maxDistance,
                        bool isBidirectional) {
  int64_t first = 0;
  if (isBidirectional) {
    buckets /= 2;
    first = distance > 0 ? buckets : 0;
    distance = std::abs(distance);
  } else {
    distance = std::max<int64_t>(-distance, 0);
  }
  int64_t near = buckets / 2;
  if (distance < near || near == 0)
    return first + std::min(distance, std::max<int64_t>(buckets - 1, 0));
  auto nearest = static_cast<float>(near);
  float part = std::log(static_cast<float>(distance) / nearest) /
               static_cast<float>(std::log(static_cast<double>(maxDistance) /
                                           static_cast<double>(near)));
  auto far = static_cast<int64_t>(part * static_cast<float>(buckets - near));
  return first + std::min(near + far, buckets - 1);
}

/// [1, heads, queries, keys] of a table of buckets.
static void importRelativePositionBias(Node &n) {
  Value table = n.in(0);
  std::optional<int64_t> queries = n.knownInt(1, "query_length"),
                         keys = n.knownInt(2, "key_length");
  if (!table || !queries || !keys)
    return;
  int64_t maxDistance = n.intAttr("max_distance", 0);
  bool isBidirectional = n.intAttr("is_bidirectional", 0) == 1;
  if (Emitter::rankOf(table) != 2 || Emitter::numElementsOf(table) == 0) {
    n.fail("'bias_table' of [" + shapeToString(Emitter::shapeOf(table)) +
           "] is no table of buckets");
    return;
  }
  int64_t buckets = Emitter::shapeOf(table)[0];
  if (maxDistance <= buckets / (isBidirectional ? 4 : 2)) {
    n.fail("'max_distance' is " + llvm::Twine(maxDistance) + " for " +
           llvm::Twine(buckets) + " buckets");
    return;
  }
  constexpr int64_t maxLength = 1 << 15;
  if (*queries < 0 || *keys < 0 || *queries > maxLength || *keys > maxLength) {
    n.unsupported("a bias for " + llvm::Twine(*queries) + " queries and " +
                  llvm::Twine(*keys) + " keys");
    return;
  }
  // Of each distance from the last query to the first key on.
  int64_t distances = std::max<int64_t>(*queries + *keys - 1, 1);
  HostTensor chosen(DType::I64, {distances});
  for (int64_t i = 0; i < distances; ++i)
    chosen.setInt(
        i, bucketOf(i - (*queries - 1), buckets, maxDistance, isBidirectional));
  // The numbers of a head lie together, though the shape says otherwise.
  int64_t heads = Emitter::shapeOf(table)[1];
  Value byDistance = n.b.gather(n.b.reshape(table, {heads, buckets}),
                                n.b.constant(std::move(chosen)), 1);
  Value place =
      n.b.add(n.b.sub(n.b.iota(DType::I64, {1, *keys}, 1),
                      n.b.iota(DType::I64, {*queries, 1}, 0)),
              static_cast<double>(std::max<int64_t>(*queries - 1, 0)));
  n.out(n.b.reshape(n.b.gather(byDistance, place, 1),
                    {1, heads, *queries, *keys}));
}

static const OpEntry entries[] = {
    {"RelativePositionBias",
     importRelativePositionBias,
     1,
     {"bias_table:T=float|float16 query_length:int64 key_length:int64",
      "output:T", "max_distance!:int is_bidirectional:int"}},
};

void ax::import::addContribPositions(OpTable &table) {
  table.add(entries, contribDomain);
}
