// RUN: axopt-opt %s --axl-compose-pools | FileCheck %s
// RUN: axopt-opt %s --axl-compose-pools --axl-merge-equal --axl-fuse=gpu=true | FileCheck %s --check-prefix=FUSED
// RUN: axopt-opt %s --axl-compose-pools=channels-last --axl-channels-last=cudnn --axl-merge-equal | FileCheck %s --check-prefix=LAST

// What a window reads is read by who reduces it, and is not in memory.
// FUSED-LABEL: axl.stage @largest
// FUSED: axl.fusion
// FUSED: axl.yield %{{.*}} : tensor<8x3x3xf32>
// FUSED-NOT: axl.fusion
// FUSED-LABEL: axl.stage @gradient
// FUSED: axl.fusion
// FUSED: axl.yield %{{.*}} : tensor<8x3x3xi8>
// FUSED: axl.fusion
// FUSED: axl.yield %{{.*}} : tensor<8x3x2x6xf32>
// FUSED-NOT: axl.fusion
// FUSED-LABEL: axl.stage @largest_of_many
// FUSED: axl.fusion
// FUSED: axl.yield %{{.*}} : tensor<8x2x2xf32>
// FUSED-NOT: axl.fusion
// FUSED-LABEL: axl.stage @gradient_of_many
// FUSED: axl.fusion
// FUSED: axl.yield %{{.*}} : tensor<8x2x2xi32>
// FUSED: axl.fusion
// FUSED: axl.yield %{{.*}} : tensor<8x6x6xf32>
// FUSED-NOT: axl.fusion
// FUSED-LABEL: axl.stage @both

// CHECK-LABEL: axl.stage @largest
// CHECK: %[[X:.*]] = ax.reshape %{{.*}} : tensor<2x4x6x6xf32> -> tensor<8x6x6xf32>
// CHECK: %[[P:.*]] = ax.pad %[[X]] value %{{.*}} low [0, 1, 1] high [0, 0, 0]
// CHECK: %[[A:.*]] = ax.slice %[[P]] starts [0, 0, 0] steps [1, 2, 2] : tensor<8x7x7xf32> -> tensor<8x3x3xf32>
// CHECK: %[[B:.*]] = ax.slice %[[P]] starts [0, 0, 1] steps [1, 2, 2]
// CHECK: ax.binary max %[[A]], %[[B]]
// CHECK-COUNT-7: ax.binary max
// CHECK-NOT: ax.binary max
axl.stage @largest(%a: tensor<2x4x6x6xf32>) {
  %r = ax.pool max %a kernel [3, 3] strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] ceil_extra [0, 0] : tensor<2x4x6x6xf32> -> tensor<2x4x3x3xf32>
  axl.yield %r : tensor<2x4x3x3xf32>
}

// Each of nine elements is one that some have in common.
// CHECK-LABEL: axl.stage @gradient
// CHECK-COUNT-8: ax.unary is_nan
// CHECK-NOT: ax.unary
// CHECK-COUNT-9: ax.compare eq
// CHECK-NOT: ax.compare
// CHECK: ax.concat
axl.stage @gradient(%a: tensor<2x4x6x6xf32>, %b: tensor<2x4x3x3xf32>) {
  %r = ax.max_pool_gradient %a, %b kernel [3, 3] strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] ceil_extra [0, 0] : tensor<2x4x6x6xf32>, tensor<2x4x3x3xf32> -> tensor<2x4x6x6xf32>
  axl.yield %r : tensor<2x4x6x6xf32>
}

// Of larger windows.
// CHECK-LABEL: axl.stage @largest_of_many
// CHECK: %[[X:.*]] = ax.reshape %{{.*}} : tensor<8x6x6xf32> -> tensor<8x36xf32>
// CHECK: ax.gather_elements %[[X]][%{{.*}}] axis 1 : tensor<8x36xf32>, tensor<8x100xi32> -> tensor<8x100xf32>
// CHECK: ax.constant dense<0xFF800000> : tensor<f32>
// CHECK: ax.reduce max %{{.*}} dims [3, 4] : tensor<8x2x2x5x5xf32> -> tensor<8x2x2xf32>
axl.stage @largest_of_many(%a: tensor<2x4x6x6xf32>) {
  %r = ax.pool max %a kernel [5, 5] strides [2, 2] pads [1, 1, 0, 0] dilations [1, 1] ceil_extra [0, 0] : tensor<2x4x6x6xf32> -> tensor<2x4x2x2xf32>
  axl.yield %r : tensor<2x4x2x2xf32>
}

