// RUN: axopt-opt %s --axl-write-transposed --axl-order-products | FileCheck %s

// A batch in the last dimension goes to the front, also of a product that a
// library writes transposed.
// CHECK: axl.stage @s(%[[X:.*]]: tensor<4x8x3xf32>, %[[Y:.*]]: tensor<3x8x5xf32>)
// CHECK: %[[T:.*]] = ax.transpose %[[X]] [2, 0, 1] : tensor<4x8x3xf32> -> tensor<3x4x8xf32>
// CHECK: axl.library(%[[T]], %[[Y]]) {
// CHECK: ^bb0(%[[A:.*]]: tensor<3x4x8xf32>, %[[B:.*]]: tensor<3x8x5xf32>):
// CHECK: ax.dot %[[A]], %[[B]] batch [0] x [0] contract [2] x [1]
// CHECK: ax.transpose %{{.*}} [1, 0, 2]
axl.stage @s(%x: tensor<4x8x3xf32>, %y: tensor<3x8x5xf32>) {
  %0 = ax.dot %x, %y batch [2] x [0] contract [1] x [1] : tensor<4x8x3xf32>, tensor<3x8x5xf32> -> tensor<3x4x5xf32>
  %1 = ax.transpose %0 [1, 0, 2] : tensor<3x4x5xf32> -> tensor<4x3x5xf32>
  axl.yield %1 : tensor<4x3x5xf32>
}
