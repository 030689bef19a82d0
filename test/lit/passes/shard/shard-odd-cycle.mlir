// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard))' | FileCheck %s

// Three convolutions against an identity: no two-colouring fits. The wide
// tensors stay split; what is exchanged is narrow.
// CHECK: ax.conv {{.*}} -> tensor<1x64x8x8xf32, #ax.layout<[{}, {col}, {}, {}]>>
// CHECK-NEXT: ax.conv {{.*}} -> tensor<1x16x8x8xf32, #ax.layout<[{}, {}, {}, {}], partial sum {col}>>
// CHECK-NEXT: ax.all_reduce {{.*}} -> tensor<1x16x8x8xf32, #ax.layout<[{}, {}, {}, {}]>>
// CHECK: ax.conv {{.*}} -> tensor<1x16x8x8xf32, #ax.layout<[{}, {col}, {}, {}]>>
// CHECK: ax.all_gather {{.*}} -> tensor<1x16x8x8xf32, #ax.layout<[{}, {}, {}, {}]>>
// CHECK-NEXT: ax.conv {{.*}} -> tensor<1x64x8x8xf32, #ax.layout<[{}, {col}, {}, {}]>>
// CHECK-NEXT: ax.binary add
// CHECK-NEXT: ax.return
ax.plan @p version 1 {
  ax.state @w0 : tensor<64x3x1x1xf32> from "w" offset 0 length 768
  ax.state @w1 : tensor<16x64x1x1xf32> from "w" offset 768 length 4096
  ax.state @w2 : tensor<16x16x3x3xf32> from "w" offset 4864 length 9216
  ax.state @w3 : tensor<64x16x1x1xf32> from "w" offset 14080 length 4096
  ax.program @main(%x: tensor<1x3x8x8xf32> {ax.name = "x"}) -> (tensor<1x64x8x8xf32> {ax.name = "y"}) {
    %w0 = ax.load @w0 : tensor<64x3x1x1xf32>
    %w1 = ax.load @w1 : tensor<16x64x1x1xf32>
    %w2 = ax.load @w2 : tensor<16x16x3x3xf32>
    %w3 = ax.load @w3 : tensor<64x16x1x1xf32>
    %r = ax.conv %x, %w0 strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x3x8x8xf32>, tensor<64x3x1x1xf32> -> tensor<1x64x8x8xf32>
    %a = ax.conv %r, %w1 strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x64x8x8xf32>, tensor<16x64x1x1xf32> -> tensor<1x16x8x8xf32>
    %b = ax.unary relu %a : tensor<1x16x8x8xf32> -> tensor<1x16x8x8xf32>
    %c = ax.conv %b, %w2 strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] : tensor<1x16x8x8xf32>, tensor<16x16x3x3xf32> -> tensor<1x16x8x8xf32>
    %d = ax.unary relu %c : tensor<1x16x8x8xf32> -> tensor<1x16x8x8xf32>
    %e = ax.conv %d, %w3 strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x16x8x8xf32>, tensor<64x16x1x1xf32> -> tensor<1x64x8x8xf32>
    %y = ax.binary add %e, %r : tensor<1x64x8x8xf32>, tensor<1x64x8x8xf32> -> tensor<1x64x8x8xf32>
    ax.return %y : tensor<1x64x8x8xf32>
  }
}
