// RUN: axopt-opt %s -ax-normalize -ax-raise-linear -ax-normalize -cse | FileCheck %s
// RUN: axopt-opt %s -ax-normalize -ax-raise-linear --mlir-print-debuginfo | FileCheck %s --check-prefix=NODES

ax.plan @linear version 1 {
ax.state @w : tensor<16x32xf32> from "m" offset 0 length 2048
ax.state @t : tensor<32x16xf32> from "m" offset 2048 length 2048
ax.state @b : tensor<32xf32> from "m" offset 4096 length 128
ax.state @c : tensor<4xf32> from "m" offset 6400 length 16
ax.state @d : tensor<1x4x1x1xf32> from "m" offset 6400 length 16
ax.state @e : tensor<16x4x8xf32> from "m" offset 4224 length 2048
ax.state @eb : tensor<4x8xf32> from "m" offset 6272 length 128

// CHECK-LABEL: ax.program @matmul_add
// CHECK: %[[B:.*]] = ax.load @b
// CHECK: %[[L:.*]] = ax.linear %arg0, %{{.*}} : tensor<2x3x16xf32>, tensor<16x32xf32> -> tensor<2x3x32xf32>
// CHECK-NEXT: %[[R:.*]] = ax.binary add %[[L]], %[[B]] : tensor<2x3x32xf32>, tensor<32xf32> -> tensor<2x3x32xf32>
// CHECK-NEXT: ax.return %[[R]]
ax.program @matmul_add(%x: tensor<2x3x16xf32>) -> tensor<2x3x32xf32> {
  %w = ax.load @w : tensor<16x32xf32>
  %b = ax.load @b : tensor<32xf32>
  %0 = ax.dot %x, %w batch [] x [] contract [2] x [0] : tensor<2x3x16xf32>, tensor<16x32xf32> -> tensor<2x3x32xf32>
  %1 = ax.binary add %b, %0 : tensor<32xf32>, tensor<2x3x32xf32> -> tensor<2x3x32xf32>
  ax.return %1 : tensor<2x3x32xf32>
}

// CHECK-LABEL: ax.program @transposed
// CHECK: ax.load @t
// CHECK-NEXT: ax.linear %arg0, %{{.*}} {transpose_w} : tensor<2x3x16xf32>, tensor<32x16xf32> -> tensor<2x3x32xf32>
ax.program @transposed(%x: tensor<2x3x16xf32>) -> tensor<2x3x32xf32> {
  %t = ax.load @t : tensor<32x16xf32>
  %w = ax.transpose %t [1, 0] : tensor<32x16xf32> -> tensor<16x32xf32>
  %0 = ax.dot %x, %w batch [] x [] contract [2] x [0] : tensor<2x3x16xf32>, tensor<16x32xf32> -> tensor<2x3x32xf32>
  ax.return %0 : tensor<2x3x32xf32>
}

// Gemm between reshapes, as dynamo writes addmm: batch and sequence stay two
// dimensions, through the activation, too.
// CHECK-LABEL: ax.program @flattened
// CHECK-NOT: ax.reshape
// CHECK: %[[L:.*]] = ax.linear %arg0, %{{.*}} -> tensor<2x3x32xf32>
// CHECK-NEXT: %[[S:.*]] = ax.binary add %[[L]], %{{.*}} : tensor<2x3x32xf32>, tensor<32xf32>
// CHECK-NEXT: %[[A:.*]] = ax.unary relu %[[S]]
// CHECK-NEXT: %[[M:.*]] = ax.linear %[[A]], %{{.*}} -> tensor<2x3x16xf32>
// CHECK-NEXT: ax.return %[[M]]
ax.program @flattened(%x: tensor<2x3x16xf32>) -> tensor<2x3x16xf32> {
  %w = ax.load @w : tensor<16x32xf32>
  %t = ax.load @t : tensor<32x16xf32>
  %b = ax.load @b : tensor<32xf32>
  %0 = ax.reshape %x : tensor<2x3x16xf32> -> tensor<6x16xf32>
  %1 = ax.dot %0, %w batch [] x [] contract [1] x [0] : tensor<6x16xf32>, tensor<16x32xf32> -> tensor<6x32xf32>
  %2 = ax.binary add %1, %b : tensor<6x32xf32>, tensor<32xf32> -> tensor<6x32xf32>
  %3 = ax.unary relu %2 : tensor<6x32xf32> -> tensor<6x32xf32>
  %4 = ax.dot %3, %t batch [] x [] contract [1] x [0] : tensor<6x32xf32>, tensor<32x16xf32> -> tensor<6x16xf32>
  %5 = ax.reshape %4 : tensor<6x16xf32> -> tensor<2x3x16xf32>
  ax.return %5 : tensor<2x3x16xf32>
}

// Heads come together and rows are flattened in one reshape.
// CHECK-LABEL: ax.program @merged_heads
// CHECK: %[[X:.*]] = ax.reshape %arg0 : tensor<2x3x4x4xf32> -> tensor<2x3x16xf32>
// CHECK: %[[L:.*]] = ax.linear %[[X]], {{.*}} -> tensor<2x3x32xf32>
// CHECK-NEXT: ax.return %[[L]]
ax.program @merged_heads(%x: tensor<2x3x4x4xf32>) -> tensor<2x3x32xf32> {
  %w = ax.load @w : tensor<16x32xf32>
  %0 = ax.reshape %x : tensor<2x3x4x4xf32> -> tensor<6x16xf32>
  %1 = ax.dot %0, %w batch [] x [] contract [1] x [0] : tensor<6x16xf32>, tensor<16x32xf32> -> tensor<6x32xf32>
  %2 = ax.reshape %1 : tensor<6x32xf32> -> tensor<2x3x32xf32>
  ax.return %2 : tensor<2x3x32xf32>
}

// Einsum "bsn,nhd->bshd" with a bias [h, d], and its inverse.
// CHECK-LABEL: ax.program @by_heads
// CHECK: %[[W:.*]] = ax.reshape %{{.*}} : tensor<16x4x8xf32> -> tensor<16x32xf32>
// CHECK: %[[B:.*]] = ax.reshape %{{.*}} : tensor<4x8xf32> -> tensor<32xf32>
// CHECK: %[[L:.*]] = ax.linear %arg0, %[[W]] {{.*}} -> tensor<2x3x32xf32>
// CHECK-NEXT: %[[S:.*]] = ax.binary add %[[L]], %[[B]]
// CHECK: ax.linear %[[S]], %[[W]] {transpose_w} : tensor<2x3x32xf32>, tensor<16x32xf32> -> tensor<2x3x16xf32>
ax.program @by_heads(%x: tensor<2x3x16xf32>) -> tensor<2x3x16xf32> {
  %e = ax.load @e : tensor<16x4x8xf32>
  %b = ax.load @eb : tensor<4x8xf32>
  %0 = ax.dot %x, %e batch [] x [] contract [2] x [0] : tensor<2x3x16xf32>, tensor<16x4x8xf32> -> tensor<2x3x4x8xf32>
  %1 = ax.binary add %0, %b : tensor<2x3x4x8xf32>, tensor<4x8xf32> -> tensor<2x3x4x8xf32>
  %2 = ax.dot %1, %e batch [] x [] contract [3, 2] x [2, 1] : tensor<2x3x4x8xf32>, tensor<16x4x8xf32> -> tensor<2x3x16xf32>
  ax.return %2 : tensor<2x3x16xf32>
}

// The weight on the left.
// CHECK-LABEL: ax.program @weight_first
// CHECK: %[[X:.*]] = ax.transpose %arg0 [1, 0]
// CHECK: %[[L:.*]] = ax.linear %[[X]], %{{.*}} {transpose_w} {{.*}} -> tensor<5x32xf32>
// CHECK: %[[R:.*]] = ax.transpose %[[L]] [1, 0] : tensor<5x32xf32> -> tensor<32x5xf32>
// CHECK: ax.return %[[R]]
ax.program @weight_first(%x: tensor<16x5xf32>) -> tensor<32x5xf32> {
  %t = ax.load @t : tensor<32x16xf32>
  %0 = ax.dot %t, %x batch [] x [] contract [1] x [0] : tensor<32x16xf32>, tensor<16x5xf32> -> tensor<32x5xf32>
  ax.return %0 : tensor<32x5xf32>
}

// One number for each channel is a convolution's bias; one for each row is not.
// CHECK-LABEL: ax.program @conv
// CHECK: %[[B:.*]] = ax.reshape %{{.*}} : tensor<4xf32> -> tensor<4x1x1xf32>
// CHECK: %[[C:.*]] = ax.conv %arg0, %arg1 strides
// CHECK: ax.binary add %[[C]], %[[B]]
// CHECK: ax.binary add %{{.*}}, %{{.*}} : tensor<1x4x4x4xf32>, tensor<1x1x4x1xf32>
// CHECK: ax.return
ax.program @conv(%x: tensor<1x3x4x4xf32>, %k: tensor<4x3x1x1xf32>) -> (tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>) {
  %b = ax.load @c : tensor<4xf32>
  %0 = ax.reshape %b : tensor<4xf32> -> tensor<1x4x1x1xf32>
  %1 = ax.conv %x, %k strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x3x4x4xf32>, tensor<4x3x1x1xf32> -> tensor<1x4x4x4xf32>
  %2 = ax.binary add %1, %0 : tensor<1x4x4x4xf32>, tensor<1x4x1x1xf32> -> tensor<1x4x4x4xf32>
  %3 = ax.reshape %b : tensor<4xf32> -> tensor<1x1x4x1xf32>
  %4 = ax.conv %x, %k strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x3x4x4xf32>, tensor<4x3x1x1xf32> -> tensor<1x4x4x4xf32>
  %5 = ax.binary add %4, %3 : tensor<1x4x4x4xf32>, tensor<1x1x4x1xf32> -> tensor<1x4x4x4xf32>
  ax.return %2, %5 : tensor<1x4x4x4xf32>, tensor<1x4x4x4xf32>
}

// Also of a transposed one, behind what the bias is made of; both have both names.
// CHECK-LABEL: ax.program @conv_transpose
// CHECK: %[[B:.*]] = ax.reshape %{{.*}} : tensor<1x4x1x1xf32> -> tensor<4x1x1xf32>
// CHECK-NEXT: %[[C:.*]] = ax.conv_transpose %arg0, %arg1
// CHECK-NEXT: ax.binary add %[[C]], %[[B]]
// NODES: ax.conv_transpose {{.*}} loc(#[[BOTH:.*]])
// NODES-NEXT: ax.binary add {{.*}} loc(#[[BOTH]])
// NODES: #[[BOTH]] = loc(fused[{{.*}}])
ax.program @conv_transpose(%x: tensor<1x3x4x4xf32>, %k: tensor<3x4x1x1xf32>) -> tensor<1x4x4x4xf32> {
  %0 = ax.conv_transpose %x, %k strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] output_pads [0, 0] : tensor<1x3x4x4xf32>, tensor<3x4x1x1xf32> -> tensor<1x4x4x4xf32> loc("up")
  %1 = ax.load @d : tensor<1x4x1x1xf32>
  %2 = ax.binary add %1, %0 : tensor<1x4x1x1xf32>, tensor<1x4x4x4xf32> -> tensor<1x4x4x4xf32> loc("plus")
  ax.return %2 : tensor<1x4x4x4xf32>
}

