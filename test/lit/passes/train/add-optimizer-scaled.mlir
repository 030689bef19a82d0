// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{optimizer=sgd}))' | FileCheck %s

// The loss scale changes whether the step counts or not, by what its exponent
// and the number of finite steps were.
// CHECK: ax.program @main
// CHECK-SAME: -> (tensor<f32> {ax.name = "loss", ax.role = #ax.role<loss>}, tensor<f32> {ax.name = "gradient_norm", ax.role = #ax.role<gradient_norm>}, tensor<f32> {ax.name = "loss_scale", ax.role = #ax.role<loss_scale>}, tensor<f32> {ax.name = "learning_rate", ax.role = #ax.role<learning_rate>})
// CHECK-NOT: ax.loss_shift
ax.plan @p version 3 {
  ax.state @w : tensor<4xf32> from "w" offset 0 length 16 {trainable}
  ax.state @optimizer.loss_scale : tensor<i64>
  ax.program @main(%x: tensor<4xf32> {ax.name = "x"}) -> (
      tensor<f32> {ax.name = "loss_sum", ax.role = #ax.role<loss_sum>}, tensor<f32> {ax.name = "loss_count", ax.role = #ax.role<loss_count>},
      tensor<f32> {ax.name = "scaled_loss_sum", ax.role = #ax.role<scaled_loss_sum>}, tensor<4xf32> {ax.gradient_of = @w, ax.name = "gradient of w"})
      attributes {ax.loss_shift = 4 : i64} {
    // CHECK: %[[E:.*]] = ax.load @optimizer.loss_scale
    %e = ax.load @optimizer.loss_scale : tensor<i64>
    %w = ax.load @w : tensor<4xf32>
    %sum = ax.reduce sum %x dims [0] : tensor<4xf32> -> tensor<f32>
    %count = ax.constant dense<3.0> : tensor<f32> -> tensor<f32>
    // CHECK: %[[OK:.*]] = ax.binary logical_and
    // CHECK: %[[N:.*]] = ax.load @optimizer.finite_steps
    // CHECK: %[[FINITE:.*]] = ax.select %{{.*}}, %{{.*}}, %[[E]]
    // CHECK: %[[NEXT:.*]] = ax.select %[[OK]], %[[FINITE]], %{{.*}}
    // CHECK: %[[STEPS:.*]] = ax.select %[[OK]], %{{.*}}, %{{.*}}
    // CHECK: ax.store @optimizer.loss_scale, %[[NEXT]]
    // CHECK: ax.store @optimizer.finite_steps, %[[STEPS]]
    ax.return %sum, %count, %sum, %w : tensor<f32>, tensor<f32>, tensor<f32>, tensor<4xf32>
  }
}
