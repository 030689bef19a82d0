// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-shard))' --split-input-file | FileCheck %s

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

// -----

// So are bytes of two numbers each, with scales of blocks, that are widened behind
// their look-ups. What is exchanged is the sum of a token's two experts, whose
// biases one rank adds.
// CHECK-LABEL: ax.plan @bytes
// CHECK: ax.state @up : tensor<8x32x8xui8, #ax.layout<[{}, {col}, {}]>>
// CHECK: ax.state @scales : tensor<8x32x2xf32, #ax.layout<[{}, {col}, {}]>>
// CHECK: ax.state @down : tensor<8x16x32xui8, #ax.layout<[{}, {}, {col}]>>
// CHECK-NOT: ax.all_
// CHECK: ax.to_partial {{.*}} over {col}
// CHECK-NOT: ax.reduce_scatter
// CHECK: ax.all_reduce %{{.*}} over {col} {{.*}} : tensor<6x16xf32, #ax.layout<[{}, {}], partial sum {col}>> -> tensor<6x16xf32, #ax.layout<[{}, {}]>>
ax.plan @bytes version 1 {
  ax.state @up : tensor<8x32x8xui8> from "w" offset 0 length 2048
  ax.state @scales : tensor<8x32x2xf32> from "w" offset 2048 length 2048
  ax.state @down : tensor<8x16x32xui8> from "w" offset 4096 length 4096
  ax.state @bias : tensor<8x16xf32> from "w" offset 8192 length 512
  ax.program @main(%x: tensor<12x16xf32> {ax.name = "x"}, %i: tensor<12xi64> {ax.name = "i"}) -> (tensor<6x16xf32> {ax.name = "y"}) {
    %shifts = ax.constant dense<[0, 4]> : tensor<2xui8> -> tensor<2xui8>
    %low = ax.constant dense<15> : tensor<ui8> -> tensor<ui8>
    %up = ax.load @up : tensor<8x32x8xui8>
    %u = ax.gather %up[%i] axis 0 : tensor<8x32x8xui8>, tensor<12xi64> -> tensor<12x32x8xui8>
    %u4 = ax.reshape %u : tensor<12x32x8xui8> -> tensor<12x32x8x1xui8>
    %us = ax.binary shr %u4, %shifts : tensor<12x32x8x1xui8>, tensor<2xui8> -> tensor<12x32x8x2xui8>
    %ul = ax.binary bit_and %us, %low : tensor<12x32x8x2xui8>, tensor<ui8> -> tensor<12x32x8x2xui8>
    %uf = ax.cast %ul : tensor<12x32x8x2xui8> -> tensor<12x32x8x2xf32>
    %ub = ax.reshape %uf : tensor<12x32x8x2xf32> -> tensor<12x32x2x8xf32>
    %scales = ax.load @scales : tensor<8x32x2xf32>
    %s = ax.gather %scales[%i] axis 0 : tensor<8x32x2xf32>, tensor<12xi64> -> tensor<12x32x2xf32>
    %s4 = ax.reshape %s : tensor<12x32x2xf32> -> tensor<12x32x2x1xf32>
    %um = ax.binary mul %ub, %s4 : tensor<12x32x2x8xf32>, tensor<12x32x2x1xf32> -> tensor<12x32x2x8xf32>
    %uw = ax.reshape %um : tensor<12x32x2x8xf32> -> tensor<12x32x16xf32>
    %a = ax.dot %x, %uw batch [0] x [0] contract [1] x [2] : tensor<12x16xf32>, tensor<12x32x16xf32> -> tensor<12x32xf32>
    %h = ax.unary relu %a : tensor<12x32xf32> -> tensor<12x32xf32>
    %down = ax.load @down : tensor<8x16x32xui8>
    %d = ax.gather %down[%i] axis 0 : tensor<8x16x32xui8>, tensor<12xi64> -> tensor<12x16x32xui8>
    %df = ax.cast %d : tensor<12x16x32xui8> -> tensor<12x16x32xf32>
    %b = ax.dot %h, %df batch [0] x [0] contract [1] x [2] : tensor<12x32xf32>, tensor<12x16x32xf32> -> tensor<12x16xf32>
    %bias = ax.load @bias : tensor<8x16xf32>
    %c = ax.gather %bias[%i] axis 0 : tensor<8x16xf32>, tensor<12xi64> -> tensor<12x16xf32>
    %bc = ax.binary add %b, %c : tensor<12x16xf32>, tensor<12x16xf32> -> tensor<12x16xf32>
    %each = ax.reshape %bc : tensor<12x16xf32> -> tensor<6x2x16xf32>
    %y = ax.reduce sum %each dims [1] : tensor<6x2x16xf32> -> tensor<6x16xf32>
    %z = ax.softmax %y dim 1 : tensor<6x16xf32> -> tensor<6x16xf32>
    ax.return %z : tensor<6x16xf32>
  }
}