// Near misses: no operand is a weight; a sum that others need, too; an addend
// per row.
// CHECK-LABEL: ax.program @near_misses
// CHECK: %[[D:.*]] = ax.dot %arg0, %arg1
// CHECK: %[[L:.*]] = ax.linear
// CHECK: %[[S:.*]] = ax.binary add %[[L]]
// CHECK: %[[M:.*]] = ax.linear
// CHECK: %[[T:.*]] = ax.binary add %[[M]], %arg2
// CHECK: ax.return %[[D]], %[[L]], %[[S]], %[[T]]
ax.program @near_misses(%x: tensor<3x16xf32>, %y: tensor<16x32xf32>, %z: tensor<3x1xf32>) -> (tensor<3x32xf32>, tensor<3x32xf32>, tensor<3x32xf32>, tensor<3x32xf32>) {
  %w = ax.load @w : tensor<16x32xf32>
  %t = ax.load @t : tensor<32x16xf32>
  %b = ax.load @b : tensor<32xf32>
  %0 = ax.dot %x, %y batch [] x [] contract [1] x [0] : tensor<3x16xf32>, tensor<16x32xf32> -> tensor<3x32xf32>
  %1 = ax.dot %x, %w batch [] x [] contract [1] x [0] : tensor<3x16xf32>, tensor<16x32xf32> -> tensor<3x32xf32>
  %2 = ax.binary add %1, %b : tensor<3x32xf32>, tensor<32xf32> -> tensor<3x32xf32>
  %3 = ax.dot %x, %t batch [] x [] contract [1] x [1] : tensor<3x16xf32>, tensor<32x16xf32> -> tensor<3x32xf32>
  %4 = ax.binary add %3, %z : tensor<3x32xf32>, tensor<3x1xf32> -> tensor<3x32xf32>
  ax.return %0, %1, %2, %4 : tensor<3x32xf32>, tensor<3x32xf32>, tensor<3x32xf32>, tensor<3x32xf32>
}
}
