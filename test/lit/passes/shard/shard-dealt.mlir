// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-deal-weights,ax-shard))' | FileCheck %s

// q of 4 heads, k and v of 2: a rank has 2, 1 and 1, with their part of the
// weight. Only what attention gives is added up behind the layer after it.
// CHECK: ax.state @w : tensor<16x64xf32, #ax.layout<[{}, {col}]>> dealt <[32, 16, 16] to 2 along 1> from
// CHECK: ax.state @o : tensor<32x16xf32, #ax.layout<[{col}, {}]>> from
// CHECK-NOT: ax.all_
// CHECK: ax.attention {{.*}} -> tensor<3x4x5x8xf32, #ax.layout<[{}, {col}, {}, {}]>>
// CHECK-NOT: ax.all_
// CHECK: ax.linear {{.*}} partial sum {col}>>
// CHECK-NEXT: ax.reduce_scatter
ax.plan @p version 1 {
  ax.state @w : tensor<16x64xf32> from "w" offset 0 length 4096
  ax.state @o : tensor<32x16xf32> from "w" offset 4096 length 2048
  ax.program @main(%x: tensor<3x5x16xf32> {ax.name = "x"}) -> (tensor<3x5x16xf32> {ax.name = "y"}) {
    %w = ax.load @w : tensor<16x64xf32>
    %u = ax.linear %x, %w : tensor<3x5x16xf32>, tensor<16x64xf32> -> tensor<3x5x64xf32>
    %q0 = ax.slice %u starts [0, 0, 0] steps [1, 1, 1] : tensor<3x5x64xf32> -> tensor<3x5x32xf32>
    %k0 = ax.slice %u starts [0, 0, 32] steps [1, 1, 1] : tensor<3x5x64xf32> -> tensor<3x5x16xf32>
    %v0 = ax.slice %u starts [0, 0, 48] steps [1, 1, 1] : tensor<3x5x64xf32> -> tensor<3x5x16xf32>
    %q1 = ax.reshape %q0 : tensor<3x5x32xf32> -> tensor<3x5x4x8xf32>
    %k1 = ax.reshape %k0 : tensor<3x5x16xf32> -> tensor<3x5x2x8xf32>
    %v1 = ax.reshape %v0 : tensor<3x5x16xf32> -> tensor<3x5x2x8xf32>
    %q = ax.transpose %q1 [0, 2, 1, 3] : tensor<3x5x4x8xf32> -> tensor<3x4x5x8xf32>
    %k = ax.transpose %k1 [0, 2, 1, 3] : tensor<3x5x2x8xf32> -> tensor<3x2x5x8xf32>
    %v = ax.transpose %v1 [0, 2, 1, 3] : tensor<3x5x2x8xf32> -> tensor<3x2x5x8xf32>
    %a = ax.attention %q, %k, %v scale 0.5 : tensor<3x4x5x8xf32>, tensor<3x2x5x8xf32>, tensor<3x2x5x8xf32> -> tensor<3x4x5x8xf32>
    %a1 = ax.transpose %a [0, 2, 1, 3] : tensor<3x4x5x8xf32> -> tensor<3x5x4x8xf32>
    %a0 = ax.reshape %a1 : tensor<3x5x4x8xf32> -> tensor<3x5x32xf32>
    %o = ax.load @o : tensor<32x16xf32>
    %y = ax.linear %a0, %o : tensor<3x5x32xf32>, tensor<32x16xf32> -> tensor<3x5x16xf32>
    ax.return %y : tensor<3x5x16xf32>
  }
}
