// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-master-weights))' | FileCheck %s
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-master-weights),ax-add-loss{loss=mse(y,t)})' | FileCheck %s --check-prefix=SCALED

// What is trained is kept in f32, in all programs, and read by each who uses it
// as the file has it, or as f32 where the model asks for that; where a stage
// uses it, there. What is not trained, and f32, stay.
// CHECK: ax.plan @p version 4
// CHECK: ax.state @w : tensor<4x4xf32> from "w" offset 0 length 32 as f16 {trainable}
// CHECK: ax.state @b : tensor<4xf32> from "w" offset 32 length 8 as bf16 {trainable}
// CHECK: ax.state @frozen : tensor<4xf16> from "w" offset 40 length 8{{$}}
// CHECK: ax.state @whole : tensor<4xf32> from "w" offset 48 length 16 {trainable}
// CHECK: ax.program @main
// CHECK-DAG: %[[W:.*]] = ax.load @w : tensor<4x4xf32>
// CHECK-DAG: %[[B:.*]] = ax.load @b : tensor<4xf32>
// CHECK-DAG: %[[F:.*]] = ax.load @frozen : tensor<4xf16>
// CHECK-DAG: %[[N:.*]] = ax.load @whole : tensor<4xf32>
// CHECK: %[[W0:.*]] = ax.cast %[[W]] {stage = 0 : i64} : tensor<4x4xf32> -> tensor<4x4xf16>
// CHECK-NEXT: ax.linear %{{.*}}, %[[W0]]
// CHECK: %[[W1:.*]] = ax.cast %[[W]] {stage = 1 : i64} : tensor<4x4xf32> -> tensor<4x4xf16>
// CHECK-NEXT: ax.linear %{{.*}}, %[[W1]]
// CHECK: ax.binary add %{{.*}}, %[[F]]
// CHECK: ax.binary mul %{{.*}}, %[[B]] : tensor<2x4xf32>, tensor<4xf32>
// CHECK: ax.binary add %{{.*}}, %[[N]]
// Of a table what is looked up is rounded.
// CHECK: ax.program @lookup
// CHECK: %[[T:.*]] = ax.load @w : tensor<4x4xf32>
// CHECK-NEXT: %[[L:.*]] = ax.gather %[[T]][%arg0] axis 0 : tensor<4x4xf32>, tensor<2xi64> -> tensor<2x4xf32>
// CHECK-NEXT: %[[R:.*]] = ax.cast %[[L]] : tensor<2x4xf32> -> tensor<2x4xf16>
// CHECK-NEXT: ax.return %[[R]]
// CHECK: ax.program @eval
// CHECK: %[[E:.*]] = ax.load @w : tensor<4x4xf32>
// CHECK-NEXT: ax.cast %[[E]] : tensor<4x4xf32> -> tensor<4x4xf16>

// Gradients of f16 vanish without a scale.
// SCALED: ax.state @optimizer.loss_scale : tensor<i64>
// SCALED: ax.role = #ax.role<scaled_loss_sum>
ax.plan @p version 1 {
  ax.state @w : tensor<4x4xf16> from "w" offset 0 length 32 {trainable}
  ax.state @b : tensor<4xbf16> from "w" offset 32 length 8 {trainable}
  ax.state @frozen : tensor<4xf16> from "w" offset 40 length 8
  ax.state @whole : tensor<4xf32> from "w" offset 48 length 16 {trainable}
  ax.program @main(%x: tensor<2x4xf16> {ax.name = "x"}) -> (tensor<2x4xf32> {ax.name = "y"}) {
    %w = ax.load @w : tensor<4x4xf16>
    %b = ax.load @b : tensor<4xbf16>
    %f = ax.load @frozen : tensor<4xf16>
    %n = ax.load @whole : tensor<4xf32>
    %0 = ax.linear %x, %w {stage = 0 : i64} : tensor<2x4xf16>, tensor<4x4xf16> -> tensor<2x4xf16>
    %1 = ax.linear %0, %w {stage = 1 : i64} : tensor<2x4xf16>, tensor<4x4xf16> -> tensor<2x4xf16>
    %2 = ax.binary add %1, %f : tensor<2x4xf16>, tensor<4xf16> -> tensor<2x4xf16>
    %3 = ax.cast %2 : tensor<2x4xf16> -> tensor<2x4xf32>
    %4 = ax.cast %b : tensor<4xbf16> -> tensor<4xf32>
    %5 = ax.binary mul %3, %4 : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>
    %6 = ax.binary add %5, %n : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>
    ax.return %6 : tensor<2x4xf32>
  }
  ax.program @lookup(%i: tensor<2xi64> {ax.name = "i"}) -> (tensor<2x4xf16> {ax.name = "y"}) {
    %w = ax.load @w : tensor<4x4xf16>
    %0 = ax.gather %w[%i] axis 0 : tensor<4x4xf16>, tensor<2xi64> -> tensor<2x4xf16>
    ax.return %0 : tensor<2x4xf16>
  }
  ax.program @eval(%x: tensor<2x4xf16> {ax.name = "x"}) -> (tensor<2x4xf16> {ax.name = "y"}) {
    %w = ax.load @w : tensor<4x4xf16>
    %0 = ax.linear %x, %w : tensor<2x4xf16>, tensor<4x4xf16> -> tensor<2x4xf16>
    ax.return %0 : tensor<2x4xf16>
  }
}
