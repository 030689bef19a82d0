//===- ContribRotary.cpp - Rotations of heads -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Heads.h"
#include "../OpTable.h"

using namespace ax;
using namespace ax::import;

Value ax::import::rotate(Emitter &b, Value x, Value cosines, Value sines,
                         bool interleaved) {
  if (!x || !cosines || !sines)
    return {};
  Shape shape(Emitter::shapeOf(x));
  int64_t pairs = Emitter::shapeOf(cosines).back(), width = shape.back();
  Value first, second;
  if (interleaved) {
    Shape paired(shape), line(shape);
    paired.back() = line.back() = pairs;
    paired.push_back(2);
    Value of = b.reshape(b.sliceDim(x, 3, 0, 2 * pairs), paired);
    first = b.reshape(b.sliceDim(of, 4, 0, 1), line);
    second = b.reshape(b.sliceDim(of, 4, 1, 1), line);
  } else {
    first = b.sliceDim(x, 3, 0, pairs);
    second = b.sliceDim(x, 3, pairs, pairs);
  }
  Value one = b.sub(b.mul(first, cosines), b.mul(second, sines)),
        two = b.add(b.mul(second, cosines), b.mul(first, sines));
  if (!one || !two)
    return {};
  if (interleaved) {
    Shape column(shape), merged(shape);
    column.back() = pairs;
    column.push_back(1);
    merged.back() = 2 * pairs;
    one = b.reshape(
        b.concat({b.reshape(one, column), b.reshape(two, column)}, 4), merged);
  } else {
    one = b.concat({one, two}, 3);
  }
  if (2 * pairs == width)
    return one;
  return b.concat({one, b.sliceDim(x, 3, 2 * pairs, width - 2 * pairs)}, 3);
}

std::pair<Value, Value> ax::import::readAngles(Node &n, int cosines, int sines,
                                               Value positions, int64_t width) {
  Value cosine = n.in(cosines), sine = n.in(sines);
  if (!cosine || !sine || !positions)
    return {};
  ArrayRef<int64_t> shape = Emitter::shapeOf(cosine);
  if (shape.size() != 2 || shape != Emitter::shapeOf(sine) ||
      2 * shape[1] > width) {
    n.fail("'cos_cache' and 'sin_cache' of [" + shapeToString(shape) +
           "] and [" + shapeToString(Emitter::shapeOf(sine)) +
           "] are no angles for heads of width " + llvm::Twine(width));
    return {};
  }
  ArrayRef<int64_t> at = Emitter::shapeOf(positions);
  Shape result{at[0], 1, at[1], shape[1]};
  auto read = [&](Value cache) {
    return n.b.reshape(n.b.gather(cache, positions, 0), result);
  };
  return {read(cosine), read(sine)};
}

/// The heads [batch, heads, length, width] of a node's input that it rotates,
/// of width 2 * pairs or more; null, and a failure, where it is otherwise than
/// its attributes and caches say.
static Value headsToRotate(Node &n) {
  Value x = n.in(0), cosines = n.in(2);
  if (n.failed())
    return {};
  if (n.intAttr("is_packed_batching", 0))
    return n.unsupported("attribute 'is_packed_batching' is not supported");
  if (n.floatAttr("scale", 1) != 1)
    return n.unsupported("attribute 'scale' is not 1");
  int64_t rank = Emitter::rankOf(x);
  if ((rank != 3 && rank != 4) || Emitter::rankOf(cosines) != 2)
    return n.fail("'input' must have three or four dimensions, and caches two");
  int64_t pairs = Emitter::shapeOf(cosines)[1],
          dim = n.intAttr("rotary_embedding_dim", 0);
  if (dim && dim != 2 * pairs)
    return n.fail("rotary_embedding_dim is " + llvm::Twine(dim) +
                  " and caches have " + llvm::Twine(pairs) + " columns");
  if (rank == 4)
    return x;
  int64_t count = n.intAttr("num_heads", 0);
  // Without a number of them, all of a head is rotated.
  if (count == 0 && pairs > 0)
    count = Emitter::shapeOf(x)[2] / (2 * pairs);
  return splitHeads(n, x, count);
}

/// Gives the heads, rotated, in the shape of the input.
static void giveRotated(Node &n, Value heads, Value cosines, Value sines) {
  Value y = rotate(n.b, heads, cosines, sines, n.intAttr("interleaved", 0));
  if (!y)
    return;
  n.out(Emitter::rankOf(n.in(0)) == 3 ? mergeHeads(n.b, y) : y);
}

