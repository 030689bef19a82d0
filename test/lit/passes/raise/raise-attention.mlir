// RUN: axopt-opt %s -ax-normalize -cse -ax-raise-attention -ax-normalize -cse | FileCheck %s

ax.plan @attention version 1 {

// Scores divided by the root of the width, keys transposed in one go.
// CHECK-LABEL: ax.program @plain
// CHECK-DAG: %[[Q:.*]] = ax.transpose %arg0 [0, 2, 1, 3]
// CHECK-DAG: %[[K:.*]] = ax.transpose %arg1 [0, 2, 1, 3]
// CHECK-DAG: %[[V:.*]] = ax.transpose %arg2 [0, 2, 1, 3]
// CHECK: %[[R:.*]] = ax.attention %[[Q]], %[[K]], %[[V]] scale 2.500000e-01 : tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x8x16xf32>
// CHECK-NEXT: ax.return %[[R]]
ax.program @plain(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x4x16xf32>, %v: tensor<2x8x4x16xf32>) -> tensor<2x4x8x16xf32> {
  %four = ax.constant dense<4.0> : tensor<f32> -> tensor<f32>
  %0 = ax.transpose %q [0, 2, 1, 3] : tensor<2x8x4x16xf32> -> tensor<2x4x8x16xf32>
  %1 = ax.transpose %k [0, 2, 3, 1] : tensor<2x8x4x16xf32> -> tensor<2x4x16x8xf32>
  %2 = ax.transpose %v [0, 2, 1, 3] : tensor<2x8x4x16xf32> -> tensor<2x4x8x16xf32>
  %3 = ax.dot %0, %1 batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32> -> tensor<2x4x8x8xf32>
  %4 = ax.binary div %3, %four : tensor<2x4x8x8xf32>, tensor<f32> -> tensor<2x4x8x8xf32>
  %5 = ax.softmax %4 dim 3 : tensor<2x4x8x8xf32> -> tensor<2x4x8x8xf32>
  %6 = ax.dot %5, %2 batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x8x16xf32>
  ax.return %6 : tensor<2x4x8x16xf32>
}

// The root of the scale on each side, heads merged around the transpose of the
// keys, a padding mask, NaN of empty rows replaced.
// CHECK-LABEL: ax.program @scaled_dot_product
// CHECK-NOT: ax.softmax
// CHECK: ax.attention %arg0, %arg1, %arg2 mask %arg3 : tensor<2x1x1x8xf32> scale 2.500000e-01 {empty_rows_zero}
ax.program @scaled_dot_product(%q: tensor<2x4x8x16xf32>, %k: tensor<2x4x8x16xf32>, %v: tensor<2x4x8x16xf32>, %mask: tensor<2x1x1x8xf32>) -> tensor<2x4x8x16xf32> {
  %half = ax.constant dense<0.5> : tensor<1xf32> -> tensor<1xf32>
  %zero = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %0 = ax.reshape %k : tensor<2x4x8x16xf32> -> tensor<8x8x16xf32>
  %1 = ax.transpose %0 [0, 2, 1] : tensor<8x8x16xf32> -> tensor<8x16x8xf32>
  %2 = ax.reshape %1 : tensor<8x16x8xf32> -> tensor<2x4x16x8xf32>
  %3 = ax.binary mul %2, %half : tensor<2x4x16x8xf32>, tensor<1xf32> -> tensor<2x4x16x8xf32>
  %4 = ax.binary mul %q, %half : tensor<2x4x8x16xf32>, tensor<1xf32> -> tensor<2x4x8x16xf32>
  %5 = ax.dot %4, %3 batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x8x16xf32>, tensor<2x4x16x8xf32> -> tensor<2x4x8x8xf32>
  %6 = ax.binary add %5, %mask : tensor<2x4x8x8xf32>, tensor<2x1x1x8xf32> -> tensor<2x4x8x8xf32>
  %7 = ax.softmax %6 dim 3 : tensor<2x4x8x8xf32> -> tensor<2x4x8x8xf32>
  %8 = ax.unary is_nan %7 : tensor<2x4x8x8xf32> -> tensor<2x4x8x8xi1>
  %9 = ax.select %8, %zero, %7 : tensor<2x4x8x8xi1>, tensor<f32>, tensor<2x4x8x8xf32> -> tensor<2x4x8x8xf32>
  %10 = ax.dot %9, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32> -> tensor<2x4x8x16xf32>
  ax.return %10 : tensor<2x4x8x16xf32>
}

// Known masks: scores replaced, or an addend; no score makes up for the lowest
// number, and every row keeps one. Two queries of three keys. Both come to the
// same.
// CHECK-LABEL: ax.program @causal
// CHECK-NEXT: %[[R:.*]] = ax.attention %arg0, %arg1, %arg2 scale 1.000000e+00 {causal}
// CHECK-NEXT: ax.return %[[R]], %[[R]], %[[R]]
ax.program @causal(%q: tensor<2x4x2x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<2x4x3x16xf32>) -> (tensor<2x4x2x16xf32>, tensor<2x4x2x16xf32>, tensor<2x4x2x16xf32>) {
  %keep = ax.constant dense<[[[[true, true, false], [true, true, true]]]]> : tensor<1x1x2x3xi1> -> tensor<1x1x2x3xi1>
  %addend = ax.constant dense<[[0.0, 0.0, -1.0e30], [0.0, 0.0, 0.0]]> : tensor<2x3xf32> -> tensor<2x3xf32>
  %low = ax.constant dense<-3.40282347E+38> : tensor<f32> -> tensor<f32>
  %0 = ax.dot %q, %k batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x4x2x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x2x3xf32>
  %1 = ax.select %keep, %0, %low : tensor<1x1x2x3xi1>, tensor<2x4x2x3xf32>, tensor<f32> -> tensor<2x4x2x3xf32>
  %2 = ax.softmax %1 dim 3 : tensor<2x4x2x3xf32> -> tensor<2x4x2x3xf32>
  %3 = ax.dot %2, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x2x3xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x2x16xf32>
  %4 = ax.binary add %0, %addend : tensor<2x4x2x3xf32>, tensor<2x3xf32> -> tensor<2x4x2x3xf32>
  %5 = ax.softmax %4 dim 3 : tensor<2x4x2x3xf32> -> tensor<2x4x2x3xf32>
  %6 = ax.dot %5, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x2x3xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x2x16xf32>
  %masked = ax.constant dense<[[false, false, true], [false, false, false]]> : tensor<2x3xi1> -> tensor<2x3xi1>
  %7 = ax.select %masked, %low, %0 : tensor<2x3xi1>, tensor<f32>, tensor<2x4x2x3xf32> -> tensor<2x4x2x3xf32>
  %8 = ax.softmax %7 dim 3 : tensor<2x4x2x3xf32> -> tensor<2x4x2x3xf32>
  %9 = ax.dot %8, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x2x3xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x2x16xf32>
  ax.return %3, %6, %9 : tensor<2x4x2x16xf32>, tensor<2x4x2x16xf32>, tensor<2x4x2x16xf32>
}

// Scores of a few thousands make up for -1001 and -1e4: the numbers are added.
// CHECK-LABEL: ax.program @finite
// CHECK-DAG: ax.attention %arg0, %arg1, %arg2 mask %{{.*}} : tensor<1x1x3x3xf32> scale 1.000000e+00 :
// CHECK-DAG: ax.attention %arg0, %arg1, %arg2 mask %{{.*}} : tensor<1x1x3x3xf32> scale 1.000000e+00 :
// CHECK: ax.return
ax.program @finite(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<2x4x3x16xf32>) -> (tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>) {
  %addend = ax.constant dense<[[0.0, -1001.0, -1001.0], [0.0, 0.0, -1001.0], [0.0, 0.0, 0.0]]> : tensor<3x3xf32> -> tensor<3x3xf32>
  %lower = ax.constant dense<[[0.0, -1.0e4, -1.0e4], [0.0, 0.0, -1.0e4], [0.0, 0.0, 0.0]]> : tensor<3x3xf32> -> tensor<3x3xf32>
  %0 = ax.dot %q, %k batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x3xf32>
  %1 = ax.binary add %0, %addend : tensor<2x4x3x3xf32>, tensor<3x3xf32> -> tensor<2x4x3x3xf32>
  %2 = ax.softmax %1 dim 3 : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %3 = ax.dot %2, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x3x3xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  %4 = ax.binary add %0, %lower : tensor<2x4x3x3xf32>, tensor<3x3xf32> -> tensor<2x4x3x3xf32>
  %5 = ax.softmax %4 dim 3 : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %6 = ax.dot %5, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x3x3xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  ax.return %3, %6 : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>
}

// A window is more than a causal mask; and a causal mask with padding is none: where
// padding masks a whole row, the finite numbers matter.
// CHECK-LABEL: ax.program @window
// CHECK-DAG: %[[KEEP:.*]] = ax.constant dense<{{.*}}> : tensor<1x1x3x3xf32>
// CHECK-DAG: %[[M:.*]] = ax.binary add %arg3, %[[KEEP]] : tensor<2x1x1x3xf32>, tensor<1x1x3x3xf32> -> tensor<2x1x3x3xf32>
// CHECK-DAG: ax.attention %arg0, %arg1, %arg2 scale 1.000000e+00 {causal, window = 2 : i64} :
// CHECK-DAG: ax.attention %arg0, %arg1, %arg2 mask %[[M]] : tensor<2x1x3x3xf32> scale 1.000000e+00 :
ax.program @window(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<2x4x3x16xf32>, %pad: tensor<2x1x1x3xf32>) -> (tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>) {
  %window = ax.constant dense<[[[[true, false, false], [true, true, false], [false, true, true]]]]> : tensor<1x1x3x3xi1> -> tensor<1x1x3x3xi1>
  %keep = ax.constant dense<[[[[true, false, false], [true, true, false], [true, true, true]]]]> : tensor<1x1x3x3xi1> -> tensor<1x1x3x3xi1>
  %low = ax.constant dense<-3.40282347E+38> : tensor<f32> -> tensor<f32>
  %0 = ax.dot %q, %k batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x3xf32>
  %1 = ax.select %window, %0, %low : tensor<1x1x3x3xi1>, tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %2 = ax.softmax %1 dim 3 : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %3 = ax.dot %2, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x3x3xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  %4 = ax.select %keep, %0, %low : tensor<1x1x3x3xi1>, tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %5 = ax.binary add %4, %pad : tensor<2x4x3x3xf32>, tensor<2x1x1x3xf32> -> tensor<2x4x3x3xf32>
  %6 = ax.softmax %5 dim 3 : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %7 = ax.dot %6, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x3x3xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  ax.return %3, %7 : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>
}

// -inf where the condition is false: the condition is the mask, whichever way
// it is written.
// CHECK-LABEL: ax.program @conditions
// CHECK-DAG: %[[NOT:.*]] = ax.unary logical_not %arg3
// CHECK-DAG: ax.attention %arg0, %arg1, %arg2 mask %arg3 : tensor<2x1x3x3xi1> scale
// CHECK-DAG: ax.attention %arg0, %arg1, %arg2 mask %[[NOT]] : tensor<2x1x3x3xi1> scale
ax.program @conditions(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<2x4x3x16xf32>, %c: tensor<2x1x3x3xi1>) -> (tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>) {
  %inf = ax.constant dense<0xFF800000> : tensor<f32> -> tensor<f32>
  %zero = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %m = ax.select %c, %zero, %inf : tensor<2x1x3x3xi1>, tensor<f32>, tensor<f32> -> tensor<2x1x3x3xf32>
  %0 = ax.dot %q, %k batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x3xf32>
  %1 = ax.binary add %m, %0 : tensor<2x1x3x3xf32>, tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %2 = ax.softmax %1 dim 3 : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %3 = ax.dot %2, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x3x3xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  %4 = ax.select %c, %inf, %0 : tensor<2x1x3x3xi1>, tensor<f32>, tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %5 = ax.softmax %4 dim 3 : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %6 = ax.dot %5, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x3x3xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  ax.return %3, %6 : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>
}

// Key/value heads repeated for two query heads each, after the transpose to
// heads and before it; one head broadcast to all.
// CHECK-LABEL: ax.program @grouped
// CHECK-NOT: ax.broadcast
// CHECK: ax.attention %arg0, %arg1, %arg2 scale 1.000000e+00 : tensor<2x4x3x16xf32>, tensor<2x2x3x16xf32>, tensor<2x2x3x16xf32> -> tensor<2x4x3x16xf32>
// CHECK-NOT: ax.broadcast
// CHECK: ax.return
ax.program @grouped(%q: tensor<2x4x3x16xf32>, %k: tensor<2x2x3x16xf32>, %v: tensor<2x2x3x16xf32>) -> tensor<2x4x3x16xf32> {
  %0 = ax.reshape %k : tensor<2x2x3x16xf32> -> tensor<2x2x1x3x16xf32>
  %1 = ax.broadcast %0 : tensor<2x2x1x3x16xf32> -> tensor<2x2x2x3x16xf32>
  %2 = ax.reshape %1 : tensor<2x2x2x3x16xf32> -> tensor<2x4x3x16xf32>
  %3 = ax.reshape %v : tensor<2x2x3x16xf32> -> tensor<2x2x1x3x16xf32>
  %4 = ax.broadcast %3 : tensor<2x2x1x3x16xf32> -> tensor<2x2x2x3x16xf32>
  %5 = ax.reshape %4 : tensor<2x2x2x3x16xf32> -> tensor<2x4x3x16xf32>
  %6 = ax.dot %q, %2 batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x3xf32>
  %7 = ax.softmax %6 dim 3 : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %8 = ax.dot %7, %5 batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x3x3xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  ax.return %8 : tensor<2x4x3x16xf32>
}
// CHECK-LABEL: ax.program @grouped_before_transpose
// CHECK-NOT: ax.broadcast
// CHECK: ax.attention {{.*}} : tensor<2x4x3x16xf32>, tensor<2x2x3x16xf32>, tensor<2x2x3x16xf32> -> tensor<2x4x3x16xf32>
ax.program @grouped_before_transpose(%q: tensor<2x4x3x16xf32>, %k: tensor<2x3x2x16xf32>, %v: tensor<2x3x2x16xf32>) -> tensor<2x4x3x16xf32> {
  %0 = ax.reshape %k : tensor<2x3x2x16xf32> -> tensor<2x3x2x1x16xf32>
  %1 = ax.broadcast %0 : tensor<2x3x2x1x16xf32> -> tensor<2x3x2x2x16xf32>
  %2 = ax.reshape %1 : tensor<2x3x2x2x16xf32> -> tensor<2x3x4x16xf32>
  %k4 = ax.transpose %2 [0, 2, 3, 1] : tensor<2x3x4x16xf32> -> tensor<2x4x16x3xf32>
  %3 = ax.reshape %v : tensor<2x3x2x16xf32> -> tensor<2x3x2x1x16xf32>
  %4 = ax.broadcast %3 : tensor<2x3x2x1x16xf32> -> tensor<2x3x2x2x16xf32>
  %5 = ax.reshape %4 : tensor<2x3x2x2x16xf32> -> tensor<2x3x4x16xf32>
  %v4 = ax.transpose %5 [0, 2, 1, 3] : tensor<2x3x4x16xf32> -> tensor<2x4x3x16xf32>
  %6 = ax.dot %q, %k4 batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x3x16xf32>, tensor<2x4x16x3xf32> -> tensor<2x4x3x3xf32>
  %7 = ax.softmax %6 dim 3 : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %8 = ax.dot %7, %v4 batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x3x3xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  ax.return %8 : tensor<2x4x3x16xf32>
}
// CHECK-LABEL: ax.program @one_head_for_all
// CHECK: ax.attention {{.*}} : tensor<2x4x3x16xf32>, tensor<2x1x3x16xf32>, tensor<2x1x3x16xf32> -> tensor<2x4x3x16xf32>
ax.program @one_head_for_all(%q: tensor<2x4x3x16xf32>, %k: tensor<2x1x3x16xf32>, %v: tensor<2x1x3x16xf32>) -> tensor<2x4x3x16xf32> {
  %0 = ax.broadcast %k : tensor<2x1x3x16xf32> -> tensor<2x4x3x16xf32>
  %1 = ax.broadcast %v : tensor<2x1x3x16xf32> -> tensor<2x4x3x16xf32>
  %2 = ax.dot %q, %0 batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x3xf32>
  %3 = ax.softmax %2 dim 3 : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %4 = ax.dot %3, %1 batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x3x3xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  ax.return %4 : tensor<2x4x3x16xf32>
}
// The other order, heads 0 1 0 1, is no grouping of neighbours.
// CHECK-LABEL: ax.program @tiled_heads
// CHECK: ax.broadcast
// CHECK: ax.attention {{.*}} : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
ax.program @tiled_heads(%q: tensor<2x4x3x16xf32>, %k: tensor<2x2x3x16xf32>) -> tensor<2x4x3x16xf32> {
  %0 = ax.reshape %k : tensor<2x2x3x16xf32> -> tensor<2x1x2x3x16xf32>
  %1 = ax.broadcast %0 : tensor<2x1x2x3x16xf32> -> tensor<2x2x2x3x16xf32>
  %2 = ax.reshape %1 : tensor<2x2x2x3x16xf32> -> tensor<2x4x3x16xf32>
  %6 = ax.dot %q, %2 batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x3xf32>
  %7 = ax.softmax %6 dim 3 : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %8 = ax.dot %7, %2 batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x3x3xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  ax.return %8 : tensor<2x4x3x16xf32>
}

// Heads merged into the batch for the products, apart for the mask only.
// CHECK-LABEL: ax.program @batched
// CHECK: ax.attention %{{.*}}, %{{.*}}, %{{.*}} mask %arg3 : tensor<2x1x3x3xf32> scale 1.000000e+00 : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
ax.program @batched(%q: tensor<8x3x16xf32>, %k: tensor<8x3x16xf32>, %v: tensor<8x3x16xf32>, %mask: tensor<2x1x3x3xf32>) -> tensor<8x3x16xf32> {
  %0 = ax.transpose %k [0, 2, 1] : tensor<8x3x16xf32> -> tensor<8x16x3xf32>
  %1 = ax.dot %q, %0 batch [0] x [0] contract [2] x [1] : tensor<8x3x16xf32>, tensor<8x16x3xf32> -> tensor<8x3x3xf32>
  %2 = ax.reshape %1 : tensor<8x3x3xf32> -> tensor<2x4x3x3xf32>
  %3 = ax.binary add %2, %mask : tensor<2x4x3x3xf32>, tensor<2x1x3x3xf32> -> tensor<2x4x3x3xf32>
  %4 = ax.reshape %3 : tensor<2x4x3x3xf32> -> tensor<8x3x3xf32>
  %5 = ax.softmax %4 dim 2 : tensor<8x3x3xf32> -> tensor<8x3x3xf32>
  %6 = ax.dot %5, %v batch [0] x [0] contract [2] x [1] : tensor<8x3x3xf32>, tensor<8x3x16xf32> -> tensor<8x3x16xf32>
  ax.return %6 : tensor<8x3x16xf32>
}

// A cap on the scores, before the mask.
// CHECK-LABEL: ax.program @softcap
// CHECK: ax.attention %arg0, %arg1, %arg2 mask %arg3 : tensor<1x1x3x3xf32> scale 2.500000e-01 {softcap = 5.000000e+01 : f64}
ax.program @softcap(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<2x4x3x16xf32>, %mask: tensor<1x1x3x3xf32>) -> tensor<2x4x3x16xf32> {
  %scale = ax.constant dense<0.25> : tensor<f32> -> tensor<f32>
  %cap = ax.constant dense<50.0> : tensor<f32> -> tensor<f32>
  %0 = ax.dot %q, %k batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x3xf32>
  %1 = ax.binary mul %0, %scale : tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %2 = ax.binary div %1, %cap : tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %3 = ax.unary tanh %2 : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %4 = ax.binary mul %3, %cap : tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %5 = ax.binary add %4, %mask : tensor<2x4x3x3xf32>, tensor<1x1x3x3xf32> -> tensor<2x4x3x3xf32>
  %6 = ax.softmax %5 dim 3 : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %7 = ax.dot %6, %v batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x3x3xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  ax.return %7 : tensor<2x4x3x16xf32>
}

// Near misses: a softmax over the queries; probabilities that are an output,
// too; scores replaced by -1e4 in rows that may lose all, and in rows that keep
// one, which may be lower.
// CHECK-LABEL: ax.program @near_misses
// CHECK-NOT: ax.attention
// CHECK: ax.return
ax.program @near_misses(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x3x16xf32>, %c: tensor<2x1x1x3xi1>) -> (tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x3xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>) {
  %low = ax.constant dense<-1.0e4> : tensor<f32> -> tensor<f32>
  %0 = ax.dot %q, %k batch [0, 1] x [0, 1] contract [3] x [3] : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x3xf32>
  %1 = ax.softmax %0 dim 2 : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %2 = ax.dot %1, %k batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x3x3xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  %3 = ax.softmax %0 dim 3 : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %4 = ax.dot %3, %k batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x3x3xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  %5 = ax.select %c, %0, %low : tensor<2x1x1x3xi1>, tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %6 = ax.softmax %5 dim 3 : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %7 = ax.dot %6, %k batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x3x3xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  %keep = ax.constant dense<[[true, false, false], [true, true, false], [true, true, true]]> : tensor<3x3xi1> -> tensor<3x3xi1>
  %8 = ax.select %keep, %0, %low : tensor<3x3xi1>, tensor<2x4x3x3xf32>, tensor<f32> -> tensor<2x4x3x3xf32>
  %9 = ax.softmax %8 dim 3 : tensor<2x4x3x3xf32> -> tensor<2x4x3x3xf32>
  %10 = ax.dot %9, %k batch [0, 1] x [0, 1] contract [3] x [2] : tensor<2x4x3x3xf32>, tensor<2x4x3x16xf32> -> tensor<2x4x3x16xf32>
  ax.return %2, %4, %3, %7, %10 : tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x3xf32>, tensor<2x4x3x16xf32>, tensor<2x4x3x16xf32>
}
}
