// RUN: axopt-opt %s --axl-join-activations | FileCheck %s
// RUN: axopt-opt %s --axl-join-activations | axopt-opt | FileCheck %s

// A Linear gives what its activation is of, too, and the gradient of that is
// another product's.
// CHECK-LABEL: axl.stage @layer
// CHECK: %[[BOTH:.*]]:2 = axl.library(%{{.*}}, %{{.*}}, %{{.*}}) {
// CHECK: %[[P:.*]] = ax.linear
// CHECK-NEXT: %[[S:.*]] = ax.binary add %[[P]]
// CHECK-NEXT: %[[G:.*]] = ax.unary gelu_tanh %[[S]]
// CHECK-NEXT: axl.yield %[[G]], %[[S]] : tensor<4x16xbf16>, tensor<4x16xbf16>
// CHECK: %[[DS:.*]] = axl.library(%[[DY:.*]], %{{.*}}, %[[BOTH]]#1) {
// CHECK-NEXT: ^bb0(%{{.*}}, %[[W:.*]]: tensor<16x8xbf16>, %[[AT:.*]]: tensor<4x16xbf16>):
// CHECK-NEXT: %[[DH:.*]] = ax.linear %{{.*}}, %[[W]] {transpose_w}
// CHECK-NEXT: %[[D:.*]] = axl.unary_gradient gelu_tanh %[[DH]] at %[[AT]] : tensor<4x16xbf16>
// CHECK-NEXT: axl.yield %[[D]]
// CHECK: axl.yield %[[BOTH]]#0, %[[DS]] :
axl.stage @layer(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>, %b: tensor<16xbf16>, %dy: tensor<4x8xbf16>, %v: tensor<16x8xbf16>) {
  %s = axl.library(%x, %w, %b) {
  ^bb0(%0: tensor<4x8xbf16>, %1: tensor<8x16xbf16>, %2: tensor<16xbf16>):
    %3 = ax.linear %0, %1 : tensor<4x8xbf16>, tensor<8x16xbf16> -> tensor<4x16xbf16>
    %4 = ax.binary add %3, %2 : tensor<4x16xbf16>, tensor<16xbf16> -> tensor<4x16xbf16>
    axl.yield %4 : tensor<4x16xbf16>
  } : (tensor<4x8xbf16>, tensor<8x16xbf16>, tensor<16xbf16>) -> tensor<4x16xbf16>
  %g = ax.unary gelu_tanh %s : tensor<4x16xbf16> -> tensor<4x16xbf16>
  %sum = ax.cast %s : tensor<4x16xbf16> -> tensor<4x16xf32>
  %p = ax.linear %dy, %v {transpose_w} : tensor<4x8xbf16>, tensor<16x8xbf16> -> tensor<4x16xbf16>
  %dh = ax.cast %p : tensor<4x16xbf16> -> tensor<4x16xf32>
  %a1 = ax.binary mul %sum, %sum : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a2 = ax.constant dense<4.471500e-02> : tensor<f32> -> tensor<f32>
  %a3 = ax.binary mul %a1, %a2 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a4 = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %a5 = ax.binary add %a3, %a4 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a6 = ax.binary mul %sum, %a5 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a7 = ax.constant dense<0.797884583> : tensor<f32> -> tensor<f32>
  %a8 = ax.binary mul %a6, %a7 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a9 = ax.unary tanh %a8 : tensor<4x16xf32> -> tensor<4x16xf32>
  %a10 = ax.constant dense<1.341450e-01> : tensor<f32> -> tensor<f32>
  %a11 = ax.binary mul %a1, %a10 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a12 = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %a13 = ax.binary add %a11, %a12 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a14 = ax.constant dense<0.398942292> : tensor<f32> -> tensor<f32>
  %a15 = ax.binary mul %a13, %a14 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a16 = ax.binary mul %a9, %a9 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a17 = ax.unary neg %a16 : tensor<4x16xf32> -> tensor<4x16xf32>
  %a18 = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %a19 = ax.binary add %a17, %a18 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a20 = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %a21 = ax.binary add %a9, %a20 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a22 = ax.constant dense<5.000000e-01> : tensor<f32> -> tensor<f32>
  %a23 = ax.binary mul %a21, %a22 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a24 = ax.binary mul %sum, %a19 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a25 = ax.binary mul %a24, %a15 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a26 = ax.binary add %a23, %a25 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a27 = ax.binary mul %dh, %a26 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %ds = ax.cast %a27 : tensor<4x16xf32> -> tensor<4x16xbf16>
  axl.yield %g, %ds : tensor<4x16xbf16>, tensor<4x16xbf16>
}

