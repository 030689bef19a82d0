// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard))' | FileCheck %s --check-prefix=SPLIT
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard=*attn*=replicate}))' | FileCheck %s
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard=*attn*=colwise}))' | FileCheck %s --check-prefix=COL
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard=h.attn.core=colwise}))' 2>&1 | FileCheck %s --check-prefix=HEADS
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard=h.gelu=replicate}))' 2>&1 | FileCheck %s --check-prefix=BESIDE

// What is asked of a block's layers is asked of its attention, too, and of its
// convolution in groups, which have no weight that could be named, or one that is
// split by groups.
// SPLIT: ax.attention {{.*}} -> tensor<1x6x16x8xf32, #ax.layout<[{}, {col}, {}, {}]>>
// SPLIT: ax.conv {{.*}} -> tensor<1x16x48x1xf32, #ax.layout<[{}, {col}, {}, {}]>>
// CHECK: ax.attention {{.*}} -> tensor<1x6x16x8xf32, #ax.layout<[{}, {}, {}, {}]>>
// CHECK: ax.conv {{.*}} -> tensor<1x16x48x1xf32, #ax.layout<[{}, {}, {}, {}]>>
// Columns and rows are of layers with weights only.
// COL: ax.attention {{.*}} -> tensor<1x6x16x8xf32, #ax.layout<[{}, {col}, {}, {}]>>
// HEADS: error: --shard=h.attn.core=colwise: no layer is named so; 'h.attn.core' has heads or groups, which can only be replicated
// BESIDE: error: --shard=h.gelu=replicate: no layer, weight, input or output is named so; 'h.gelu' is an operation that is split as those beside it are
ax.plan @p version 1 {
  ax.state @q : tensor<48x48xf32> from "w" offset 0 length 9216
  ax.state @o : tensor<48x48xf32> from "w" offset 9216 length 9216
  ax.state @c : tensor<16x8x1x1xf32> from "w" offset 18432 length 512
  ax.program @main(%x: tensor<1x16x48xf32> {ax.name = "x"}) -> (tensor<1x16x48x1xf32> {ax.name = "y"}) {
    %q = ax.load @q : tensor<48x48xf32>
    %o = ax.load @o : tensor<48x48xf32>
    %w = ax.load @c : tensor<16x8x1x1xf32>
    %a = ax.linear %x, %q {node = "h.attn.q"} : tensor<1x16x48xf32>, tensor<48x48xf32> -> tensor<1x16x48xf32>
    %b = ax.reshape %a : tensor<1x16x48xf32> -> tensor<1x16x6x8xf32>
    %c = ax.transpose %b [0, 2, 1, 3] : tensor<1x16x6x8xf32> -> tensor<1x6x16x8xf32>
    %d = ax.attention %c, %c, %c scale 0.35355339059327379 {node = "h.attn.core"} : tensor<1x6x16x8xf32>, tensor<1x6x16x8xf32>, tensor<1x6x16x8xf32> -> tensor<1x6x16x8xf32>
    %e = ax.transpose %d [0, 2, 1, 3] : tensor<1x6x16x8xf32> -> tensor<1x16x6x8xf32>
    %f = ax.reshape %e : tensor<1x16x6x8xf32> -> tensor<1x16x48xf32>
    %g = ax.linear %f, %o {node = "h.attn.o"} : tensor<1x16x48xf32>, tensor<48x48xf32> -> tensor<1x16x48xf32>
    %h = ax.unary gelu %g {node = "h.gelu"} : tensor<1x16x48xf32> -> tensor<1x16x48xf32>
    %i = ax.reshape %h : tensor<1x16x48xf32> -> tensor<1x16x48x1xf32>
    %y = ax.conv %i, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] {groups = 2 : i64, node = "h.attn.conv"} : tensor<1x16x48x1xf32>, tensor<16x8x1x1xf32> -> tensor<1x16x48x1xf32>
    ax.return %y : tensor<1x16x48x1xf32>
  }
}
