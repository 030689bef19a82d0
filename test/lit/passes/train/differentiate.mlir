// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate{loss=loss})' | FileCheck %s
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate)' 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate{loss=cost})' 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate{loss=y})' 2>&1 | FileCheck %s --check-prefix=SHAPE

// TWO: error: has 2 scalar float results; name the one that is the loss
// NONE: error: there is no result 'cost' to take as the loss
// SHAPE: error: the loss 'y' is 'tensor<2x4xf32>', not a scalar float

// Gradients come in the order of the states. The frozen weight and what lies
// before it get no operations; the tied weight's two gradients are added; the
// dead state has none.
ax.plan @p version 1 {
  ax.state @dead : tensor<4xf32> from "w" offset 0 length 16 {trainable}
  ax.state @tied : tensor<4x4xf32> from "w" offset 0 length 64 {trainable}
  ax.state @frozen : tensor<3x4xf32> from "w" offset 0 length 48
  // CHECK: ax.program @main
  // CHECK-SAME: -> (tensor<f32> {ax.name = "loss"}, tensor<f32> {ax.name = "other"}, tensor<2x4xf32> {ax.name = "y"}, tensor<4x4xf32> {ax.gradient_of = @tied, ax.name = "gradient of tied"})
  ax.program @main(%x: tensor<2x3xf32> {ax.name = "x"}) -> (
      tensor<f32> {ax.name = "loss"}, tensor<f32> {ax.name = "other"},
      tensor<2x4xf32> {ax.name = "y"}) {
    %d = ax.load @dead : tensor<4xf32>
    %f = ax.load @frozen : tensor<3x4xf32>
    %w = ax.load @tied : tensor<4x4xf32>
    %h = ax.linear %x, %f : tensor<2x3xf32>, tensor<3x4xf32> -> tensor<2x4xf32>
    %a = ax.linear %h, %w {stage = 0 : i64} : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
    %y = ax.linear %a, %w {stage = 1 : i64} : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
    // CHECK: %[[LOSS:.*]] = ax.reduce sum
    %loss = ax.reduce sum %y dims [0, 1] {stage = 1 : i64} : tensor<2x4xf32> -> tensor<f32>
    %other = ax.reduce sum %d dims [0] : tensor<4xf32> -> tensor<f32>
    // CHECK: ax.constant {ax.action = "B", stage = 1 : i64} dense<1.000000e+00>
    // CHECK: ax.reshape {{.*}}ax.action = "B", stage = 1
    // CHECK: %[[DY:.*]] = ax.broadcast {{.*}}ax.action = "B", stage = 1
    // CHECK: %[[DA:.*]] = ax.linear %[[DY]], %{{.*}} {ax.action = "B", stage = 1 : i64, transpose_w}
    // CHECK: %[[DW1:.*]] = ax.dot %{{.*}}, %[[DY]] batch [] x [] contract [0] x [0] {ax.action = "B", stage = 1 : i64}
    // CHECK-NOT: ax.linear
    // CHECK: %[[DW0:.*]] = ax.dot %{{.*}}, %[[DA]] batch [] x [] contract [0] x [0] {ax.action = "B", stage = 0 : i64}
    // CHECK: %[[DW:.*]] = ax.binary add %[[DW1]], %[[DW0]] {ax.action = "B"
    // CHECK: ax.return %[[LOSS]], {{.*}}, %[[DW]]
    ax.return %loss, %other, %y : tensor<f32>, tensor<f32>, tensor<2x4xf32>
  }
}