// Sums and products in another order are the same; what is kept is an argument.
// CHECK-LABEL: axl.stage @turned
// CHECK: axl.unary_gradient gelu_tanh
axl.stage @turned(%s: tensor<4x16xbf16>, %dy: tensor<4x8xbf16>, %v: tensor<8x16xbf16>) {
  %sum = ax.cast %s : tensor<4x16xbf16> -> tensor<4x16xf32>
  %p = ax.linear %dy, %v : tensor<4x8xbf16>, tensor<8x16xbf16> -> tensor<4x16xbf16>
  %dh = ax.cast %p : tensor<4x16xbf16> -> tensor<4x16xf32>
  %b1 = ax.binary mul %sum, %sum : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %b2 = ax.constant dense<4.471500e-02> : tensor<f32> -> tensor<f32>
  %b3 = ax.binary mul %b1, %b2 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %b4 = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %b5 = ax.binary add %b3, %b4 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %b6 = ax.binary mul %sum, %b5 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %b7 = ax.constant dense<0.797884583> : tensor<f32> -> tensor<f32>
  %b8 = ax.binary mul %b7, %b6 : tensor<f32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %b9 = ax.unary tanh %b8 : tensor<4x16xf32> -> tensor<4x16xf32>
  %b10 = ax.constant dense<1.341450e-01> : tensor<f32> -> tensor<f32>
  %b11 = ax.binary mul %b1, %b10 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %b12 = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %b13 = ax.binary add %b11, %b12 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %b14 = ax.constant dense<0.398942292> : tensor<f32> -> tensor<f32>
  %b15 = ax.binary mul %b13, %b14 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %b16 = ax.binary mul %b9, %b9 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %b17 = ax.unary neg %b16 : tensor<4x16xf32> -> tensor<4x16xf32>
  %b18 = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %b19 = ax.binary add %b17, %b18 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %b20 = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %b21 = ax.binary add %b9, %b20 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %b22 = ax.constant dense<5.000000e-01> : tensor<f32> -> tensor<f32>
  %b23 = ax.binary mul %b21, %b22 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %b24 = ax.binary mul %sum, %b19 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %b25 = ax.binary mul %b24, %b15 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %b26 = ax.binary add %b25, %b23 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %b27 = ax.binary mul %b26, %dh : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %ds = ax.cast %b27 : tensor<4x16xf32> -> tensor<4x16xbf16>
  axl.yield %ds : tensor<4x16xbf16>
}

// Somebody reads the gradient before it is rounded.
// CHECK-LABEL: axl.stage @unrounded
// CHECK-NOT: axl.unary_gradient
axl.stage @unrounded(%s: tensor<4x16xbf16>, %dy: tensor<4x8xbf16>, %v: tensor<16x8xbf16>) {
  %sum = ax.cast %s : tensor<4x16xbf16> -> tensor<4x16xf32>
  %p = ax.linear %dy, %v {transpose_w} : tensor<4x8xbf16>, tensor<16x8xbf16> -> tensor<4x16xbf16>
  %dh = ax.cast %p : tensor<4x16xbf16> -> tensor<4x16xf32>
  %a1 = ax.binary mul %sum, %sum : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a2 = ax.constant dense<4.471500e-02> : tensor<f32> -> tensor<f32>
  %a3 = ax.binary mul %a1, %a2 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a4 = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %a5 = ax.binary add %a3, %a4 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a6 = ax.binary mul %sum, %a5 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a7 = ax.constant dense<0.797884583> : tensor<f32> -> tensor<f32>
  %a8 = ax.binary mul %a6, %a7 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a9 = ax.unary tanh %a8 : tensor<4x16xf32> -> tensor<4x16xf32>
  %a10 = ax.constant dense<1.341450e-01> : tensor<f32> -> tensor<f32>
  %a11 = ax.binary mul %a1, %a10 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a12 = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %a13 = ax.binary add %a11, %a12 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a14 = ax.constant dense<0.398942292> : tensor<f32> -> tensor<f32>
  %a15 = ax.binary mul %a13, %a14 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a16 = ax.binary mul %a9, %a9 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a17 = ax.unary neg %a16 : tensor<4x16xf32> -> tensor<4x16xf32>
  %a18 = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %a19 = ax.binary add %a17, %a18 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a20 = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %a21 = ax.binary add %a9, %a20 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a22 = ax.constant dense<5.000000e-01> : tensor<f32> -> tensor<f32>
  %a23 = ax.binary mul %a21, %a22 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a24 = ax.binary mul %sum, %a19 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a25 = ax.binary mul %a24, %a15 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a26 = ax.binary add %a23, %a25 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a27 = ax.binary mul %dh, %a26 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %ds = ax.cast %a27 : tensor<4x16xf32> -> tensor<4x16xbf16>
  axl.yield %a27, %ds : tensor<4x16xf32>, tensor<4x16xbf16>
}

