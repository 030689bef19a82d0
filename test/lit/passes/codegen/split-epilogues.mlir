// RUN: axopt-opt %s --axl-split-epilogues | FileCheck %s

// No library has sin; the residual comes behind it.
// CHECK: %[[L:.*]] = ax.linear %[[X:.*]], %{{.*}} : tensor<4x8xf32>
// CHECK: %[[A:.*]] = ax.unary sin %[[L]]
// CHECK: %[[R:.*]] = ax.binary add %[[A]], %[[X]]
// CHECK: ax.linear %[[R]], %{{.*}} {activation = #ax<unary_kind gelu>}
axl.stage @s(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>) {
  %0 = ax.linear %x, %w residual %x : tensor<4x8xf32> {activation = #ax<unary_kind sin>} : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %1 = ax.linear %0, %w {activation = #ax<unary_kind gelu>} : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  axl.yield %1 : tensor<4x8xf32>
}
