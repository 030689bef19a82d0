// RUN: axopt-opt %s --axl-multiply-float8 --split-input-file | FileCheck %s

// One scale of the rows' numbers and one of each column stand behind the
// product, whose type is the one that it had.
// CHECK-LABEL: axl.stage @linear
// CHECK-SAME: (%[[X:.*]]: tensor<2x16x32xf8E4M3FN>, %[[W:.*]]: tensor<32x48xf8E4M3FN>, %[[SX:.*]]: tensor<f32>, %[[SW:.*]]: tensor<1x48xf32>)
// CHECK: %[[Y:.*]] = ax.linear %[[X]], %[[W]] : tensor<2x16x32xf8E4M3FN>, tensor<32x48xf8E4M3FN> -> tensor<2x16x48xf32>
// CHECK-DAG: %[[A:.*]] = ax.binary mul %[[Y]], %[[SX]]
// CHECK-DAG: %[[C:.*]] = ax.reshape %[[SW]] : tensor<1x48xf32> -> tensor<1x1x48xf32>
// CHECK: %[[B:.*]] = ax.binary mul %[[A]], %[[C]]
// CHECK: %[[R:.*]] = ax.cast %[[B]] : tensor<2x16x48xf32> -> tensor<2x16x48xf16>
// CHECK: axl.yield %[[R]]
axl.stage @linear(%x: tensor<2x16x32xf8E4M3FN>, %w: tensor<32x48xf8E4M3FN>, %sx: tensor<f32>, %sw: tensor<1x48xf32>) {
  %0 = ax.cast %x : tensor<2x16x32xf8E4M3FN> -> tensor<2x16x32xf32>
  %1 = ax.binary mul %0, %sx : tensor<2x16x32xf32>, tensor<f32> -> tensor<2x16x32xf32>
  %2 = ax.cast %1 : tensor<2x16x32xf32> -> tensor<2x16x32xf16>
  %3 = ax.cast %w : tensor<32x48xf8E4M3FN> -> tensor<32x48xf32>
  %4 = ax.binary mul %sw, %3 : tensor<1x48xf32>, tensor<32x48xf32> -> tensor<32x48xf32>
  %5 = ax.cast %4 : tensor<32x48xf32> -> tensor<32x48xf16>
  %6 = ax.linear %2, %5 : tensor<2x16x32xf16>, tensor<32x48xf16> -> tensor<2x16x48xf16>
  axl.yield %6 : tensor<2x16x48xf16>
}

// -----

// Scales of a batch's products, behind a transposition: of rows, and of the
// other factor's, which are columns.
// CHECK-LABEL: axl.stage @batch
// CHECK-SAME: (%[[Q:.*]]: tensor<4x16x32xf8E4M3FN>, %[[K:.*]]: tensor<48x4x32xf8E5M2>, %[[SQ:.*]]: tensor<16x1xf32>, %[[SK:.*]]: tensor<48x1x1xf32>)
// CHECK: %[[T:.*]] = ax.transpose %[[K]] [1, 0, 2] : tensor<48x4x32xf8E5M2> -> tensor<4x48x32xf8E5M2>
// CHECK: %[[Y:.*]] = ax.dot %[[Q]], %[[T]] batch [0] x [0] contract [2] x [2] : tensor<4x16x32xf8E4M3FN>, tensor<4x48x32xf8E5M2> -> tensor<4x16x48xf32>
// CHECK: %[[R:.*]] = ax.reshape %[[SQ]] : tensor<16x1xf32> -> tensor<1x16x1xf32>
// CHECK: %[[C:.*]] = ax.reshape %[[SK]] : tensor<48x1x1xf32> -> tensor<1x1x48xf32>
// CHECK: %[[A:.*]] = ax.binary mul %[[Y]], %[[R]]
// CHECK: ax.binary mul %[[A]], %[[C]]
axl.stage @batch(%q: tensor<4x16x32xf8E4M3FN>, %k: tensor<48x4x32xf8E5M2>, %sq: tensor<16x1xf32>, %sk: tensor<48x1x1xf32>) {
  %0 = ax.cast %q : tensor<4x16x32xf8E4M3FN> -> tensor<4x16x32xf32>
  %1 = ax.binary mul %0, %sq : tensor<4x16x32xf32>, tensor<16x1xf32> -> tensor<4x16x32xf32>
  %2 = ax.cast %k : tensor<48x4x32xf8E5M2> -> tensor<48x4x32xf32>
  %3 = ax.binary mul %2, %sk : tensor<48x4x32xf32>, tensor<48x1x1xf32> -> tensor<48x4x32xf32>
  %4 = ax.transpose %3 [1, 0, 2] : tensor<48x4x32xf32> -> tensor<4x48x32xf32>
  %5 = ax.dot %1, %4 batch [0] x [0] contract [2] x [2] : tensor<4x16x32xf32>, tensor<4x48x32xf32> -> tensor<4x16x48xf32>
  axl.yield %5 : tensor<4x16x48xf32>
}

