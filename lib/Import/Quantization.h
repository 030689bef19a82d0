//===- Quantization.h - Integers that stand for numbers ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_QUANTIZATION_H
#define AX_LIB_IMPORT_QUANTIZATION_H

#include "Node.h"

namespace ax::import {

/// `x` as `type`. What a float of eight bits does not reach becomes its largest
/// number, or, if the node's attribute `saturate` is 0, infinity or NaN.
Value castTo(Node &n, Value x, DType type);

/// `x`, in units of its scale, rounded, shifted and cut to the range of `type`.
/// `zero` may be null.
Value quantize(Node &n, Value x, Value zero, DType type);

/// (x - zero) scale. Computes in f32 for narrow scales, too: what is in units
/// of them may be beyond f16, and has more digits. `zero` may be null.
Value dequantize(Node &n, Value x, Value scale, Value zero);

/// A scale or zero point of an operand or result `x` of a product: one number
/// as it is, a vector along `along`, if `x` has such a dimension, and others as
/// they broadcast, with the dimensions of `x`.
Value spreadOver(Node &n, Value parameter, Value x, int64_t along);

/// The dimension of rows of a matrix or a stack of them; of a vector -1, which
/// no dimension is.
int64_t rowsOf(Value x);
int64_t columnsOf(Value x);

/// An operand of a product, its zero point taken off, in i32, or in f32 where
/// it has floats of eight bits. A vector of zero points belongs to dimension
/// `along`.
Value centred(Node &n, int input, int zeroInput,
              llvm::function_ref<int64_t(Value)> along);

/// A sum of products of integers, times `scaleA` and `scaleB` and in units of
/// the scale of the result: by one factor, as ONNX's reference and onnxruntime
/// do, since whatever rounds elsewhere rounds ties otherwise. In f32 whichever
/// type scales have, for sums are beyond f16.
Value requantize(Node &n, Value sum, Value scaleA, Value scaleB, Value scaleY,
                 Value zero);

/// sum scaleA scaleB + bias, in the type of the scales, of which the second and
/// the bias, if there is one, are inputs. The second may be one a column.
Value asNumbers(Node &n, Value sum, Value scaleA, int scaleB, int bias);

/// Numbers from 0 to 255 less their zero point, in i32, and their scale, one
/// number; null after a failure.
struct QuantizedNumbers {
  Value centred, scale;
};
/// Quantises `x` as it comes, by its least and its largest element and 0.
QuantizedNumbers quantizeDynamically(Node &n, Value x);

void importQuantizeLinear(Node &n);
void importDequantizeLinear(Node &n);

} // namespace ax::import

#endif // AX_LIB_IMPORT_QUANTIZATION_H
