// RUN: axopt-opt %s --axl-write-transposed | FileCheck %s

// Rows stay rows: attention writes each position's heads side by side.
// CHECK: axl.stage @rows(%[[X:.*]]: tensor<1x2x5x4xf32>)
// CHECK: %[[R:.*]] = axl.library(%[[X]], %[[X]], %[[X]]) {
// CHECK: %[[A:.*]] = ax.attention
// CHECK: %[[T:.*]] = ax.transpose %[[A]] [0, 2, 1, 3]
// CHECK: axl.yield %[[T]]
// CHECK: axl.yield %[[R]] : tensor<1x5x2x4xf32>
axl.stage @rows(%x: tensor<1x2x5x4xf32>) {
  %0 = ax.attention %x, %x, %x scale 5.000000e-01 : tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32> -> tensor<1x2x5x4xf32>
  %1 = ax.transpose %0 [0, 2, 1, 3] : tensor<1x2x5x4xf32> -> tensor<1x5x2x4xf32>
  axl.yield %1 : tensor<1x5x2x4xf32>
}

// CHECK: axl.stage @columns
// CHECK-NOT: axl.library
axl.stage @columns(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>) {
  %0 = ax.linear %x, %w : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  %1 = ax.transpose %0 [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
  axl.yield %1 : tensor<6x4xf32>
}
