// RUN: axopt-opt %s -ax-sink-products | FileCheck %s

ax.plan @sink version 1 {
ax.mesh [col = 2]
ax.state @w : tensor<16x16xf32> from "m" offset 0 length 1024

// The residual is computed after the product; code generation does the product
// with it, so it waits for that.
// CHECK-LABEL: ax.program @waits
// CHECK: %[[R:.*]] = ax.unary exp
// CHECK-NEXT: %[[L:.*]] = ax.linear
// CHECK-NEXT: %[[A:.*]] = ax.unary gelu %[[L]]
// CHECK-NEXT: ax.binary add %[[R]], %[[A]]
ax.program @waits(%x: tensor<3x16xf32>) -> tensor<3x16xf32> {
  %w = ax.load @w : tensor<16x16xf32>
  %0 = ax.linear %x, %w : tensor<3x16xf32>, tensor<16x16xf32> -> tensor<3x16xf32>
  %1 = ax.unary gelu %0 : tensor<3x16xf32> -> tensor<3x16xf32>
  %2 = ax.unary exp %x : tensor<3x16xf32> -> tensor<3x16xf32>
  %3 = ax.binary add %2, %1 : tensor<3x16xf32>, tensor<3x16xf32> -> tensor<3x16xf32>
  ax.return %3 : tensor<3x16xf32>
}

// So does a bias, without a residual.
// CHECK-LABEL: ax.program @bias
// CHECK: %[[B:.*]] = ax.reduce sum
// CHECK-NEXT: %[[L:.*]] = ax.linear
// CHECK-NEXT: %[[S:.*]] = ax.binary add %[[L]], %[[B]]
// CHECK-NEXT: ax.unary relu %[[S]]
ax.program @bias(%x: tensor<3x16xf32>) -> tensor<3x16xf32> {
  %w = ax.load @w : tensor<16x16xf32>
  %0 = ax.linear %x, %w : tensor<3x16xf32>, tensor<16x16xf32> -> tensor<3x16xf32>
  %b = ax.reduce sum %x dims [0] : tensor<3x16xf32> -> tensor<16xf32>
  %1 = ax.binary add %0, %b : tensor<3x16xf32>, tensor<16xf32> -> tensor<3x16xf32>
  %2 = ax.unary relu %1 : tensor<3x16xf32> -> tensor<3x16xf32>
  ax.return %2 : tensor<3x16xf32>
}

// No library has sin: what comes later is no reason to wait.
// CHECK-LABEL: ax.program @stays
// CHECK: ax.linear
// CHECK-NEXT: ax.unary sin
// CHECK-NEXT: ax.unary exp
ax.program @stays(%x: tensor<3x16xf32>) -> tensor<3x16xf32> {
  %w = ax.load @w : tensor<16x16xf32>
  %0 = ax.linear %x, %w : tensor<3x16xf32>, tensor<16x16xf32> -> tensor<3x16xf32>
  %1 = ax.unary sin %0 : tensor<3x16xf32> -> tensor<3x16xf32>
  %2 = ax.unary exp %x : tensor<3x16xf32> -> tensor<3x16xf32>
  %3 = ax.binary add %1, %2 : tensor<3x16xf32>, tensor<3x16xf32> -> tensor<3x16xf32>
  ax.return %3 : tensor<3x16xf32>
}
}
