// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard))' | FileCheck %s

// Each output is reduced in its place, also one that is returned twice.
// CHECK: -> (tensor<4x16x64xf32, #ax.layout<[{}, {}, {}]>> {ax.name = "x"}, tensor<4x16x32xf32
// CHECK: %[[P:.*]] = ax.linear {{.*}} -> tensor<4x16x32xf32, {{.*}}, partial sum {col}>>
// CHECK: %[[Y:.*]] = ax.reduce_scatter %[[P]] over {col}
// CHECK: ax.return %{{.*}}, %[[Y]], %[[Y]]
ax.plan @p version 1 {
  ax.state @w1 : tensor<64x128xf32> from "w" offset 0 length 32768
  ax.state @w2 : tensor<128x32xf32> from "w" offset 32768 length 16384
  ax.program @main(%x: tensor<4x16x64xf32> {ax.name = "in"}) -> (tensor<4x16x64xf32> {ax.name = "x"}, tensor<4x16x32xf32> {ax.name = "y"}, tensor<4x16x32xf32> {ax.name = "again"}) {
    %n = ax.unary neg %x : tensor<4x16x64xf32> -> tensor<4x16x64xf32>
    %w1 = ax.load @w1 : tensor<64x128xf32>
    %u = ax.linear %n, %w1 : tensor<4x16x64xf32>, tensor<64x128xf32> -> tensor<4x16x128xf32>
    %r = ax.unary relu %u : tensor<4x16x128xf32> -> tensor<4x16x128xf32>
    %w2 = ax.load @w2 : tensor<128x32xf32>
    %y = ax.linear %r, %w2 : tensor<4x16x128xf32>, tensor<128x32xf32> -> tensor<4x16x32xf32>
    ax.return %n, %y, %y : tensor<4x16x64xf32>, tensor<4x16x32xf32>, tensor<4x16x32xf32>
  }
}
