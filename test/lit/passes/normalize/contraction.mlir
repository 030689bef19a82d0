// RUN: axopt-opt %s -ax-normalize | FileCheck %s

ax.plan @contraction version 1 {
// CHECK-LABEL: ax.program @transposes
// CHECK-NEXT: ax.dot %arg0, %arg1 batch [0, 2] x [0, 2] contract [3] x [3]
// CHECK-SAME: tensor<2x8x4x16xf32>, tensor<2x8x4x16xf32> -> tensor<2x4x8x8xf32>
ax.program @transposes(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>) -> tensor<2x4x8x8xf32> {
  %0 = ax.transpose %q [0, 2, 1, 3] : tensor<2x8x4x16xf32> -> tensor<2x4x8x16xf32>
  %1 = ax.transpose %k [0, 2, 3, 1] : tensor<2x8x4x16xf32> -> tensor<2x4x16x8xf32>
  %2 = ax.dot %0, %1 batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32> -> tensor<2x4x8x8xf32>
  ax.return %2 : tensor<2x4x8x8xf32>
}

// Two free dimensions change places: the result would, too.
// CHECK-LABEL: ax.program @free_order
// CHECK-NEXT: ax.transpose
// CHECK-NEXT: ax.dot
ax.program @free_order(%x: tensor<2x8x16xf32>, %w: tensor<16x4xf32>) -> tensor<8x2x4xf32> {
  %0 = ax.transpose %x [1, 0, 2] : tensor<2x8x16xf32> -> tensor<8x2x16xf32>
  %1 = ax.dot %0, %w batch [] x [] contract [2] x [0] : tensor<8x2x16xf32>, tensor<16x4xf32> -> tensor<8x2x4xf32>
  ax.return %1 : tensor<8x2x4xf32>
}
}
