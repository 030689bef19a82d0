// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-round-activations{type=bf16}))' | FileCheck %s
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-round-activations{type=fp8(history=3)}))' | FileCheck %s
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-round-activations{type=fp16}))' | FileCheck %s --check-prefix=HALF
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-round-activations))' | FileCheck %s --check-prefix=WIDE
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-round-activations{type=bf16},ax-set-precision{type=bf16}),cse)' | FileCheck %s --check-prefix=BLOCK

// WIDE-NOT: bf16
// HALF: ax.unary relu %{{.*}} : tensor<1x2x4x4xf16>

// A convolution and a sum read the result of the first block: its sum is
// rounded, and the activation is one of rounded numbers. That of the second
// block nobody multiplies, and stays.
// CHECK-LABEL: ax.program @residual
// CHECK: %[[F:.*]] = ax.conv
// CHECK: %[[Z:.*]] = ax.binary add %{{.*}}, %{{.*}} : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
// CHECK-NEXT: %[[R:.*]] = ax.cast %[[Z]] : tensor<1x2x4x4xf32> -> tensor<1x2x4x4xbf16>
// CHECK-NEXT: %[[A:.*]] = ax.unary relu %[[R]] : tensor<1x2x4x4xbf16>
// CHECK-NEXT: %[[W:.*]] = ax.cast %[[A]] : tensor<1x2x4x4xbf16> -> tensor<1x2x4x4xf32>
// CHECK: %[[G:.*]] = ax.conv %[[W]],
// CHECK: %[[S:.*]] = ax.binary add %[[G]], %[[W]]
// CHECK-NEXT: ax.unary relu %[[S]] : tensor<1x2x4x4xf32>
// CHECK-NEXT: ax.return

// So no f32 of it is left in the plan, but where it is added.
// BLOCK-LABEL: ax.program @residual
// BLOCK: %[[A:.*]] = ax.unary relu %{{.*}} : tensor<1x2x4x4xbf16>
// BLOCK-DAG: %[[G:.*]] = ax.conv %[[A]],
// BLOCK-DAG: %[[W:.*]] = ax.cast %[[A]] : tensor<1x2x4x4xbf16> -> tensor<1x2x4x4xf32>
// BLOCK: ax.binary add %{{.*}}, %[[W]]

// Two convolutions read what a pool gives, of which one reads a view.
// CHECK-LABEL: ax.program @pools
// CHECK: %[[P:.*]] = ax.pool max %{{.*}} -> tensor<1x2x3x3xf32>
// CHECK-NEXT: %[[R:.*]] = ax.cast %[[P]] : tensor<1x2x3x3xf32> -> tensor<1x2x3x3xbf16>
// CHECK-NEXT: %[[W:.*]] = ax.cast %[[R]] : tensor<1x2x3x3xbf16> -> tensor<1x2x3x3xf32>
// CHECK: ax.conv %[[W]]
// CHECK: %[[V:.*]] = ax.reshape %[[W]]
// CHECK: ax.conv %[[V]]
// CHECK-NOT: bf16
// CHECK: ax.return

// A batch norm is made of products, too.
// CHECK-LABEL: ax.program @batch_norm
// CHECK: ax.cast %{{.*}} : tensor<1x2x4x4xf32> -> tensor<1x2x4x4xbf16>
// CHECK: ax.return

// What weights scale may be small next to what it is added to, but behind a
// convolution they are a norm's; a softmax that is written out stays, too.
// CHECK-LABEL: ax.program @scaled
// CHECK-NOT: bf16
// CHECK: ax.return
// CHECK-LABEL: ax.program @scaled_convolution
// CHECK: ax.cast %{{.*}} : tensor<1x2x4x4xf32> -> tensor<1x2x4x4xbf16>
// CHECK: ax.return
// CHECK-LABEL: ax.program @softmax
// CHECK-NOT: bf16
// CHECK: ax.return

// The stage that adds up the gradients of both comes first.
// CHECK-LABEL: ax.program @later_stage
// CHECK: %[[R:.*]] = ax.cast %{{.*}} -> tensor<3x4xbf16>
// CHECK-NEXT: ax.cast %[[R]] {stage = 0 : i64}
// CHECK-NEXT: ax.cast %[[R]] {stage = 1 : i64}
// CHECK: ax.return

// What a norm, or an input, has part in stays: the sum goes on in f32.
// CHECK-LABEL: ax.program @transformer
// CHECK-NOT: bf16
// CHECK: ax.return

