// RUN: axopt-opt %s --axl-compose-vectors --split-input-file | FileCheck %s
// RUN: axopt-opt %s --axl-compose-vectors=gpu --split-input-file | FileCheck %s --check-prefix=GPU

// A column for each matrix of a batch.
// CHECK-LABEL: axl.stage @columns
// CHECK: %[[V:.*]] = ax.reshape %{{.*}} -> tensor<8x1x64xf32>
// CHECK: %[[P:.*]] = ax.binary mul %arg0, %[[V]] : tensor<8x16x64xf32>, tensor<8x1x64xf32>
// CHECK: %[[S:.*]] = ax.reduce sum %[[P]] dims [2] : tensor<8x16x64xf32> -> tensor<8x16xf32>
// CHECK: %[[Y:.*]] = ax.reshape %[[S]] : tensor<8x16xf32> -> tensor<8x16x1xf32>
// CHECK: axl.yield %[[Y]]
// GPU-LABEL: axl.stage @columns
// GPU: ax.dot
axl.stage @columns(%m: tensor<8x16x64xf32>, %v: tensor<8x64x1xf32>) {
  %y = ax.dot %m, %v batch [0] x [0] contract [2] x [1] : tensor<8x16x64xf32>, tensor<8x64x1xf32> -> tensor<8x16x1xf32>
  axl.yield %y : tensor<8x16x1xf32>
}

// -----

// What is summed over does not lie together: in groups of rows.
// CHECK-LABEL: axl.stage @transposed
// CHECK: ax.binary mul %{{.*}}, %{{.*}} : tensor<16x4x32xf32>, tensor<16x4x1xf32>
// CHECK: ax.reduce sum %{{.*}} dims [1] : tensor<16x4x32xf32> -> tensor<16x32xf32>
// CHECK: ax.reduce sum %{{.*}} dims [0] : tensor<16x32xf32> -> tensor<32xf32>
axl.stage @transposed(%m: tensor<64x32xf32>, %v: tensor<64x1xf32>) {
  %y = ax.dot %m, %v batch [] x [] contract [0] x [0] : tensor<64x32xf32>, tensor<64x1xf32> -> tensor<32x1xf32>
  axl.yield %y : tensor<32x1xf32>
}

// -----

// A Linear of one feature; sums of narrow floats are wide.
// CHECK-LABEL: axl.stage @feature
// CHECK-NOT: ax.linear
// CHECK: ax.reduce sum %{{.*}} dims [2] : tensor<2x8x64xf32> -> tensor<2x8xf32>
// CHECK: ax.cast %{{.*}} : tensor<2x8xf32> -> tensor<2x8xbf16>
// GPU-LABEL: axl.stage @feature
// GPU: ax.linear
axl.stage @feature(%x: tensor<2x8x64xbf16>, %w: tensor<64x1xbf16>) {
  %y = ax.linear %x, %w : tensor<2x8x64xbf16>, tensor<64x1xbf16> -> tensor<2x8x1xbf16>
  axl.yield %y : tensor<2x8x1xbf16>
}

// -----

// One row meets a matrix that is looked up, whose batch is behind.
// CHECK-LABEL: axl.stage @row
// CHECK-NOT: ax.dot
// CHECK: ax.reduce sum %{{.*}} dims [2] : tensor<16x16x4x4xf32> -> tensor<16x16x4xf32>
// CHECK: %[[S:.*]] = ax.reduce sum %{{.*}} dims [1] : tensor<16x16x4xf32> -> tensor<16x4xf32>
// CHECK: ax.transpose %[[S]] [1, 0] : tensor<16x4xf32> -> tensor<4x16xf32>
// GPU-LABEL: axl.stage @row
// GPU-NOT: ax.dot
// GPU: axl.yield
axl.stage @row(%t: tensor<16x64x9xf32>, %i: tensor<4xi64>, %v: tensor<4x1x64xf32>) {
  %m = ax.gather %t[%i] axis 2 : tensor<16x64x9xf32>, tensor<4xi64> -> tensor<16x64x4xf32>
  %y = ax.dot %v, %m batch [0] x [2] contract [2] x [1] : tensor<4x1x64xf32>, tensor<16x64x4xf32> -> tensor<4x1x16xf32>
  axl.yield %y : tensor<4x1x16xf32>
}

// -----

// Libraries do one row as fast, two columns, and integers.
// CHECK-LABEL: axl.stage @others
// CHECK: ax.dot
// CHECK: ax.dot
// CHECK: ax.dot
axl.stage @others(%v: tensor<1x64xf32>, %m: tensor<64x32xf32>, %c: tensor<32x2xf32>, %n: tensor<32x2xi32>, %o: tensor<2x1xi32>) {
  %a = ax.dot %v, %m batch [] x [] contract [1] x [0] : tensor<1x64xf32>, tensor<64x32xf32> -> tensor<1x32xf32>
  %b = ax.dot %m, %c batch [] x [] contract [1] x [0] : tensor<64x32xf32>, tensor<32x2xf32> -> tensor<64x2xf32>
  %d = ax.dot %n, %o batch [] x [] contract [1] x [0] : tensor<32x2xi32>, tensor<2x1xi32> -> tensor<32x1xi32>
  axl.yield %a, %b, %d : tensor<1x32xf32>, tensor<64x2xf32>, tensor<32x1xi32>
}