// A number is not that of the gradient.
// CHECK-LABEL: axl.stage @other_function
// CHECK-NOT: axl.unary_gradient
axl.stage @other_function(%s: tensor<4x16xbf16>, %dy: tensor<4x8xbf16>, %v: tensor<16x8xbf16>) {
  %sum = ax.cast %s : tensor<4x16xbf16> -> tensor<4x16xf32>
  %p = ax.linear %dy, %v {transpose_w} : tensor<4x8xbf16>, tensor<16x8xbf16> -> tensor<4x16xbf16>
  %dh = ax.cast %p : tensor<4x16xbf16> -> tensor<4x16xf32>
  %a1 = ax.binary mul %sum, %sum : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a2 = ax.constant dense<4.500000e-02> : tensor<f32> -> tensor<f32>
  %a3 = ax.binary mul %a1, %a2 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a4 = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %a5 = ax.binary add %a3, %a4 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a6 = ax.binary mul %sum, %a5 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a7 = ax.constant dense<0.797884583> : tensor<f32> -> tensor<f32>
  %a8 = ax.binary mul %a6, %a7 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a9 = ax.unary tanh %a8 : tensor<4x16xf32> -> tensor<4x16xf32>
  %a10 = ax.constant dense<1.341450e-01> : tensor<f32> -> tensor<f32>
  %a11 = ax.binary mul %a1, %a10 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a12 = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %a13 = ax.binary add %a11, %a12 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a14 = ax.constant dense<0.398942292> : tensor<f32> -> tensor<f32>
  %a15 = ax.binary mul %a13, %a14 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a16 = ax.binary mul %a9, %a9 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a17 = ax.unary neg %a16 : tensor<4x16xf32> -> tensor<4x16xf32>
  %a18 = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %a19 = ax.binary add %a17, %a18 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a20 = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %a21 = ax.binary add %a9, %a20 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a22 = ax.constant dense<5.000000e-01> : tensor<f32> -> tensor<f32>
  %a23 = ax.binary mul %a21, %a22 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a24 = ax.binary mul %sum, %a19 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a25 = ax.binary mul %a24, %a15 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a26 = ax.binary add %a23, %a25 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a27 = ax.binary mul %dh, %a26 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %ds = ax.cast %a27 : tensor<4x16xf32> -> tensor<4x16xbf16>
  axl.yield %ds : tensor<4x16xbf16>
}

// At two places.
// CHECK-LABEL: axl.stage @elsewhere
// CHECK-NOT: axl.unary_gradient
axl.stage @elsewhere(%s: tensor<4x16xbf16>, %t: tensor<4x16xbf16>, %dy: tensor<4x8xbf16>, %v: tensor<16x8xbf16>) {
  %sum = ax.cast %s : tensor<4x16xbf16> -> tensor<4x16xf32>
  %other = ax.cast %t : tensor<4x16xbf16> -> tensor<4x16xf32>
  %p = ax.linear %dy, %v {transpose_w} : tensor<4x8xbf16>, tensor<16x8xbf16> -> tensor<4x16xbf16>
  %dh = ax.cast %p : tensor<4x16xbf16> -> tensor<4x16xf32>
  %a1 = ax.binary mul %sum, %other : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a2 = ax.constant dense<4.471500e-02> : tensor<f32> -> tensor<f32>
  %a3 = ax.binary mul %a1, %a2 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a4 = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %a5 = ax.binary add %a3, %a4 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a6 = ax.binary mul %sum, %a5 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a7 = ax.constant dense<0.797884583> : tensor<f32> -> tensor<f32>
  %a8 = ax.binary mul %a6, %a7 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a9 = ax.unary tanh %a8 : tensor<4x16xf32> -> tensor<4x16xf32>
  %a10 = ax.constant dense<1.341450e-01> : tensor<f32> -> tensor<f32>
  %a11 = ax.binary mul %a1, %a10 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a12 = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %a13 = ax.binary add %a11, %a12 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a14 = ax.constant dense<0.398942292> : tensor<f32> -> tensor<f32>
  %a15 = ax.binary mul %a13, %a14 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a16 = ax.binary mul %a9, %a9 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a17 = ax.unary neg %a16 : tensor<4x16xf32> -> tensor<4x16xf32>
  %a18 = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %a19 = ax.binary add %a17, %a18 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a20 = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %a21 = ax.binary add %a9, %a20 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a22 = ax.constant dense<5.000000e-01> : tensor<f32> -> tensor<f32>
  %a23 = ax.binary mul %a21, %a22 : tensor<4x16xf32>, tensor<f32> -> tensor<4x16xf32>
  %a24 = ax.binary mul %sum, %a19 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a25 = ax.binary mul %a24, %a15 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a26 = ax.binary add %a23, %a25 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %a27 = ax.binary mul %dh, %a26 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
  %ds = ax.cast %a27 : tensor<4x16xf32> -> tensor<4x16xbf16>
  axl.yield %ds : tensor<4x16xbf16>
}

// Rows of 12 numbers begin where cuBLASLt keeps none; of f32 it keeps none.
// CHECK-LABEL: axl.stage @others
// CHECK-NOT: axl.library
axl.stage @others(%x: tensor<4x8xbf16>, %w: tensor<8x12xbf16>, %y: tensor<4x8xf32>, %v: tensor<8x16xf32>) {
  %0 = ax.linear %x, %w : tensor<4x8xbf16>, tensor<8x12xbf16> -> tensor<4x12xbf16>
  %1 = ax.unary gelu_tanh %0 : tensor<4x12xbf16> -> tensor<4x12xbf16>
  %2 = ax.linear %y, %v : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
  %3 = ax.unary gelu_tanh %2 : tensor<4x16xf32> -> tensor<4x16xf32>
  axl.yield %0, %1, %2, %3 : tensor<4x12xbf16>, tensor<4x12xbf16>, tensor<4x16xf32>, tensor<4x16xf32>
}
