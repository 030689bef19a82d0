// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-precision{type=bf16}))' | FileCheck %s
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-precision))' | FileCheck %s --check-prefix=WIDE
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-precision{type=fp4}))' 2>&1 | FileCheck %s --check-prefix=TYPE

// TYPE: --type option: expected fp32, bf16, fp16 or fp8(...)
// WIDE-NOT: bf16

// Operands are rounded, the bias is added to the wide result; what is f64, and
// what is no contraction, stays. Stages too.
// CHECK: ax.state @w : tensor<4x2xf32>
// CHECK: %[[X:.*]] = ax.cast %arg0 {stage = 1 : i64} : tensor<3x4xf32> -> tensor<3x4xbf16>
// CHECK: %[[W:.*]] = ax.cast %{{.*}} {stage = 1 : i64} : tensor<4x2xf32> -> tensor<4x2xbf16>
// CHECK: %[[Y:.*]] = ax.linear %[[X]], %[[W]] {stage = 1 : i64}
// CHECK: %[[F:.*]] = ax.cast %[[Y]] {stage = 1 : i64} : tensor<3x2xbf16> -> tensor<3x2xf32>
// CHECK: %[[S:.*]] = ax.binary add %[[F]], %{{.*}} : tensor<3x2xf32>, tensor<2xf32>
// CHECK: ax.unary gelu %[[S]] : tensor<3x2xf32>
// CHECK: ax.dot {{.*}} : tensor<3x2xbf16>, tensor<3x2xbf16> -> tensor<3x3xbf16>
// CHECK: ax.dot {{.*}} : tensor<3x4xf64>, tensor<3x4xf64> -> tensor<3x3xf64>
// Attention and its gradient keep their operands, a mask of large numbers above all.
// CHECK: ax.attention {{.*}} mask %{{.*}} : tensor<1x1x1x3xf32> scale 1.000000e+00 {product_type = bf16} : tensor<1x1x3x2xf32>
// CHECK: ax.attention_gradient {{.*}} mask %{{.*}} : tensor<1x1x1x3xf32> scale 1.000000e+00 {product_type = bf16} : tensor<1x1x3x2xf32>
// Convolutions, and their gradients.
// CHECK: ax.conv %{{.*}} -> tensor<1x4x5x5xbf16>
// CHECK: ax.conv_transpose %{{.*}} -> tensor<1x2x5x5xbf16>
// CHECK: %[[G:.*]] = ax.conv_weight_gradient %{{.*}} -> tensor<4x2x3x3xbf16>
// CHECK: ax.cast %[[G]] : tensor<4x2x3x3xbf16> -> tensor<4x2x3x3xf32>
// One row times bytes stays, and several are rounded, as is one times floats.
// CHECK-LABEL: ax.program @few_bits
// CHECK: ax.linear {{.*}} : tensor<1x4xf32>, tensor<4x4xf32> -> tensor<1x4xf32>
// CHECK: ax.linear {{.*}} : tensor<3x4xbf16>, tensor<4x4xbf16> -> tensor<3x4xbf16>
// CHECK: ax.linear {{.*}} : tensor<1x4xbf16>, tensor<4x2xbf16> -> tensor<1x2xbf16>
ax.plan @p version 1 {
  ax.state @bytes : tensor<4x4xi8> from "w" offset 0 length 16
  ax.state @w : tensor<4x2xf32> from "w" offset 0 length 32 {trainable}
  ax.state @b : tensor<2xf32> from "w" offset 0 length 8 {trainable}
  ax.program @main(%x: tensor<3x4xf32> {ax.name = "x"}, %z: tensor<3x4xf64> {ax.name = "z"}) -> (
      tensor<3x3xf32> {ax.name = "y"}, tensor<3x3xf64> {ax.name = "d"},
      tensor<1x1x3x2xf32> {ax.name = "dq"}) {
    %w = ax.load @w : tensor<4x2xf32>
    %b = ax.load @b : tensor<2xf32>
    %l = ax.linear %x, %w {stage = 1 : i64} : tensor<3x4xf32>, tensor<4x2xf32> -> tensor<3x2xf32>
    %s = ax.binary add %l, %b : tensor<3x2xf32>, tensor<2xf32> -> tensor<3x2xf32>
    %g = ax.unary gelu %s : tensor<3x2xf32> -> tensor<3x2xf32>
    %y = ax.dot %g, %g batch [] x [] contract [1] x [1] : tensor<3x2xf32>, tensor<3x2xf32> -> tensor<3x3xf32>
    %d = ax.dot %z, %z batch [] x [] contract [1] x [1] : tensor<3x4xf64>, tensor<3x4xf64> -> tensor<3x3xf64>
    %m = ax.constant dense<-1.0e+09> : tensor<1x1x1x3xf32> -> tensor<1x1x1x3xf32>
    %q = ax.reshape %g : tensor<3x2xf32> -> tensor<1x1x3x2xf32>
    %a = ax.attention %q, %q, %q mask %m : tensor<1x1x1x3xf32> scale 1.0 : tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32> -> tensor<1x1x3x2xf32>
    %dq, %dk, %dv = ax.attention_gradient %q, %q, %q, %a, %q mask %m : tensor<1x1x1x3xf32> scale 1.0 : tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32> -> tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>, tensor<1x1x3x2xf32>
    ax.return %y, %d, %dq : tensor<3x3xf32>, tensor<3x3xf64>, tensor<1x1x3x2xf32>
  }
  ax.program @convolutions(%x: tensor<1x2x5x5xf32> {ax.name = "x"}, %w: tensor<4x2x3x3xf32> {ax.name = "w"}) -> (
      tensor<1x2x5x5xf32> {ax.name = "dx"}, tensor<4x2x3x3xf32> {ax.name = "dw"}) {
    %y = ax.conv %x, %w strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] : tensor<1x2x5x5xf32>, tensor<4x2x3x3xf32> -> tensor<1x4x5x5xf32>
    %dx = ax.conv_transpose %y, %w strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] output_pads [0, 0] : tensor<1x4x5x5xf32>, tensor<4x2x3x3xf32> -> tensor<1x2x5x5xf32>
    %dw = ax.conv_weight_gradient %x, %y kernel [3, 3] strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] : tensor<1x2x5x5xf32>, tensor<1x4x5x5xf32> -> tensor<4x2x3x3xf32>
    ax.return %dx, %dw : tensor<1x2x5x5xf32>, tensor<4x2x3x3xf32>
  }
  ax.program @few_bits(%x: tensor<1x4xf32> {ax.name = "x"}, %y: tensor<3x4xf32> {ax.name = "y"}) -> (
      tensor<1x4xf32> {ax.name = "a"}, tensor<3x4xf32> {ax.name = "b"}, tensor<1x2xf32> {ax.name = "c"}) {
    %bytes = ax.load @bytes : tensor<4x4xi8>
    %w = ax.load @w : tensor<4x2xf32>
    %scale = ax.constant dense<0.5> : tensor<f32> -> tensor<f32>
    %0 = ax.cast %bytes : tensor<4x4xi8> -> tensor<4x4xf32>
    %1 = ax.binary mul %0, %scale : tensor<4x4xf32>, tensor<f32> -> tensor<4x4xf32>
    %a = ax.linear %x, %1 : tensor<1x4xf32>, tensor<4x4xf32> -> tensor<1x4xf32>
    %b = ax.linear %y, %1 : tensor<3x4xf32>, tensor<4x4xf32> -> tensor<3x4xf32>
    %c = ax.linear %x, %w : tensor<1x4xf32>, tensor<4x2xf32> -> tensor<1x2xf32>
    ax.return %a, %b, %c : tensor<1x4xf32>, tensor<3x4xf32>, tensor<1x2xf32>
  }
}
