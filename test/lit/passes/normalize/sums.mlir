// RUN: axopt-opt %s -ax-normalize | FileCheck %s
// RUN: axopt-opt %s -ax-normalize | FileCheck %s --check-prefix=STAYS

ax.plan @sums version 1 {

// The gradient of a batch norm's mean: what is centred sums up to nothing, and the sum
// of what is left is there.
// CHECK-LABEL: ax.program @batch_norm
// CHECK: ax.reduce sum
// CHECK: %[[BIAS:.*]] = ax.reduce sum %arg1 dims [0, 2]
// CHECK-NOT: ax.reduce
// CHECK: %[[KEPT:.*]] = ax.reshape %[[BIAS]] {ax.action = "B"} : tensor<4xf32> -> tensor<1x4x1xf32>
// CHECK: %[[SCALED:.*]] = ax.binary mul %[[KEPT]], %arg2
// CHECK: %[[MEAN:.*]] = ax.unary neg %[[SCALED]] {ax.action = "B"}
// CHECK: ax.return %{{.*}}, %{{.*}}, %[[MEAN]]
ax.program @batch_norm(%x: tensor<2x4x8xf32>, %dy: tensor<2x4x8xf32>, %f: tensor<1x4x1xf32>, %c: tensor<1x4x1xf32>) -> (tensor<2x4x8xf32>, tensor<4xf32>, tensor<1x4x1xf32>) {
  %count = ax.constant dense<0.0625> : tensor<f32> -> tensor<f32>
  %0 = ax.reduce sum %x dims [0, 2] keep_dims : tensor<2x4x8xf32> -> tensor<1x4x1xf32>
  %1 = ax.binary mul %0, %count : tensor<1x4x1xf32>, tensor<f32> -> tensor<1x4x1xf32>
  %2 = ax.binary sub %x, %1 : tensor<2x4x8xf32>, tensor<1x4x1xf32> -> tensor<2x4x8xf32>
  %3 = ax.reduce sum %dy dims [0, 2] {ax.action = "B"} : tensor<2x4x8xf32> -> tensor<4xf32>
  %4 = ax.binary mul %dy, %f {ax.action = "B"} : tensor<2x4x8xf32>, tensor<1x4x1xf32> -> tensor<2x4x8xf32>
  %5 = ax.binary mul %2, %c {ax.action = "B"} : tensor<2x4x8xf32>, tensor<1x4x1xf32> -> tensor<2x4x8xf32>
  %6 = ax.binary add %4, %5 {ax.action = "B"} : tensor<2x4x8xf32>, tensor<2x4x8xf32> -> tensor<2x4x8xf32>
  %7 = ax.binary add %6, %5 {ax.action = "B"} : tensor<2x4x8xf32>, tensor<2x4x8xf32> -> tensor<2x4x8xf32>
  %8 = ax.unary neg %7 {ax.action = "B"} : tensor<2x4x8xf32> -> tensor<2x4x8xf32>
  %9 = ax.reduce sum %8 dims [0, 2] keep_dims {ax.action = "B"} : tensor<2x4x8xf32> -> tensor<1x4x1xf32>
  ax.return %7, %3, %9 : tensor<2x4x8xf32>, tensor<4xf32>, tensor<1x4x1xf32>
}

// A sum that is not there is made, without what is centred; of a difference the
// second term is negative.
// CHECK-LABEL: ax.program @made
// CHECK: %[[SUM:.*]] = ax.reduce sum %arg1 dims [0]
// CHECK: %[[LESS:.*]] = ax.unary neg %[[SUM]]
// CHECK-NOT: ax.reduce
// CHECK: ax.return %[[LESS]]
ax.program @made(%x: tensor<8x4xf32>, %dy: tensor<8x4xf32>) -> tensor<4xf32> {
  %count = ax.constant dense<0.125> : tensor<f32> -> tensor<f32>
  %0 = ax.reduce sum %x dims [0] keep_dims : tensor<8x4xf32> -> tensor<1x4xf32>
  %1 = ax.binary mul %0, %count : tensor<1x4xf32>, tensor<f32> -> tensor<1x4xf32>
  %2 = ax.binary sub %x, %1 : tensor<8x4xf32>, tensor<1x4xf32> -> tensor<8x4xf32>
  %3 = ax.binary sub %2, %dy {ax.action = "B"} : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
  %4 = ax.reduce sum %3 dims [0] {ax.action = "B"} : tensor<8x4xf32> -> tensor<4xf32>
  ax.return %4 : tensor<4xf32>
}

// Not in a forward pass, over other dimensions, with a factor that differs along the
// sum, of two other terms, or where something else was subtracted.
// CHECK-LABEL: ax.program @kept
// CHECK-COUNT-6: ax.reduce
// STAYS-LABEL: ax.program @kept
// STAYS-NOT: ax.reduce sum %arg1
ax.program @kept(%x: tensor<8x4xf32>, %dy: tensor<8x4xf32>, %f: tensor<8x1xf32>) -> (tensor<4xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %count = ax.constant dense<0.125> : tensor<f32> -> tensor<f32>
  %0 = ax.reduce sum %x dims [0] keep_dims : tensor<8x4xf32> -> tensor<1x4xf32>
  %1 = ax.binary mul %0, %count : tensor<1x4xf32>, tensor<f32> -> tensor<1x4xf32>
  %2 = ax.binary sub %x, %1 : tensor<8x4xf32>, tensor<1x4xf32> -> tensor<8x4xf32>
  %3 = ax.binary add %2, %dy : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
  %4 = ax.reduce sum %3 dims [0] : tensor<8x4xf32> -> tensor<4xf32>
  %5 = ax.reduce sum %3 dims [1] {ax.action = "B"} : tensor<8x4xf32> -> tensor<8xf32>
  %6 = ax.binary mul %2, %f {ax.action = "B"} : tensor<8x4xf32>, tensor<8x1xf32> -> tensor<8x4xf32>
  %7 = ax.binary add %6, %dy {ax.action = "B"} : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
  %8 = ax.reduce sum %7 dims [0] {ax.action = "B"} : tensor<8x4xf32> -> tensor<4xf32>
  %9 = ax.binary add %3, %x {ax.action = "B"} : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
  %10 = ax.reduce sum %9 dims [0] {ax.action = "B"} : tensor<8x4xf32> -> tensor<4xf32>
  %11 = ax.binary sub %x, %0 : tensor<8x4xf32>, tensor<1x4xf32> -> tensor<8x4xf32>
  %12 = ax.binary add %11, %dy {ax.action = "B"} : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
  %13 = ax.reduce sum %12 dims [0] {ax.action = "B"} : tensor<8x4xf32> -> tensor<4xf32>
  ax.return %4, %5, %8, %10, %13 : tensor<4xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
}
