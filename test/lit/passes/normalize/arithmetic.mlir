// RUN: axopt-opt %s -ax-normalize | FileCheck %s

ax.plan @arithmetic version 1 {
ax.state @b : tensor<4xf32> from "m" offset 0 length 16

// CHECK-LABEL: ax.program @neutral
// CHECK-NEXT: ax.return %arg0
ax.program @neutral(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %zero = ax.constant dense<0.0> : tensor<4xf32> -> tensor<4xf32>
  %one = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %0 = ax.binary add %zero, %x : tensor<4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %1 = ax.binary mul %one, %0 : tensor<f32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %2 = ax.binary div %1, %one : tensor<2x4xf32>, tensor<f32> -> tensor<2x4xf32>
  %3 = ax.binary sub %2, %zero : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>
  ax.return %3 : tensor<2x4xf32>
}

// 0 + x is larger than x here; 0 - x and 1 / x are something else; x * 0 is
// not 0 when x is not finite.
// CHECK-LABEL: ax.program @not_neutral
// CHECK: ax.binary add %arg0
// CHECK: ax.binary sub
// CHECK: ax.unary reciprocal
// CHECK: ax.binary mul
ax.program @not_neutral(%x: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %wide = ax.constant dense<0.0> : tensor<2x4xf32> -> tensor<2x4xf32>
  %zero = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %one = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %0 = ax.binary add %wide, %x : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>
  %1 = ax.binary sub %zero, %x : tensor<f32>, tensor<4xf32> -> tensor<4xf32>
  %2 = ax.binary div %one, %x : tensor<f32>, tensor<4xf32> -> tensor<4xf32>
  %3 = ax.binary mul %zero, %x : tensor<f32>, tensor<4xf32> -> tensor<4xf32>
  ax.return %0, %1, %2, %3 : tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: ax.program @fixed_to_the_right
// CHECK: %[[C:.*]] = ax.constant
// CHECK: %[[B:.*]] = ax.load @b
// CHECK: %[[S:.*]] = ax.binary add %arg0, %[[B]]
// CHECK: ax.binary max %[[S]], %[[C]]
ax.program @fixed_to_the_right(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %c = ax.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> -> tensor<4xf32>
  %b = ax.load @b : tensor<4xf32>
  %0 = ax.binary add %b, %x : tensor<4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %1 = ax.binary max %c, %0 : tensor<4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  ax.return %1 : tensor<2x4xf32>
}

// CHECK-LABEL: ax.program @powers
// CHECK: %[[SQUARE:.*]] = ax.binary mul %arg0, %arg0
// CHECK: %[[AGAIN:.*]] = ax.binary mul %arg0, %arg0
// CHECK: %[[CUBE:.*]] = ax.binary mul %[[AGAIN]], %arg0
// CHECK: %[[ROOT:.*]] = ax.unary sqrt %arg0
// CHECK: %[[RROOT:.*]] = ax.unary rsqrt %arg0
// CHECK: %[[OTHER:.*]] = ax.binary pow %arg0
// CHECK: ax.return %[[SQUARE]], %[[CUBE]], %[[ROOT]], %[[RROOT]], %[[OTHER]]
ax.program @powers(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %2 = ax.constant dense<2.0> : tensor<f32> -> tensor<f32>
  %3 = ax.constant dense<3.0> : tensor<1xf32> -> tensor<1xf32>
  %half = ax.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %one = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %other = ax.constant dense<1.5> : tensor<f32> -> tensor<f32>
  %a = ax.binary pow %x, %2 : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %b = ax.binary pow %x, %3 : tensor<4xf32>, tensor<1xf32> -> tensor<4xf32>
  %c = ax.binary pow %x, %half : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %s = ax.unary sqrt %x : tensor<4xf32> -> tensor<4xf32>
  %d = ax.binary div %one, %s : tensor<f32>, tensor<4xf32> -> tensor<4xf32>
  %e = ax.binary pow %x, %other : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  ax.return %a, %b, %c, %d, %e : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// A quotient by a power of two is a product, exactly; no other is, and none of
// integers.
// CHECK-LABEL: ax.program @division
// CHECK: ax.binary mul %arg0
// CHECK: ax.binary div %arg0
// CHECK: ax.binary div %arg1
ax.program @division(%x: tensor<4xf32>, %i: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi64>) {
  %8 = ax.constant dense<8.0> : tensor<f32> -> tensor<f32>
  %3 = ax.constant dense<3.0> : tensor<f32> -> tensor<f32>
  %i8 = ax.constant dense<8> : tensor<i64> -> tensor<i64>
  %0 = ax.binary div %x, %8 : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %1 = ax.binary div %x, %3 : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %2 = ax.binary div %i, %i8 : tensor<4xi64>, tensor<i64> -> tensor<4xi64>
  ax.return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xi64>
}

// CHECK-LABEL: ax.program @choices
// CHECK-DAG: %[[TRUE:.*]] = ax.broadcast %arg1 : tensor<4xf32> -> tensor<2x4xf32>
// CHECK-DAG: %[[SWAPPED:.*]] = ax.select %arg0, %arg2, %arg1
// CHECK: ax.return %[[TRUE]], %[[SWAPPED]], %arg2
ax.program @choices(%c: tensor<2x4xi1>, %x: tensor<4xf32>, %y: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %true = ax.constant dense<true> : tensor<2x4xi1> -> tensor<2x4xi1>
  %0 = ax.select %true, %x, %y : tensor<2x4xi1>, tensor<4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %not = ax.unary logical_not %c : tensor<2x4xi1> -> tensor<2x4xi1>
  %1 = ax.select %not, %x, %y : tensor<2x4xi1>, tensor<4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %2 = ax.select %c, %y, %y : tensor<2x4xi1>, tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  ax.return %0, %1, %2 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}
}
