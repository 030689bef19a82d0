// RUN: axopt-opt %s -ax-normalize -ax-raise-norm | FileCheck %s

ax.plan @norm version 1 {
ax.state @g : tensor<8xf32> from "m" offset 0 length 32
ax.state @b : tensor<8xf32> from "m" offset 32 length 32
ax.state @h : tensor<8xf16> from "m" offset 64 length 16

// As opset 14 has it: the mean as sum * (1 / n), the square as a power.
// CHECK-LABEL: ax.program @layer_norm
// CHECK-DAG: %[[G:.*]] = ax.load @g
// CHECK-DAG: %[[B:.*]] = ax.load @b
// CHECK: %[[R:.*]] = ax.layer_norm %arg0 scale %[[G]] : tensor<8xf32> bias %[[B]] : tensor<8xf32> axis 2 epsilon 9.9{{.*}}E-13 : tensor<2x3x8xf32>
// CHECK-NEXT: ax.return %[[R]]
ax.program @layer_norm(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %n = ax.constant dense<0.125> : tensor<f32> -> tensor<f32>
  %two = ax.constant dense<2.0> : tensor<f32> -> tensor<f32>
  %eps = ax.constant dense<9.99999996E-13> : tensor<f32> -> tensor<f32>
  %g = ax.load @g : tensor<8xf32>
  %b = ax.load @b : tensor<8xf32>
  %0 = ax.reduce sum %x dims [2] keep_dims : tensor<2x3x8xf32> -> tensor<2x3x1xf32>
  %1 = ax.binary mul %0, %n : tensor<2x3x1xf32>, tensor<f32> -> tensor<2x3x1xf32>
  %2 = ax.binary sub %x, %1 : tensor<2x3x8xf32>, tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %3 = ax.binary pow %2, %two : tensor<2x3x8xf32>, tensor<f32> -> tensor<2x3x8xf32>
  %4 = ax.reduce sum %3 dims [2] keep_dims : tensor<2x3x8xf32> -> tensor<2x3x1xf32>
  %5 = ax.binary mul %4, %n : tensor<2x3x1xf32>, tensor<f32> -> tensor<2x3x1xf32>
  %6 = ax.binary add %5, %eps : tensor<2x3x1xf32>, tensor<f32> -> tensor<2x3x1xf32>
  %7 = ax.unary sqrt %6 : tensor<2x3x1xf32> -> tensor<2x3x1xf32>
  %8 = ax.binary div %2, %7 : tensor<2x3x8xf32>, tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %9 = ax.binary mul %8, %g : tensor<2x3x8xf32>, tensor<8xf32> -> tensor<2x3x8xf32>
  %10 = ax.binary add %9, %b : tensor<2x3x8xf32>, tensor<8xf32> -> tensor<2x3x8xf32>
  ax.return %10 : tensor<2x3x8xf32>
}

// Means of narrow floats are made in f32.
// CHECK-LABEL: ax.program @narrow_layer_norm
// CHECK: %[[R:.*]] = ax.layer_norm %arg0 axis 2 epsilon {{.*}} : tensor<2x3x8xf16> -> tensor<2x3x8xf16>
// CHECK-NEXT: ax.return %[[R]]
ax.program @narrow_layer_norm(%x: tensor<2x3x8xf16>) -> tensor<2x3x8xf16> {
  %n = ax.constant dense<0.125> : tensor<f32> -> tensor<f32>
  %two = ax.constant dense<2.0> : tensor<f16> -> tensor<f16>
  %eps = ax.constant dense<1.0e-03> : tensor<f16> -> tensor<f16>
  %w0 = ax.cast %x : tensor<2x3x8xf16> -> tensor<2x3x8xf32>
  %0 = ax.reduce sum %w0 dims [2] keep_dims : tensor<2x3x8xf32> -> tensor<2x3x1xf32>
  %1 = ax.binary mul %0, %n : tensor<2x3x1xf32>, tensor<f32> -> tensor<2x3x1xf32>
  %m = ax.cast %1 : tensor<2x3x1xf32> -> tensor<2x3x1xf16>
  %2 = ax.binary sub %x, %m : tensor<2x3x8xf16>, tensor<2x3x1xf16> -> tensor<2x3x8xf16>
  %3 = ax.binary pow %2, %two : tensor<2x3x8xf16>, tensor<f16> -> tensor<2x3x8xf16>
  %w3 = ax.cast %3 : tensor<2x3x8xf16> -> tensor<2x3x8xf32>
  %4 = ax.reduce sum %w3 dims [2] keep_dims : tensor<2x3x8xf32> -> tensor<2x3x1xf32>
  %5 = ax.binary mul %4, %n : tensor<2x3x1xf32>, tensor<f32> -> tensor<2x3x1xf32>
  %v = ax.cast %5 : tensor<2x3x1xf32> -> tensor<2x3x1xf16>
  %6 = ax.binary add %v, %eps : tensor<2x3x1xf16>, tensor<f16> -> tensor<2x3x1xf16>
  %7 = ax.unary sqrt %6 : tensor<2x3x1xf16> -> tensor<2x3x1xf16>
  %8 = ax.binary div %2, %7 : tensor<2x3x8xf16>, tensor<2x3x1xf16> -> tensor<2x3x8xf16>
  ax.return %8 : tensor<2x3x8xf16>
}

// As dynamo has it: reciprocal of the root; the weight in front.
// CHECK-LABEL: ax.program @rms_norm
// CHECK: %[[G:.*]] = ax.load @g
// CHECK-NEXT: %[[R:.*]] = ax.rms_norm %arg0 scale %[[G]] : tensor<8xf32> axis 2 epsilon {{.*}} : tensor<2x3x8xf32>
// CHECK-NEXT: ax.return %[[R]]
ax.program @rms_norm(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %n = ax.constant dense<8.0> : tensor<f32> -> tensor<f32>
  %eps = ax.constant dense<9.99999974E-6> : tensor<f32> -> tensor<f32>
  %g = ax.load @g : tensor<8xf32>
  %0 = ax.binary mul %x, %x : tensor<2x3x8xf32>, tensor<2x3x8xf32> -> tensor<2x3x8xf32>
  %1 = ax.reduce sum %0 dims [2] : tensor<2x3x8xf32> -> tensor<2x3xf32>
  %2 = ax.binary div %1, %n : tensor<2x3xf32>, tensor<f32> -> tensor<2x3xf32>
  %3 = ax.reshape %2 : tensor<2x3xf32> -> tensor<2x3x1xf32>
  %4 = ax.binary add %3, %eps : tensor<2x3x1xf32>, tensor<f32> -> tensor<2x3x1xf32>
  %5 = ax.unary sqrt %4 : tensor<2x3x1xf32> -> tensor<2x3x1xf32>
  %6 = ax.unary reciprocal %5 : tensor<2x3x1xf32> -> tensor<2x3x1xf32>
  %7 = ax.binary mul %x, %6 : tensor<2x3x8xf32>, tensor<2x3x1xf32> -> tensor<2x3x8xf32>
  %8 = ax.binary mul %g, %7 : tensor<8xf32>, tensor<2x3x8xf32> -> tensor<2x3x8xf32>
  ax.return %8 : tensor<2x3x8xf32>
}

// In half precision, computed in single; the weight is added to 1.
// CHECK-LABEL: ax.program @half
// CHECK: %[[W:.*]] = ax.binary add
// CHECK-NEXT: ax.rms_norm %arg0 scale %[[W]] : tensor<8xf16> axis 1 {{.*}} : tensor<3x8xf16>
ax.program @half(%x: tensor<3x8xf16>) -> tensor<3x8xf16> {
  %n = ax.constant dense<8.0> : tensor<f32> -> tensor<f32>
  %one = ax.constant dense<1.0> : tensor<f16> -> tensor<f16>
  %eps = ax.constant dense<1.0E-6> : tensor<f32> -> tensor<f32>
  %h = ax.load @h : tensor<8xf16>
  %w = ax.binary add %one, %h : tensor<f16>, tensor<8xf16> -> tensor<8xf16>
  %wide = ax.cast %x : tensor<3x8xf16> -> tensor<3x8xf32>
  %0 = ax.binary mul %wide, %wide : tensor<3x8xf32>, tensor<3x8xf32> -> tensor<3x8xf32>
  %1 = ax.reduce sum %0 dims [1] keep_dims : tensor<3x8xf32> -> tensor<3x1xf32>
  %2 = ax.binary div %1, %n : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %3 = ax.binary add %2, %eps : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %4 = ax.unary rsqrt %3 : tensor<3x1xf32> -> tensor<3x1xf32>
  %5 = ax.binary mul %wide, %4 : tensor<3x8xf32>, tensor<3x1xf32> -> tensor<3x8xf32>
  %6 = ax.cast %5 : tensor<3x8xf32> -> tensor<3x8xf16>
  %7 = ax.binary mul %6, %w : tensor<3x8xf16>, tensor<8xf16> -> tensor<3x8xf16>
  ax.return %7 : tensor<3x8xf16>
}

// Scale and shift that contain the mean, as TensorFlow has them.
// CHECK-LABEL: ax.program @scaled_and_shifted
// CHECK: %[[R:.*]] = ax.layer_norm %arg0 scale %{{.*}} : tensor<8xf32> bias %{{.*}} : tensor<8xf32> axis 1 epsilon
// CHECK-NEXT: ax.return %[[R]]
ax.program @scaled_and_shifted(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %n = ax.constant dense<8.0> : tensor<f32> -> tensor<f32>
  %eps = ax.constant dense<0.001> : tensor<f32> -> tensor<f32>
  %g = ax.load @g : tensor<8xf32>
  %b = ax.load @b : tensor<8xf32>
  %0 = ax.reduce sum %x dims [1] keep_dims : tensor<3x8xf32> -> tensor<3x1xf32>
  %1 = ax.binary div %0, %n : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %2 = ax.binary sub %x, %1 : tensor<3x8xf32>, tensor<3x1xf32> -> tensor<3x8xf32>
  %3 = ax.binary mul %2, %2 : tensor<3x8xf32>, tensor<3x8xf32> -> tensor<3x8xf32>
  %4 = ax.reduce sum %3 dims [1] keep_dims : tensor<3x8xf32> -> tensor<3x1xf32>
  %5 = ax.binary div %4, %n : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %6 = ax.binary add %5, %eps : tensor<3x1xf32>, tensor<f32> -> tensor<3x1xf32>
  %7 = ax.unary rsqrt %6 : tensor<3x1xf32> -> tensor<3x1xf32>
  %8 = ax.binary mul %7, %g : tensor<3x1xf32>, tensor<8xf32> -> tensor<3x8xf32>
  %9 = ax.binary mul %x, %8 : tensor<3x8xf32>, tensor<3x8xf32> -> tensor<3x8xf32>
  %10 = ax.binary mul %1, %8 : tensor<3x1xf32>, tensor<3x8xf32> -> tensor<3x8xf32>
  %11 = ax.binary sub %b, %10 : tensor<8xf32>, tensor<3x8xf32> -> tensor<3x8xf32>
  %12 = ax.binary add %9, %11 : tensor<3x8xf32>, tensor<3x8xf32> -> tensor<3x8xf32>
  ax.return %12 : tensor<3x8xf32>
}

// Near misses: a sum instead of a mean; a norm over the first dimension; the
// mean of another tensor is another operand of an RMS norm.
// CHECK-LABEL: ax.program @near_misses
// CHECK-NOT: ax.layer_norm
// CHECK: ax.rms_norm
// CHECK-NOT: ax.rms_norm
// CHECK-NOT: ax.layer_norm
// CHECK: ax.return
ax.program @near_misses(%x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %n = ax.constant dense<8.0> : tensor<f32> -> tensor<f32>
  %eps = ax.constant dense<1.0E-6> : tensor<f32> -> tensor<f32>
  %0 = ax.binary mul %x, %x : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %1 = ax.reduce sum %0 dims [1] keep_dims : tensor<8x8xf32> -> tensor<8x1xf32>
  %2 = ax.binary add %1, %eps : tensor<8x1xf32>, tensor<f32> -> tensor<8x1xf32>
  %3 = ax.unary sqrt %2 : tensor<8x1xf32> -> tensor<8x1xf32>
  %4 = ax.binary div %x, %3 : tensor<8x8xf32>, tensor<8x1xf32> -> tensor<8x8xf32>

  %5 = ax.reduce sum %0 dims [0] keep_dims : tensor<8x8xf32> -> tensor<1x8xf32>
  %6 = ax.binary div %5, %n : tensor<1x8xf32>, tensor<f32> -> tensor<1x8xf32>
  %7 = ax.unary sqrt %6 : tensor<1x8xf32> -> tensor<1x8xf32>
  %8 = ax.binary div %x, %7 : tensor<8x8xf32>, tensor<1x8xf32> -> tensor<8x8xf32>

  %9 = ax.reduce sum %y dims [1] keep_dims : tensor<8x8xf32> -> tensor<8x1xf32>
  %10 = ax.binary div %9, %n : tensor<8x1xf32>, tensor<f32> -> tensor<8x1xf32>
  %11 = ax.binary sub %x, %10 : tensor<8x8xf32>, tensor<8x1xf32> -> tensor<8x8xf32>
  %12 = ax.binary mul %11, %11 : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
  %13 = ax.reduce sum %12 dims [1] keep_dims : tensor<8x8xf32> -> tensor<8x1xf32>
  %14 = ax.binary div %13, %n : tensor<8x1xf32>, tensor<f32> -> tensor<8x1xf32>
  %15 = ax.unary sqrt %14 : tensor<8x1xf32> -> tensor<8x1xf32>
  %16 = ax.binary div %11, %15 : tensor<8x8xf32>, tensor<8x1xf32> -> tensor<8x8xf32>
  ax.return %4, %8, %16 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
}
