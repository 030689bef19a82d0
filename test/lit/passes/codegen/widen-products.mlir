// RUN: axopt-opt %s --axl-widen-products | FileCheck %s

// Of each channel by itself with dilations, forwards and backwards, and all of f16.
// What is f32 already is not rounded. Others stay.
// CHECK-LABEL: axl.stage @slow
// CHECK: %[[X:.*]] = ax.cast %arg0 : tensor<1x2x5x5xbf16> -> tensor<1x2x5x5xf32>
// CHECK: %[[W:.*]] = ax.cast %arg1 : tensor<2x1x2x2xbf16> -> tensor<2x1x2x2xf32>
// CHECK: %[[Y:.*]] = ax.conv %[[X]], %[[W]] {{.*}} -> tensor<1x2x3x3xf32>
// CHECK-NEXT: ax.cast %[[Y]] : tensor<1x2x3x3xf32> -> tensor<1x2x3x3xbf16>
// CHECK: ax.conv {{.*}} -> tensor<1x2x4x4xf32>
// CHECK-NEXT: ax.cast {{.*}} -> tensor<1x2x4x4xf16>
// CHECK: ax.conv {{.*}} -> tensor<1x2x3x3xf32>
// CHECK-NEXT: ax.cast {{.*}} -> tensor<1x2x3x3xf16>
// CHECK: %[[L:.*]] = ax.linear {{.*}} : tensor<2x5xf32>, tensor<5x3xf32> -> tensor<2x3xf32>
// CHECK-NEXT: ax.cast %[[L]] : tensor<2x3xf32> -> tensor<2x3xf16>
// CHECK: %[[S:.*]] = ax.dot {{.*}} : tensor<2x5xf32>, tensor<5x3xf32> -> tensor<2x3xf32>
// CHECK: %[[D:.*]] = ax.conv_weight_gradient {{.*}} -> tensor<2x1x2x2xf32>
// CHECK: axl.yield %{{.*}}, %{{.*}}, %[[D]], %{{.*}}, %{{.*}}, %[[S]]
// What is done along with a product is not rounded before.
// CHECK-LABEL: axl.stage @along
// CHECK: %[[B:.*]] = ax.cast %arg2 : tensor<3xf16> -> tensor<3xf32>
// CHECK: %[[L:.*]] = axl.library(%{{.*}}, %{{.*}}, %[[B]]) {
// CHECK: ax.linear {{.*}} : tensor<2x5xf32>, tensor<5x3xf32> -> tensor<2x3xf32>
// CHECK: ax.binary add {{.*}} : tensor<2x3xf32>, tensor<3xf32> -> tensor<2x3xf32>
// CHECK: } : (tensor<2x5xf32>, tensor<5x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK-NEXT: ax.cast %[[L]] : tensor<2x3xf32> -> tensor<2x3xf16>
// Of one row, a sum, which reads the weight as it is; what is done along with it is
// not rounded before, either.
// CHECK-LABEL: axl.stage @row
// CHECK-NOT: axl.library
// CHECK: %[[G:.*]] = ax.reshape %{{.*}} : tensor<5x3xf32> -> tensor<5x1x3xf32>
// CHECK: ax.binary mul %[[G]], %{{.*}} : tensor<5x1x3xf32>, tensor<5x1x1xf32>
// CHECK: %[[P:.*]] = ax.reshape %{{.*}} : tensor<3xf32> -> tensor<1x3xf32>
// CHECK: %[[A:.*]] = ax.binary add %[[P]], %{{.*}} : tensor<1x3xf32>, tensor<3xf32>
// CHECK-NEXT: ax.cast %[[A]] : tensor<1x3xf32> -> tensor<1x3xf16>
// CHECK: ax.reduce sum %{{.*}} dims [1] : tensor<4x5xf32> -> tensor<4xf32>
// CHECK-LABEL: axl.stage @others
// CHECK-NOT: ax.cast
axl.stage @slow(%x: tensor<1x2x5x5xbf16>, %w: tensor<2x1x2x2xbf16>, %h: tensor<1x2x5x5xf16>, %v: tensor<2x1x2x2xf16>, %u: tensor<2x2x2x2xf16>, %p: tensor<2x5xf16>, %q: tensor<5x3xf16>) {
  %0 = ax.conv %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [2, 2] {groups = 2 : i64} : tensor<1x2x5x5xbf16>, tensor<2x1x2x2xbf16> -> tensor<1x2x3x3xbf16>
  %1 = ax.conv %h, %v strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] {groups = 2 : i64} : tensor<1x2x5x5xf16>, tensor<2x1x2x2xf16> -> tensor<1x2x4x4xf16>
  %3 = ax.conv %h, %u strides [1, 1] pads [0, 0, 0, 0] dilations [2, 2] : tensor<1x2x5x5xf16>, tensor<2x2x2x2xf16> -> tensor<1x2x3x3xf16>
  %4 = ax.linear %p, %q : tensor<2x5xf16>, tensor<5x3xf16> -> tensor<2x3xf16>
  %5 = ax.dot %p, %q batch [] x [] contract [1] x [0] : tensor<2x5xf16>, tensor<5x3xf16> -> tensor<2x3xf32>
  %2 = ax.conv_weight_gradient %x, %0 kernel [2, 2] strides [1, 1] pads [0, 0, 0, 0] dilations [2, 2] {groups = 2 : i64} : tensor<1x2x5x5xbf16>, tensor<1x2x3x3xbf16> -> tensor<2x1x2x2xf32>
  axl.yield %0, %1, %2, %3, %4, %5 : tensor<1x2x3x3xbf16>, tensor<1x2x4x4xf16>, tensor<2x1x2x2xf32>, tensor<1x2x3x3xf16>, tensor<2x3xf16>, tensor<2x3xf32>
}
axl.stage @along(%x: tensor<2x5xf16>, %w: tensor<5x3xf16>, %b: tensor<3xf16>) {
  %0 = axl.library(%x, %w, %b) {
  ^bb0(%p: tensor<2x5xf16>, %q: tensor<5x3xf16>, %r: tensor<3xf16>):
    %1 = ax.linear %p, %q : tensor<2x5xf16>, tensor<5x3xf16> -> tensor<2x3xf16>
    %2 = ax.binary add %1, %r : tensor<2x3xf16>, tensor<3xf16> -> tensor<2x3xf16>
    axl.yield %2 : tensor<2x3xf16>
  } : (tensor<2x5xf16>, tensor<5x3xf16>, tensor<3xf16>) -> tensor<2x3xf16>
  axl.yield %0 : tensor<2x3xf16>
}
axl.stage @row(%x: tensor<1x5xf16>, %w: tensor<5x3xf16>, %b: tensor<3xf16>, %v: tensor<4x5xf16>) {
  %0 = axl.library(%x, %w, %b) {
  ^bb0(%p: tensor<1x5xf16>, %q: tensor<5x3xf16>, %r: tensor<3xf16>):
    %1 = ax.linear %p, %q : tensor<1x5xf16>, tensor<5x3xf16> -> tensor<1x3xf16>
    %2 = ax.binary add %1, %r : tensor<1x3xf16>, tensor<3xf16> -> tensor<1x3xf16>
    axl.yield %2 : tensor<1x3xf16>
  } : (tensor<1x5xf16>, tensor<5x3xf16>, tensor<3xf16>) -> tensor<1x3xf16>
  %3 = ax.linear %x, %v {transpose_w} : tensor<1x5xf16>, tensor<4x5xf16> -> tensor<1x4xf16>
  axl.yield %0, %3 : tensor<1x3xf16>, tensor<1x4xf16>
}
axl.stage @others(%x: tensor<1x2x5x5xbf16>, %w: tensor<2x1x2x2xbf16>, %v: tensor<2x2x2x2xbf16>, %f: tensor<1x2x5x5xf32>, %g: tensor<2x1x2x2xf32>) {
  %0 = ax.conv %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] {groups = 2 : i64} : tensor<1x2x5x5xbf16>, tensor<2x1x2x2xbf16> -> tensor<1x2x4x4xbf16>
  %1 = ax.conv %x, %v strides [1, 1] pads [0, 0, 0, 0] dilations [2, 2] : tensor<1x2x5x5xbf16>, tensor<2x2x2x2xbf16> -> tensor<1x2x3x3xbf16>
  %2 = ax.conv %f, %g strides [1, 1] pads [0, 0, 0, 0] dilations [2, 2] {groups = 2 : i64} : tensor<1x2x5x5xf32>, tensor<2x1x2x2xf32> -> tensor<1x2x3x3xf32>
  axl.yield %0, %1, %2 : tensor<1x2x4x4xbf16>, tensor<1x2x3x3xbf16>, tensor<1x2x3x3xf32>
}
// Those of groups, too.
// CHECK-LABEL: axl.stage @groups
// CHECK: axl.grouped_matmul {{.*}} : tensor<9x6xf32>, tensor<4x8x6xf32>, tensor<9xi64> -> tensor<9x8xf32>
// CHECK: axl.grouped_weight_gradient {{.*}} : tensor<9x6xf32>, tensor<9x8xf32>, tensor<9xi64> -> tensor<4x6x8xf32>
axl.stage @groups(%x: tensor<9x6xf16>, %w: tensor<4x8x6xf16>, %i: tensor<9xi64>) {
  %y = axl.grouped_matmul %x, %w[%i] transpose_w : tensor<9x6xf16>, tensor<4x8x6xf16>, tensor<9xi64> -> tensor<9x8xf16>
  %d = axl.grouped_weight_gradient %x, %y[%i] : tensor<9x6xf16>, tensor<9x8xf16>, tensor<9xi64> -> tensor<4x6x8xf32>
  axl.yield %y, %d : tensor<9x8xf16>, tensor<4x6x8xf32>
}
