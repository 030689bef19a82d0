// RUN: axopt-opt %s --axl-pad-products | FileCheck %s

// The vocabulary is no multiple of 8: the result is a part of a larger one.
// CHECK-LABEL: axl.stage @logits
// CHECK: %[[W:.*]] = ax.pad %{{.*}} low [0, 0] high [0, 7] : tensor<1024x1001xbf16> -> tensor<1024x1008xbf16>
// CHECK: %[[Y:.*]] = ax.linear %{{.*}}, %[[W]] : tensor<8x1024x1024xbf16>, tensor<1024x1008xbf16> -> tensor<8x1024x1008xbf16>
// CHECK: %[[P:.*]] = ax.slice %[[Y]] starts [0, 0, 0] steps [1, 1, 1] : tensor<8x1024x1008xbf16> -> tensor<8x1024x1001xbf16>
// CHECK: axl.yield %[[P]]
axl.stage @logits(%x: tensor<8x1024x1024xbf16>, %w: tensor<1024x1001xbf16>) {
  %0 = ax.linear %x, %w : tensor<8x1024x1024xbf16>, tensor<1024x1001xbf16> -> tensor<8x1024x1001xbf16>
  axl.yield %0 : tensor<8x1024x1001xbf16>
}

// A gradient: what is summed over is padded in both.
// CHECK-LABEL: axl.stage @summed
// CHECK-DAG: %[[G:.*]] = ax.pad %{{.*}} low [0, 0] high [0, 7] : tensor<8192x1001xbf16>
// CHECK-DAG: %[[W:.*]] = ax.pad %{{.*}} low [0, 0] high [7, 0] : tensor<1001x1024xbf16>
// CHECK: %[[Y:.*]] = ax.dot %[[G]], %[[W]] {{.*}} -> tensor<8192x1024xf32>
// CHECK-NOT: ax.slice
// CHECK: axl.yield %[[Y]]
axl.stage @summed(%g: tensor<8192x1001xbf16>, %w: tensor<1001x1024xbf16>) {
  %0 = ax.dot %g, %w batch [] x [] contract [1] x [0] : tensor<8192x1001xbf16>, tensor<1001x1024xbf16> -> tensor<8192x1024xf32>
  axl.yield %0 : tensor<8192x1024xf32>
}

// A factor that lies along a dimension of the result.
// CHECK-LABEL: axl.stage @columns
// CHECK: %[[A:.*]] = ax.pad %{{.*}} high [0, 7] : tensor<8192x1001xf16>
// CHECK: %[[Y:.*]] = ax.dot %[[A]], %{{.*}} -> tensor<1008x1024xf16>
// CHECK: ax.slice %[[Y]] {{.*}} -> tensor<1001x1024xf16>
axl.stage @columns(%a: tensor<8192x1001xf16>, %b: tensor<8192x1024xf16>) {
  %0 = ax.dot %a, %b batch [] x [] contract [0] x [0] : tensor<8192x1001xf16>, tensor<8192x1024xf16> -> tensor<1001x1024xf16>
  axl.yield %0 : tensor<1001x1024xf16>
}

// Transposed weights lie along what is summed over.
// CHECK-LABEL: axl.stage @transposed
// CHECK: ax.pad %{{.*}} high [7, 0] : tensor<1001x1024xbf16>
// CHECK: ax.linear {{.*}} {transpose_w} {{.*}} -> tensor<8192x1008xbf16>
axl.stage @transposed(%x: tensor<8192x1024xbf16>, %w: tensor<1001x1024xbf16>) {
  %0 = ax.linear %x, %w {transpose_w} : tensor<8192x1024xbf16>, tensor<1001x1024xbf16> -> tensor<8192x1001xbf16>
  axl.yield %0 : tensor<8192x1001xbf16>
}

