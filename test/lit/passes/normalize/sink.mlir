// RUN: axopt-opt %s -ax-normalize | FileCheck %s

ax.plan @sink version 1 {
ax.state @b : tensor<16xf32> from "m" offset 0 length 64

// CHECK-LABEL: ax.program @broadcast_by_itself
// CHECK-NEXT: %[[R:.*]] = ax.binary add %arg0, %arg1 : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>
// CHECK-NEXT: ax.return %[[R]]
ax.program @broadcast_by_itself(%x: tensor<2x4xf32>, %y: tensor<4xf32>) -> tensor<2x4xf32> {
  %0 = ax.broadcast %y : tensor<4xf32> -> tensor<2x4xf32>
  %1 = ax.binary add %x, %0 : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  ax.return %1 : tensor<2x4xf32>
}

// A padding mask that an exporter expands first stays small until it is used.
// CHECK-LABEL: ax.program @expanded_mask
// CHECK: ax.cast %arg0 : tensor<4x1x1x8xi64> -> tensor<4x1x1x8xf32>
// CHECK: ax.binary sub {{.*}} -> tensor<4x1x1x8xf32>
// CHECK: %[[M:.*]] = ax.binary mul {{.*}} -> tensor<4x1x1x8xf32>
// CHECK: ax.binary add %arg1, %[[M]] : tensor<4x2x8x8xf32>, tensor<4x1x1x8xf32> -> tensor<4x2x8x8xf32>
ax.program @expanded_mask(%mask: tensor<4x1x1x8xi64>, %scores: tensor<4x2x8x8xf32>) -> tensor<4x2x8x8xf32> {
  %one = ax.constant dense<1.0> : tensor<1xf32> -> tensor<1xf32>
  %low = ax.constant dense<-1.0e9> : tensor<f32> -> tensor<f32>
  %0 = ax.broadcast %mask : tensor<4x1x1x8xi64> -> tensor<4x1x8x8xi64>
  %1 = ax.cast %0 : tensor<4x1x8x8xi64> -> tensor<4x1x8x8xf32>
  %2 = ax.binary sub %one, %1 : tensor<1xf32>, tensor<4x1x8x8xf32> -> tensor<4x1x8x8xf32>
  %3 = ax.binary mul %2, %low : tensor<4x1x8x8xf32>, tensor<f32> -> tensor<4x1x8x8xf32>
  %4 = ax.binary add %scores, %3 : tensor<4x2x8x8xf32>, tensor<4x1x8x8xf32> -> tensor<4x2x8x8xf32>
  ax.return %4 : tensor<4x2x8x8xf32>
}

// CHECK-LABEL: ax.program @splats
// CHECK: ax.constant dense<5.000000e-01> : tensor<f32>
// CHECK: ax.binary mul %arg0, {{.*}} : tensor<2x4xf32>, tensor<f32>
ax.program @splats(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %half = ax.constant dense<0.5> : tensor<2x4xf32> -> tensor<2x4xf32>
  %0 = ax.binary mul %x, %half : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
  ax.return %0 : tensor<2x4xf32>
}

// The same for each of the batch, but not along the last dimension.
// CHECK-LABEL: ax.program @repeated
// CHECK: ax.constant {{.*}} : tensor<1x2xf32>
// CHECK: ax.binary add %arg0, {{.*}} : tensor<2x2xf32>, tensor<1x2xf32> -> tensor<2x2xf32>
// CHECK: ax.binary add %arg0, {{.*}} : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
ax.program @repeated(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %c = ax.constant dense<[[1.0, 2.0], [1.0, 2.0]]> : tensor<2x2xf32> -> tensor<2x2xf32>
  %0 = ax.binary add %x, %c : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  %d = ax.constant dense<[[1.0, 1.0], [2.0, 2.0]]> : tensor<2x2xf32> -> tensor<2x2xf32>
  %1 = ax.binary add %x, %d : tensor<2x2xf32>, tensor<2x2xf32> -> tensor<2x2xf32>
  ax.return %0, %1 : tensor<2x2xf32>, tensor<2x2xf32>
}

// CHECK-LABEL: ax.program @reshape
// CHECK-NEXT: %[[B:.*]] = ax.load
// CHECK-NEXT: %[[S:.*]] = ax.binary add %arg0, %[[B]] : tensor<2x8x16xf32>, tensor<16xf32>
// CHECK-NEXT: %[[T:.*]] = ax.binary mul %[[S]], %arg1 : tensor<2x8x16xf32>, tensor<2x8x16xf32>
// CHECK-NEXT: %[[U:.*]] = ax.unary relu %[[T]] : tensor<2x8x16xf32>
// CHECK-NEXT: ax.return %[[U]]
ax.program @reshape(%x: tensor<2x8x16xf32>, %y: tensor<2x8x16xf32>) -> tensor<2x8x16xf32> {
  %b = ax.load @b : tensor<16xf32>
  %0 = ax.reshape %x : tensor<2x8x16xf32> -> tensor<16x16xf32>
  %1 = ax.binary add %0, %b : tensor<16x16xf32>, tensor<16xf32> -> tensor<16x16xf32>
  %2 = ax.reshape %y : tensor<2x8x16xf32> -> tensor<16x16xf32>
  %3 = ax.binary mul %1, %2 : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
  %4 = ax.unary relu %3 : tensor<16x16xf32> -> tensor<16x16xf32>
  %5 = ax.reshape %4 : tensor<16x16xf32> -> tensor<2x8x16xf32>
  ax.return %5 : tensor<2x8x16xf32>
}

// CHECK-LABEL: ax.program @rows
// CHECK-NEXT: %[[N:.*]] = ax.layer_norm %arg0 axis 2 epsilon 0.000000e+00 : tensor<2x8x16xf32>
// CHECK-NEXT: %[[S:.*]] = ax.softmax %[[N]] dim 2 : tensor<2x8x16xf32>
// CHECK-NEXT: %[[R:.*]] = ax.reshape %[[S]] : tensor<2x8x16xf32> -> tensor<2x128xf32>
// CHECK-NEXT: %[[T:.*]] = ax.softmax %[[R]] dim 1
// CHECK-NEXT: ax.return %[[T]]
ax.program @rows(%x: tensor<2x8x16xf32>) -> tensor<2x128xf32> {
  %0 = ax.reshape %x : tensor<2x8x16xf32> -> tensor<16x16xf32>
  %1 = ax.layer_norm %0 axis 1 epsilon 0.0 : tensor<16x16xf32> -> tensor<16x16xf32>
  %2 = ax.softmax %1 dim 1 : tensor<16x16xf32> -> tensor<16x16xf32>
  %3 = ax.reshape %2 : tensor<16x16xf32> -> tensor<2x128xf32>
  // Here the reshape is of the dimension itself.
  %4 = ax.softmax %3 dim 1 : tensor<2x128xf32> -> tensor<2x128xf32>
  ax.return %4 : tensor<2x128xf32>
}

// The other operand varies along a dimension that the reshape makes, and a
// value used twice would be computed twice.
// CHECK-LABEL: ax.program @reshape_stays
// CHECK: %[[X:.*]] = ax.reshape %arg0
// CHECK-NEXT: ax.binary add %[[X]], %arg1
// CHECK: %[[Y:.*]] = ax.reshape
// CHECK-NEXT: ax.unary relu %[[Y]]
ax.program @reshape_stays(%x: tensor<16x16xf32>, %y: tensor<8x16xf32>) -> (tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>) {
  %0 = ax.reshape %x : tensor<16x16xf32> -> tensor<2x8x16xf32>
  %1 = ax.binary add %0, %y : tensor<2x8x16xf32>, tensor<8x16xf32> -> tensor<2x8x16xf32>
  %z = ax.unary exp %x : tensor<16x16xf32> -> tensor<16x16xf32>
  %2 = ax.reshape %z : tensor<16x16xf32> -> tensor<2x8x16xf32>
  %3 = ax.unary relu %2 : tensor<2x8x16xf32> -> tensor<2x8x16xf32>
  ax.return %1, %2, %3 : tensor<2x8x16xf32>, tensor<2x8x16xf32>, tensor<2x8x16xf32>
}
}