// -----

// What is added to activations is no matrix of a layer that is looked up.
// CHECK-LABEL: ax.plan @mixed
// CHECK: ax.state @up : tensor<8x32x16xf32, #ax.layout<[{}, {}, {}]>>
ax.plan @mixed version 1 {
  ax.state @up : tensor<8x32x16xf32> from "w" offset 0 length 16384
  ax.program @main(%x: tensor<4x16xf32> {ax.name = "x"}, %i: tensor<4xi64> {ax.name = "i"}, %o: tensor<4x32x16xf32> {ax.name = "o"}) -> (tensor<4x32xf32> {ax.name = "y"}) {
    %up = ax.load @up : tensor<8x32x16xf32>
    %u = ax.gather %up[%i] axis 0 : tensor<8x32x16xf32>, tensor<4xi64> -> tensor<4x32x16xf32>
    %m = ax.binary add %u, %o : tensor<4x32x16xf32>, tensor<4x32x16xf32> -> tensor<4x32x16xf32>
    %y = ax.dot %x, %m batch [0] x [0] contract [1] x [2] : tensor<4x16xf32>, tensor<4x32x16xf32> -> tensor<4x32xf32>
    ax.return %y : tensor<4x32xf32>
  }
}

// -----

// Blocks of which there are 3 do not come apart in two: outputs do.
// CHECK-LABEL: ax.plan @blocks
// CHECK: ax.state @down : tensor<8x16x48xi8, #ax.layout<[{}, {col}, {}]>>
// CHECK: ax.state @scales : tensor<8x16x3xf32, #ax.layout<[{}, {col}, {}]>>
ax.plan @blocks version 1 {
  ax.state @up : tensor<8x48x16xf32> from "w" offset 0 length 24576
  ax.state @down : tensor<8x16x48xi8> from "w" offset 24576 length 6144
  ax.state @scales : tensor<8x16x3xf32> from "w" offset 30720 length 1536
  ax.program @main(%x: tensor<12x16xf32> {ax.name = "x"}, %i: tensor<12xi64> {ax.name = "i"}) -> (tensor<12x16xf32> {ax.name = "y"}) {
    %up = ax.load @up : tensor<8x48x16xf32>
    %u = ax.gather %up[%i] axis 0 : tensor<8x48x16xf32>, tensor<12xi64> -> tensor<12x48x16xf32>
    %a = ax.dot %x, %u batch [0] x [0] contract [1] x [2] : tensor<12x16xf32>, tensor<12x48x16xf32> -> tensor<12x48xf32>
    %h = ax.unary relu %a : tensor<12x48xf32> -> tensor<12x48xf32>
    %down = ax.load @down : tensor<8x16x48xi8>
    %d = ax.gather %down[%i] axis 0 : tensor<8x16x48xi8>, tensor<12xi64> -> tensor<12x16x48xi8>
    %f = ax.cast %d : tensor<12x16x48xi8> -> tensor<12x16x48xf32>
    %b = ax.reshape %f : tensor<12x16x48xf32> -> tensor<12x16x3x16xf32>
    %scales = ax.load @scales : tensor<8x16x3xf32>
    %s = ax.gather %scales[%i] axis 0 : tensor<8x16x3xf32>, tensor<12xi64> -> tensor<12x16x3xf32>
    %s4 = ax.reshape %s : tensor<12x16x3xf32> -> tensor<12x16x3x1xf32>
    %m = ax.binary mul %b, %s4 : tensor<12x16x3x16xf32>, tensor<12x16x3x1xf32> -> tensor<12x16x3x16xf32>
    %w = ax.reshape %m : tensor<12x16x3x16xf32> -> tensor<12x16x48xf32>
    %y = ax.dot %h, %w batch [0] x [0] contract [1] x [2] : tensor<12x48xf32>, tensor<12x16x48xf32> -> tensor<12x16xf32>
    ax.return %y : tensor<12x16xf32>
  }
}
