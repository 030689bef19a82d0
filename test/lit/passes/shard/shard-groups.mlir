// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard))' | FileCheck %s
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=8},ax-shard))' | FileCheck %s --check-prefix=FEW

// A bottleneck with a convolution in groups beside a projection: one more flip, so
// that no two-colouring fits. The groups are split all the same, and what they see.
// CHECK: ax.conv %{{.*}} -> tensor<1x32x8x8xf32, #ax.layout<[{}, {col}, {}, {}]>>
// CHECK: ax.conv %{{.*}} {groups = 4 : i64} : {{.*}} -> tensor<1x32x8x8xf32, #ax.layout<[{}, {col}, {}, {}]>>
// CHECK: ax.conv %{{.*}}, tensor<64x32x1x1xf32, #ax.layout<[{col}, {}, {}, {}]>>

// Four groups over eight ranks: two ranks have half of the outputs of one.
// FEW: ax.conv %{{.*}} {groups = 4 : i64} : {{.*}} -> tensor<1x32x8x8xf32, #ax.layout<[{}, {col}, {}, {}]>>
ax.plan @p version 1 {
  ax.state @w0 : tensor<32x16x1x1xf32> from "w" offset 0 length 2048
  ax.state @w1 : tensor<32x8x3x3xf32> from "w" offset 2048 length 9216
  ax.state @w2 : tensor<64x32x1x1xf32> from "w" offset 11264 length 8192
  ax.state @w3 : tensor<64x16x1x1xf32> from "w" offset 19456 length 4096
  ax.program @main(%x: tensor<1x16x8x8xf32> {ax.name = "x"}) -> (tensor<1x64x8x8xf32> {ax.name = "y"}) {
    %w0 = ax.load @w0 : tensor<32x16x1x1xf32>
    %w1 = ax.load @w1 : tensor<32x8x3x3xf32>
    %w2 = ax.load @w2 : tensor<64x32x1x1xf32>
    %w3 = ax.load @w3 : tensor<64x16x1x1xf32>
    %a = ax.conv %x, %w0 strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x16x8x8xf32>, tensor<32x16x1x1xf32> -> tensor<1x32x8x8xf32>
    %b = ax.unary relu %a : tensor<1x32x8x8xf32> -> tensor<1x32x8x8xf32>
    %c = ax.conv %b, %w1 strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] {groups = 4 : i64} : tensor<1x32x8x8xf32>, tensor<32x8x3x3xf32> -> tensor<1x32x8x8xf32>
    %d = ax.unary relu %c : tensor<1x32x8x8xf32> -> tensor<1x32x8x8xf32>
    %e = ax.conv %d, %w2 strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x32x8x8xf32>, tensor<64x32x1x1xf32> -> tensor<1x64x8x8xf32>
    %f = ax.conv %x, %w3 strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x16x8x8xf32>, tensor<64x16x1x1xf32> -> tensor<1x64x8x8xf32>
    %y = ax.binary add %e, %f : tensor<1x64x8x8xf32>, tensor<1x64x8x8xf32> -> tensor<1x64x8x8xf32>
    ax.return %y : tensor<1x64x8x8xf32>
  }
}
