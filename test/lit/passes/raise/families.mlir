// RUN: axopt-opt %s -ax-phase-normalize -ax-phase-raise | FileCheck %s

// Attention as families of models have it, beyond the plain forms.
ax.plan @families version 1 {
ax.state @in : tensor<8x24xf32> from "m" offset 0 length 768
ax.state @out : tensor<8x8xf32> from "m" offset 768 length 256
ax.state @buckets : tensor<3x3x2xf32> from "m" offset 1024 length 72

// PyTorch's MultiheadAttention: sequence first, heads merged into the batch.
// CHECK-LABEL: ax.program @multihead
// CHECK: %[[P:.*]] = ax.linear %arg0, {{.*}} -> tensor<3x2x24xf32>
// CHECK: ax.attention {{.*}} : tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32> -> tensor<2x2x3x4xf32>
// CHECK-NEXT: %[[T:.*]] = ax.transpose %{{.*}} [2, 0, 1, 3]
// CHECK: %[[R:.*]] = ax.reshape %[[T]] : tensor<3x2x2x4xf32> -> tensor<3x2x8xf32>
// CHECK: ax.linear %[[R]]
// CHECK-NOT: ax.dot
// CHECK: ax.return
ax.program @multihead(%x: tensor<3x2x8xf32>) -> tensor<3x2x8xf32> {
  %in = ax.load @in : tensor<8x24xf32>
  %out = ax.load @out : tensor<8x8xf32>
  %half = ax.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %0 = ax.dot %x, %in batch [] x [] contract [2] x [0] : tensor<3x2x8xf32>, tensor<8x24xf32> -> tensor<3x2x24xf32>
  %1 = ax.reshape %0 : tensor<3x2x24xf32> -> tensor<3x2x3x8xf32>
  %2 = ax.reshape %1 : tensor<3x2x3x8xf32> -> tensor<1x3x2x3x8xf32>
  %3 = ax.transpose %2 [3, 1, 2, 0, 4] : tensor<1x3x2x3x8xf32> -> tensor<3x3x2x1x8xf32>
  %4 = ax.reshape %3 : tensor<3x3x2x1x8xf32> -> tensor<3x3x2x8xf32>
  %q0 = ax.slice %4 starts [0, 0, 0, 0] steps [1, 1, 1, 1] : tensor<3x3x2x8xf32> -> tensor<1x3x2x8xf32>
  %k0 = ax.slice %4 starts [1, 0, 0, 0] steps [1, 1, 1, 1] : tensor<3x3x2x8xf32> -> tensor<1x3x2x8xf32>
  %v0 = ax.slice %4 starts [2, 0, 0, 0] steps [1, 1, 1, 1] : tensor<3x3x2x8xf32> -> tensor<1x3x2x8xf32>
  %q1 = ax.reshape %q0 : tensor<1x3x2x8xf32> -> tensor<3x2x8xf32>
  %k1 = ax.reshape %k0 : tensor<1x3x2x8xf32> -> tensor<3x2x8xf32>
  %v1 = ax.reshape %v0 : tensor<1x3x2x8xf32> -> tensor<3x2x8xf32>
  %q2 = ax.reshape %q1 : tensor<3x2x8xf32> -> tensor<3x4x4xf32>
  %k2 = ax.reshape %k1 : tensor<3x2x8xf32> -> tensor<3x4x4xf32>
  %v2 = ax.reshape %v1 : tensor<3x2x8xf32> -> tensor<3x4x4xf32>
  %q3 = ax.transpose %q2 [1, 0, 2] : tensor<3x4x4xf32> -> tensor<4x3x4xf32>
  %k3 = ax.transpose %k2 [1, 2, 0] : tensor<3x4x4xf32> -> tensor<4x4x3xf32>
  %v3 = ax.transpose %v2 [1, 0, 2] : tensor<3x4x4xf32> -> tensor<4x3x4xf32>
  %q4 = ax.binary mul %q3, %half : tensor<4x3x4xf32>, tensor<f32> -> tensor<4x3x4xf32>
  %5 = ax.dot %q4, %k3 batch [0] x [0] contract [2] x [1] : tensor<4x3x4xf32>, tensor<4x4x3xf32> -> tensor<4x3x3xf32>
  %6 = ax.softmax %5 dim 2 : tensor<4x3x3xf32> -> tensor<4x3x3xf32>
  %7 = ax.dot %6, %v3 batch [0] x [0] contract [2] x [1] : tensor<4x3x3xf32>, tensor<4x3x4xf32> -> tensor<4x3x4xf32>
  %8 = ax.transpose %7 [1, 0, 2] : tensor<4x3x4xf32> -> tensor<3x4x4xf32>
  %9 = ax.reshape %8 : tensor<3x4x4xf32> -> tensor<6x8xf32>
  %10 = ax.dot %9, %out batch [] x [] contract [1] x [0] : tensor<6x8xf32>, tensor<8x8xf32> -> tensor<6x8xf32>
  %11 = ax.reshape %10 : tensor<6x8xf32> -> tensor<3x2x8xf32>
  ax.return %11 : tensor<3x2x8xf32>
}

// BLOOM: a bias for each head over merged heads, then padding over separate
// ones.
// CHECK-LABEL: ax.program @alibi
// CHECK: %[[A:.*]] = ax.reshape %arg3 : tensor<4x1x3xf32> -> tensor<2x2x1x3xf32>
// CHECK: %[[M:.*]] = ax.select %arg4, %{{.*}}, %[[A]] : tensor<2x1x3x3xi1>, tensor<f32>, tensor<2x2x1x3xf32> -> tensor<2x2x3x3xf32>
// CHECK: ax.attention {{.*}} mask %[[M]] : tensor<2x2x3x3xf32> scale 5.000000e-01
ax.program @alibi(%q: tensor<4x3x4xf32>, %k: tensor<4x4x3xf32>, %v: tensor<4x3x4xf32>, %alibi: tensor<4x1x3xf32>, %masked: tensor<2x1x3x3xi1>) -> tensor<4x3x4xf32> {
  %half = ax.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %low = ax.constant dense<-3.40282347E+38> : tensor<f32> -> tensor<f32>
  %0 = ax.dot %q, %k batch [0] x [0] contract [2] x [1] : tensor<4x3x4xf32>, tensor<4x4x3xf32> -> tensor<4x3x3xf32>
  %1 = ax.binary mul %0, %half : tensor<4x3x3xf32>, tensor<f32> -> tensor<4x3x3xf32>
  %2 = ax.binary add %alibi, %1 : tensor<4x1x3xf32>, tensor<4x3x3xf32> -> tensor<4x3x3xf32>
  %3 = ax.reshape %2 : tensor<4x3x3xf32> -> tensor<2x2x3x3xf32>
  %4 = ax.select %masked, %low, %3 : tensor<2x1x3x3xi1>, tensor<f32>, tensor<2x2x3x3xf32> -> tensor<2x2x3x3xf32>
  %5 = ax.softmax %4 dim 3 : tensor<2x2x3x3xf32> -> tensor<2x2x3x3xf32>
  %6 = ax.reshape %5 : tensor<2x2x3x3xf32> -> tensor<4x3x3xf32>
  %7 = ax.dot %6, %v batch [0] x [0] contract [2] x [1] : tensor<4x3x3xf32>, tensor<4x3x4xf32> -> tensor<4x3x4xf32>
  ax.return %7 : tensor<4x3x4xf32>
}

// T5: no scale, a learned bias of relative positions and padding.
// CHECK-LABEL: ax.program @relative
// CHECK: ax.attention %arg0, %arg1, %arg2 mask %{{.*}} : tensor<2x2x3x3xf32> scale 1.000000e+00
ax.program @relative(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>, %pad: tensor<2x1x1x3xf32>) -> tensor<2x2x3x4xf32> {
  %table = ax.load @buckets : tensor<3x3x2xf32>
  %0 = ax.transpose %table [2, 0, 1] : tensor<3x3x2xf32> -> tensor<2x3x3xf32>
  %1 = ax.reshape %0 : tensor<2x3x3xf32> -> tensor<1x2x3x3xf32>
  %2 = ax.binary add %1, %pad : tensor<1x2x3x3xf32>, tensor<2x1x1x3xf32> -> tensor<2x2x3x3xf32>
  %3 = ax.dot %q, %k batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32> -> tensor<2x2x3x3xf32>
  %4 = ax.binary add %3, %2 : tensor<2x2x3x3xf32>, tensor<2x2x3x3xf32> -> tensor<2x2x3x3xf32>
  %5 = ax.softmax %4 dim 3 : tensor<2x2x3x3xf32> -> tensor<2x2x3x3xf32>
  %6 = ax.dot %5, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32> -> tensor<2x2x3x4xf32>
  ax.return %6 : tensor<2x2x3x4xf32>
}

// DeBERTa: what was masked is set to 0 again after the softmax.
// CHECK-LABEL: ax.program @zeroed
// CHECK: ax.attention %arg0, %arg1, %arg2 mask %arg3 : tensor<2x1x3x3xi1> scale 1.000000e+00 {empty_rows_zero}
ax.program @zeroed(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>, %keep: tensor<2x1x3x3xi1>) -> tensor<2x2x3x4xf32> {
  %low = ax.constant dense<-3.40282347E+38> : tensor<f32> -> tensor<f32>
  %zero = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %not = ax.unary logical_not %keep : tensor<2x1x3x3xi1> -> tensor<2x1x3x3xi1>
  %0 = ax.dot %q, %k batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32> -> tensor<2x2x3x3xf32>
  %1 = ax.select %not, %low, %0 : tensor<2x1x3x3xi1>, tensor<f32>, tensor<2x2x3x3xf32> -> tensor<2x2x3x3xf32>
  %2 = ax.softmax %1 dim 3 : tensor<2x2x3x3xf32> -> tensor<2x2x3x3xf32>
  %3 = ax.select %not, %zero, %2 : tensor<2x1x3x3xi1>, tensor<f32>, tensor<2x2x3x3xf32> -> tensor<2x2x3x3xf32>
  %4 = ax.dot %3, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32> -> tensor<2x2x3x4xf32>
  ax.return %4 : tensor<2x2x3x4xf32>
}

// Swin: windows are batches; each has its mask.
// CHECK-LABEL: ax.program @windows
// CHECK: %[[B:.*]] = ax.broadcast %{{.*}} -> tensor<2x2x1x3x3xf32>
// CHECK: %[[M:.*]] = ax.reshape %[[B]] : tensor<2x2x1x3x3xf32> -> tensor<4x1x3x3xf32>
// CHECK: ax.attention %arg0, %arg1, %arg2 mask %[[M]] : tensor<4x1x3x3xf32>
ax.program @windows(%q: tensor<4x2x3x4xf32>, %k: tensor<4x2x3x4xf32>, %v: tensor<4x2x3x4xf32>, %mask: tensor<2x3x3xf32>) -> tensor<4x2x3x4xf32> {
  %0 = ax.dot %q, %k batch [0, 1] x [0, 1] contract [3] x [3] : tensor<4x2x3x4xf32>, tensor<4x2x3x4xf32> -> tensor<4x2x3x3xf32>
  %1 = ax.reshape %0 : tensor<4x2x3x3xf32> -> tensor<2x2x2x3x3xf32>
  %2 = ax.reshape %mask : tensor<2x3x3xf32> -> tensor<1x2x1x3x3xf32>
  %3 = ax.binary add %1, %2 : tensor<2x2x2x3x3xf32>, tensor<1x2x1x3x3xf32> -> tensor<2x2x2x3x3xf32>
  %4 = ax.reshape %3 : tensor<2x2x2x3x3xf32> -> tensor<4x2x3x3xf32>
  %5 = ax.softmax %4 dim 3 : tensor<4x2x3x3xf32> -> tensor<4x2x3x3xf32>
  %6 = ax.dot %5, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<4x2x3x3xf32>, tensor<4x2x3x4xf32> -> tensor<4x2x3x4xf32>
  ax.return %6 : tensor<4x2x3x4xf32>
}

// Half precision, softmax in single; scores held above the lowest number.
// CHECK-LABEL: ax.program @half
// CHECK: %[[A:.*]] = ax.attention %{{.*}}, %{{.*}}, %{{.*}} mask %{{.*}} : tensor<2x1x1x3xf32> scale 1.000000e+00 : tensor<2x2x3x4xf32>
// CHECK: ax.cast %[[A]] : tensor<2x2x3x4xf32> -> tensor<2x2x3x4xf16>
ax.program @half(%q: tensor<2x2x3x4xf16>, %k: tensor<2x2x3x4xf16>, %v: tensor<2x2x3x4xf16>, %pad: tensor<2x1x1x3xf32>) -> tensor<2x2x3x4xf16> {
  %low = ax.constant dense<-3.40282347E+38> : tensor<f32> -> tensor<f32>
  %0 = ax.dot %q, %k batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x2x3x4xf16>, tensor<2x2x3x4xf16> -> tensor<2x2x3x3xf16>
  %1 = ax.cast %0 : tensor<2x2x3x3xf16> -> tensor<2x2x3x3xf32>
  %2 = ax.binary add %1, %pad : tensor<2x2x3x3xf32>, tensor<2x1x1x3xf32> -> tensor<2x2x3x3xf32>
  %3 = ax.binary max %2, %low : tensor<2x2x3x3xf32>, tensor<f32> -> tensor<2x2x3x3xf32>
  %4 = ax.softmax %3 dim 3 : tensor<2x2x3x3xf32> -> tensor<2x2x3x3xf32>
  %5 = ax.cast %4 : tensor<2x2x3x3xf32> -> tensor<2x2x3x3xf16>
  %6 = ax.dot %5, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x2x3x3xf16>, tensor<2x2x3x4xf16> -> tensor<2x2x3x4xf16>
  ax.return %6 : tensor<2x2x3x4xf16>
}

// Queries in groups that share a key, as einsum writes them: positions outside
// the group in q, inside it in the scores.
// CHECK-LABEL: ax.program @grouped
// CHECK: %[[Q:.*]] = ax.transpose %arg0 [0, 2, 3, 1, 4] : tensor<2x3x2x5x4xf32>
// CHECK: %[[H:.*]] = ax.reshape %[[Q]] : tensor<2x2x5x3x4xf32> -> tensor<2x10x3x4xf32>
// CHECK: ax.attention %[[H]], %{{.*}}, %{{.*}} scale 5.000000e-01 {causal} : tensor<2x10x3x4xf32>, tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32>
// CHECK-NOT: ax.dot
ax.program @grouped(%q: tensor<2x3x2x5x4xf32>, %k: tensor<2x3x2x4xf32>, %v: tensor<2x3x2x4xf32>) -> tensor<2x3x2x5x4xf32> {
  %half = ax.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %low = ax.constant dense<0xFF800000> : tensor<f32> -> tensor<f32>
  %later = ax.constant dense<[[false, true, true], [false, false, true], [false, false, false]]> : tensor<3x3xi1> -> tensor<3x3xi1>
  %0 = ax.dot %q, %k batch [0, 2] x [0, 2] contract [4] x [3] : tensor<2x3x2x5x4xf32>, tensor<2x3x2x4xf32> -> tensor<2x2x3x5x3xf32>
  %1 = ax.transpose %0 [0, 1, 3, 2, 4] : tensor<2x2x3x5x3xf32> -> tensor<2x2x5x3x3xf32>
  %2 = ax.binary mul %1, %half : tensor<2x2x5x3x3xf32>, tensor<f32> -> tensor<2x2x5x3x3xf32>
  %3 = ax.select %later, %low, %2 : tensor<3x3xi1>, tensor<f32>, tensor<2x2x5x3x3xf32> -> tensor<2x2x5x3x3xf32>
  %4 = ax.softmax %3 dim 4 : tensor<2x2x5x3x3xf32> -> tensor<2x2x5x3x3xf32>
  %5 = ax.dot %4, %v batch [0, 1] x [0, 2] contract [4] x [1] : tensor<2x2x5x3x3xf32>, tensor<2x3x2x4xf32> -> tensor<2x2x5x3x4xf32>
  %6 = ax.transpose %5 [0, 3, 1, 2, 4] : tensor<2x2x5x3x4xf32> -> tensor<2x3x2x5x4xf32>
  ax.return %6 : tensor<2x3x2x5x4xf32>
}

// GPTBigCode: one key head, positions and heads are the rows of one product.
// CHECK-LABEL: ax.program @multiquery
// CHECK-DAG: %[[Q:.*]] = ax.reshape %arg0 : tensor<2x3x20xf32> -> tensor<2x3x5x4xf32>
// CHECK-DAG: %[[T:.*]] = ax.transpose %[[Q]] [0, 2, 1, 3]
// CHECK-DAG: %[[M:.*]] = ax.reshape %arg3 : tensor<2x3x1x3xi1> -> tensor<2x1x3x3xi1>
// CHECK: %[[R:.*]] = ax.attention %[[T]], %{{.*}}, %{{.*}} mask %[[M]] : tensor<2x1x3x3xi1> scale 1.000000e+00 : tensor<2x5x3x4xf32>, tensor<2x1x3x4xf32>, tensor<2x1x3x4xf32>
// CHECK-NEXT: %[[B:.*]] = ax.transpose %[[R]] [0, 2, 1, 3]
// CHECK-NEXT: ax.reshape %[[B]] : tensor<2x3x5x4xf32> -> tensor<2x3x20xf32>
ax.program @multiquery(%q: tensor<2x3x20xf32>, %k: tensor<2x3x4xf32>, %v: tensor<2x3x4xf32>, %mask: tensor<2x3x1x3xi1>) -> tensor<2x3x20xf32> {
  %low = ax.constant dense<0xFF800000> : tensor<f32> -> tensor<f32>
  %rows = ax.reshape %q : tensor<2x3x20xf32> -> tensor<2x15x4xf32>
  %0 = ax.dot %rows, %k batch [0] x [0] contract [2] x [2] : tensor<2x15x4xf32>, tensor<2x3x4xf32> -> tensor<2x15x3xf32>
  %1 = ax.reshape %0 : tensor<2x15x3xf32> -> tensor<2x3x5x3xf32>
  %2 = ax.select %mask, %1, %low : tensor<2x3x1x3xi1>, tensor<2x3x5x3xf32>, tensor<f32> -> tensor<2x3x5x3xf32>
  %3 = ax.softmax %2 dim 3 : tensor<2x3x5x3xf32> -> tensor<2x3x5x3xf32>
  %4 = ax.reshape %3 : tensor<2x3x5x3xf32> -> tensor<2x15x3xf32>
  %5 = ax.dot %4, %v batch [0] x [0] contract [2] x [1] : tensor<2x15x3xf32>, tensor<2x3x4xf32> -> tensor<2x15x4xf32>
  %6 = ax.reshape %5 : tensor<2x15x4xf32> -> tensor<2x3x20xf32>
  ax.return %6 : tensor<2x3x20xf32>
}

// Swin 2: each head has a scale of its own.
// CHECK-LABEL: ax.program @headscale
// CHECK: %[[S:.*]] = ax.reshape %arg3 : tensor<2x1x1xf32> -> tensor<1x2x1x1xf32>
// CHECK: %[[Q:.*]] = ax.binary mul %arg0, %[[S]]
// CHECK: ax.attention %[[Q]], %arg1, %arg2 mask %{{.*}} scale 1.000000e+00
ax.program @headscale(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>, %scale: tensor<2x1x1xf32>, %bias: tensor<2x3x3xf32>) -> tensor<2x2x3x4xf32> {
  %0 = ax.dot %q, %k batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32> -> tensor<2x2x3x3xf32>
  %1 = ax.binary mul %0, %scale : tensor<2x2x3x3xf32>, tensor<2x1x1xf32> -> tensor<2x2x3x3xf32>
  %2 = ax.binary add %1, %bias : tensor<2x2x3x3xf32>, tensor<2x3x3xf32> -> tensor<2x2x3x3xf32>
  %3 = ax.softmax %2 dim 3 : tensor<2x2x3x3xf32> -> tensor<2x2x3x3xf32>
  %4 = ax.dot %3, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32> -> tensor<2x2x3x4xf32>
  ax.return %4 : tensor<2x2x3x4xf32>
}

// The first GPT-2: scores times what may be attended to, minus a large number
// elsewhere.
// CHECK-LABEL: ax.program @product
// CHECK-NEXT: %[[R:.*]] = ax.attention %arg0, %arg1, %arg2 scale 1.000000e+00 {causal}
// CHECK-NEXT: ax.return %[[R]]
ax.program @product(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x3x4xf32>, %v: tensor<2x2x3x4xf32>) -> tensor<2x2x3x4xf32> {
  %keep = ax.constant dense<[[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]> : tensor<3x3xf32> -> tensor<3x3xf32>
  %drop = ax.constant dense<[[0.0, 1.0e10, 1.0e10], [0.0, 0.0, 1.0e10], [0.0, 0.0, 0.0]]> : tensor<3x3xf32> -> tensor<3x3xf32>
  %0 = ax.dot %q, %k batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x2x3x4xf32>, tensor<2x2x3x4xf32> -> tensor<2x2x3x3xf32>
  %1 = ax.binary mul %0, %keep : tensor<2x2x3x3xf32>, tensor<3x3xf32> -> tensor<2x2x3x3xf32>
  %2 = ax.binary sub %1, %drop : tensor<2x2x3x3xf32>, tensor<3x3xf32> -> tensor<2x2x3x3xf32>
  %3 = ax.softmax %2 dim 3 : tensor<2x2x3x3xf32> -> tensor<2x2x3x3xf32>
  %4 = ax.dot %3, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x2x3x3xf32>, tensor<2x2x3x4xf32> -> tensor<2x2x3x4xf32>
  ax.return %4 : tensor<2x2x3x4xf32>
}
}
