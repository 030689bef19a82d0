// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard=up=replicate,down=replicate}))' | FileCheck %s --check-prefix=REPLICATE
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard=*p=rowwise}))' | FileCheck %s --check-prefix=ROW
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard="y=[{}, {col}]"}))' | FileCheck %s --check-prefix=OUT
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard=nobody=replicate}))' 2>&1 | FileCheck %s --check-prefix=NOBODY
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard=up=sideways}))' 2>&1 | FileCheck %s --check-prefix=SIDEWAYS
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard="y=[{}, {rows}]"}))' 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{pp=2},ax-shard{shard="w1=[{pipe}, {}]"}))' 2>&1 | FileCheck %s --check-prefix=PIPE
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=128},ax-shard{shard=up=rowwise}))' 2>&1 | FileCheck %s --check-prefix=WAYS
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard=up}))' 2>&1 | FileCheck %s --check-prefix=NOPAIR
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard="y=[{}, {}, {}]"}))' 2>&1 | FileCheck %s --check-prefix=DIMS
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard="y=[{}, {}] more"}))' 2>&1 | FileCheck %s --check-prefix=MORE
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard="y={}"}))' 2>&1 | FileCheck %s --check-prefix=BRACKET
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard="y=[99999999999999999999, {}]"}))' 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard="y=[2 * , {}]"}))' 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard="y=[{*}, {}]"}))' 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard="[a=replicate"}))' 2>&1 | FileCheck %s --check-prefix=GLOB
// Names as exporters give them: a layer's weight begins like the layer.
// RUN: sed 's/@w1/@up.weight/; s/@w2/@down.weight/' %s > %t.named.mlir
// RUN: axopt-opt %t.named.mlir --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard=*=rowwise}))' | FileCheck %s --check-prefix=NAMED
// RUN: not axopt-opt %t.named.mlir --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard=*.weight=rowwise}))' 2>&1 | FileCheck %s --check-prefix=NOLAYER
// RUN: axopt-opt %t.named.mlir --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard{shard="up*=[{col}, {}]"}))' | FileCheck %s --check-prefix=TEXT
// NAMED: ax.state @up.weight : tensor<64x256xf32, #ax.layout<[{col}, {}]>>
// NAMED: ax.state @down.weight : tensor<256x64xf32, #ax.layout<[{col}, {}]>>
// NOLAYER: error: {{.*}}--shard=*.weight=rowwise: no layer is named so
// TEXT: ax.state @up.weight : tensor<64x256xf32, #ax.layout<[{col}, {}]>>

// REPLICATE: ax.state @w1 : tensor<64x256xf32, #ax.layout<[{}, {}]>>
// REPLICATE: ax.state @w2 : tensor<256x64xf32, #ax.layout<[{}, {}]>>
// REPLICATE-NOT: ax.all_
// ROW: ax.state @w1 : tensor<64x256xf32, #ax.layout<[{col}, {}]>>
// ROW: ax.linear
// ROW-NEXT: ax.reduce_scatter {{.*}}--shard=*p=rowwise
// OUT: -> (tensor<4x64xf32, #ax.layout<[{}, {col}]>>
// NOBODY: error: {{.*}}--shard=nobody=replicate: no layer, weight, input or output is named so
// SIDEWAYS: error: {{.*}}--shard=up=sideways: a layer is colwise, rowwise or replicate
// AXIS: error: {{.*}}--shard=y=[{}, {rows}]:
// PIPE: error: --shard=w1=[{pipe}, {}]: 'pipe' numbers the stages, and each tensor is in one of them: layouts have other axes
// NOPAIR: option: expected PATTERN=colwise|rowwise|replicate|LAYOUT
// WAYS: error: --shard=up=rowwise: 64 features cannot be split 128 ways
// DIMS: error: --shard=y=[{}, {}, {}]: more dimensions than the tensor's 2 at offset 8
// MORE: error: --shard=y=[{}, {}] more: unexpected text after the layout at offset 9
// BRACKET: error: --shard=y={}: expected '[' at offset 0
// LARGE: error: --shard={{.*}}: number too large at offset 19
// NUMBER: error: --shard={{.*}}: expected a number at offset 5
// NAME: error: --shard={{.*}}: expected an axis at offset 2
// GLOB: error: --shard=[a=replicate: invalid glob pattern, unmatched '['
ax.plan @p version 1 {
  ax.state @w1 : tensor<64x256xf32> from "w" offset 0 length 65536
  ax.state @w2 : tensor<256x64xf32> from "w" offset 66560 length 65536
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x"}) -> (tensor<4x64xf32> {ax.name = "y"}) {
    %w1 = ax.load @w1 : tensor<64x256xf32>
    %u = ax.linear %x, %w1 {node = "up"} : tensor<4x64xf32>, tensor<64x256xf32> -> tensor<4x256xf32>
    %g = ax.unary gelu %u : tensor<4x256xf32> -> tensor<4x256xf32>
    %w2 = ax.load @w2 : tensor<256x64xf32>
    %d = ax.linear %g, %w2 {node = "down"} : tensor<4x256xf32>, tensor<256x64xf32> -> tensor<4x64xf32>
    ax.return %d : tensor<4x64xf32>
  }
}
