// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate{loss=loss})' | FileCheck %s

// Gradients of elements that are apart go to rows of their own, of as many as there
// are steps: of 64 by turns, and of 7, whose last row has one.
ax.plan @p version 1 {
  ax.state @w : tensor<4x64xf32> from "w" offset 0 length 1024 {trainable}
  ax.state @v : tensor<7xf32> from "w" offset 1024 length 28 {trainable}
  // CHECK: ax.program @main
  ax.program @main() -> (tensor<f32> {ax.name = "loss"}) {
    %w = ax.load @w : tensor<4x64xf32>
    %g = ax.slice %w starts [0, 1] steps [1, 2] : tensor<4x64xf32> -> tensor<4x32xf32>
    %a = ax.reduce sum %g dims [0, 1] : tensor<4x32xf32> -> tensor<f32>
    %v = ax.load @v : tensor<7xf32>
    %s = ax.slice %v starts [5] steps [-2] : tensor<7xf32> -> tensor<2xf32>
    %b = ax.reduce sum %s dims [0] : tensor<2xf32> -> tensor<f32>
    %loss = ax.binary add %a, %b : tensor<f32>, tensor<f32> -> tensor<f32>
    // CHECK: %[[V:.*]] = ax.pad %{{.*}} low [1, 1] high [1, 0] {{.*}} : tensor<2x1xf32> -> tensor<4x2xf32>
    // CHECK: %[[V8:.*]] = ax.reshape %[[V]] {{.*}} : tensor<4x2xf32> -> tensor<8xf32>
    // CHECK: %[[V7:.*]] = ax.slice %[[V8]] starts [0] {{.*}} : tensor<8xf32> -> tensor<7xf32>
    // CHECK: %[[W:.*]] = ax.pad %{{.*}} low [0, 0, 1] high [0, 0, 0] {{.*}} : tensor<4x32x1xf32> -> tensor<4x32x2xf32>
    // CHECK: %[[WG:.*]] = ax.reshape %[[W]] {{.*}} : tensor<4x32x2xf32> -> tensor<4x64xf32>
    // CHECK: ax.return %{{.*}}, %[[WG]], %[[V7]]
    ax.return %loss : tensor<f32>
  }
}
