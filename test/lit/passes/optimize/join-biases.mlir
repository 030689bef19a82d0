// RUN: axopt-opt %s -ax-join-biases | FileCheck %s

ax.plan @biases version 1 {
ax.mesh [col = 2]
ax.state @w : tensor<16x16xf32> from "m" offset 0 length 1024
ax.state @k : tensor<4x4x1x1xf32> from "m" offset 1024 length 64
ax.state @b : tensor<16xf32> from "m" offset 0 length 64
ax.state @c : tensor<4xf32> from "m" offset 0 length 16
ax.state @row : tensor<16x16xf32, #ax.layout<[{col}, {}]>> from "m" offset 0 length 1024

// What follows the sum is no part of it.
// CHECK-LABEL: ax.program @linear
// CHECK: %[[B:.*]] = ax.load @b
// CHECK: %[[L:.*]] = ax.linear %arg0, %{{.*}} bias %[[B]]
// CHECK-NEXT: ax.unary gelu %[[L]]
ax.program @linear(%x: tensor<3x16xf32>) -> tensor<3x16xf32> {
  %w = ax.load @w : tensor<16x16xf32>
  %b = ax.load @b : tensor<16xf32>
  %0 = ax.linear %x, %w : tensor<3x16xf32>, tensor<16x16xf32> -> tensor<3x16xf32>
  %1 = ax.binary add %b, %0 : tensor<16xf32>, tensor<3x16xf32> -> tensor<3x16xf32>
  %2 = ax.unary gelu %1 : tensor<3x16xf32> -> tensor<3x16xf32>
  ax.return %2 : tensor<3x16xf32>
}

// CHECK-LABEL: ax.program @conv
// CHECK: %[[C:.*]] = ax.load @c
// CHECK: %[[V:.*]] = ax.conv %arg0, %{{.*}} bias %[[C]]
// CHECK-NEXT: ax.return %[[V]]
ax.program @conv(%x: tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> {
  %k = ax.load @k : tensor<4x4x1x1xf32>
  %c = ax.load @c : tensor<4xf32>
  %b = ax.reshape %c : tensor<4xf32> -> tensor<4x1x1xf32>
  %0 = ax.conv %x, %k strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x4x2x2xf32>, tensor<4x4x1x1xf32> -> tensor<1x4x2x2xf32>
  %1 = ax.binary add %0, %b : tensor<1x4x2x2xf32>, tensor<4x1x1xf32> -> tensor<1x4x2x2xf32>
  ax.return %1 : tensor<1x4x2x2xf32>
}

// An addend of a sum over ranks: what follows is for the sum.
// CHECK-LABEL: ax.program @partial
// CHECK-NOT: bias
// CHECK: ax.return
ax.program @partial(%x: tensor<3x16xf32, #ax.layout<[{}, {col}]>>, %r: tensor<16xf32, #ax.layout<[{}], partial sum {col}>>) -> tensor<3x16xf32, #ax.layout<[{}, {}], partial sum {col}>> {
  %w = ax.load @row : tensor<16x16xf32, #ax.layout<[{col}, {}]>>
  %0 = ax.linear %x, %w : tensor<3x16xf32, #ax.layout<[{}, {col}]>>, tensor<16x16xf32, #ax.layout<[{col}, {}]>> -> tensor<3x16xf32, #ax.layout<[{}, {}], partial sum {col}>>
  %1 = ax.binary add %0, %r : tensor<3x16xf32, #ax.layout<[{}, {}], partial sum {col}>>, tensor<16xf32, #ax.layout<[{}], partial sum {col}>> -> tensor<3x16xf32, #ax.layout<[{}, {}], partial sum {col}>>
  ax.return %1 : tensor<3x16xf32, #ax.layout<[{}, {}], partial sum {col}>>
}

// Two users; another stage; a residual; rows.
// CHECK-LABEL: ax.program @near_misses
// CHECK-NOT: bias
// CHECK: ax.return
ax.program @near_misses(%x: tensor<3x16xf32>, %r: tensor<3x1xf32>) -> (tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>) {
  %w = ax.load @w : tensor<16x16xf32>
  %b = ax.load @b : tensor<16xf32>
  %0 = ax.linear %x, %w : tensor<3x16xf32>, tensor<16x16xf32> -> tensor<3x16xf32>
  %1 = ax.binary add %0, %b : tensor<3x16xf32>, tensor<16xf32> -> tensor<3x16xf32>
  %2 = ax.linear %x, %w {stage = 0 : i64} : tensor<3x16xf32>, tensor<16x16xf32> -> tensor<3x16xf32>
  %3 = ax.binary add %2, %b {stage = 1 : i64} : tensor<3x16xf32>, tensor<16xf32> -> tensor<3x16xf32>
  %4 = ax.linear %x, %w : tensor<3x16xf32>, tensor<16x16xf32> -> tensor<3x16xf32>
  %5 = ax.binary add %4, %x : tensor<3x16xf32>, tensor<3x16xf32> -> tensor<3x16xf32>
  %6 = ax.linear %x, %w : tensor<3x16xf32>, tensor<16x16xf32> -> tensor<3x16xf32>
  %7 = ax.binary add %6, %r : tensor<3x16xf32>, tensor<3x1xf32> -> tensor<3x16xf32>
  ax.return %0, %1, %3, %5, %7 : tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>
}
}
