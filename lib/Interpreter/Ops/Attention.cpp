//===- Attention.cpp - Interpreting attention and its gradient ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Kernels.h"

#include "ax/Dialect/AttentionValues.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>
#include <numeric>

namespace ax::interpreter {

namespace {

/// Rows of q against the keys of their heads.
class Rows {
public:
  /// `mask`: null where there is none.
  Rows(const AttentionValues &values, Operands in, const HostTensor *mask)
      : values(values), q(toDoubles(in[0])), k(toDoubles(in[1])),
        v(toDoubles(in[2])), queries(in[0].getShape()[2]),
        keys(in[1].getShape()[2]), d(in[0].getShape()[3]),
        dv(in[2].getShape()[3]), heads(in[0].getShape()[1]),
        kvHeads(in[1].getShape()[1]), batches(in[0].getShape()[0]) {
    if (mask)
      readMask(*mask);
  }

  /// Calls fn(row of q, row of the first key) for every head and query.
  template <typename Fn>
  void forEach(Fn fn) const {
    for (int64_t head = 0; head < batches * heads; ++head) {
      int64_t kvHead =
          head / heads * kvHeads + head % heads / (heads / kvHeads);
      for (int64_t s = 0; s < queries; ++s)
        fn(head * queries + s, kvHead * keys);
    }
  }

  /// How much `row` attends to each key, and how that changes with the product
  /// of the two.
  struct Weights {
    std::vector<double> p, slopes;
  };
  Weights weigh(int64_t row, int64_t firstKey) const {
    Weights to{std::vector<double>(keys), std::vector<double>(keys, 1)};
    for (int64_t t = 0; t < keys; ++t) {
      double score =
          values.scale *
          std::inner_product(q.begin() + row * d, q.begin() + (row + 1) * d,
                             k.begin() + (firstKey + t) * d, 0.0);
      if (values.softcap) {
        double capped = std::tanh(score / *values.softcap);
        score = *values.softcap * capped;
        to.slopes[t] = 1 - capped * capped;
      }
      if (!mask.empty())
        score += mask[row * keys + t];
      if (!isInBand(row, t))
        score = -INFINITY;
      to.p[t] = score;
    }
    double largest = -INFINITY, sum = 0;
    for (double score : to.p)
      largest = combine(ReduceOpKind::max, largest, score);
    if (largest == -INFINITY && values.emptyRowsZero) {
      std::fill(to.p.begin(), to.p.end(), 0);
      return to;
    }
    if (largest == -INFINITY && values.emptyRowsMean) {
      std::fill(to.p.begin(), to.p.end(), 0);
      largest = 0;
    }
    for (double &score : to.p)
      sum += score = std::exp(score - largest);
    for (double &p : to.p)
      p /= sum;
    return to;
  }

  const AttentionValues values;
  const std::vector<double> q, k, v;
  const int64_t queries, keys, d, dv;

private:
  /// By causality, places and a window.
  bool isInBand(int64_t row, int64_t t) const {
    int64_t further = t - row % queries;
    int64_t last =
        values.causal ? keys - queries : std::numeric_limits<int64_t>::max();
    if (!places.empty())
      last = std::min(last, places[row * keys + t]);
    // A difference of 64 bits, which is not negative, may need all of them.
    auto behind = static_cast<uint64_t>(last) - static_cast<uint64_t>(further);
    return further <= last &&
           (!values.window || behind < static_cast<uint64_t>(*values.window));
  }

  /// Reads the mask as numbers to be added, for every score.
  void readMask(const HostTensor &tensor) {
    if (tensor.getType() == DType::I64) {
      places = broadcastTo(tensor, {batches, heads, queries, keys}).toInts();
      return;
    }
    HostTensor full = broadcastTo(tensor, {batches, heads, queries, keys});
    mask = toDoubles(full);
    if (tensor.getType() == DType::Bool)
      for (double &value : mask)
        value = value != 0 ? 0 : -INFINITY;
  }

  const int64_t heads, kvHeads, batches;
  std::vector<double> mask;
  /// Whether a query sees a key by their places, for every score: each query as
  /// much further as the one before it.
  std::vector<int64_t> places;
};

} // namespace

static HostTensor attention(AttentionOp op, Operands in) {
  Rows rows(AttentionValues(op), in, op.getMask() ? &in[3] : nullptr);
  HostTensor result = emptyLike(op.getResult());
  std::vector<double> out(result.numElements());
  rows.forEach([&](int64_t row, int64_t firstKey) {
    std::vector<double> p = rows.weigh(row, firstKey).p;
    for (int64_t t = 0; t < rows.keys; ++t)
      for (int64_t j = 0; j < rows.dv; ++j)
        out[row * rows.dv + j] += p[t] * rows.v[(firstKey + t) * rows.dv + j];
  });
  storeDoubles(out, result);
  return result;
}

static Results attentionGradient(AttentionGradientOp op, Operands in) {
  Rows rows(AttentionValues(op), in, op.getMask() ? &in[5] : nullptr);
  std::vector<double> result = toDoubles(in[3]), dy = toDoubles(in[4]);
  std::vector<double> dq(rows.q.size()), dk(rows.k.size()), dv(rows.v.size());
  rows.forEach([&](int64_t row, int64_t firstKey) {
    auto [p, slopes] = rows.weigh(row, firstKey);
    auto dyOfRow = dy.begin() + row * rows.dv;
    double total = std::inner_product(dyOfRow, dyOfRow + rows.dv,
                                      result.begin() + row * rows.dv, 0.0);
    for (int64_t t = 0; t < rows.keys; ++t) {
      int64_t key = firstKey + t;
      double dp = std::inner_product(dyOfRow, dyOfRow + rows.dv,
                                     rows.v.begin() + key * rows.dv, 0.0);
      double ds = rows.values.scale * p[t] * (dp - total) * slopes[t];
      for (int64_t j = 0; j < rows.dv; ++j)
        dv[key * rows.dv + j] += p[t] * dyOfRow[j];
      for (int64_t i = 0; i < rows.d; ++i) {
        dq[row * rows.d + i] += ds * rows.k[key * rows.d + i];
        dk[key * rows.d + i] += ds * rows.q[row * rows.d + i];
      }
    }
  });
  Results results;
  for (auto [value, sums] :
       {std::pair(op.getDq(), &dq), {op.getDk(), &dk}, {op.getDv(), &dv}}) {
    results.push_back(emptyLike(value));
    storeDoubles(*sums, results.back());
  }
  return results;
}

std::optional<Results> interpretAttention(mlir::Operation *op, Operands in) {
  return llvm::TypeSwitch<mlir::Operation *, std::optional<Results>>(op)
      .Case([&](AttentionOp o) { return Results{attention(o, in)}; })
      .Case([&](AttentionGradientOp o) { return attentionGradient(o, in); })
      .Default([](mlir::Operation *) { return std::nullopt; });
}

} // namespace ax::interpreter
