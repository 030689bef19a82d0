// RUN: axopt-opt %s --axl-pad-products | FileCheck %s

// The vocabulary is no multiple of 8: the result is a part of a larger one.
// CHECK-LABEL: axl.stage @logits
// CHECK: %[[W:.*]] = ax.pad %{{.*}} low [0, 0] high [0, 7] : tensor<64x1001xbf16> -> tensor<64x1008xbf16>
// CHECK: %[[Y:.*]] = ax.linear %{{.*}}, %[[W]] : tensor<2x64x64xbf16>, tensor<64x1008xbf16> -> tensor<2x64x1008xbf16>
// CHECK: %[[P:.*]] = ax.slice %[[Y]] starts [0, 0, 0] steps [1, 1, 1] : tensor<2x64x1008xbf16> -> tensor<2x64x1001xbf16>
// CHECK: axl.yield %[[P]]
axl.stage @logits(%x: tensor<2x64x64xbf16>, %w: tensor<64x1001xbf16>) {
  %0 = ax.linear %x, %w : tensor<2x64x64xbf16>, tensor<64x1001xbf16> -> tensor<2x64x1001xbf16>
  axl.yield %0 : tensor<2x64x1001xbf16>
}

// A gradient: what is summed over is padded in both.
// CHECK-LABEL: axl.stage @summed
// CHECK-DAG: %[[G:.*]] = ax.pad %{{.*}} low [0, 0] high [0, 7] : tensor<64x1001xbf16>
// CHECK-DAG: %[[W:.*]] = ax.pad %{{.*}} low [0, 0] high [7, 0] : tensor<1001x64xbf16>
// CHECK: %[[Y:.*]] = ax.dot %[[G]], %[[W]] {{.*}} -> tensor<64x64xf32>
// CHECK-NOT: ax.slice
// CHECK: axl.yield %[[Y]]
axl.stage @summed(%g: tensor<64x1001xbf16>, %w: tensor<1001x64xbf16>) {
  %0 = ax.dot %g, %w batch [] x [] contract [1] x [0] : tensor<64x1001xbf16>, tensor<1001x64xbf16> -> tensor<64x64xf32>
  axl.yield %0 : tensor<64x64xf32>
}

// A factor that lies along a dimension of the result.
// CHECK-LABEL: axl.stage @columns
// CHECK: %[[A:.*]] = ax.pad %{{.*}} high [0, 7] : tensor<64x1001xf16>
// CHECK: %[[Y:.*]] = ax.dot %[[A]], %{{.*}} -> tensor<1008x64xf16>
// CHECK: ax.slice %[[Y]] {{.*}} -> tensor<1001x64xf16>
axl.stage @columns(%a: tensor<64x1001xf16>, %b: tensor<64x64xf16>) {
  %0 = ax.dot %a, %b batch [] x [] contract [0] x [0] : tensor<64x1001xf16>, tensor<64x64xf16> -> tensor<1001x64xf16>
  axl.yield %0 : tensor<1001x64xf16>
}

// Transposed weights lie along what is summed over.
// CHECK-LABEL: axl.stage @transposed
// CHECK: ax.pad %{{.*}} high [3, 0] : tensor<77x64xbf16>
// CHECK: ax.linear {{.*}} {transpose_w} {{.*}} -> tensor<64x80xbf16>
axl.stage @transposed(%x: tensor<64x64xbf16>, %w: tensor<77x64xbf16>) {
  %0 = ax.linear %x, %w {transpose_w} : tensor<64x64xbf16>, tensor<77x64xbf16> -> tensor<64x77xbf16>
  axl.yield %0 : tensor<64x77xbf16>
}

// Of f32, of batches, of few rows, and where all fits nothing changes.
// CHECK-LABEL: axl.stage @others
// CHECK-NOT: ax.pad
// CHECK-NOT: ax.slice
axl.stage @others(%x: tensor<64x64xf32>, %w: tensor<64x77xf32>, %b: tensor<2x64x77xbf16>, %r: tensor<8x64xbf16>, %v: tensor<64x77xbf16>, %s: tensor<64x64xbf16>, %u: tensor<77x64xbf16>) {
  %0 = ax.linear %x, %w : tensor<64x64xf32>, tensor<64x77xf32> -> tensor<64x77xf32>
  %1 = ax.dot %b, %b batch [0] x [0] contract [2] x [2] : tensor<2x64x77xbf16>, tensor<2x64x77xbf16> -> tensor<2x64x64xbf16>
  %2 = ax.linear %r, %v : tensor<8x64xbf16>, tensor<64x77xbf16> -> tensor<8x77xbf16>
  %3 = ax.linear %u, %s : tensor<77x64xbf16>, tensor<64x64xbf16> -> tensor<77x64xbf16>
  axl.yield %0, %1, %2, %3 : tensor<64x77xf32>, tensor<2x64x64xbf16>, tensor<8x77xbf16>, tensor<77x64xbf16>
}