// -----

// Sums of f64 stay that.
// CHECK-LABEL: axl.stage @f64
// CHECK: ax.linear %{{.*}} : tensor<16x32xf64>, tensor<32x48xf64> -> tensor<16x48xf64>
axl.stage @f64(%x: tensor<16x32xf8E4M3FN>, %w: tensor<32x48xf8E4M3FN>) {
  %0 = ax.cast %x : tensor<16x32xf8E4M3FN> -> tensor<16x32xf64>
  %1 = ax.cast %w : tensor<32x48xf8E4M3FN> -> tensor<32x48xf64>
  %2 = ax.linear %0, %1 : tensor<16x32xf64>, tensor<32x48xf64> -> tensor<16x48xf64>
  axl.yield %2 : tensor<16x48xf64>
}

// -----

// What is summed over has one scale only; the library has no products of two
// f8E5M2, nor of 24 terms; a factor of f32 is not of eight bits.
// CHECK-LABEL: axl.stage @others
// CHECK-COUNT-4: ax.linear %{{.*}} : tensor<16x{{.*}}xf32>, tensor<{{.*}}xf32> -> tensor<16x48xf32>
axl.stage @others(%x: tensor<16x32xf8E4M3FN>, %y: tensor<16x32xf8E5M2>, %z: tensor<16x24xf8E4M3FN>, %w: tensor<32x48xf8E4M3FN>, %v: tensor<32x48xf8E5M2>, %u: tensor<24x48xf8E4M3FN>, %s: tensor<32x1xf32>, %f: tensor<16x32xf32>) {
  %0 = ax.cast %x : tensor<16x32xf8E4M3FN> -> tensor<16x32xf32>
  %1 = ax.cast %w : tensor<32x48xf8E4M3FN> -> tensor<32x48xf32>
  %2 = ax.binary mul %1, %s : tensor<32x48xf32>, tensor<32x1xf32> -> tensor<32x48xf32>
  %3 = ax.linear %0, %2 : tensor<16x32xf32>, tensor<32x48xf32> -> tensor<16x48xf32>
  %4 = ax.cast %y : tensor<16x32xf8E5M2> -> tensor<16x32xf32>
  %5 = ax.cast %v : tensor<32x48xf8E5M2> -> tensor<32x48xf32>
  %6 = ax.linear %4, %5 : tensor<16x32xf32>, tensor<32x48xf32> -> tensor<16x48xf32>
  %7 = ax.cast %z : tensor<16x24xf8E4M3FN> -> tensor<16x24xf32>
  %8 = ax.cast %u : tensor<24x48xf8E4M3FN> -> tensor<24x48xf32>
  %9 = ax.linear %7, %8 : tensor<16x24xf32>, tensor<24x48xf32> -> tensor<16x48xf32>
  %10 = ax.linear %f, %1 : tensor<16x32xf32>, tensor<32x48xf32> -> tensor<16x48xf32>
  axl.yield %3, %6, %9, %10 : tensor<16x48xf32>, tensor<16x48xf32>, tensor<16x48xf32>, tensor<16x48xf32>
}
