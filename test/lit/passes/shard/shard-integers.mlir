// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard))' | FileCheck %s

// Products of integers with a weight, its zero point subtracted, are split as
// Linears are: the first's outputs, the second's sums.
// CHECK: ax.dot {{.*}} -> tensor<4x32xi32, #ax.layout<[{}, {col}]>>
// CHECK: ax.dot {{.*}} -> tensor<4x16xi32, #ax.layout<[{}, {}], partial sum {col}>>
ax.plan @p version 1 {
  ax.state @w0 : tensor<16x32xi8> from "w" offset 0 length 512
  ax.state @w1 : tensor<32x16xi8> from "w" offset 512 length 512
  ax.program @main(%x: tensor<4x16xi32> {ax.name = "x"}) -> (tensor<4x16xi32> {ax.name = "y"}) {
    %w0 = ax.load @w0 : tensor<16x32xi8>
    %w1 = ax.load @w1 : tensor<32x16xi8>
    %z = ax.constant dense<3> : tensor<i32> -> tensor<i32>
    %a = ax.cast %w0 : tensor<16x32xi8> -> tensor<16x32xi32>
    %b = ax.binary sub %a, %z : tensor<16x32xi32>, tensor<i32> -> tensor<16x32xi32>
    %c = ax.dot %x, %b batch [] x [] contract [1] x [0] : tensor<4x16xi32>, tensor<16x32xi32> -> tensor<4x32xi32>
    %d = ax.cast %w1 : tensor<32x16xi8> -> tensor<32x16xi32>
    %y = ax.dot %c, %d batch [] x [] contract [1] x [0] : tensor<4x32xi32>, tensor<32x16xi32> -> tensor<4x16xi32>
    ax.return %y : tensor<4x16xi32>
  }
}
