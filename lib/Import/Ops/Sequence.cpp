//===- Sequence.cpp - Sequences and optionals -----------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A sequence's length is known when compiling, so it exists only here: its
// tensors are ordinary values.
//
//===----------------------------------------------------------------------===//

#include "../OpTable.h"

using namespace ax;
using namespace ax::import;

static void importSequenceConstruct(Node &n) {
  n.out(Entry::makeSequence(n.allInputs()));
}

static void importSequenceEmpty(Node &n) { n.out(Entry::makeSequence({})); }

/// Position in a sequence of `length`, negative from the end.
static std::optional<size_t> position(Node &n, int input, int64_t length) {
  std::optional<int64_t> at = n.knownInt(input, "position");
  if (!at)
    return std::nullopt;
  if (*at < -length || *at >= length) {
    n.fail("position " + llvm::Twine(*at) +
           " is out of range of a sequence "
           "of " +
           llvm::Twine(length));
    return std::nullopt;
  }
  return *at < 0 ? *at + length : *at;
}

static void importSequenceAt(Node &n) {
  ArrayRef<Value> values = n.sequence(0);
  if (auto at = position(n, 1, values.size()))
    n.out(values[*at]);
}

static void importSequenceInsert(Node &n) {
  std::vector<Value> values = n.sequence(0).vec();
  Value value = n.in(1);
  size_t at = values.size();
  if (n.has(2)) {
    std::optional<int64_t> given = n.knownInt(2, "position");
    if (!given)
      return;
    int64_t length = values.size();
    if (*given < -length || *given > length) {
      n.fail("position " + llvm::Twine(*given) + " is out of range");
      return;
    }
    at = *given < 0 ? *given + length : *given;
  }
  values.insert(values.begin() + at, value);
  n.out(Entry::makeSequence(std::move(values)));
}

static void importSequenceErase(Node &n) {
  std::vector<Value> values = n.sequence(0).vec();
  size_t at = values.size() - 1;
  if (n.has(1)) {
    std::optional<size_t> given = position(n, 1, values.size());
    if (!given)
      return;
    at = *given;
  }
  if (at >= values.size()) {
    n.fail("the sequence is empty");
    return;
  }
  values.erase(values.begin() + at);
  n.out(Entry::makeSequence(std::move(values)));
}

static void importSequenceLength(Node &n) {
  n.out(n.b.constant(
      HostTensor::scalar<int64_t>(static_cast<int64_t>(n.sequence(0).size()))));
}

static void importConcatFromSequence(Node &n) {
  std::vector<Value> values = n.sequence(0).vec();
  if (values.empty()) {
    n.fail("the sequence is empty");
    return;
  }
  bool isNew = n.intAttr("new_axis", 0);
  int64_t axis =
      n.dim(n.intAttr("axis", 0), Emitter::rankOf(values[0]) + isNew);
  if (n.failed())
    return;
  if (isNew)
    for (Value &value : values) {
      Shape shape(Emitter::shapeOf(value));
      if (axis > static_cast<int64_t>(shape.size())) {
        n.fail("the sequence's tensors differ in rank");
        return;
      }
      shape.insert(shape.begin() + axis, 1);
      value = n.b.reshape(value, shape);
    }
  n.out(n.b.concat(values, axis));
}

/// Each is an operation that reads the whole: layouts compare them all.
static constexpr int64_t maxPieces = 8192;

static void importSplitToSequence(Node &n) {
  Value x = n.in(0);
  if (!x)
    return;
  int64_t axis = n.dim(n.intAttr("axis", 0), Emitter::rankOf(x));
  if (n.failed())
    return;
  int64_t size = Emitter::shapeOf(x)[axis];
  auto fits = [&](int64_t length) {
    if (length > maxPieces)
      n.unsupported("a sequence of " + llvm::Twine(length) + " tensors");
    return !n.failed();
  };
  bool keeps = n.has(1) || n.intAttr("keepdims", 1);
  std::vector<int64_t> sizes;
  if (n.has(1)) {
    std::optional<HostTensor> split = n.known(1, "split");
    if (!split)
      return;
    sizes = split->toInts();
    if (split->getRank() == 0) {
      int64_t each = sizes[0];
      if (each < 1) {
        n.fail("split must be at least 1");
        return;
      }
      if (!fits(size / each))
        return;
      sizes.clear();
      for (int64_t at = 0; at < size; at += each)
        sizes.push_back(std::min(each, size - at));
    }
  } else if (fits(size)) {
    sizes.assign(size, 1);
  }
  if (!fits(static_cast<int64_t>(sizes.size())))
    return;
  std::vector<Value> values;
  int64_t start = 0;
  for (int64_t part : sizes) {
    if (part < 0 || part > size - start) {
      n.fail("the pieces do not fit the dimension");
      return;
    }
    Value piece = n.b.sliceDim(x, axis, start, part);
    if (!keeps) {
      Shape shape(Emitter::shapeOf(x));
      shape.erase(shape.begin() + axis);
      piece = n.b.reshape(piece, shape);
    }
    values.push_back(piece);
    start += part;
  }
  n.out(Entry::makeSequence(std::move(values)));
}

static void importOptional(Node &n) {
  if (n.numInputs() == 1)
    n.out(n.entry(0));
}

static void importOptionalGetElement(Node &n) {
  if (!n.has(0)) {
    n.fail("the optional is empty");
    return;
  }
  n.out(n.entry(0));
}

static void importOptionalHasElement(Node &n) {
  n.out(n.b.constant(HostTensor::scalar<bool>(n.has(0))));
}

static const OpEntry entries[] = {
    {"ConcatFromSequence", importConcatFromSequence},
    {"Optional", importOptional},
    {"OptionalGetElement", importOptionalGetElement},
    {"OptionalHasElement", importOptionalHasElement},
    {"SequenceAt", importSequenceAt},
    {"SequenceConstruct", importSequenceConstruct},
    {"SequenceEmpty", importSequenceEmpty},
    {"SequenceErase", importSequenceErase},
    {"SequenceInsert", importSequenceInsert},
    {"SequenceLength", importSequenceLength},
    {"SplitToSequence", importSplitToSequence},
};

void ax::import::addSequence(OpTable &table) { table.add(entries); }
