// RUN: axopt-opt %s --axl-compose-pools | FileCheck %s
// RUN: axopt-opt %s --axl-compose-pools --axl-merge-equal --axl-fuse=gpu=true | FileCheck %s --check-prefix=FUSED

// What a window reads is read by who reduces it, and is not in memory.
// FUSED-LABEL: axl.stage @largest
// FUSED: axl.fusion
// FUSED: axl.yield %{{.*}} : tensor<8x3x3xf32>
// FUSED-NOT: axl.fusion
// FUSED-LABEL: axl.stage @gradient
// FUSED: axl.fusion
// FUSED: axl.yield %{{.*}} : tensor<8x3x3xi32>
// FUSED: axl.fusion
// FUSED: axl.yield %{{.*}} : tensor<8x6x6xf32>
// FUSED-NOT: axl.fusion
// FUSED-LABEL: axl.stage @mean

// CHECK-LABEL: axl.stage @largest
// CHECK: %[[X:.*]] = ax.reshape %{{.*}} : tensor<2x4x6x6xf32> -> tensor<8x36xf32>
// CHECK: ax.gather_elements %[[X]][%{{.*}}] axis 1 : tensor<8x36xf32>, tensor<8x81xi32> -> tensor<8x81xf32>
// CHECK: ax.constant dense<0xFF800000> : tensor<f32>
// CHECK: ax.reduce max %{{.*}} dims [3, 4] : tensor<8x3x3x3x3xf32> -> tensor<8x3x3xf32>
axl.stage @largest(%a: tensor<2x4x6x6xf32>) {
  %r = ax.pool max %a kernel [3, 3] strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] ceil_extra [0, 0] : tensor<2x4x6x6xf32> -> tensor<2x4x3x3xf32>
  axl.yield %r : tensor<2x4x3x3xf32>
}

// Of 9 windows, an element is in 4 at most.
// CHECK-LABEL: axl.stage @gradient
// CHECK: ax.reduce min %{{.*}} dims [3, 4] : tensor<8x3x3x3x3xi32> -> tensor<8x3x3xi32>
// CHECK: ax.reduce sum %{{.*}} dims [3, 4] : tensor<8x6x6x2x2xf32> -> tensor<8x6x6xf32>
axl.stage @gradient(%a: tensor<2x4x6x6xf32>, %b: tensor<2x4x3x3xf32>) {
  %r = ax.max_pool_gradient %a, %b kernel [3, 3] strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] ceil_extra [0, 0] : tensor<2x4x6x6xf32>, tensor<2x4x3x3xf32> -> tensor<2x4x6x6xf32>
  axl.yield %r : tensor<2x4x6x6xf32>
}

// Nothing lies outside of these: they need no mask, and all have as many.
// CHECK-LABEL: axl.stage @mean
// CHECK-NOT: ax.compare
// CHECK: ax.reduce sum
// CHECK: %[[N:.*]] = ax.constant dense<4.000000e+00> : tensor<f32>
// CHECK: ax.binary div %{{.*}}, %[[N]]
axl.stage @mean(%a: tensor<2x4x6x6xf32>) {
  %r = ax.pool avg %a kernel [2, 2] strides [2, 2] pads [0, 0, 0, 0] dilations [1, 1] ceil_extra [0, 0] : tensor<2x4x6x6xf32> -> tensor<2x4x3x3xf32>
  axl.yield %r : tensor<2x4x3x3xf32>
}

// The gradient of that; but a convolution's weights differ, or mix channels.
// CHECK-LABEL: axl.stage @spread
// CHECK: ax.reduce sum
// CHECK-COUNT-2: ax.conv_transpose
axl.stage @spread(%a: tensor<2x4x3x3xf32>, %w: tensor<4x1x2x2xf32>) {
  %ones = ax.constant dense<1.0> : tensor<4x1x2x2xf32> -> tensor<4x1x2x2xf32>
  %r = ax.conv_transpose %a, %ones strides [2, 2] pads [0, 0, 0, 0] dilations [1, 1] output_pads [0, 0] {groups = 4 : i64} : tensor<2x4x3x3xf32>, tensor<4x1x2x2xf32> -> tensor<2x4x6x6xf32>
  %s = ax.conv_transpose %a, %w strides [2, 2] pads [0, 0, 0, 0] dilations [1, 1] output_pads [0, 0] {groups = 4 : i64} : tensor<2x4x3x3xf32>, tensor<4x1x2x2xf32> -> tensor<2x4x6x6xf32>
  %t = ax.conv_transpose %a, %ones strides [2, 2] pads [0, 0, 0, 0] dilations [1, 1] output_pads [0, 0] : tensor<2x4x3x3xf32>, tensor<4x1x2x2xf32> -> tensor<2x1x6x6xf32>
  axl.yield %r, %s, %t : tensor<2x4x6x6xf32>, tensor<2x4x6x6xf32>, tensor<2x1x6x6xf32>
}
