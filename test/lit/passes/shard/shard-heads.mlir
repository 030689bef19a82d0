// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=4},ax-shard))' 2>&1 | FileCheck %s

// Six heads for four ranks: three heads each for pairs of ranks, and the layers
// beside them as far, rather than two, two, two and none.
// CHECK: warning: 6 attention heads are not divided by 4: split 2 ways, the rest is replicated
// CHECK: ax.linear {{.*}} -> tensor<1x16x48xf32, #ax.layout<[{}, {}, {col:(1)2}]>>
// CHECK: ax.attention {{.*}} -> tensor<1x6x16x8xf32, #ax.layout<[{}, {col:(1)2}, {}, {}]>>
// CHECK: ax.linear {{.*}} -> tensor<1x16x48xf32, #ax.layout<[{}, {}, {}], partial sum {col:(1)2}>>
// CHECK-NEXT: ax.reduce_scatter
ax.plan @p version 1 {
  ax.state @q : tensor<48x48xf32> from "w" offset 0 length 9216
  ax.state @o : tensor<48x48xf32> from "w" offset 9216 length 9216
  ax.program @main(%x: tensor<1x16x48xf32> {ax.name = "x"}) -> (tensor<1x16x48xf32> {ax.name = "y"}) {
    %q = ax.load @q : tensor<48x48xf32>
    %o = ax.load @o : tensor<48x48xf32>
    %a = ax.linear %x, %q : tensor<1x16x48xf32>, tensor<48x48xf32> -> tensor<1x16x48xf32>
    %b = ax.reshape %a : tensor<1x16x48xf32> -> tensor<1x16x6x8xf32>
    %c = ax.transpose %b [0, 2, 1, 3] : tensor<1x16x6x8xf32> -> tensor<1x6x16x8xf32>
    %d = ax.attention %c, %c, %c scale 0.35355339059327379 : tensor<1x6x16x8xf32>, tensor<1x6x16x8xf32>, tensor<1x6x16x8xf32> -> tensor<1x6x16x8xf32>
    %e = ax.transpose %d [0, 2, 1, 3] : tensor<1x6x16x8xf32> -> tensor<1x16x6x8xf32>
    %f = ax.reshape %e : tensor<1x16x6x8xf32> -> tensor<1x16x48xf32>
    %y = ax.linear %f, %o : tensor<1x16x48xf32>, tensor<48x48xf32> -> tensor<1x16x48xf32>
    ax.return %y : tensor<1x16x48xf32>
  }
}
