// RUN: axopt-opt %s -ax-normalize | FileCheck %s

ax.plan @movement version 1 {

// CHECK-LABEL: ax.program @identities
// CHECK-NEXT: ax.return %arg0
ax.program @identities(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = ax.reshape %x : tensor<2x3xf32> -> tensor<2x3xf32>
  %1 = ax.transpose %0 [0, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  %2 = ax.broadcast %1 : tensor<2x3xf32> -> tensor<2x3xf32>
  %3 = ax.slice %2 starts [0, 0] steps [1, 1] : tensor<2x3xf32> -> tensor<2x3xf32>
  %4 = ax.cast %3 : tensor<2x3xf32> -> tensor<2x3xf32>
  %5 = ax.concat %4 dim 0 : tensor<2x3xf32> -> tensor<2x3xf32>
  %6 = ax.pad %5 low [0, 0] high [0, 0] {mode = #ax<pad_mode edge>} : tensor<2x3xf32> -> tensor<2x3xf32>
  ax.return %6 : tensor<2x3xf32>
}

// A step of -1 turns the order round.
// CHECK-LABEL: ax.program @reversed
// CHECK-NEXT: ax.slice
ax.program @reversed(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = ax.slice %x starts [3] steps [-1] : tensor<4xf32> -> tensor<4xf32>
  ax.return %0 : tensor<4xf32>
}

// CHECK-LABEL: ax.program @chains
// CHECK-NEXT: ax.reshape %arg0 : tensor<2x3x4xf32> -> tensor<24xf32>
// CHECK-NEXT: ax.transpose %arg0 [2, 0, 1]
// CHECK-NEXT: ax.slice %arg0 starts [1, 2, 3] steps [1, 1, -2] : tensor<2x3x4xf32> -> tensor<1x1x2xf32>
// CHECK-NEXT: ax.return
ax.program @chains(%x: tensor<2x3x4xf32>) -> (tensor<24xf32>, tensor<4x2x3xf32>, tensor<1x1x2xf32>) {
  %0 = ax.reshape %x : tensor<2x3x4xf32> -> tensor<6x4xf32>
  %1 = ax.reshape %0 : tensor<6x4xf32> -> tensor<24xf32>
  %2 = ax.transpose %x [1, 2, 0] : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
  %3 = ax.transpose %2 [1, 2, 0] : tensor<3x4x2xf32> -> tensor<4x2x3xf32>
  %4 = ax.slice %x starts [1, 1, 1] steps [1, 1, 1] : tensor<2x3x4xf32> -> tensor<1x2x3xf32>
  %5 = ax.slice %4 starts [0, 1, 2] steps [1, 1, -2] : tensor<1x2x3xf32> -> tensor<1x1x2xf32>
  ax.return %1, %3, %5 : tensor<24xf32>, tensor<4x2x3xf32>, tensor<1x1x2xf32>
}

// CHECK-LABEL: ax.program @transposes_of_ones
// CHECK-NEXT: ax.reshape %arg0 : tensor<1x3x1x4xf32> -> tensor<3x1x1x4xf32>
ax.program @transposes_of_ones(%x: tensor<1x3x1x4xf32>) -> tensor<3x1x1x4xf32> {
  %0 = ax.transpose %x [1, 0, 2, 3] : tensor<1x3x1x4xf32> -> tensor<3x1x1x4xf32>
  ax.return %0 : tensor<3x1x1x4xf32>
}

// Heads merged into the batch, transposed, and taken apart again.
// CHECK-LABEL: ax.program @transpose_unmerged
// CHECK-NEXT: %[[T:.*]] = ax.transpose %arg0 [0, 1, 3, 2] : tensor<4x2x32x16xf32> -> tensor<4x2x16x32xf32>
// CHECK-NEXT: ax.return %[[T]]
ax.program @transpose_unmerged(%x: tensor<4x2x32x16xf32>) -> tensor<4x2x16x32xf32> {
  %0 = ax.reshape %x : tensor<4x2x32x16xf32> -> tensor<8x32x16xf32>
  %1 = ax.transpose %0 [0, 2, 1] : tensor<8x32x16xf32> -> tensor<8x16x32xf32>
  %2 = ax.reshape %1 : tensor<8x16x32xf32> -> tensor<4x2x16x32xf32>
  ax.return %2 : tensor<4x2x16x32xf32>
}

// The inner reshape cuts a dimension: the transpose depends on it.
// CHECK-LABEL: ax.program @transpose_of_split
// CHECK: ax.reshape
// CHECK-NEXT: ax.transpose
// CHECK-NEXT: ax.reshape
ax.program @transpose_of_split(%x: tensor<32x64xf32>) -> tensor<4x512xf32> {
  %0 = ax.reshape %x : tensor<32x64xf32> -> tensor<32x4x16xf32>
  %1 = ax.transpose %0 [1, 0, 2] : tensor<32x4x16xf32> -> tensor<4x32x16xf32>
  %2 = ax.reshape %1 : tensor<4x32x16xf32> -> tensor<4x512xf32>
  ax.return %2 : tensor<4x512xf32>
}

// CHECK-LABEL: ax.program @casts
// CHECK-NEXT: %[[A:.*]] = ax.cast %arg0 : tensor<4xi1> -> tensor<4xf32>
// CHECK-NEXT: %[[B:.*]] = ax.cast %arg1 : tensor<4xf32> -> tensor<4xf16>
// CHECK-NEXT: %[[C:.*]] = ax.cast %[[B]] : tensor<4xf16> -> tensor<4xf32>
// CHECK-NEXT: ax.return %[[A]], %[[C]]
ax.program @casts(%m: tensor<4xi1>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = ax.cast %m : tensor<4xi1> -> tensor<4xi64>
  %1 = ax.cast %0 : tensor<4xi64> -> tensor<4xf32>
  // Rounds: it stays.
  %2 = ax.cast %x : tensor<4xf32> -> tensor<4xf16>
  %3 = ax.cast %2 : tensor<4xf16> -> tensor<4xf32>
  ax.return %1, %3 : tensor<4xf32>, tensor<4xf32>
}

// The gradients of three slices of one tensor, brought together.
// CHECK-LABEL: ax.program @sum_of_padded_neighbours
// CHECK: %[[C:.*]] = ax.concat %arg1, %arg2 dim 1
// CHECK: %[[R:.*]] = ax.concat %arg0, %[[C]] dim 1 : tensor<2x4xf32>, tensor<2x8xf32> -> tensor<2x12xf32>
// CHECK-NEXT: ax.return %[[R]]
ax.program @sum_of_padded_neighbours(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>, %c: tensor<2x4xf32>) -> tensor<2x12xf32> {
  %z = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %0 = ax.pad %a value %z : tensor<f32> low [0, 0] high [0, 8] : tensor<2x4xf32> -> tensor<2x12xf32>
  %1 = ax.pad %b value %z : tensor<f32> low [0, 4] high [0, 4] : tensor<2x4xf32> -> tensor<2x12xf32>
  %2 = ax.pad %c value %z : tensor<f32> low [0, 8] high [0, 0] : tensor<2x4xf32> -> tensor<2x12xf32>
  %3 = ax.binary add %2, %1 : tensor<2x12xf32>, tensor<2x12xf32> -> tensor<2x12xf32>
  %4 = ax.binary add %0, %3 : tensor<2x12xf32>, tensor<2x12xf32> -> tensor<2x12xf32>
  ax.return %4 : tensor<2x12xf32>
}
}
