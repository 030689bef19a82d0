//===- Contraction.cpp - Sums of products ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Contractions.h"
#include "../OpTable.h"

#include "ax/Dialect/AxEnums.h"

#include <algorithm>
#include <cctype>

using namespace ax;
using namespace ax::import;

/// `batch` broadcast in front of the last two dimensions of `x`.
static Value broadcastBatch(Emitter &b, Value x, ArrayRef<int64_t> batch) {
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  Shape full(batch);
  full.insert(full.end(), shape.end() - 2, shape.end());
  return b.broadcast(x, full);
}

Value ax::import::matmul(Emitter &b, Value lhs, Value rhs) {
  if (!lhs || !rhs)
    return {};
  int64_t lhsRank = Emitter::rankOf(lhs), rhsRank = Emitter::rankOf(rhs);
  if (lhsRank == 0 || rhsRank == 0)
    return b.fail(ExitCode::BadModel, "matrix products need dimensions");
  if (lhsRank == 1 || rhsRank <= 1 || rhsRank == 2) {
    if (rhsRank > 2) {
      // [k] x [batch, k, n]: the row of a matrix of one row.
      Value product =
          matmul(b, b.reshape(lhs, {1, Emitter::shapeOf(lhs)[0]}), rhs);
      if (!product)
        return {};
      Shape shape(Emitter::shapeOf(product));
      shape.erase(shape.end() - 2);
      return b.reshape(product, shape);
    }
    return b.dot(lhs, rhs, {{}, {}, {lhsRank - 1}, {0}});
  }
  ArrayRef<int64_t> lhsBatch = Emitter::shapeOf(lhs).drop_back(2);
  ArrayRef<int64_t> rhsBatch = Emitter::shapeOf(rhs).drop_back(2);
  if (llvm::all_of(rhsBatch, [](int64_t size) { return size == 1; }) &&
      rhsBatch.size() <= lhsBatch.size())
    return matmul(b, lhs, b.reshape(rhs, Emitter::shapeOf(rhs).take_back(2)));
  Shape batch(std::max(lhsBatch.size(), rhsBatch.size()), 1);
  for (ArrayRef<int64_t> side : {lhsBatch, rhsBatch})
    for (size_t i = 0; i < side.size(); ++i) {
      int64_t &size = batch[batch.size() - side.size() + i];
      if (side[i] != 1 && size != 1 && size != side[i])
        return b.fail(ExitCode::BadModel, "batch dimensions do not broadcast");
      size = side[i] == 1 ? size : side[i];
    }
  lhs = broadcastBatch(b, lhs, batch);
  rhs = broadcastBatch(b, rhs, batch);
  int64_t rank = batch.size();
  DotDims dims;
  for (int64_t i = 0; i < rank; ++i)
    dims.lhsBatch.push_back(i);
  dims.rhsBatch = dims.lhsBatch;
  dims.lhsContract = {rank + 1};
  dims.rhsContract = {rank};
  return b.dot(lhs, rhs, dims);
}

static void importMatMul(Node &n) { n.out(matmul(n.b, n.in(0), n.in(1))); }

Value ax::import::importProduct(Node &n) {
  Value a = n.in(0), b = n.in(1);
  int64_t transA = n.intAttr("transA", 0), transB = n.intAttr("transB", 0);
  double alpha = n.floatAttr("alpha", 1), beta = n.floatAttr("beta", 1);
  if (!a || !b)
    return {};
  if (Emitter::rankOf(a) != 2 || Emitter::rankOf(b) != 2)
    return n.fail("A and B must be matrices");
  Value y = n.b.dot(a, b, {{}, {}, {transA ? 0 : 1}, {transB ? 1 : 0}});
  if (alpha != 1)
    y = n.b.mul(y, alpha);
  if (n.has(2) && beta != 0) {
    Value c = n.in(2);
    y = n.b.add(y, beta == 1 ? c : n.b.mul(c, beta));
  }
  return y;
}

static void importGemm(Node &n) { n.out(importProduct(n)); }

//===----------------------------------------------------------------------===//
// Einsum
//===----------------------------------------------------------------------===//

namespace {
/// A tensor whose dimensions have labels, each at most once.
struct Labeled {
  Value value;
  std::string labels;
};
} // namespace

/// Sums over the dimensions whose labels are not in `kept`.
static Labeled sumOthers(Emitter &b, Labeled x, llvm::StringRef kept) {
  std::vector<int64_t> dims;
  std::string labels;
  for (auto [i, label] : llvm::enumerate(x.labels)) {
    if (kept.contains(label))
      labels += label;
    else
      dims.push_back(static_cast<int64_t>(i));
  }
  return {b.reduce(ReduceOpKind::sum, x.value, dims, false), labels};
}

/// A label that occurs twice: only elements with equal indices, once.
static Labeled takeDiagonals(Emitter &b, Labeled x) {
  for (size_t i = 0; i < x.labels.size(); ++i) {
    size_t j = x.labels.find(x.labels[i], i + 1);
    if (j == std::string::npos || !x.value)
      continue;
    if (Emitter::shapeOf(x.value)[i] != Emitter::shapeOf(x.value)[j])
      return {
          b.fail(ExitCode::BadModel, "dimensions with the same label differ"),
          x.labels};
    int64_t rank = x.labels.size();
    Shape first(rank, 1), second(rank, 1);
    first[i] = Emitter::shapeOf(x.value)[i];
    second[j] = Emitter::shapeOf(x.value)[j];
    Value same = b.compare(CompareKind::eq, b.iota(DType::I64, first, i),
                           b.iota(DType::I64, second, j));
    x.value =
        b.reduce(ReduceOpKind::sum, b.select(same, x.value, b.like(x.value, 0)),
                 {static_cast<int64_t>(j)}, false);
    x.labels.erase(j, 1);
    --i;
  }
  return x;
}