static void importRotaryEmbedding(Node &n) {
  Value heads = headsToRotate(n), places = n.in(1);
  if (n.failed())
    return;
  int64_t batch = Emitter::shapeOf(heads)[0],
          length = Emitter::shapeOf(heads)[2];
  if (Emitter::numElementsOf(places) == 1) {
    // The first of consecutive ones.
    places = n.b.add(n.b.iota(DType::I64, {1, length}, 1),
                     n.b.reshape(places, {1, 1}));
  } else if (ArrayRef<int64_t> at = Emitter::shapeOf(places);
             at.size() != 2 || at[1] != length ||
             (at[0] != batch && at[0] != 1)) {
    // One row for all sequences is what the fusions of exports leave.
    n.fail("'position_ids' of [" + shapeToString(Emitter::shapeOf(places)) +
           "] for [" + llvm::Twine(batch) + ", " + llvm::Twine(length) +
           "] positions");
    return;
  }
  auto [cosine, sine] = readAngles(n, 2, 3, places, Emitter::shapeOf(heads)[3]);
  giveRotated(n, heads, cosine, sine);
}

/// Which of three positions (in time, of a row, of a column) each pair of a
/// head is rotated by: sections side by side, or (`isInterleaved`) the others'
/// pairs every third among those of time.
static std::vector<int64_t> streamsOfPairs(ArrayRef<int64_t> sections,
                                           bool isInterleaved) {
  std::vector<int64_t> streams;
  for (int64_t stream = 0; stream < 3; ++stream)
    streams.insert(streams.end(), sections[stream], isInterleaved ? 0 : stream);
  if (isInterleaved)
    for (auto [i, stream] : llvm::enumerate(streams))
      if (auto pair = static_cast<int64_t>(i); pair < 3 * sections[pair % 3])
        stream = pair % 3;
  return streams;
}

/// Rotations by positions [3, batch, length].
static void importMRotaryEmbedding(Node &n) {
  Value heads = headsToRotate(n), places = n.in(1);
  if (n.failed())
    return;
  Emitter &b = n.b;
  int64_t batch = Emitter::shapeOf(heads)[0],
          length = Emitter::shapeOf(heads)[2],
          pairs = Emitter::shapeOf(n.in(2))[1];
  if (Shape wanted{3, batch, length};
      Emitter::shapeOf(places) != ArrayRef<int64_t>(wanted)) {
    n.fail("'position_ids' of [" + shapeToString(Emitter::shapeOf(places)) +
           "] is not [" + shapeToString(wanted) + "]");
    return;
  }
  // Each is bounded by its rule.
  std::vector<int64_t> sections = n.intsAttr("mrope_section");
  if (sections.size() != 3 ||
      sections[0] + sections[1] + sections[2] != pairs) {
    n.fail("'mrope_section' is not three numbers that add up to " +
           llvm::Twine(pairs));
    return;
  }
  std::vector<int64_t> streams =
      streamsOfPairs(sections, n.intAttr("mrope_layout", 0));
  Value cosine, sine;
  for (int64_t stream = 0; stream < 3 && !n.failed(); ++stream) {
    if (stream > 0 && !llvm::is_contained(streams, stream))
      continue;
    Value at = b.reshape(b.sliceDim(places, 0, stream, 1), {batch, length});
    auto [nextCosine, nextSine] =
        readAngles(n, 2, 3, at, Emitter::shapeOf(heads)[3]);
    HostTensor isIts(DType::Bool, {pairs});
    for (int64_t pair = 0; pair < pairs; ++pair)
      isIts.setInt(pair, streams[pair] == stream);
    Value chosen = b.constant(std::move(isIts));
    cosine = cosine ? b.select(chosen, nextCosine, cosine) : nextCosine;
    sine = sine ? b.select(chosen, nextSine, sine) : nextSine;
  }
  giveRotated(n, heads, cosine, sine);
}

static const OpEntry entries[] = {
    {"MRotaryEmbedding",
     importMRotaryEmbedding,
     1,
     {"input:T=floats position_ids:int64 cos_cache:T sin_cache:T", "output:T",
      "mrope_section!:ints mrope_layout:int interleaved:int num_heads:int "
      "rotary_embedding_dim:int scale:float is_packed_batching:int"}},
    {"RotaryEmbedding",
     importRotaryEmbedding,
     1,
     {"input:T=floats position_ids:int64 cos_cache:T sin_cache:T", "output:T",
      "interleaved:int num_heads:int rotary_embedding_dim:int scale:float "
      "is_packed_batching:int"}},
};

void ax::import::addContribRotary(OpTable &table) {
  table.add(entries, contribDomain);
}
