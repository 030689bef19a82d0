//===- Gather.cpp - Reading and writing by index --------------------------===//

#include "../OpTable.h"

using namespace ax;
using namespace ax::import;

template <Value (Emitter::*function)(Value, Value, int64_t)>
static void importAlongAxis(Node &n) {
  Value x = n.in(0), indices = n.in(1);
  if (!x)
    return;
  int64_t axis = n.dim(n.intAttr("axis", 0), Emitter::rankOf(x));
  if (!n.failed())
    n.out((n.b.*function)(x, indices, axis));
}

static void importGatherND(Node &n) {
  Value x = n.in(0), indices = n.in(1);
  n.out(n.b.gatherND(x, indices, n.intAttr("batch_dims", 0)));
}

static std::optional<ScatterKind> scatterKind(Node &n) {
  std::string name = n.stringAttr("reduction", "none");
  if (name == "none")
    return ScatterKind::set;
  std::optional<ScatterKind> kind = symbolizeScatterKind(name);
  if (!kind || *kind == ScatterKind::set) {
    n.unsupported("reduction '" + name + "'");
    return std::nullopt;
  }
  return kind;
}

static void importScatterElements(Node &n) {
  Value x = n.in(0), indices = n.in(1), updates = n.in(2);
  std::optional<ScatterKind> kind = scatterKind(n);
  if (!x || !kind)
    return;
  int64_t axis = n.dim(n.intAttr("axis", 0), Emitter::rankOf(x));
  if (!n.failed())
    n.out(n.b.scatterElements(*kind, x, indices, updates, axis));
}

static void importScatterND(Node &n) {
  Value x = n.in(0), indices = n.in(1), updates = n.in(2);
  if (std::optional<ScatterKind> kind = scatterKind(n))
    n.out(n.b.scatterND(*kind, x, indices, updates));
}

/// Elements (along an axis, or of all) where a known condition holds.
static void importCompress(Node &n) {
  Value x = n.in(0);
  std::optional<std::vector<int64_t>> condition = n.knownInts(1, "condition");
  if (!x || !condition)
    return;
  int64_t axis = 0;
  if (n.hasAttribute("axis"))
    axis = n.dim(n.intAttr("axis", 0), Emitter::rankOf(x));
  else
    x = n.b.reshape(x, {Emitter::numElementsOf(x)});
  if (n.failed())
    return;
  std::vector<int64_t> chosen;
  for (size_t i = 0; i < condition->size(); ++i)
    if ((*condition)[i])
      chosen.push_back(static_cast<int64_t>(i));
  if (!chosen.empty() && chosen.back() >= Emitter::shapeOf(x)[axis]) {
    n.fail("the condition is longer than the dimension");
    return;
  }
  n.out(n.b.gather(x, n.b.ints(chosen), axis));
}

static void importNonZero(Node &n) {
  std::optional<HostTensor> x = n.known(0, "X");
  if (!x)
    return;
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < x->numElements(); ++i)
    if (x->getDouble(i) != 0)
      positions.push_back(i);
  int64_t rank = x->getRank(), count = positions.size();
  std::vector<int64_t> strides = rowMajorStrides(x->getShape());
  HostTensor result(DType::I64, {rank, count});
  for (int64_t d = 0; d < rank; ++d)
    for (int64_t i = 0; i < count; ++i)
      result.setInt(d * count + i,
                    positions[i] / strides[d] % x->getShape()[d]);
  n.out(n.b.constant(std::move(result)));
}

static const OpEntry entries[] = {
    {"Compress", importCompress},
    {"Gather", importAlongAxis<&Emitter::gather>},
    {"GatherElements", importAlongAxis<&Emitter::gatherElements>},
    {"GatherND", importGatherND},
    {"NonZero", importNonZero},
    {"ScatterElements", importScatterElements},
    {"ScatterND", importScatterND},
};

OpTable ax::import::gatherOps() { return entries; }
