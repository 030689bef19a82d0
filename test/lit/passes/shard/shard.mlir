// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=4},ax-shard))' | FileCheck %s --check-prefix=TP
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2x2x2},ax-shard))' | FileCheck %s --check-prefix=CUBE
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{dp=4},ax-shard))' | FileCheck %s --check-prefix=DP
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{sequence-parallel}))' | FileCheck %s --check-prefix=SP

// Column-parallel, then row-parallel; one all-reduce for the pair, the second
// bias after it.
// TP: ax.state @w1 : tensor<64x256xf32, #ax.layout<[{}, {col}]>>
// TP: ax.state @b1 : tensor<256xf32, #ax.layout<[{col}]>>
// TP: ax.state @w2 : tensor<256x64xf32, #ax.layout<[{col}, {}]>>
// TP: ax.state @b2 : tensor<64xf32, #ax.layout<[{}]>>
// TP: ax.linear {{.*}} -> tensor<4x32x256xf32, #ax.layout<[{}, {}, {col}]>>
// TP: ax.unary gelu
// TP: %[[P:.*]] = ax.linear {{.*}} -> tensor<4x32x64xf32, #ax.layout<[{}, {}, {}], partial sum {col}>>
// TP-NEXT: %[[S:.*]] = ax.all_reduce %[[P]] over {col} because
// TP-NEXT: ax.binary add %[[S]]
// TP-NOT: ax.all_

// The 3-D algorithm: weights gathered over depth, sums over row, then col.
// CUBE: ax.state @w1 : tensor<64x256xf32, #ax.layout<[{row, depth}, {col}]>>
// CUBE: ax.state @w2 : tensor<256x64xf32, #ax.layout<[{col, depth}, {row}]>>
// CUBE: = ax.all_gather {{.*}} over {depth}
// CUBE-NEXT: {{%.*}} = ax.linear
// CUBE-NEXT: ax.all_reduce {{.*}} over {row}
// CUBE: = ax.all_gather {{.*}} over {depth}
// CUBE-NEXT: {{%.*}} = ax.linear
// CUBE-NEXT: ax.all_reduce {{.*}} over {col}
// CUBE-NOT: ax.all_

// DP: (%{{.*}}: tensor<4x32x64xf32, #ax.layout<[{data}, {}, {}]>>
// DP-NOT: ax.all_
// DP-NOT: ax.reduce_scatter

// SP: ax.all_gather {{.*}} over {col}
// SP: ax.linear
// SP: ax.load @w2
// SP: ax.linear
// SP-NEXT: ax.reduce_scatter {{.*}} over {col}
// SP-NOT: ax.all_reduce
ax.plan @p version 1 {
  ax.state @w1 : tensor<64x256xf32> from "w" offset 0 length 65536
  ax.state @b1 : tensor<256xf32> from "w" offset 65536 length 1024
  ax.state @w2 : tensor<256x64xf32> from "w" offset 66560 length 65536
  ax.state @b2 : tensor<64xf32> from "w" offset 132096 length 256
  ax.state @s : tensor<64xf32> from "w" offset 132352 length 256
  ax.program @main(%x: tensor<4x32x64xf32> {ax.name = "x"}) -> (tensor<4x32x64xf32> {ax.name = "y"}) {
    %s = ax.load @s : tensor<64xf32>
    %h = ax.layer_norm %x scale %s : tensor<64xf32> axis 2 epsilon 1.0e-5 : tensor<4x32x64xf32> -> tensor<4x32x64xf32>
    %w1 = ax.load @w1 : tensor<64x256xf32>
    %b1 = ax.load @b1 : tensor<256xf32>
    %hw = ax.linear %h, %w1 : tensor<4x32x64xf32>, tensor<64x256xf32> -> tensor<4x32x256xf32>
    %u = ax.binary add %hw, %b1 : tensor<4x32x256xf32>, tensor<256xf32> -> tensor<4x32x256xf32>
    %g = ax.unary gelu %u : tensor<4x32x256xf32> -> tensor<4x32x256xf32>
    %w2 = ax.load @w2 : tensor<256x64xf32>
    %b2 = ax.load @b2 : tensor<64xf32>
    %gw = ax.linear %g, %w2 : tensor<4x32x256xf32>, tensor<256x64xf32> -> tensor<4x32x64xf32>
    %d = ax.binary add %gw, %b2 : tensor<4x32x64xf32>, tensor<64xf32> -> tensor<4x32x64xf32>
    %y = ax.binary add %x, %d : tensor<4x32x64xf32>, tensor<4x32x64xf32> -> tensor<4x32x64xf32>
    ax.return %y : tensor<4x32x64xf32>
  }
}
