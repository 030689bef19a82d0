// RUN: axopt-opt %s --axl-join-epilogues | FileCheck %s

// Of a Linear the bias, the activation, then the residual, each an argument more; it may
// be computed later than the product. The activation behind it stays apart.
// CHECK: axl.stage @linear(%[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<8x8xf32>, %[[B:.*]]: tensor<8xf32>)
// CHECK-NEXT: %[[E:.*]] = ax.unary exp %[[X]]
// CHECK-NEXT: %[[L:.*]] = axl.library(%[[X]], %[[W]], %[[B]], %[[E]]) {
// CHECK-NEXT: ^bb0(%[[A0:.*]]: {{.*}}, %[[A1:.*]]: {{.*}}, %[[A2:.*]]: {{.*}}, %[[A3:.*]]: {{.*}}):
// CHECK-NEXT: %[[Y:.*]] = ax.linear %[[A0]], %[[A1]]
// CHECK-NEXT: %[[Z:.*]] = ax.binary add %[[Y]], %[[A2]]
// CHECK-NEXT: %[[G:.*]] = ax.unary gelu %[[Z]]
// CHECK-NEXT: %[[S:.*]] = ax.binary add %[[G]], %[[A3]]
// CHECK-NEXT: axl.yield %[[S]]
// CHECK: %[[R:.*]] = ax.unary relu %[[L]]
// CHECK: axl.yield %[[R]]
axl.stage @linear(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) {
  %p = ax.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %0 = ax.binary add %b, %p : tensor<8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %1 = ax.unary gelu %0 : tensor<4x8xf32> -> tensor<4x8xf32>
  %2 = ax.unary exp %x : tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = ax.binary add %2, %1 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %4 = ax.unary relu %3 : tensor<4x8xf32> -> tensor<4x8xf32>
  axl.yield %4 : tensor<4x8xf32>
}

// Of a convolution the activation of the sum.
// CHECK: axl.stage @conv(%[[X:.*]]: tensor<1x2x4x4xf32>, %[[W:.*]]: tensor<2x2x1x1xf32>)
// CHECK: %[[R:.*]] = axl.library(%[[X]], %[[W]], %[[X]]) {
// CHECK: ^bb0(%[[A:.*]]: {{.*}}, %[[B:.*]]: {{.*}}, %[[C:.*]]: {{.*}}):
// CHECK: %[[Y:.*]] = ax.conv %[[A]], %[[B]]
// CHECK: %[[S:.*]] = ax.binary add %[[Y]], %[[C]]
// CHECK: %[[Z:.*]] = ax.unary relu %[[S]]
// CHECK: axl.yield %[[Z]]
// CHECK-NOT: ax.unary
// CHECK: axl.yield %[[R]]
axl.stage @conv(%x: tensor<1x2x4x4xf32>, %w: tensor<2x2x1x1xf32>) {
  %0 = ax.conv %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
  %1 = ax.binary add %0, %x : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
  %2 = ax.unary relu %1 : tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
  axl.yield %2 : tensor<1x2x4x4xf32>
}

// Biases of images, whatever they are made by; not that of a transposed convolution of
// f32, which oneDNN adds slowly.
// CHECK: axl.stage @biases(%[[X:.*]]: tensor<1x2x4x4xf32>, %[[W:.*]]: tensor<2x2x1x1xf32>, %[[B:.*]]: tensor<2xf32>, %[[D:.*]]: tensor<2x1x1xf32>)
// CHECK: %[[R:.*]] = ax.reshape %[[B]]
// CHECK: %[[C:.*]] = axl.library(%[[X]], %[[W]], %[[R]]) {
// CHECK: ax.conv
// CHECK-NEXT: ax.binary add
// CHECK-NEXT: axl.yield
// CHECK: %[[T:.*]] = ax.conv_transpose %[[C]], %[[W]]
// CHECK-NEXT: ax.binary add %[[T]], %[[D]]
// CHECK: axl.yield
axl.stage @biases(%x: tensor<1x2x4x4xf32>, %w: tensor<2x2x1x1xf32>, %b: tensor<2xf32>, %d: tensor<2x1x1xf32>) {
  %r = ax.reshape %b : tensor<2xf32> -> tensor<2x1x1xf32>
  %0 = ax.conv %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
  %1 = ax.binary add %0, %r : tensor<1x2x4x4xf32>, tensor<2x1x1xf32> -> tensor<1x2x4x4xf32>
  %2 = ax.conv_transpose %1, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] output_pads [0, 0] : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
  %3 = ax.binary add %2, %d : tensor<1x2x4x4xf32>, tensor<2x1x1xf32> -> tensor<1x2x4x4xf32>
  axl.yield %3 : tensor<1x2x4x4xf32>
}

