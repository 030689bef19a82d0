//===- ContribIntegers.cpp - Products of integers, of com.microsoft -------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Contractions.h"
#include "../OpTable.h"
#include "../Quantization.h"

using namespace ax;
using namespace ax::import;

Value ax::import::asNumbers(Node &n, Value sum, Value scaleA, int scaleB,
                            int bias) {
  Value b = n.in(scaleB);
  if (!sum || !scaleA || !b)
    return {};
  if (Emitter::numElementsOf(scaleA) != 1)
    return n.unsupported("the scale of A of [" +
                         shapeToString(Emitter::shapeOf(scaleA)) +
                         "] is not one number");
  DType type = Emitter::typeOf(b);
  Value factor =
      n.b.mul(n.b.cast(n.b.reshape(scaleA, {}), DType::F32),
              n.b.cast(spreadOver(n, b, sum, columnsOf(sum)), DType::F32));
  Value y = n.b.cast(n.b.mul(n.b.cast(sum, DType::F32), factor), type);
  return n.has(bias) ? n.b.add(y, n.in(bias)) : y;
}

static void importMatMulIntegerToFloat(Node &n) {
  Value sum =
      matmul(n.b, centred(n, 0, 4, rowsOf), centred(n, 1, 5, columnsOf));
  n.out(asNumbers(n, sum, n.in(2), 3, 6));
}

QuantizedNumbers ax::import::quantizeDynamically(Node &n, Value x) {
  if (!x)
    return {};
  std::vector<int64_t> all;
  for (int64_t i = 0; i < Emitter::rankOf(x); ++i)
    all.push_back(i);
  Value zero = n.b.like(x, 0);
  Value low = n.b.min(n.b.reduce(ReduceOpKind::min, x, all, false), zero),
        high = n.b.max(n.b.reduce(ReduceOpKind::max, x, all, false), zero);
  Value range = n.b.sub(high, low);
  Value isEmpty = n.b.compare(CompareKind::eq, range, zero);
  Value scale =
      n.b.select(isEmpty, n.b.like(x, 1), n.b.div(range, n.b.like(x, 255)));
  Value shift = quantize(n, n.b.div(n.b.sub(zero, low), scale), {}, DType::U8);
  Value units = quantize(n, n.b.div(x, scale), shift, DType::U8);
  if (!units || !shift)
    return {};
  return {n.b.sub(n.b.cast(units, DType::I32), n.b.cast(shift, DType::I32)),
          scale};
}

static void importDynamicQuantizeMatMul(Node &n) {
  auto [left, scale] = quantizeDynamically(n, n.in(0));
  if (!left)
    return;
  Value sum = matmul(n.b, left, centred(n, 1, 3, columnsOf));
  n.out(asNumbers(n, sum, scale, 2, 4));
}

/// alpha (A B) + C, where C is in units of the product; of integers when there
/// is a scale of the result, else of floats.
static void importQGemm(Node &n) {
  Value a = n.in(0), b = n.in(3);
  int64_t transA = n.intAttr("transA", 0), transB = n.intAttr("transB", 0);
  if (n.failed())
    return;
  if (Emitter::rankOf(a) != 2 || Emitter::rankOf(b) != 2) {
    n.fail("A and B must be matrices");
    return;
  }
  if (n.has(7) != n.has(8)) {
    n.fail("'y_scale' and 'y_zero_point' go together");
    return;
  }
  auto columns = [&](Value) -> int64_t { return transB ? 0 : 1; };
  auto rows = [&](Value) -> int64_t { return transA ? 1 : 0; };
  Value sum = n.b.dot(centred(n, 0, 2, rows), centred(n, 3, 5, columns),
                      {{}, {}, {transA ? 0 : 1}, {transB ? 1 : 0}});
  if (n.has(6))
    sum = n.b.add(sum, n.in(6));
  Value scaleA = n.in(1);
  if (!sum || !scaleA)
    return;
  if (double alpha = n.floatAttr("alpha", 1); alpha != 1)
    scaleA = n.b.mul(scaleA, alpha);
  if (!n.has(7))
    return n.out(asNumbers(n, sum, scaleA, 4, /*bias=*/9));
  n.out(requantize(
      n, sum, spreadOver(n, scaleA, sum, 0), spreadOver(n, n.in(4), sum, 1),
      spreadOver(n, n.in(7), sum, 1), spreadOver(n, n.in(8), sum, 1)));
}

static const OpEntry entries[] = {
    {"DynamicQuantizeMatMul",
     importDynamicQuantizeMatMul,
     1,
     {"A:float B:T=bytes b_scale:float b_zero_point?:T bias?:float",
      "Y:float"}},
    {"MatMulIntegerToFloat",
     importMatMulIntegerToFloat,
     1,
     {"A:TA=bytes B:TB=bytes a_scale:S=float|float16 b_scale:S "
      "a_zero_point?:TA b_zero_point?:TB bias?:S",
      "Y:S"}},
    {"QGemm",
     importQGemm,
     1,
     {"A:TA=bytes a_scale:float a_zero_point:TA B:TB=bytes b_scale:float "
      "b_zero_point:TB C?:int32 y_scale?:float y_zero_point?:TY=bytes",
      "Y:Y=float|int8|uint8", "alpha:float transA:int transB:int"}},
};

void ax::import::addContribIntegers(OpTable &table) {
  table.add(entries, contribDomain);
}
