//===- Collectives.cpp - Simulation of localised collectives --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Kernels.h"

#include "ax/Interpreter/Interpreter.h"

using namespace mlir;

namespace ax::interpreter {

using sharding::StepKind;

/// Elements start .. start + shape[dim] along `dim`; zero past the end.
static HostTensor window(const HostTensor &x, int64_t dim, int64_t start,
                         ArrayRef<int64_t> shape) {
  HostTensor to(x.getType(), toShape(shape));
  std::vector<int64_t> strides = rowMajorStrides(x.getShape());
  SmallVector<Table> tables;
  for (int64_t d = 0; d < to.getRank(); ++d) {
    Table table = linearTable(shape[d], 0, strides[d]);
    if (d == dim)
      for (int64_t i = 0, e = table.size(); i < e; ++i)
        table[i] =
            start + i < x.getShape()[d] ? (start + i) * strides[d] : outside;
    tables.push_back(std::move(table));
  }
  copyByTables(x, tables, to);
  return to;
}

/// The parts one after another along `dim`, cut to `shape`.
static HostTensor join(ArrayRef<HostTensor> parts, int64_t dim,
                       ArrayRef<int64_t> shape) {
  Shape joined = parts.front().getShape();
  int64_t extent = joined[dim];
  joined[dim] *= parts.size();
  // A sum of windows will do: every element comes from exactly one part.
  HostTensor to(parts.front().getType(), joined);
  int64_t inner = byteSize(to.getType()), outer = 1;
  for (int64_t d = 0; d < to.getRank(); ++d)
    (d < dim ? outer : inner) *= d == dim ? extent : joined[d];
  uint8_t *out = to.mutableData();
  for (int64_t i = 0; i < outer; ++i)
    for (const HostTensor &part : parts) {
      std::memcpy(out, part.data() + i * inner, inner);
      out += inner;
    }
  return window(to, dim, 0, shape);
}

namespace {
/// One tensor of a collective, seen from one rank.
struct Exchange {
  LocalCollectiveOpInterface op;
  unsigned part;
  ArrayRef<HostTensor> operands;
  /// Ranks in order, and this rank's place among them.
  std::vector<int64_t> group;
  int64_t number;
  ArrayRef<int64_t> resultShape;

  HostTensor reduced(ReduceOpKind kind) const {
    HostTensor total = operands[group[0]];
    for (int64_t peer : ArrayRef<int64_t>(group).drop_front())
      combineInto(kind, total, operands[peer]);
    return total;
  }
  HostTensor gathered(int64_t dim) const {
    SmallVector<HostTensor> parts;
    for (int64_t peer : group)
      parts.push_back(operands[peer]);
    return join(parts, dim, resultShape);
  }
  HostTensor scattered(const HostTensor &whole, int64_t dim) const {
    return window(whole, dim, number * resultShape[dim], resultShape);
  }
  HostTensor swapped(int64_t gatherDim, int64_t scatterDim) const {
    SmallVector<HostTensor> parts;
    for (int64_t peer : group) {
      Shape shape = operands[peer].getShape();
      shape[scatterDim] = resultShape[scatterDim];
      parts.push_back(window(operands[peer], scatterDim,
                             number * shape[scatterDim], shape));
    }
    return join(parts, gatherDim, resultShape);
  }
};
} // namespace

static HostTensor run(const Exchange &exchange, int64_t rank) {
  LocalCollectiveOpInterface op = exchange.op;
  int64_t gatherDim = op.getGatherDimOf(exchange.part);
  int64_t scatterDim = op.getScatterDimOf(exchange.part);
  switch (op.getStepKind()) {
  case StepKind::AllReduce:
    return exchange.reduced(*op.getReduction());
  case StepKind::ReduceScatter:
    return exchange.scattered(exchange.reduced(*op.getReduction()), scatterDim);
  case StepKind::AllGather:
    return exchange.gathered(gatherDim);
  case StepKind::AllToAll:
    return exchange.swapped(gatherDim, scatterDim);
  case StepKind::CollectivePermute:
    return exchange
        .operands[cast<LocalPermuteOp>(op.getOperation()).getSources()[rank]];
  case StepKind::AllSlice:
  case StepKind::ToPartial:
    break;
  }
  llvm_unreachable("nothing is exchanged");
}

std::vector<HostTensor> interpretCollective(LocalCollectiveOpInterface op,
                                            unsigned part,
                                            const sharding::Mesh &mesh,
                                            ArrayRef<HostTensor> operands) {
  sharding::SubAxes axes = op.getMovedAxes().resolve(mesh);
  ArrayRef<int64_t> shape = tensorType(op->getResult(part)).getShape();
  std::vector<HostTensor> results;
  for (int64_t rank = 0, e = mesh.numRanks(); rank < e; ++rank) {
    Exchange exchange{op,
                      part,
                      operands,
                      mesh.group(axes, rank),
                      mesh.index(axes, mesh.coordinates(rank)),
                      shape};
    results.push_back(run(exchange, rank));
    assert(ArrayRef<int64_t>(results.back().getShape()) == shape);
  }
  return results;
}

} // namespace ax::interpreter