// What is no activation is rounded itself, and widened in the stage that reads
// it. What a product gives is rounded as it is, and what one alone reads, by
// that.
// CHECK-LABEL: ax.program @stages
// CHECK: %[[Y:.*]] = ax.linear %arg0
// CHECK: %[[T:.*]] = ax.unary tanh %[[Y]] {stage = 0 : i64} : tensor<3x4xf32>
// CHECK: %[[R:.*]] = ax.cast %[[T]] {stage = 0 : i64} : tensor<3x4xf32> -> tensor<3x4xbf16>
// CHECK-DAG: %[[A:.*]] = ax.cast %[[R]] {stage = 0 : i64} : tensor<3x4xbf16> -> tensor<3x4xf32>
// CHECK-DAG: %[[B:.*]] = ax.cast %[[R]] {stage = 1 : i64} : tensor<3x4xbf16> -> tensor<3x4xf32>
// CHECK: ax.unary abs %[[A]]
// CHECK: ax.linear %[[B]]
// CHECK-NOT: bf16
// CHECK: ax.return
ax.plan @p version 1 {
  ax.state @k : tensor<2x2x1x1xf32> from "w" offset 0 length 16 {trainable}
  ax.state @c : tensor<2x1x1xf32> from "w" offset 0 length 8 {trainable}
  ax.state @w : tensor<4x4xf32> from "w" offset 0 length 64 {trainable}
  ax.state @s : tensor<4xf32> from "w" offset 0 length 16 {trainable}
  ax.program @residual(%x: tensor<1x2x4x4xf32> {ax.name = "x"}) -> (tensor<1x2x4x4xf32> {ax.name = "y"}) {
    %k = ax.load @k : tensor<2x2x1x1xf32>
    %c = ax.load @c : tensor<2x1x1xf32>
    %0 = ax.conv %x, %k strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
    %1 = ax.binary mul %0, %c : tensor<1x2x4x4xf32>, tensor<2x1x1xf32> -> tensor<1x2x4x4xf32>
    %2 = ax.binary add %1, %0 : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
    %3 = ax.unary relu %2 : tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
    %4 = ax.conv %3, %k strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
    %5 = ax.binary add %4, %3 : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
    %6 = ax.unary relu %5 : tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
    ax.return %6 : tensor<1x2x4x4xf32>
  }
  ax.program @pools(%x: tensor<1x2x4x4xf32> {ax.name = "x"}) -> (
      tensor<1x2x3x3xf32> {ax.name = "y"}, tensor<1x2x9x1xf32> {ax.name = "z"}) {
    %k = ax.load @k : tensor<2x2x1x1xf32>
    %0 = ax.conv %x, %k strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
    %1 = ax.unary relu %0 : tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
    %2 = ax.pool max %1 kernel [2, 2] strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] ceil_extra [0, 0] : tensor<1x2x4x4xf32> -> tensor<1x2x3x3xf32>
    %3 = ax.conv %2, %k strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x2x3x3xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x3x3xf32>
    %4 = ax.reshape %2 : tensor<1x2x3x3xf32> -> tensor<1x2x9x1xf32>
    %5 = ax.conv %4, %k strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x2x9x1xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x9x1xf32>
    ax.return %3, %5 : tensor<1x2x3x3xf32>, tensor<1x2x9x1xf32>
  }
  ax.program @batch_norm(%x: tensor<1x2x4x4xf32> {ax.name = "x"}) -> (tensor<1x2x4x4xf32> {ax.name = "y"}) {
    %k = ax.load @k : tensor<2x2x1x1xf32>
    %c = ax.load @c : tensor<2x1x1xf32>
    %0 = ax.conv %x, %k strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
    %1 = ax.reduce sum %0 dims [0, 2, 3] keep_dims : tensor<1x2x4x4xf32> -> tensor<1x2x1x1xf32>
    %2 = ax.binary sub %0, %1 : tensor<1x2x4x4xf32>, tensor<1x2x1x1xf32> -> tensor<1x2x4x4xf32>
    %3 = ax.binary mul %2, %2 : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
    %4 = ax.reduce sum %3 dims [0, 2, 3] keep_dims : tensor<1x2x4x4xf32> -> tensor<1x2x1x1xf32>
    %5 = ax.unary rsqrt %4 : tensor<1x2x1x1xf32> -> tensor<1x2x1x1xf32>
    %6 = ax.binary mul %5, %c : tensor<1x2x1x1xf32>, tensor<2x1x1xf32> -> tensor<1x2x1x1xf32>
    %7 = ax.binary mul %2, %6 : tensor<1x2x4x4xf32>, tensor<1x2x1x1xf32> -> tensor<1x2x4x4xf32>
    %8 = ax.binary add %7, %c : tensor<1x2x4x4xf32>, tensor<2x1x1xf32> -> tensor<1x2x4x4xf32>
    %9 = ax.conv %8, %k strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
    %10 = ax.binary add %9, %8 : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
    ax.return %10 : tensor<1x2x4x4xf32>
  }
  ax.program @scaled(%x: tensor<3x4xf32> {ax.name = "x"}) -> (tensor<3x4xf32> {ax.name = "y"}) {
    %w = ax.load @w : tensor<4x4xf32>
    %s = ax.load @s : tensor<4xf32>
    %0 = ax.linear %x, %w : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
    %1 = ax.binary mul %0, %s : tensor<3x4xf32>, tensor<4xf32> -> tensor<3x4xf32>
    %2 = ax.binary add %1, %0 : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
    %3 = ax.linear %2, %w : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
    %4 = ax.binary add %3, %2 : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
    %5 = ax.binary div %4, %s : tensor<3x4xf32>, tensor<4xf32> -> tensor<3x4xf32>
    %6 = ax.linear %5, %w : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
    %7 = ax.binary add %6, %5 : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
    ax.return %7 : tensor<3x4xf32>
  }
  ax.program @scaled_convolution(%x: tensor<1x2x4x4xf32> {ax.name = "x"}) -> (tensor<1x2x4x4xf32> {ax.name = "y"}) {
    %k = ax.load @k : tensor<2x2x1x1xf32>
    %c = ax.load @c : tensor<2x1x1xf32>
    %0 = ax.conv %x, %k strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
    %1 = ax.binary add %0, %c : tensor<1x2x4x4xf32>, tensor<2x1x1xf32> -> tensor<1x2x4x4xf32>
    %2 = ax.binary mul %1, %c : tensor<1x2x4x4xf32>, tensor<2x1x1xf32> -> tensor<1x2x4x4xf32>
    %3 = ax.binary add %2, %0 : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
    %4 = ax.conv %3, %k strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
    %5 = ax.binary add %4, %3 : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
    ax.return %5 : tensor<1x2x4x4xf32>
  }
  ax.program @softmax(%x: tensor<3x4xf32> {ax.name = "x"}) -> (tensor<3x4xf32> {ax.name = "y"}) {
    %w = ax.load @w : tensor<4x4xf32>
    %0 = ax.linear %x, %w : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
    %1 = ax.unary exp %0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %2 = ax.reduce sum %1 dims [1] keep_dims : tensor<3x4xf32> -> tensor<3x1xf32>
    %3 = ax.binary div %1, %2 : tensor<3x4xf32>, tensor<3x1xf32> -> tensor<3x4xf32>
    %4 = ax.linear %3, %w : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
    %5 = ax.binary add %4, %3 : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
    ax.return %5 : tensor<3x4xf32>
  }
  ax.program @later_stage(%x: tensor<3x4xf32> {ax.name = "x"}) -> (tensor<3x4xf32> {ax.name = "y"}) {
    %w = ax.load @w : tensor<4x4xf32>
    %0 = ax.linear %x, %w {stage = 0 : i64} : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
    %1 = ax.unary tanh %0 {stage = 0 : i64} : tensor<3x4xf32> -> tensor<3x4xf32>
    %2 = ax.linear %1, %w {stage = 0 : i64} : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
    %3 = ax.binary add %2, %1 {stage = 1 : i64} : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
    ax.return %3 : tensor<3x4xf32>
  }
  ax.program @transformer(%x: tensor<3x4xf32> {ax.name = "x"}) -> (tensor<3x4xf32> {ax.name = "y"}) {
    %w = ax.load @w : tensor<4x4xf32>
    %s = ax.load @s : tensor<4xf32>
    %0 = ax.linear %x, %w : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
    %1 = ax.binary add %0, %x : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
    %2 = ax.linear %1, %w : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
    %3 = ax.rms_norm %2 scale %s : tensor<4xf32> axis 1 epsilon 1.0e-05 : tensor<3x4xf32> -> tensor<3x4xf32>
    %4 = ax.linear %3, %w : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
    %5 = ax.binary add %4, %3 : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
    %6 = ax.binary add %5, %1 : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
    ax.return %6 : tensor<3x4xf32>
  }
  ax.program @stages(%x: tensor<3x4xf32> {ax.name = "x"}) -> (
      tensor<3x4xf32> {ax.name = "y"}, tensor<3x4xf32> {ax.name = "z"}) {
    %w = ax.load @w : tensor<4x4xf32>
    %0 = ax.linear %x, %w {stage = 0 : i64} : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
    %1 = ax.unary tanh %0 {stage = 0 : i64} : tensor<3x4xf32> -> tensor<3x4xf32>
    %2 = ax.unary abs %1 {stage = 0 : i64} : tensor<3x4xf32> -> tensor<3x4xf32>
    %3 = ax.linear %1, %w {stage = 1 : i64} : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
    %4 = ax.linear %3, %w {stage = 1 : i64} : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
    %5 = ax.binary add %4, %3 {stage = 1 : i64} : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
    %6 = ax.unary tanh %5 {stage = 1 : i64} : tensor<3x4xf32> -> tensor<3x4xf32>
    %7 = ax.linear %6, %w {stage = 1 : i64} : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
    ax.return %2, %7 : tensor<3x4xf32>, tensor<3x4xf32>
  }
}