// Of f32, of batches, of few rows, of little work, where all fits, and where a
// dimension of 1 would become one of 8 nothing changes.
// CHECK-LABEL: axl.stage @others
// CHECK-NOT: ax.pad
// CHECK-NOT: ax.slice
axl.stage @others(%x: tensor<8192x1024xf32>, %w: tensor<1024x1001xf32>, %b: tensor<2x8192x1001xbf16>, %c: tensor<2x1024x1001xbf16>, %r: tensor<8x65536xbf16>, %v: tensor<65536x50257xbf16>, %l: tensor<64x1024xbf16>, %m: tensor<1024x50257xbf16>, %s: tensor<1024x1024xbf16>, %u: tensor<8191x1024xbf16>, %o: tensor<8192x1024x1xbf16>) {
  %0 = ax.linear %x, %w : tensor<8192x1024xf32>, tensor<1024x1001xf32> -> tensor<8192x1001xf32>
  %1 = ax.dot %b, %c batch [0] x [0] contract [2] x [2] : tensor<2x8192x1001xbf16>, tensor<2x1024x1001xbf16> -> tensor<2x8192x1024xbf16>
  %2 = ax.linear %r, %v : tensor<8x65536xbf16>, tensor<65536x50257xbf16> -> tensor<8x50257xbf16>
  %3 = ax.linear %l, %m : tensor<64x1024xbf16>, tensor<1024x50257xbf16> -> tensor<64x50257xbf16>
  %4 = ax.linear %u, %s : tensor<8191x1024xbf16>, tensor<1024x1024xbf16> -> tensor<8191x1024xbf16>
  %5 = ax.dot %o, %o batch [] x [] contract [0] x [0] : tensor<8192x1024x1xbf16>, tensor<8192x1024x1xbf16> -> tensor<1024x1x1024x1xbf16>
  axl.yield %0, %1, %2, %3, %4, %5 : tensor<8192x1001xf32>, tensor<2x8192x1024xbf16>, tensor<8x50257xbf16>, tensor<64x50257xbf16>, tensor<8191x1024xbf16>, tensor<1024x1x1024x1xbf16>
}

// Integers: 16 columns, and terms, and 32 rows with those of other dimensions; zeros
// add nothing to sums.
// CHECK-LABEL: axl.stage @integers
// CHECK: %[[X:.*]] = ax.pad %{{.*}} low [0, 0, 0] high [0, 11, 7] : tensor<2x5x9xi8> -> tensor<2x16x16xi8>
// CHECK: %[[W:.*]] = ax.pad %{{.*}} low [0, 0] high [7, 3] : tensor<9x13xi8> -> tensor<16x16xi8>
// CHECK: %[[Y:.*]] = ax.dot %[[X]], %[[W]] {{.*}} -> tensor<2x16x16xi32>
// CHECK: ax.slice %[[Y]] starts [0, 0, 0] {{.*}} -> tensor<2x5x13xi32>
// CHECK: %[[A:.*]] = ax.pad %{{.*}} low [0, 0, 0] high [0, 27, 0] : tensor<3x5x16xi8> -> tensor<3x32x16xi8>
// CHECK: ax.dot %[[A]], %{{.*}} batch [0] x [0] {{.*}} -> tensor<3x32x32xi32>
// CHECK: ax.slice %{{.*}} -> tensor<3x5x32xi32>
// CHECK-NOT: ax.pad
axl.stage @integers(%x: tensor<2x5x9xi8>, %w: tensor<9x13xi8>, %a: tensor<3x5x16xi8>, %b: tensor<3x16x32xi8>, %c: tensor<40x4x4xi8>, %d: tensor<4x4x16xi8>) {
  %0 = ax.dot %x, %w batch [] x [] contract [2] x [0] : tensor<2x5x9xi8>, tensor<9x13xi8> -> tensor<2x5x13xi32>
  %1 = ax.dot %a, %b batch [0] x [0] contract [2] x [1] : tensor<3x5x16xi8>, tensor<3x16x32xi8> -> tensor<3x5x32xi32>
  %2 = ax.dot %c, %d batch [] x [] contract [1, 2] x [0, 1] : tensor<40x4x4xi8>, tensor<4x4x16xi8> -> tensor<40x16xi32>
  axl.yield %0, %1, %2 : tensor<2x5x13xi32>, tensor<3x5x32xi32>, tensor<40x16xi32>
}
