// RUN: axopt-opt %s --axl-reshape-ones | FileCheck %s
// RUN: axopt-opt %s --axl-reshape-ones --axl-fuse=gpu=true | FileCheck %s --check-prefix=FUSED

// CHECK-LABEL: axl.stage @ones
// CHECK: %[[A:.*]] = ax.reshape %{{.*}} : tensor<1x1x1x64xf32> -> tensor<1x64x1x1xf32>
// CHECK-NOT: ax.transpose
// CHECK: %[[B:.*]] = ax.reshape %{{.*}} : tensor<1x64x1x1xf32> -> tensor<64xf32>
// CHECK: axl.yield %[[A]], %[[B]]
axl.stage @ones(%x: tensor<1x1x1x64xf32>) {
  %0 = ax.unary rsqrt %x : tensor<1x1x1x64xf32> -> tensor<1x1x1x64xf32>
  %1 = ax.transpose %0 [0, 3, 1, 2] : tensor<1x1x1x64xf32> -> tensor<1x64x1x1xf32>
  %2 = ax.reduce sum %1 dims [0, 2, 3] : tensor<1x64x1x1xf32> -> tensor<64xf32>
  axl.yield %1, %2 : tensor<1x64x1x1xf32>, tensor<64xf32>
}

// A maximum of one element, whose dimension is kept, is that.
// CHECK-LABEL: axl.stage @kept
// CHECK-NEXT: ax.unary neg %arg0 : tensor<3x1xf32>
// CHECK-NOT: ax.reduce
axl.stage @kept(%x: tensor<3x1xf32>) {
  %0 = ax.reduce max %x dims [1] keep_dims : tensor<3x1xf32> -> tensor<3x1xf32>
  %1 = ax.unary neg %0 : tensor<3x1xf32> -> tensor<3x1xf32>
  axl.yield %1 : tensor<3x1xf32>
}

// Others have another order, or several to add up.
// CHECK-LABEL: axl.stage @others
// CHECK-NOT: ax.reshape
// CHECK: ax.transpose
// CHECK: ax.reduce
axl.stage @others(%x: tensor<1x2x64xf32>) {
  %0 = ax.transpose %x [0, 2, 1] : tensor<1x2x64xf32> -> tensor<1x64x2xf32>
  %1 = ax.reduce sum %x dims [0, 1] : tensor<1x2x64xf32> -> tensor<64xf32>
  axl.yield %0, %1 : tensor<1x64x2xf32>, tensor<64xf32>
}

// A library goes by the strides that it finds: of images of one channel, whether
// channels are innermost.
// CHECK-LABEL: axl.stage @library
// CHECK-COUNT-2: ax.transpose
// CHECK-NEXT: ax.conv
axl.stage @library(%x: tensor<1x1x64xf32>, %w: tensor<2x1x3xf32>) {
  %0 = ax.transpose %x [0, 2, 1] : tensor<1x1x64xf32> -> tensor<1x64x1xf32>
  %1 = ax.transpose %0 [0, 2, 1] : tensor<1x64x1xf32> -> tensor<1x1x64xf32>
  %2 = ax.conv %1, %w strides [1] pads [1, 1] dilations [1] : tensor<1x1x64xf32>, tensor<2x1x3xf32> -> tensor<1x2x64xf32>
  axl.yield %2 : tensor<1x2x64xf32>
}

// What a kernel makes of a sum of columns goes on behind it.
// FUSED-LABEL: axl.stage @behind_sum
// FUSED-COUNT-1: axl.fusion
// FUSED-NOT: axl.fusion
axl.stage @behind_sum(%x: tensor<1568x64xf32>, %s: tensor<64x1x1xf32>) {
  %0 = ax.reduce sum %x dims [0] : tensor<1568x64xf32> -> tensor<64xf32>
  %1 = ax.reshape %0 : tensor<64xf32> -> tensor<1x1x1x64xf32>
  %2 = ax.unary rsqrt %1 : tensor<1x1x1x64xf32> -> tensor<1x1x1x64xf32>
  %3 = ax.transpose %2 [0, 3, 1, 2] : tensor<1x1x1x64xf32> -> tensor<1x64x1x1xf32>
  %4 = ax.binary mul %3, %s : tensor<1x64x1x1xf32>, tensor<64x1x1xf32> -> tensor<1x64x1x1xf32>
  axl.yield %2, %4 : tensor<1x1x1x64xf32>, tensor<1x64x1x1xf32>
}
