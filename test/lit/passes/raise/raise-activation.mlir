// RUN: axopt-opt %s -ax-normalize -ax-raise-activation | FileCheck %s

ax.plan @activation version 1 {

// x 0.5 (1 + erf(x / sqrt(2))), in the two orders that exporters write.
// CHECK-LABEL: ax.program @gelu
// CHECK-NEXT: %[[A:.*]] = ax.unary gelu %arg0
// CHECK-NEXT: %[[B:.*]] = ax.unary gelu %arg0
// CHECK-NEXT: %[[C:.*]] = ax.unary gelu %arg0
// CHECK-NEXT: ax.return %[[A]], %[[B]], %[[C]]
ax.program @gelu(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %root2 = ax.constant dense<1.41421354> : tensor<f32> -> tensor<f32>
  %inv = ax.constant dense<0.707106769> : tensor<1xf32> -> tensor<1xf32>
  %one = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %half = ax.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %0 = ax.binary div %x, %root2 : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %1 = ax.unary erf %0 : tensor<4xf32> -> tensor<4xf32>
  %2 = ax.binary add %1, %one : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %3 = ax.binary mul %x, %2 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %4 = ax.binary mul %3, %half : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %5 = ax.binary mul %half, %2 : tensor<f32>, tensor<4xf32> -> tensor<4xf32>
  %6 = ax.binary mul %x, %5 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %7 = ax.binary mul %inv, %x : tensor<1xf32>, tensor<4xf32> -> tensor<4xf32>
  %8 = ax.unary erf %7 : tensor<4xf32> -> tensor<4xf32>
  %9 = ax.binary mul %8, %half : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %10 = ax.binary add %half, %9 : tensor<f32>, tensor<4xf32> -> tensor<4xf32>
  %11 = ax.binary mul %10, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  ax.return %4, %6, %11 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// The gated form: the argument is a product, and another factor follows.
// CHECK-LABEL: ax.program @gelu_of_product
// CHECK-NEXT: %[[X:.*]] = ax.binary mul %arg0, %arg1
// CHECK-NEXT: %[[G:.*]] = ax.unary gelu %[[X]]
// CHECK-NEXT: ax.binary mul %[[G]], %arg2
ax.program @gelu_of_product(%a: tensor<4xf32>, %b: tensor<4xf32>, %up: tensor<4xf32>) -> tensor<4xf32> {
  %root2 = ax.constant dense<1.41421354> : tensor<f32> -> tensor<f32>
  %one = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %half = ax.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %x = ax.binary mul %a, %b : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %0 = ax.binary div %x, %root2 : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %1 = ax.unary erf %0 : tensor<4xf32> -> tensor<4xf32>
  %2 = ax.binary add %1, %one : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %3 = ax.binary mul %x, %2 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %4 = ax.binary mul %3, %half : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %5 = ax.binary mul %4, %up : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  ax.return %5 : tensor<4xf32>
}

// GPT-2's and BLOOM's ways to write the approximation.
// CHECK-LABEL: ax.program @gelu_tanh
// CHECK-NEXT: %[[A:.*]] = ax.unary gelu_tanh %arg0
// CHECK-NEXT: %[[B:.*]] = ax.unary gelu_tanh %arg0
// CHECK-NEXT: ax.return %[[A]], %[[B]]
ax.program @gelu_tanh(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %one = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %half = ax.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %three = ax.constant dense<3.0> : tensor<f32> -> tensor<f32>
  %a = ax.constant dense<0.044714998> : tensor<f32> -> tensor<f32>
  %b = ax.constant dense<0.797884583> : tensor<f32> -> tensor<f32>
  %0 = ax.binary mul %x, %half : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %1 = ax.binary pow %x, %three : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %2 = ax.binary mul %1, %a : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %3 = ax.binary add %x, %2 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %4 = ax.binary mul %3, %b : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %5 = ax.unary tanh %4 : tensor<4xf32> -> tensor<4xf32>
  %6 = ax.binary add %5, %one : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %7 = ax.binary mul %0, %6 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %8 = ax.binary mul %x, %b : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %9 = ax.binary mul %x, %a : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %10 = ax.binary mul %9, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %11 = ax.binary add %10, %one : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %12 = ax.binary mul %8, %11 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %13 = ax.unary tanh %12 : tensor<4xf32> -> tensor<4xf32>
  %14 = ax.binary add %13, %one : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %15 = ax.binary mul %0, %14 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  ax.return %7, %15 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: ax.program @silu
// CHECK-NEXT: %[[A:.*]] = ax.unary silu %arg0
// CHECK-NEXT: %[[B:.*]] = ax.unary silu %arg0
// CHECK-NEXT: %[[C:.*]] = ax.unary softplus %arg0
// CHECK-NEXT: ax.return %[[A]], %[[B]], %[[C]]
ax.program @silu(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %one = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %0 = ax.unary sigmoid %x : tensor<4xf32> -> tensor<4xf32>
  %1 = ax.binary mul %x, %0 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %2 = ax.unary neg %x : tensor<4xf32> -> tensor<4xf32>
  %3 = ax.unary exp %2 : tensor<4xf32> -> tensor<4xf32>
  %4 = ax.binary add %one, %3 : tensor<f32>, tensor<4xf32> -> tensor<4xf32>
  %5 = ax.binary div %x, %4 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  %6 = ax.unary exp %x : tensor<4xf32> -> tensor<4xf32>
  %7 = ax.binary add %6, %one : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
  %8 = ax.unary log %7 : tensor<4xf32> -> tensor<4xf32>
  ax.return %1, %5, %8 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: ax.program @softmax
// CHECK-NEXT: %[[S:.*]] = ax.softmax %arg0 dim 1 : tensor<2x4xf32>
// CHECK-NEXT: ax.return %[[S]]
ax.program @softmax(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = ax.reduce max %x dims [1] keep_dims : tensor<2x4xf32> -> tensor<2x1xf32>
  %1 = ax.binary sub %x, %0 : tensor<2x4xf32>, tensor<2x1xf32> -> tensor<2x4xf32>
  %2 = ax.unary exp %1 : tensor<2x4xf32> -> tensor<2x4xf32>
  %3 = ax.reduce sum %2 dims [1] keep_dims : tensor<2x4xf32> -> tensor<2x1xf32>
  %4 = ax.binary div %2, %3 : tensor<2x4xf32>, tensor<2x1xf32> -> tensor<2x4xf32>
  ax.return %4 : tensor<2x4xf32>
}

// Near misses: another x inside, a factor 0.6, sigmoid(1.702 x), the maximum
// of another dimension.
// CHECK-LABEL: ax.program @near_misses
// CHECK-NOT: gelu
// CHECK-NOT: silu
// CHECK-NOT: ax.softmax
// CHECK: ax.return
ax.program @near_misses(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %root2 = ax.constant dense<1.41421354> : tensor<f32> -> tensor<f32>
  %one = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %half = ax.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %c6 = ax.constant dense<0.6> : tensor<f32> -> tensor<f32>
  %quick = ax.constant dense<1.702> : tensor<f32> -> tensor<f32>
  %0 = ax.binary div %x, %root2 : tensor<4x4xf32>, tensor<f32> -> tensor<4x4xf32>
  %1 = ax.unary erf %0 : tensor<4x4xf32> -> tensor<4x4xf32>
  %2 = ax.binary add %1, %one : tensor<4x4xf32>, tensor<f32> -> tensor<4x4xf32>
  %3 = ax.binary mul %y, %2 : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %4 = ax.binary mul %3, %half : tensor<4x4xf32>, tensor<f32> -> tensor<4x4xf32>
  %5 = ax.binary mul %x, %2 : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %6 = ax.binary mul %5, %c6 : tensor<4x4xf32>, tensor<f32> -> tensor<4x4xf32>
  %7 = ax.binary mul %x, %quick : tensor<4x4xf32>, tensor<f32> -> tensor<4x4xf32>
  %8 = ax.unary sigmoid %7 : tensor<4x4xf32> -> tensor<4x4xf32>
  %9 = ax.binary mul %x, %8 : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %10 = ax.reduce max %x dims [0] keep_dims : tensor<4x4xf32> -> tensor<1x4xf32>
  %11 = ax.binary sub %x, %10 : tensor<4x4xf32>, tensor<1x4xf32> -> tensor<4x4xf32>
  %12 = ax.unary exp %11 : tensor<4x4xf32> -> tensor<4x4xf32>
  %13 = ax.reduce sum %12 dims [1] keep_dims : tensor<4x4xf32> -> tensor<4x1xf32>
  %14 = ax.binary div %12, %13 : tensor<4x4xf32>, tensor<4x1xf32> -> tensor<4x4xf32>
  ax.return %4, %6, %9, %14 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// Numbers that were rounded to bf16 and f16, as exporters write them there; but
// no others.
// CHECK-LABEL: ax.program @narrow
// CHECK: %[[A:.*]] = ax.unary gelu_tanh %arg0 : tensor<4xbf16>
// CHECK: %[[B:.*]] = ax.unary gelu %arg1 : tensor<4xf16>
// CHECK-NOT: gelu
// CHECK: ax.return %[[A]], %[[B]]
ax.program @narrow(%x: tensor<4xbf16>, %y: tensor<4xf16>) -> (tensor<4xbf16>, tensor<4xf16>, tensor<4xf16>) {
  %half = ax.constant dense<0.5> : tensor<bf16> -> tensor<bf16>
  %one = ax.constant dense<1.0> : tensor<bf16> -> tensor<bf16>
  %cubic = ax.constant dense<4.467770e-02> : tensor<bf16> -> tensor<bf16>
  %root = ax.constant dense<7.968750e-01> : tensor<bf16> -> tensor<bf16>
  %0 = ax.binary mul %x, %half : tensor<4xbf16>, tensor<bf16> -> tensor<4xbf16>
  %1 = ax.binary mul %x, %x : tensor<4xbf16>, tensor<4xbf16> -> tensor<4xbf16>
  %2 = ax.binary mul %1, %x : tensor<4xbf16>, tensor<4xbf16> -> tensor<4xbf16>
  %3 = ax.binary mul %2, %cubic : tensor<4xbf16>, tensor<bf16> -> tensor<4xbf16>
  %4 = ax.binary add %x, %3 : tensor<4xbf16>, tensor<4xbf16> -> tensor<4xbf16>
  %5 = ax.binary mul %4, %root : tensor<4xbf16>, tensor<bf16> -> tensor<4xbf16>
  %6 = ax.unary tanh %5 : tensor<4xbf16> -> tensor<4xbf16>
  %7 = ax.binary add %6, %one : tensor<4xbf16>, tensor<bf16> -> tensor<4xbf16>
  %8 = ax.binary mul %0, %7 : tensor<4xbf16>, tensor<4xbf16> -> tensor<4xbf16>
  %h = ax.constant dense<0.5> : tensor<f16> -> tensor<f16>
  %o = ax.constant dense<1.0> : tensor<f16> -> tensor<f16>
  %r = ax.constant dense<0.70703125> : tensor<f16> -> tensor<f16>
  %s = ax.constant dense<0.71> : tensor<f16> -> tensor<f16>
  %9 = ax.binary mul %y, %r : tensor<4xf16>, tensor<f16> -> tensor<4xf16>
  %10 = ax.unary erf %9 : tensor<4xf16> -> tensor<4xf16>
  %11 = ax.binary add %10, %o : tensor<4xf16>, tensor<f16> -> tensor<4xf16>
  %12 = ax.binary mul %y, %11 : tensor<4xf16>, tensor<4xf16> -> tensor<4xf16>
  %13 = ax.binary mul %12, %h : tensor<4xf16>, tensor<f16> -> tensor<4xf16>
  %14 = ax.binary mul %y, %s : tensor<4xf16>, tensor<f16> -> tensor<4xf16>
  %15 = ax.unary erf %14 : tensor<4xf16> -> tensor<4xf16>
  %16 = ax.binary add %15, %o : tensor<4xf16>, tensor<f16> -> tensor<4xf16>
  %17 = ax.binary mul %y, %16 : tensor<4xf16>, tensor<4xf16> -> tensor<4xf16>
  %18 = ax.binary mul %17, %h : tensor<4xf16>, tensor<f16> -> tensor<4xf16>
  ax.return %8, %13, %18 : tensor<4xbf16>, tensor<4xf16>, tensor<4xf16>
}
}
