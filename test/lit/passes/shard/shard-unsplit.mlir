// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=3},ax-shard))' 2>&1 | FileCheck %s --check-prefix=GROUPS
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=3},ax-shard{strict=true}))' 2>&1 | FileCheck %s --check-prefix=STRICT
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=4},ax-shard))' 2>&1 | FileCheck %s --check-prefix=FEW --implicit-check-not=warning
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{sequence-parallel}))' 2>&1 | FileCheck %s --check-prefix=SEQUENCE --implicit-check-not=warning

// Neither groups nor the channels of one are divided by three ranks; four of them
// have half a group each, but for the last convolution, of ten channels.
// GROUPS: warning: its 32 output channels in 2 groups are not divided by 3: replicated instead
// STRICT: error: its 32 output channels in 2 groups are not divided by 3: replicated instead; --strict makes it an error
// FEW: warning: its 10 output channels in 2 groups are not divided by 4: split 2 ways, the rest is replicated
// SEQUENCE: warning: --sequence-parallel changes nothing: there are no sums or norms of a sequence between tensor-parallel pairs
ax.plan @p version 1 {
  ax.state @v : tensor<32x8x3x3xf32> from "w" offset 0 length 9216
  ax.state @w : tensor<10x16x3x3xf32> from "w" offset 9216 length 5760
  ax.program @main(%x: tensor<1x16x8x8xf32> {ax.name = "x"}) -> (tensor<1x10x8x8xf32> {ax.name = "y"}) {
    %v = ax.load @v : tensor<32x8x3x3xf32>
    %w = ax.load @w : tensor<10x16x3x3xf32>
    %h = ax.conv %x, %v strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] {groups = 2 : i64} : tensor<1x16x8x8xf32>, tensor<32x8x3x3xf32> -> tensor<1x32x8x8xf32>
    %y = ax.conv %h, %w strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] {groups = 2 : i64} : tensor<1x32x8x8xf32>, tensor<10x16x3x3xf32> -> tensor<1x10x8x8xf32>
    ax.return %y : tensor<1x10x8x8xf32>
  }
}