// Of other types that, too, but no residual.
// CHECK: axl.stage @transposed(%[[X:.*]]: tensor<1x2x4x4xbf16>, %[[W:.*]]: tensor<2x2x1x1xbf16>, %[[D:.*]]: tensor<2x1x1xbf16>)
// CHECK: %[[T:.*]] = axl.library(%[[X]], %[[W]], %[[D]]) {
// CHECK: ax.conv_transpose
// CHECK-NEXT: ax.binary add
// CHECK-NEXT: axl.yield
// CHECK: ax.binary add %[[T]], %[[X]]
// CHECK: axl.yield
axl.stage @transposed(%x: tensor<1x2x4x4xbf16>, %w: tensor<2x2x1x1xbf16>, %d: tensor<2x1x1xbf16>) {
  %0 = ax.conv_transpose %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] output_pads [0, 0] : tensor<1x2x4x4xbf16>, tensor<2x2x1x1xbf16> -> tensor<1x2x4x4xbf16>
  %1 = ax.binary add %0, %d : tensor<1x2x4x4xbf16>, tensor<2x1x1xbf16> -> tensor<1x2x4x4xbf16>
  %2 = ax.binary add %1, %x : tensor<1x2x4x4xbf16>, tensor<1x2x4x4xbf16> -> tensor<1x2x4x4xbf16>
  axl.yield %2 : tensor<1x2x4x4xbf16>
}

// One number for all columns becomes one for each.
// CHECK: axl.stage @numbers
// CHECK-DAG: %[[B:.*]] = ax.constant dense<3.0{{.*}}> : tensor<8xf32>
// CHECK-DAG: axl.library(%{{.*}}, %{{.*}}, %[[B]])
// CHECK: %[[C:.*]] = ax.constant dense<3.0{{.*}}> : tensor<2x1x1xf32>
// CHECK: axl.library(%{{.*}}, %{{.*}}, %[[C]])
axl.stage @numbers(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %i: tensor<1x2x4x4xf32>, %k: tensor<2x2x1x1xf32>) {
  %n = ax.constant dense<3.0> : tensor<f32> -> tensor<f32>
  %0 = ax.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %1 = ax.binary add %0, %n : tensor<4x8xf32>, tensor<f32> -> tensor<4x8xf32>
  %2 = ax.conv %i, %k strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
  %3 = ax.binary add %2, %n : tensor<1x2x4x4xf32>, tensor<f32> -> tensor<1x2x4x4xf32>
  axl.yield %1, %3 : tensor<4x8xf32>, tensor<1x2x4x4xf32>
}

// One activation is all that a convolution does.
// CHECK: axl.stage @two
// CHECK: axl.library
// CHECK: ax.unary tanh
// CHECK: ax.binary add
// CHECK-NEXT: axl.yield
// CHECK: ax.unary relu
axl.stage @two(%x: tensor<1x2x4x4xf32>, %w: tensor<2x2x1x1xf32>) {
  %0 = ax.conv %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
  %1 = ax.unary tanh %0 : tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
  %2 = ax.binary add %1, %x : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
  %3 = ax.unary relu %2 : tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
  axl.yield %3 : tensor<1x2x4x4xf32>
}

// Two products: the later one adds the other, so that nothing moves.
// CHECK: axl.stage @products
// CHECK-NEXT: %[[B:.*]] = ax.linear
// CHECK-NEXT: %[[A:.*]] = axl.library(%{{.*}}, %{{.*}}, %[[B]])
// CHECK-NEXT: ^bb0
// CHECK-NEXT: ax.linear
// CHECK-NEXT: ax.unary silu
// CHECK-NEXT: ax.binary add
// CHECK-NEXT: axl.yield
// CHECK: axl.yield %[[A]]
axl.stage @products(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %v: tensor<8x8xf32>) {
  %0 = ax.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %1 = ax.linear %x, %v : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = ax.unary silu %1 : tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = ax.binary add %0, %2 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  axl.yield %3 : tensor<4x8xf32>
}

