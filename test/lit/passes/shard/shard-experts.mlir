// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard))' | FileCheck %s

// Matrices that tokens look up are split as Linears are, the first's outputs
// and the second's sums; and so is a bias that is looked up, which is no table
// of words.
// CHECK: ax.state @up : tensor<8x32x16xf32, #ax.layout<[{}, {col}, {}]>>
// CHECK: ax.state @bias : tensor<8x32xf32, #ax.layout<[{}, {col}]>>
// CHECK: ax.state @down : tensor<8x16x32xf32, #ax.layout<[{}, {}, {col}]>>
// CHECK: ax.dot {{.*}} -> tensor<4x32x1xf32, #ax.layout<[{}, {col}, {}]>>
// CHECK: ax.dot {{.*}} -> tensor<4x16x1xf32, #ax.layout<[{}, {}, {}], partial sum {col}>>
ax.plan @p version 1 {
  ax.state @up : tensor<8x32x16xf32> from "w" offset 0 length 16384
  ax.state @bias : tensor<8x32xf32> from "w" offset 16384 length 1024
  ax.state @down : tensor<8x16x32xf32> from "w" offset 17408 length 16384
  ax.program @main(%x: tensor<4x16x1xf32> {ax.name = "x"}, %s: tensor<4x8xf32> {ax.name = "s"}) -> (tensor<4x16x1xf32> {ax.name = "y"}) {
    %values, %indices = ax.top_k %s k 1 dim 1 : tensor<4x8xf32> -> tensor<4x1xf32>, tensor<4x1xi64>
    %i = ax.reshape %indices : tensor<4x1xi64> -> tensor<4xi64>
    %up = ax.load @up : tensor<8x32x16xf32>
    %u = ax.gather %up[%i] axis 0 : tensor<8x32x16xf32>, tensor<4xi64> -> tensor<4x32x16xf32>
    %a = ax.dot %u, %x batch [0] x [0] contract [2] x [1] : tensor<4x32x16xf32>, tensor<4x16x1xf32> -> tensor<4x32x1xf32>
    %bias = ax.load @bias : tensor<8x32xf32>
    %c = ax.gather %bias[%i] axis 0 : tensor<8x32xf32>, tensor<4xi64> -> tensor<4x32xf32>
    %c3 = ax.reshape %c : tensor<4x32xf32> -> tensor<4x32x1xf32>
    %b = ax.binary add %a, %c3 : tensor<4x32x1xf32>, tensor<4x32x1xf32> -> tensor<4x32x1xf32>
    %h = ax.unary relu %b : tensor<4x32x1xf32> -> tensor<4x32x1xf32>
    %down = ax.load @down : tensor<8x16x32xf32>
    %d = ax.gather %down[%i] axis 0 : tensor<8x16x32xf32>, tensor<4xi64> -> tensor<4x16x32xf32>
    %y = ax.dot %d, %h batch [0] x [0] contract [2] x [1] : tensor<4x16x32xf32>, tensor<4x32x1xf32> -> tensor<4x16x1xf32>
    ax.return %y : tensor<4x16x1xf32>
  }
}
