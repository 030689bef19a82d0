// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-split-biases))' | FileCheck %s

// A bias is added behind its layer; a convolution's along the channels. Stage
// and action are the layer's.
// CHECK: %[[L:.*]] = ax.linear %{{.*}}, %{{.*}} {ax.action = "B", stage = 1 : i64} : tensor<4x8xf32>, tensor<8x8xf32>
// CHECK-NEXT: ax.binary add %[[L]], %{{.*}} {ax.action = "B", stage = 1 : i64} :
// CHECK: %[[C:.*]] = ax.conv
// CHECK-NEXT: %[[B:.*]] = ax.reshape %{{.*}} : tensor<8xf32> -> tensor<8x1x1xf32>
// CHECK-NEXT: ax.binary add %[[C]], %[[B]]
ax.plan @p version 1 {
  ax.state @w : tensor<8x8xf32> from "w" offset 0 length 256
  ax.state @k : tensor<8x3x1x1xf32> from "w" offset 256 length 96
  ax.state @b : tensor<8xf32> from "w" offset 352 length 32
  ax.program @main(%x: tensor<4x8xf32> {ax.name = "x"}, %i: tensor<4x3x2x2xf32> {ax.name = "i"}) -> (tensor<4x8xf32> {ax.name = "y"}, tensor<4x8x2x2xf32> {ax.name = "z"}) {
    %w = ax.load @w : tensor<8x8xf32>
    %k = ax.load @k : tensor<8x3x1x1xf32>
    %b = ax.load @b : tensor<8xf32>
    %y = ax.linear %x, %w bias %b : tensor<8xf32> {ax.action = "B", stage = 1 : i64} : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %z = ax.conv %i, %k bias %b : tensor<8xf32> strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<4x3x2x2xf32>, tensor<8x3x1x1xf32> -> tensor<4x8x2x2xf32>
    ax.return %y, %z : tensor<4x8xf32>, tensor<4x8x2x2xf32>
  }
}
