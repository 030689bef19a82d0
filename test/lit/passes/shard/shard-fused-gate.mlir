// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=4},ax-shard))' | FileCheck %s

// Gate and up in one weight, halves of its columns: each is split as the layer
// after them wants it, and nothing is exchanged between.
// CHECK: ax.state @w1 : tensor<64x352xf32, #ax.layout<[{}, 2 * 176{col}]>>
// CHECK: ax.state @w2 : tensor<176x64xf32, #ax.layout<[{col}, {}]>>
// CHECK: ax.linear
// CHECK-NOT: ax.all_
// CHECK: ax.linear {{.*}} partial sum {col}>>
ax.plan @p version 1 {
  ax.state @w1 : tensor<64x352xf32> from "w" offset 0 length 90112
  ax.state @w2 : tensor<176x64xf32> from "w" offset 90112 length 45056
  ax.program @main(%x: tensor<4x32x64xf32> {ax.name = "x"}) -> (tensor<4x32x64xf32> {ax.name = "y"}) {
    %w1 = ax.load @w1 : tensor<64x352xf32>
    %u = ax.linear %x, %w1 : tensor<4x32x64xf32>, tensor<64x352xf32> -> tensor<4x32x352xf32>
    %a = ax.slice %u starts [0, 0, 0] steps [1, 1, 1] : tensor<4x32x352xf32> -> tensor<4x32x176xf32>
    %b = ax.slice %u starts [0, 0, 176] steps [1, 1, 1] : tensor<4x32x352xf32> -> tensor<4x32x176xf32>
    %g = ax.unary silu %a : tensor<4x32x176xf32> -> tensor<4x32x176xf32>
    %p = ax.binary mul %g, %b : tensor<4x32x176xf32>, tensor<4x32x176xf32> -> tensor<4x32x176xf32>
    %w2 = ax.load @w2 : tensor<176x64xf32>
    %y = ax.linear %p, %w2 : tensor<4x32x176xf32>, tensor<176x64xf32> -> tensor<4x32x64xf32>
    ax.return %y : tensor<4x32x64xf32>
  }
}