static Labeled contract(Emitter &b, Labeled lhs, Labeled rhs,
                        llvm::StringRef kept) {
  lhs = sumOthers(b, lhs, kept.str() + rhs.labels);
  rhs = sumOthers(b, rhs, kept.str() + lhs.labels);
  // A dimension of one element against a longer one broadcasts.
  auto dropOnes = [&](Labeled &x, const Labeled &other) {
    if (!x.value || !other.value)
      return;
    Shape shape(Emitter::shapeOf(x.value));
    for (size_t i = x.labels.size(); i-- > 0;) {
      size_t j = other.labels.find(x.labels[i]);
      if (j != std::string::npos && shape[i] == 1 &&
          Emitter::shapeOf(other.value)[j] != 1) {
        shape.erase(shape.begin() + i);
        x.labels.erase(i, 1);
      }
    }
    x.value = b.reshape(x.value, shape);
  };
  dropOnes(lhs, rhs);
  dropOnes(rhs, lhs);
  lhs = sumOthers(b, lhs, kept.str() + rhs.labels);
  rhs = sumOthers(b, rhs, kept.str() + lhs.labels);
  DotDims dims;
  std::string batch, free;
  for (auto [i, label] : llvm::enumerate(lhs.labels)) {
    size_t j = rhs.labels.find(label);
    if (j == std::string::npos) {
      free += label;
    } else if (kept.contains(label)) {
      batch += label;
      dims.lhsBatch.push_back(i);
      dims.rhsBatch.push_back(j);
    } else {
      dims.lhsContract.push_back(i);
      dims.rhsContract.push_back(j);
    }
  }
  for (char label : rhs.labels)
    if (lhs.labels.find(label) == std::string::npos)
      free += label;
  return {b.dot(lhs.value, rhs.value, dims), batch + free};
}

static void importEinsum(Node &n) {
  std::string equation = n.stringAttr("equation", "");
  llvm::erase_if(equation, [](char c) { return c == ' '; });
  auto [left, right] = llvm::StringRef(equation).split("->");
  bool explicitOutput = llvm::StringRef(equation).contains("->");
  llvm::SmallVector<llvm::StringRef> terms;
  left.split(terms, ',');
  if (static_cast<int>(terms.size()) != n.numInputs()) {
    n.fail("equation '" + equation + "' does not fit the inputs");
    return;
  }
  // Dimensions of an ellipsis get labels of their own, numbered from the last.
  auto ellipsisLabel = [](int64_t fromEnd) {
    return static_cast<char>(1 + fromEnd);
  };
  int64_t longest = 0;
  std::vector<Labeled> operands;
  std::map<char, int> uses;
  for (auto [i, term] : llvm::enumerate(terms)) {
    Value value = n.in(static_cast<int>(i));
    if (!value)
      return;
    auto [before, after] = term.split("...");
    int64_t named = before.size() + after.size();
    int64_t hidden = Emitter::rankOf(value) - named;
    if (hidden < 0 || hidden > 30 || (hidden && !term.contains("..."))) {
      n.fail("term '" + term + "' does not fit an input of rank " +
             llvm::Twine(Emitter::rankOf(value)));
      return;
    }
    std::string labels = before.str();
    for (int64_t d = hidden; d-- > 0;)
      labels += ellipsisLabel(d);
    labels += after.str();
    longest = std::max(longest, hidden);
    for (char label : labels) {
      if (label < 1 ||
          (label > 30 && !std::isalpha(static_cast<unsigned char>(label)))) {
        n.fail("'" + term + "' holds more than letters and one ellipsis");
        return;
      }
      ++uses[label];
    }
    operands.push_back(takeDiagonals(n.b, {value, labels}));
    if (n.failed())
      return;
  }
  std::string output, ellipsis;
  for (int64_t d = longest; d-- > 0;)
    ellipsis += ellipsisLabel(d);
  if (explicitOutput) {
    auto [before, after] = right.split("...");
    output =
        before.str() + (right.contains("...") ? ellipsis : "") + after.str();
  } else {
    output = ellipsis;
    for (auto [label, count] : uses)
      if (count == 1 && label > 30)
        output += label;
  }
  for (char label : output)
    if (!uses.count(label) || llvm::StringRef(output).count(label) > 1) {
      n.fail("the output of '" + equation + "' does not fit its terms");
      return;
    }

  Labeled result = operands.front();
  for (size_t i = 1; i < operands.size(); ++i) {
    std::string kept = output;
    for (size_t j = i + 1; j < operands.size(); ++j)
      kept += operands[j].labels;
    result = contract(n.b, result, operands[i], kept);
  }
  result = sumOthers(n.b, result, output);
  std::vector<int64_t> permutation;
  for (char label : output)
    permutation.push_back(static_cast<int64_t>(result.labels.find(label)));
  n.out(n.b.transpose(result.value, permutation));
}

static const OpEntry entries[] = {
    {"Einsum", importEinsum},
    {"Gemm", importGemm},
    {"MatMul", importMatMul},
};

void ax::import::addContraction(OpTable &table) { table.add(entries); }