// No library has sin, nor what comes behind it; somebody else reads the sum; a sum
// of narrow floats is yet to be rounded; twice itself is no residual; rows are
// spread.
// CHECK: axl.stage @apart
// CHECK-NOT: axl.library
// CHECK: axl.yield
axl.stage @apart(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %h: tensor<4x8xf16>, %v: tensor<8x8xf16>, %r: tensor<4x1xf32>) {
  %0 = ax.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %1 = ax.unary sin %0 : tensor<4x8xf32> -> tensor<4x8xf32>
  %2 = ax.binary add %1, %x : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = ax.linear %2, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %4 = ax.unary relu %3 : tensor<4x8xf32> -> tensor<4x8xf32>
  %5 = ax.linear %h, %v : tensor<4x8xf16>, tensor<8x8xf16> -> tensor<4x8xf32>
  %6 = ax.unary relu %5 : tensor<4x8xf32> -> tensor<4x8xf32>
  %7 = ax.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %8 = ax.binary add %7, %7 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %9 = ax.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %10 = ax.binary add %9, %r : tensor<4x8xf32>, tensor<4x1xf32> -> tensor<4x8xf32>
  axl.yield %3, %4, %6, %8, %10 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// What is added to a vector may be another product's: one of the two adds it.
// CHECK: axl.stage @vectors
// CHECK-NEXT: %[[B:.*]] = ax.linear
// CHECK-NEXT: axl.library(%{{.*}}, %{{.*}}, %[[B]])
axl.stage @vectors(%x: tensor<4xf32>, %z: tensor<4xf32>, %w: tensor<4x8xf32>, %v: tensor<4x8xf32>) {
  %0 = ax.linear %x, %w : tensor<4xf32>, tensor<4x8xf32> -> tensor<8xf32>
  %1 = ax.linear %z, %v : tensor<4xf32>, tensor<4x8xf32> -> tensor<8xf32>
  %2 = ax.binary add %0, %1 : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
  axl.yield %2 : tensor<8xf32>
}

// Behind an activation, too.
// CHECK: axl.stage @activated
// CHECK: axl.library
// CHECK: axl.library
// CHECK: axl.yield
axl.stage @activated(%x: tensor<4xf32>, %w: tensor<4x8xf32>, %v: tensor<4x8xf32>) {
  %0 = ax.linear %x, %w : tensor<4xf32>, tensor<4x8xf32> -> tensor<8xf32>
  %1 = ax.unary relu %0 : tensor<8xf32> -> tensor<8xf32>
  %2 = ax.linear %x, %v : tensor<4xf32>, tensor<4x8xf32> -> tensor<8xf32>
  %3 = ax.binary add %1, %2 : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
  axl.yield %3 : tensor<8xf32>
}

// A sum in f32 of products of bf16 takes a bias in f32, and no more.
// CHECK: axl.stage @wide
// CHECK: axl.library
// CHECK: ax.linear {{.*}} -> tensor<4x8xf32>
// CHECK-NEXT: ax.binary add
// CHECK-NEXT: axl.yield
// CHECK: ax.unary relu
// CHECK: ax.linear {{.*}} -> tensor<4x8xf32>
// CHECK-NEXT: ax.binary add {{.*}} tensor<4x8xf32>, tensor<4x8xf32>
// CHECK-NEXT: axl.yield
axl.stage @wide(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>, %b: tensor<8xf32>, %r: tensor<4x8xf32>) {
  %0 = ax.linear %x, %w : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xf32>
  %1 = ax.binary add %0, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %2 = ax.unary relu %1 : tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = ax.linear %x, %w {transpose_w} : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xf32>
  %4 = ax.binary add %3, %r : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  axl.yield %2, %4 : tensor<4x8xf32>, tensor<4x8xf32>
}
