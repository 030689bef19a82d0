// RUN: axopt-opt %s --axl-narrow-convolutions | FileCheck %s

// CHECK: axl.stage @sums
// CHECK: %[[A:.*]] = ax.conv %{{.*}} -> tensor<1x4x5x6xbf16>
// CHECK: %[[A2:.*]] = ax.cast %[[A]] : tensor<1x4x5x6xbf16> -> tensor<1x4x5x6xf32>
// CHECK: %[[B:.*]] = ax.conv_transpose %{{.*}} -> tensor<1x4x5x6xbf16>
// CHECK: %[[B2:.*]] = ax.cast %[[B]]
// CHECK: %[[C:.*]] = ax.conv_weight_gradient %{{.*}} -> tensor<4x4x3x3xbf16>
// CHECK: %[[C2:.*]] = ax.cast %[[C]]
// CHECK: axl.yield %[[A2]], %[[B2]], %[[C2]]
axl.stage @sums(%x: tensor<1x4x5x6xbf16>, %w: tensor<4x4x3x3xbf16>) {
  %0 = ax.conv %x, %w strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] : tensor<1x4x5x6xbf16>, tensor<4x4x3x3xbf16> -> tensor<1x4x5x6xf32>
  %1 = ax.conv_transpose %x, %w strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] output_pads [0, 0] : tensor<1x4x5x6xbf16>, tensor<4x4x3x3xbf16> -> tensor<1x4x5x6xf32>
  %2 = ax.conv_weight_gradient %x, %x kernel [3, 3] strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] : tensor<1x4x5x6xbf16>, tensor<1x4x5x6xbf16> -> tensor<4x4x3x3xf32>
  axl.yield %0, %1, %2 : tensor<1x4x5x6xf32>, tensor<1x4x5x6xf32>, tensor<4x4x3x3xf32>
}

// Of one type they stay, as do those of eight bits, and all else.
// CHECK: axl.stage @others
// CHECK-NOT: ax.cast
axl.stage @others(%x: tensor<1x4x5x6xf32>, %w: tensor<4x4x3x3xf32>, %a: tensor<2x3xbf16>, %b: tensor<3x2xbf16>, %e: tensor<1x4x5x6xf8E4M3FN>, %f: tensor<4x4x3x3xf8E4M3FN>) {
  %0 = ax.conv %x, %w strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] : tensor<1x4x5x6xf32>, tensor<4x4x3x3xf32> -> tensor<1x4x5x6xf32>
  %1 = ax.linear %a, %b : tensor<2x3xbf16>, tensor<3x2xbf16> -> tensor<2x2xf32>
  %2 = ax.conv %e, %f strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] : tensor<1x4x5x6xf8E4M3FN>, tensor<4x4x3x3xf8E4M3FN> -> tensor<1x4x5x6xf32>
  axl.yield %0, %1, %2 : tensor<1x4x5x6xf32>, tensor<2x2xf32>, tensor<1x4x5x6xf32>
}