// An element is in 4 windows at most.
// CHECK-LABEL: axl.stage @gradient_of_many
// CHECK: ax.reduce min %{{.*}} dims [3, 4] {axl.apart = 0 : i64} : tensor<8x2x2x5x5xi32> -> tensor<8x2x2xi32>
// CHECK: ax.reduce sum %{{.*}} dims [3, 4] {axl.apart = 0 : i64} : tensor<8x6x6x2x2xf32> -> tensor<8x6x6xf32>
axl.stage @gradient_of_many(%a: tensor<2x4x6x6xf32>, %b: tensor<2x4x2x2xf32>) {
  %r = ax.max_pool_gradient %a, %b kernel [5, 5] strides [2, 2] pads [1, 1, 0, 0] dilations [1, 1] ceil_extra [0, 0] : tensor<2x4x6x6xf32>, tensor<2x4x2x2xf32> -> tensor<2x4x6x6xf32>
  axl.yield %r : tensor<2x4x6x6xf32>
}

// Both are found at once, and the images are read once.
// CHECK-LABEL: axl.stage @both
// CHECK-COUNT-8: ax.unary is_nan
// CHECK-NOT: ax.unary
axl.stage @both(%a: tensor<2x4x6x6xf32>, %b: tensor<2x4x3x3xf32>) {
  %p = ax.pool max %a kernel [3, 3] strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] ceil_extra [0, 0] : tensor<2x4x6x6xf32> -> tensor<2x4x3x3xf32>
  %r = ax.max_pool_gradient %a, %b kernel [3, 3] strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] ceil_extra [0, 0] : tensor<2x4x6x6xf32>, tensor<2x4x3x3xf32> -> tensor<2x4x6x6xf32>
  axl.yield %p, %r : tensor<2x4x3x3xf32>, tensor<2x4x6x6xf32>
}

// Likewise of narrow images, which the gradient has widened.
// CHECK-LABEL: axl.stage @both_narrow
// CHECK-COUNT-8: ax.unary is_nan {{.*}}xbf16>
// CHECK-NOT: ax.unary
// CHECK: ax.concat {{.*}}xf32>
axl.stage @both_narrow(%a: tensor<2x4x6x6xbf16>, %b: tensor<2x4x3x3xf32>) {
  %p = ax.pool max %a kernel [3, 3] strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] ceil_extra [0, 0] : tensor<2x4x6x6xbf16> -> tensor<2x4x3x3xbf16>
  %w = ax.cast %a : tensor<2x4x6x6xbf16> -> tensor<2x4x6x6xf32>
  %r = ax.max_pool_gradient %w, %b kernel [3, 3] strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] ceil_extra [0, 0] : tensor<2x4x6x6xf32>, tensor<2x4x3x3xf32> -> tensor<2x4x6x6xf32>
  axl.yield %p, %r : tensor<2x4x3x3xbf16>, tensor<2x4x6x6xf32>
}

// Nothing lies outside of these, and all have as many.
// CHECK-LABEL: axl.stage @mean
// CHECK-NOT: ax.pad
// CHECK-COUNT-3: ax.binary add
// CHECK: %[[N:.*]] = ax.constant dense<4.000000e+00> : tensor<f32>
// CHECK: ax.binary div %{{.*}}, %[[N]]
axl.stage @mean(%a: tensor<2x4x6x6xf32>) {
  %r = ax.pool avg %a kernel [2, 2] strides [2, 2] pads [0, 0, 0, 0] dilations [1, 1] ceil_extra [0, 0] : tensor<2x4x6x6xf32> -> tensor<2x4x3x3xf32>
  axl.yield %r : tensor<2x4x3x3xf32>
}

