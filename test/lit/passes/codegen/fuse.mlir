// RUN: axopt-opt %s --axl-fuse | FileCheck %s
// RUN: axopt-opt %s --axl-fuse=separately | FileCheck %s --check-prefix=APART

// The norm's kernel writes the sum that it reads; the view stays one.
// CHECK: axl.stage @s(%[[X:.*]]: tensor<4x8xf32>, %[[S:.*]]: tensor<8xf32>, %[[W:.*]]: tensor<8x8xf32>)
// CHECK: %[[F:.*]]:2 = axl.fusion(%[[X]], %[[S]]) {
// CHECK: ax.binary add
// CHECK: ax.rms_norm
// CHECK: axl.yield
// CHECK: ax.transpose %[[W]] [1, 0]
// CHECK: ax.linear
// CHECK: axl.fusion
// CHECK: ax.binary sub
// CHECK-NOT: axl.fusion
// APART-COUNT-3: axl.fusion
axl.stage @s(%x: tensor<4x8xf32>, %scale: tensor<8xf32>, %w: tensor<8x8xf32>) {
  %0 = ax.binary add %x, %x : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %1 = ax.rms_norm %0 scale %scale : tensor<8xf32> axis 1 epsilon 1.000000e-05 : tensor<4x8xf32> -> tensor<4x8xf32>
  %2 = ax.transpose %w [1, 0] : tensor<8x8xf32> -> tensor<8x8xf32>
  %3 = ax.linear %1, %2 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %4 = ax.binary sub %3, %0 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  axl.yield %4 : tensor<4x8xf32>
}

// A kernel of an early and a late result is where the late one was made: what it
// reads besides does not come before what stands in between.
// CHECK-LABEL: axl.stage @late
// CHECK: ax.dot
// CHECK: ax.dot
// CHECK: axl.fusion
// CHECK-NOT: ax.dot
// CHECK: axl.yield
axl.stage @late(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) {
  %0 = ax.unary exp %x : tensor<64x64xf32> -> tensor<64x64xf32>
  %1 = ax.dot %x, %y batch [] x [] contract [1] x [1] : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %2 = ax.dot %y, %y batch [] x [] contract [1] x [1] : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %3 = ax.binary add %0, %2 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  axl.yield %0, %1, %3 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
}
