// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard))' | FileCheck %s

// Gates and what they are for by turns, as of gpt-oss: each rank has pairs, and
// nothing is gathered.
// CHECK: ax.state @up : tensor<16x64xf32, #ax.layout<[{}, {col}]>>
// CHECK: ax.state @down : tensor<32x16xf32, #ax.layout<[{col}, {}]>>
// CHECK-NOT: ax.all_gather
// CHECK: ax.reshape {{.*}} -> tensor<4x32x2xf32, #ax.layout<[{}, {col}, {}]>>
// CHECK: ax.slice {{.*}} starts [0, 0, 1]
// CHECK-NOT: ax.all_gather
ax.plan @p version 1 {
  ax.state @up : tensor<16x64xf32> from "w" offset 0 length 4096
  ax.state @down : tensor<32x16xf32> from "w" offset 4096 length 2048
  ax.program @main(%x: tensor<4x16xf32> {ax.name = "x"}) -> (tensor<4x16xf32> {ax.name = "y"}) {
    %up = ax.load @up : tensor<16x64xf32>
    %down = ax.load @down : tensor<32x16xf32>
    %h = ax.linear %x, %up : tensor<4x16xf32>, tensor<16x64xf32> -> tensor<4x64xf32>
    %g = ax.slice %h starts [0, 0] steps [1, 2] : tensor<4x64xf32> -> tensor<4x32xf32>
    %l = ax.slice %h starts [0, 1] steps [1, 2] : tensor<4x64xf32> -> tensor<4x32xf32>
    %s = ax.unary silu %g : tensor<4x32xf32> -> tensor<4x32xf32>
    %a = ax.binary mul %s, %l : tensor<4x32xf32>, tensor<4x32xf32> -> tensor<4x32xf32>
    %y = ax.linear %a, %down : tensor<4x32xf32>, tensor<32x16xf32> -> tensor<4x16xf32>
    ax.return %y : tensor<4x16xf32>
  }
}
