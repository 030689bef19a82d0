//===- Blocks.cpp - Products with matrices of few bits --------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Local/Local.h"
#include "ax/Support/BitBlocks.h"

using namespace mlir;
using namespace ax;

LogicalResult BlockMatmulOp::verify() {
  constexpr int64_t bitsOfByte = 8;
  auto x = tensorType(getX()), w = tensorType(getW()),
       scales = tensorType(getScales());
  auto result = cast<RankedTensorType>(getType());
  auto bits = static_cast<int64_t>(getBits());
  if (!isFewBits(bits))
    return emitOpError("has numbers of ") << bits << " bits, not 2, 4 or 8";
  bool isMatrix = x.getRank() == 2 && w.getRank() == 2 &&
                  scales.getRank() == 2 && result.getRank() == 2;
  if (!isMatrix || !x.getElementType().isF32() ||
      !scales.getElementType().isF32() || !result.getElementType().isF32() ||
      !w.getElementType().isUnsignedInteger(bitsOfByte))
    return emitOpError("needs matrices of f32, and one of ui8, and has ")
           << x << ", " << w << ", " << scales << " and " << result;
  int64_t k = x.getDimSize(1), n = w.getDimSize(0);
  if (w.getDimSize(1) * bitsOfByte != k * bits ||
      result.getShape() != ArrayRef<int64_t>{x.getDimSize(0), n})
    return emitOpError("has rows ")
           << x << " and " << result << ", which do not fit " << w;
  int64_t blocks = scales.getDimSize(1);
  if (scales.getDimSize(0) != n || blocks == 0 || k % blocks != 0 ||
      !isBlockLength(k / blocks))
    return emitOpError("has scales ") << scales << " of blocks of " << w;
  if (getZeros() &&
      (tensorType(getZeros()).getShape() != scales.getShape() ||
       !tensorType(getZeros()).getElementType().isUnsignedInteger(bitsOfByte)))
    return emitOpError("has zero points ")
           << tensorType(getZeros()) << " beside scales " << scales;
  return success();
}
