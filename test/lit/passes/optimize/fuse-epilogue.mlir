// RUN: axopt-opt %s -ax-fuse-epilogue | FileCheck %s

ax.plan @epilogue version 1 {
ax.mesh [col = 2]
ax.state @w : tensor<16x16xf32> from "m" offset 0 length 1024
ax.state @k : tensor<4x4x1x1xf32> from "m" offset 1024 length 64
ax.state @row : tensor<16x16xf32, #ax.layout<[{col}, {}]>> from "m" offset 0 length 1024

// CHECK-LABEL: ax.program @whole
// CHECK: %[[L:.*]] = ax.linear %arg0, %{{.*}} residual %arg1 : tensor<3x16xf32> {activation = #ax<unary_kind gelu>}
// CHECK-NEXT: ax.return %[[L]]
ax.program @whole(%x: tensor<3x16xf32>, %r: tensor<3x16xf32>) -> tensor<3x16xf32> {
  %w = ax.load @w : tensor<16x16xf32>
  %0 = ax.linear %x, %w : tensor<3x16xf32>, tensor<16x16xf32> -> tensor<3x16xf32>
  %1 = ax.unary gelu %0 : tensor<3x16xf32> -> tensor<3x16xf32>
  %2 = ax.binary add %r, %1 : tensor<3x16xf32>, tensor<3x16xf32> -> tensor<3x16xf32>
  ax.return %2 : tensor<3x16xf32>
}

// The residual is computed after the convolution; its sum is not activated
// before.
// CHECK-LABEL: ax.program @conv
// CHECK: %[[R:.*]] = ax.unary exp %arg0
// CHECK: %[[C:.*]] = ax.conv %arg0, %{{.*}} residual %[[R]]
// CHECK-NOT: activation
// CHECK: ax.unary relu %[[C]]
ax.program @conv(%x: tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32> {
  %k = ax.load @k : tensor<4x4x1x1xf32>
  %0 = ax.conv %x, %k strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x4x2x2xf32>, tensor<4x4x1x1xf32> -> tensor<1x4x2x2xf32>
  %1 = ax.unary exp %x : tensor<1x4x2x2xf32> -> tensor<1x4x2x2xf32>
  %2 = ax.binary add %1, %0 : tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32> -> tensor<1x4x2x2xf32>
  %3 = ax.unary relu %2 : tensor<1x4x2x2xf32> -> tensor<1x4x2x2xf32>
  ax.return %3 : tensor<1x4x2x2xf32>
}

// An addend of a sum over ranks: what follows is for the sum.
// CHECK-LABEL: ax.program @partial
// CHECK: %[[L:.*]] = ax.linear %arg0
// CHECK-NOT: residual
// CHECK: ax.binary add %[[L]], %arg1
ax.program @partial(%x: tensor<3x16xf32, #ax.layout<[{}, {col}]>>, %r: tensor<3x16xf32, #ax.layout<[{}, {}], partial sum {col}>>) -> tensor<3x16xf32, #ax.layout<[{}, {}], partial sum {col}>> {
  %w = ax.load @row : tensor<16x16xf32, #ax.layout<[{col}, {}]>>
  %0 = ax.linear %x, %w : tensor<3x16xf32, #ax.layout<[{}, {col}]>>, tensor<16x16xf32, #ax.layout<[{col}, {}]>> -> tensor<3x16xf32, #ax.layout<[{}, {}], partial sum {col}>>
  %1 = ax.binary add %0, %r : tensor<3x16xf32, #ax.layout<[{}, {}], partial sum {col}>>, tensor<3x16xf32, #ax.layout<[{}, {}], partial sum {col}>> -> tensor<3x16xf32, #ax.layout<[{}, {}], partial sum {col}>>
  ax.return %1 : tensor<3x16xf32, #ax.layout<[{}, {}], partial sum {col}>>
}

// Two users; another stage; a residual that broadcasts.
// CHECK-LABEL: ax.program @near_misses
// CHECK-NOT: residual
// CHECK-NOT: activation
// CHECK: ax.return
ax.program @near_misses(%x: tensor<3x16xf32>, %r: tensor<16xf32>) -> (tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>) {
  %w = ax.load @w : tensor<16x16xf32>
  %0 = ax.linear %x, %w : tensor<3x16xf32>, tensor<16x16xf32> -> tensor<3x16xf32>
  %1 = ax.unary gelu %0 : tensor<3x16xf32> -> tensor<3x16xf32>
  %2 = ax.linear %x, %w {stage = 0 : i64} : tensor<3x16xf32>, tensor<16x16xf32> -> tensor<3x16xf32>
  %3 = ax.binary add %2, %x {stage = 1 : i64} : tensor<3x16xf32>, tensor<3x16xf32> -> tensor<3x16xf32>
  %4 = ax.linear %x, %w : tensor<3x16xf32>, tensor<16x16xf32> -> tensor<3x16xf32>
  %5 = ax.binary add %4, %r : tensor<3x16xf32>, tensor<16xf32> -> tensor<3x16xf32>
  ax.return %0, %1, %3, %5 : tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>, tensor<3x16xf32>
}
}
