//===- EightBitProducts.cpp - Products of eight bits by cuBLASLt ----------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "EightBitProducts.h"

#include "Contraction.h"
#include "Library.h"
#include "ax/Dialect/ScaledFactor.h"
#include "ax/Dialect/Tensors.h"

#include <limits>

using namespace mlir;

namespace ax::codegen {

/// The dimensions of the result that are the first factor's, and the second
/// one's; those of a batch stand in front of them.
static std::pair<ArrayRef<int64_t>, ArrayRef<int64_t>>
rowsAndColumns(Operation *product) {
  ArrayRef<int64_t> shape = tensorType(product->getResult(0)).getShape();
  auto dot = dyn_cast<DotOp>(product);
  if (!dot)
    return {shape.drop_back(), shape.take_back()};
  size_t batch = dot.getRhsBatch().size();
  size_t columns =
      tensorType(dot.getRhs()).getRank() - batch - dot.getRhsContract().size();
  return {shape.drop_front(batch).drop_back(columns), shape.take_back(columns)};
}

static bool isMultiple(int64_t size) {
  return size > 0 && size % eightBitMultiple == 0;
}

bool hasFloat8Products(const GpuTarget &target) {
  constexpr unsigned first = 89;
  return target.capability >= first;
}

bool multipliesFloat8(Operation *op) {
  Operation *product = getLibraryCore(op);
  if (!isa_and_present<LinearOp, DotOp>(product))
    return false;
  Type a = tensorType(product->getOperand(0)).getElementType(),
       b = tensorType(product->getOperand(1)).getElementType();
  if (!ax::isFloat8(a) || !ax::isFloat8(b) ||
      (isa<Float8E5M2Type>(a) && isa<Float8E5M2Type>(b)))
    return false;
  auto [rows, columns] = rowsAndColumns(product);
  if (rows.empty() || columns.empty())
    return false;
  // Of a result that is written transposed, rows and columns of a call are each
  // one dimension.
  auto library = dyn_cast<LibraryOp>(op);
  int64_t numRows = library && library.getTranspose()
                        ? rows.back()
                        : ShapedType::getNumElements(rows);
  return tensorType(product->getResult(0)).getNumElements() > 0 &&
         isMultiple(numTermsOf(product)) && isMultiple(numRows) &&
         isMultiple(columns.back());
}

bool mayMultiplyIntegers(Operation *product) {
  constexpr int64_t largestTerm = 128 * 128;
  auto [rows, columns] = rowsAndColumns(product);
  int64_t terms = numTermsOf(product);
  return !rows.empty() && !columns.empty() && terms > 0 &&
         terms <= std::numeric_limits<int32_t>::max() / largestTerm &&
         tensorType(product->getResult(0)).getNumElements() > 0;
}

bool multipliesIntegers(Operation *op) {
  Operation *product = getLibraryCore(op);
  return isa_and_present<LinearOp, DotOp>(product) &&
         elementType(product->getOperand(0)).isSignlessInteger(8) &&
         elementType(product->getOperand(1)).isSignlessInteger(8) &&
         elementType(product->getResult(0)).isSignlessInteger(32) &&
         mayMultiplyIntegers(product) && isMultiple(numTermsOf(product)) &&
         isMultiple(rowsAndColumns(product).second.back());
}

} // namespace ax::codegen
