// RUN: axopt-opt %s --axl-write-transposed --axl-order-products | FileCheck %s

// A batch in the last dimension goes to the front, also of a product that a
// library writes transposed.
// CHECK: axl.stage @s(%[[X:.*]]: tensor<4x8x3xf32>, %[[Y:.*]]: tensor<3x8x5xf32>)
// CHECK: %[[T:.*]] = ax.transpose %[[X]] [2, 0, 1] : tensor<4x8x3xf32> -> tensor<3x4x8xf32>
// CHECK: axl.library(%[[T]], %[[Y]]) {
// CHECK: ^bb0(%[[A:.*]]: tensor<3x4x8xf32>, %[[B:.*]]: tensor<3x8x5xf32>):
// CHECK: ax.dot %[[A]], %[[B]] batch [0] x [0] contract [2] x [1]
// CHECK: ax.transpose %{{.*}} [1, 0, 2]
axl.stage @s(%x: tensor<4x8x3xf32>, %y: tensor<3x8x5xf32>) {
  %0 = ax.dot %x, %y batch [2] x [0] contract [1] x [1] : tensor<4x8x3xf32>, tensor<3x8x5xf32> -> tensor<3x4x5xf32>
  %1 = ax.transpose %0 [1, 0, 2] : tensor<3x4x5xf32> -> tensor<4x3x5xf32>
  axl.yield %1 : tensor<4x3x5xf32>
}

// Of factors of eight bits, what is summed over lies innermost: in a product, in
// its gradients, and in one with a batch. Where a product does not fit, or the
// library has none, they lie as they are.
// RUN: axopt-opt %s --axl-order-products=float8=true | FileCheck %s --check-prefix=INNER
// RUN: axopt-opt %s --axl-order-products | FileCheck %s --check-prefix=ASIS
// INNER-LABEL: axl.stage @eight_bits
// ASIS-LABEL: axl.stage @eight_bits
// ASIS-NOT: ax.transpose
// INNER-SAME: (%[[X:.*]]: tensor<2x32x16xf8E4M3FN>, %[[W:.*]]: tensor<16x48xf8E4M3FN>, %[[D:.*]]: tensor<2x32x48xf8E5M2>
// INNER: %[[WT:.*]] = ax.transpose %[[W]] [1, 0] : tensor<16x48xf8E4M3FN> -> tensor<48x16xf8E4M3FN>
// INNER: ax.linear %[[X]], %[[WT]] {transpose_w}
// INNER-NEXT: ax.linear %[[D]], %[[W]] {transpose_w}
// INNER-NEXT: %[[XT:.*]] = ax.transpose %[[X]] [2, 0, 1] : tensor<2x32x16xf8E4M3FN> -> tensor<16x2x32xf8E4M3FN>
// INNER-NEXT: %[[DT:.*]] = ax.transpose %[[D]] [2, 0, 1] : tensor<2x32x48xf8E5M2> -> tensor<48x2x32xf8E5M2>
// INNER-NEXT: ax.dot %[[XT]], %[[DT]] batch [] x [] contract [1, 2] x [1, 2]
// INNER-NEXT: ax.transpose %[[X]] [0, 2, 1]
// INNER-NEXT: ax.transpose %[[D]] [0, 2, 1]
// INNER-NEXT: ax.dot %{{.*}} batch [0] x [0] contract [2] x [2]
// INNER-NEXT: ax.linear %[[X]], %{{.*}} : tensor<2x32x16xf8E4M3FN>, tensor<16x8xf8E5M2>
axl.stage @eight_bits(%x: tensor<2x32x16xf8E4M3FN>, %w: tensor<16x48xf8E4M3FN>, %d: tensor<2x32x48xf8E5M2>, %v: tensor<16x8xf8E5M2>) {
  %0 = ax.linear %x, %w : tensor<2x32x16xf8E4M3FN>, tensor<16x48xf8E4M3FN> -> tensor<2x32x48xf32>
  %1 = ax.linear %d, %w {transpose_w} : tensor<2x32x48xf8E5M2>, tensor<16x48xf8E4M3FN> -> tensor<2x32x16xf32>
  %2 = ax.dot %x, %d batch [] x [] contract [0, 1] x [0, 1] : tensor<2x32x16xf8E4M3FN>, tensor<2x32x48xf8E5M2> -> tensor<16x48xf32>
  %3 = ax.dot %x, %d batch [0] x [0] contract [1] x [1] : tensor<2x32x16xf8E4M3FN>, tensor<2x32x48xf8E5M2> -> tensor<2x16x48xf32>
  %4 = ax.linear %x, %v : tensor<2x32x16xf8E4M3FN>, tensor<16x8xf8E5M2> -> tensor<2x32x8xf32>
  axl.yield %0, %1, %2, %3, %4 : tensor<2x32x48xf32>, tensor<2x32x16xf32>, tensor<16x48xf32>, tensor<2x16x48xf32>, tensor<2x32x8xf32>
}

// Those of integers, wherever there are such.
// ASIS-LABEL: axl.stage @integers(
// INNER-LABEL: axl.stage @integers(
// INNER-SAME: %[[X:.*]]: tensor<5x32xi8>, %[[W:.*]]: tensor<32x48xi8>
// INNER: %[[WT:.*]] = ax.transpose %[[W]] [1, 0] : tensor<32x48xi8> -> tensor<48x32xi8>
// INNER-NEXT: ax.dot %[[X]], %[[WT]] batch [] x [] contract [1] x [1]
axl.stage @integers(%x: tensor<5x32xi8>, %w: tensor<32x48xi8>) {
  %0 = ax.dot %x, %w batch [] x [] contract [1] x [0] : tensor<5x32xi8>, tensor<32x48xi8> -> tensor<5x48xi32>
  axl.yield %0 : tensor<5x48xi32>
}