// The gradient of that; but a convolution's weights differ, or mix channels.
// CHECK-LABEL: axl.stage @spread
// CHECK: ax.concat
// CHECK-COUNT-2: ax.conv_transpose
axl.stage @spread(%a: tensor<2x4x3x3xf32>, %w: tensor<4x1x2x2xf32>) {
  %ones = ax.constant dense<1.0> : tensor<4x1x2x2xf32> -> tensor<4x1x2x2xf32>
  %r = ax.conv_transpose %a, %ones strides [2, 2] pads [0, 0, 0, 0] dilations [1, 1] output_pads [0, 0] {groups = 4 : i64} : tensor<2x4x3x3xf32>, tensor<4x1x2x2xf32> -> tensor<2x4x6x6xf32>
  %s = ax.conv_transpose %a, %w strides [2, 2] pads [0, 0, 0, 0] dilations [1, 1] output_pads [0, 0] {groups = 4 : i64} : tensor<2x4x3x3xf32>, tensor<4x1x2x2xf32> -> tensor<2x4x6x6xf32>
  %t = ax.conv_transpose %a, %ones strides [2, 2] pads [0, 0, 0, 0] dilations [1, 1] output_pads [0, 0] : tensor<2x4x3x3xf32>, tensor<4x1x2x2xf32> -> tensor<2x1x6x6xf32>
  axl.yield %r, %s, %t : tensor<2x4x6x6xf32>, tensor<2x4x6x6xf32>, tensor<2x1x6x6xf32>
}

// Of a larger mean.
// CHECK-LABEL: axl.stage @spread_to_many
// CHECK: ax.reduce sum
axl.stage @spread_to_many(%a: tensor<2x4x2x2xf32>) {
  %ones = ax.constant dense<1.0> : tensor<4x1x5x5xf32> -> tensor<4x1x5x5xf32>
  %r = ax.conv_transpose %a, %ones strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] output_pads [0, 0] {groups = 4 : i64} : tensor<2x4x2x2xf32>, tensor<4x1x5x5xf32> -> tensor<2x4x6x6xf32>
  axl.yield %r : tensor<2x4x6x6xf32>
}

// Where a convolution of 16 bits has its channels innermost, nothing is turned
// between it and a pool, whatever the size of windows.
// LAST-LABEL: axl.stage @behind
// LAST: %[[C:.*]] = axl.library
// LAST: tensor<2x6x6x8xbf16>
// LAST-NOT: ax.transpose
// LAST: ax.pad
// LAST: ax.slice %{{.*}} starts [0, 0, 0, 0] steps [1, 2, 2, 1] : tensor<2x7x7x8xbf16> -> tensor<2x3x3x8xbf16>
// LAST: ax.reduce max %{{.*}} dims [3, 4] : tensor<2x2x2x5x5x8xbf16> -> tensor<2x2x2x8xbf16>
axl.stage @behind(%a: tensor<2x8x6x6xbf16>, %w: tensor<8x8x1x1xbf16>) {
  %c = ax.conv %a, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<2x8x6x6xbf16>, tensor<8x8x1x1xbf16> -> tensor<2x8x6x6xbf16>
  %p = ax.pool max %c kernel [3, 3] strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1] ceil_extra [0, 0] : tensor<2x8x6x6xbf16> -> tensor<2x8x3x3xbf16>
  %q = ax.pool max %c kernel [5, 5] strides [2, 2] pads [1, 1, 0, 0] dilations [1, 1] ceil_extra [0, 0] : tensor<2x8x6x6xbf16> -> tensor<2x8x2x2xbf16>
  axl.yield %p, %q : tensor<2x8x3x3xbf16>, tensor<2x8x2x2xbf16>
}

// The gradient of larger windows has their maxima twice: rows keep them.
// LAST-LABEL: axl.stage @gradient_behind
// LAST: ax.reduce min %{{.*}} dims [3, 4] : tensor<16x2x2x5x5xi32>
axl.stage @gradient_behind(%a: tensor<2x8x6x6xbf16>, %w: tensor<8x8x1x1xbf16>, %b: tensor<2x8x2x2xbf16>) {
  %c = ax.conv %a, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<2x8x6x6xbf16>, tensor<8x8x1x1xbf16> -> tensor<2x8x6x6xbf16>
  %r = ax.max_pool_gradient %c, %b kernel [5, 5] strides [2, 2] pads [1, 1, 0, 0] dilations [1, 1] ceil_extra [0, 0] : tensor<2x8x6x6xbf16>, tensor<2x8x2x2xbf16> -> tensor<2x8x6x6xbf16>
  axl.yield %r : tensor<2x8x6x6xbf16>
}
