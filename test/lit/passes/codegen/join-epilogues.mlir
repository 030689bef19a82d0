// RUN: axopt-opt %s --axl-join-epilogues | FileCheck %s

// CHECK: axl.stage @joined(%[[X:.*]]: tensor<1x2x4x4xf32>, %[[W:.*]]: tensor<2x2x1x1xf32>)
// CHECK: %[[R:.*]] = axl.library(%[[X]], %[[W]], %[[X]]) {
// CHECK: ^bb0(%[[A:.*]]: {{.*}}, %[[B:.*]]: {{.*}}, %[[C:.*]]: {{.*}}):
// CHECK: %[[Y:.*]] = ax.conv %[[A]], %[[B]] residual %[[C]]
// CHECK: %[[Z:.*]] = ax.unary relu %[[Y]]
// CHECK: axl.yield %[[Z]]
// CHECK-NOT: ax.unary
// CHECK: axl.yield %[[R]]
axl.stage @joined(%x: tensor<1x2x4x4xf32>, %w: tensor<2x2x1x1xf32>) {
  %0 = ax.conv %x, %w residual %x : tensor<1x2x4x4xf32> strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
  %1 = ax.unary relu %0 : tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
  axl.yield %1 : tensor<1x2x4x4xf32>
}

// Somebody else reads the sum.
// CHECK: axl.stage @apart
// CHECK-NOT: axl.library
// CHECK: ax.conv
// CHECK: ax.unary relu
axl.stage @apart(%x: tensor<1x2x4x4xf32>, %w: tensor<2x2x1x1xf32>) {
  %0 = ax.conv %x, %w residual %x : tensor<1x2x4x4xf32> strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
  %1 = ax.unary relu %0 : tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
  axl.yield %0, %1 : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
}
