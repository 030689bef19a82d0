// RUN: axopt-opt %s --axl-group-products --split-input-file | FileCheck %s
// RUN: axopt-opt %s --axl-group-products=gpu --split-input-file | FileCheck %s --check-prefix=GPU

// As PyTorch's exporters write experts: a column for each matrix.
// CHECK-LABEL: axl.stage @columns
// CHECK-NOT: ax.gather
// CHECK: %[[X:.*]] = ax.reshape %{{.*}} -> tensor<16x64xf32>
// CHECK: %[[Y:.*]] = axl.grouped_matmul %[[X]], %arg1[%{{.*}}] transpose_w : tensor<16x64xf32>, tensor<4x32x64xf32>, tensor<16xi64> -> tensor<16x32xf32>
// CHECK: %[[R:.*]] = ax.reshape %[[Y]] : tensor<16x32xf32> -> tensor<16x1x32xf32>
// CHECK: %[[T:.*]] = ax.transpose %[[R]] [0, 2, 1] : tensor<16x1x32xf32> -> tensor<16x32x1xf32>
// CHECK: axl.yield %[[T]]
// GPU-LABEL: axl.stage @columns
// GPU-NOT: axl.grouped
// GPU: %[[ALL:.*]] = ax.dot %{{.*}}, %arg1 batch [] x [] contract [1] x [2] : tensor<16x64xf32>, tensor<4x32x64xf32> -> tensor<16x4x32xf32>
// GPU: %[[OWN:.*]] = ax.select %{{.*}}, %[[ALL]], %{{.*}} -> tensor<16x4x32xf32>
// GPU: ax.reduce sum %[[OWN]] dims [1] : tensor<16x4x32xf32> -> tensor<16x32xf32>
axl.stage @columns(%s: tensor<16x4xf32>, %w: tensor<4x32x64xf32>, %x: tensor<16x64x1xf32>) {
  %values, %i = ax.top_k %s k 1 dim 1 : tensor<16x4xf32> -> tensor<16x1xf32>, tensor<16x1xi64>
  %flat = ax.reshape %i : tensor<16x1xi64> -> tensor<16xi64>
  %m = ax.gather %w[%flat] axis 0 : tensor<4x32x64xf32>, tensor<16xi64> -> tensor<16x32x64xf32>
  %y = ax.dot %m, %x batch [0] x [0] contract [2] x [1] : tensor<16x32x64xf32>, tensor<16x64x1xf32> -> tensor<16x32x1xf32>
  axl.yield %y : tensor<16x32x1xf32>
}

// -----

// Indices of two dimensions, in another order, which may count from behind;
// several rows for each; matrices on the right.
// CHECK-LABEL: axl.stage @rows
// CHECK: ax.transpose %arg2 [1, 0, 2, 3] : tensor<3x5x7x8xbf16> -> tensor<5x3x7x8xbf16>
// CHECK: ax.compare lt %arg0
// CHECK: ax.broadcast %{{.*}} : tensor<15x1xi64> -> tensor<15x7xi64>
// CHECK: %[[Y:.*]] = axl.grouped_matmul %{{.*}}, %arg1[%{{.*}}] : tensor<105x8xbf16>, tensor<4x8x9xbf16>, tensor<105xi64> -> tensor<105x9xf32>
// CHECK: %[[S:.*]] = ax.reshape %[[Y]] : tensor<105x9xf32> -> tensor<5x3x7x9xf32>
// CHECK: ax.transpose %[[S]] [1, 0, 2, 3] : tensor<5x3x7x9xf32> -> tensor<3x5x7x9xf32>
axl.stage @rows(%i: tensor<5x3xi64>, %w: tensor<4x8x9xbf16>, %x: tensor<3x5x7x8xbf16>) {
  %m = ax.gather %w[%i] axis 0 : tensor<4x8x9xbf16>, tensor<5x3xi64> -> tensor<5x3x8x9xbf16>
  %y = ax.dot %x, %m batch [0, 1] x [1, 0] contract [3] x [2] : tensor<3x5x7x8xbf16>, tensor<5x3x8x9xbf16> -> tensor<3x5x7x9xf32>
  axl.yield %y : tensor<3x5x7x9xf32>
}

// -----

// No more look-ups than matrices, whatever the rows of each; and single columns.
// CHECK-LABEL: axl.stage @few
// CHECK-NOT: axl.grouped_matmul
// GPU-LABEL: axl.stage @few
// GPU-NOT: ax.select
axl.stage @few(%i: tensor<4xi64>, %w: tensor<4x8x16xf32>, %x: tensor<4x8xf32>, %r: tensor<4x30x8xf32>, %j: tensor<90xi64>, %v: tensor<4x1x8xf32>, %z: tensor<90x8xf32>) {
  %m = ax.gather %w[%i] axis 0 : tensor<4x8x16xf32>, tensor<4xi64> -> tensor<4x8x16xf32>
  %y = ax.dot %x, %m batch [0] x [0] contract [1] x [1] : tensor<4x8xf32>, tensor<4x8x16xf32> -> tensor<4x16xf32>
  %q = ax.dot %r, %m batch [0] x [0] contract [2] x [1] : tensor<4x30x8xf32>, tensor<4x8x16xf32> -> tensor<4x30x16xf32>
  %c = ax.gather %v[%j] axis 0 : tensor<4x1x8xf32>, tensor<90xi64> -> tensor<90x1x8xf32>
  %s = ax.dot %z, %c batch [0] x [0] contract [1] x [2] : tensor<90x8xf32>, tensor<90x1x8xf32> -> tensor<90x1xf32>
  axl.yield %y, %q, %s : tensor<4x16xf32>, tensor<4x30x16xf32>, tensor<90x1xf32>
}

// -----

// Rows of a table are no matrices, and what is summed over is not looked up by.
// CHECK-LABEL: axl.stage @others
// CHECK-NOT: axl.grouped_matmul
axl.stage @others(%i: tensor<9xi64>, %t: tensor<4x8xf32>, %w: tensor<4x8x6xf32>, %x: tensor<9x8xf32>) {
  %r = ax.gather %t[%i] axis 0 : tensor<4x8xf32>, tensor<9xi64> -> tensor<9x8xf32>
  %a = ax.dot %x, %r batch [0] x [0] contract [1] x [1] : tensor<9x8xf32>, tensor<9x8xf32> -> tensor<9xf32>
  %m = ax.gather %w[%i] axis 0 : tensor<4x8x6xf32>, tensor<9xi64> -> tensor<9x8x6xf32>
  %b = ax.dot %x, %m batch [] x [] contract [0] x [0] : tensor<9x8xf32>, tensor<9x8x6xf32> -> tensor<8x8x6xf32>
  axl.yield %a, %b : tensor<9xf32>, tensor<8x8x6xf32>
}

// -----

// Outer products, of what was narrow, where they were looked up.
// CHECK-LABEL: axl.stage @gradient
// CHECK-NOT: ax.scatter_nd
// CHECK: axl.grouped_weight_gradient %{{.*}}, %{{.*}}[%{{.*}}] : tensor<16x32xbf16>, tensor<16x64xbf16>, tensor<16xi64> -> tensor<4x32x64xf32>
// GPU-LABEL: axl.stage @gradient
// GPU-NOT: ax.scatter_nd
// GPU: ax.dot %{{.*}}, %{{.*}} batch [] x [] contract [0] x [0] : tensor<16x32xbf16>, tensor<16x4x64xbf16> -> tensor<32x4x64xf32>
// GPU: ax.transpose %{{.*}} [1, 0, 2] : tensor<32x4x64xf32> -> tensor<4x32x64xf32>
axl.stage @gradient(%i: tensor<16xi64>, %g: tensor<16x32x1xbf16>, %x: tensor<16x64x1xbf16>) {
  %zeros = ax.constant dense<0.0> : tensor<4x32x64xf32> -> tensor<4x32x64xf32>
  %d = ax.dot %g, %x batch [0] x [0] contract [2] x [2] : tensor<16x32x1xbf16>, tensor<16x64x1xbf16> -> tensor<16x32x64xbf16>
  %wide = ax.cast %d : tensor<16x32x64xbf16> -> tensor<16x32x64xf32>
  %at = ax.reshape %i : tensor<16xi64> -> tensor<16x1xi64>
  %dw = ax.scatter_nd add %zeros[%at], %wide : tensor<4x32x64xf32>, tensor<16x1xi64>, tensor<16x32x64xf32> -> tensor<4x32x64xf32>
  axl.yield %dw : tensor<4x32x64xf32>
}

// -----

// To what is there already, it is no gradient alone.
// CHECK-LABEL: axl.stage @added
// CHECK: ax.scatter_nd
axl.stage @added(%i: tensor<16x1xi64>, %g: tensor<16x32x1xf32>, %x: tensor<16x64x1xf32>, %w: tensor<4x32x64xf32>) {
  %d = ax.dot %g, %x batch [0] x [0] contract [2] x [2] : tensor<16x32x1xf32>, tensor<16x64x1xf32> -> tensor<16x32x64xf32>
  %dw = ax.scatter_nd add %w[%i], %d : tensor<4x32x64xf32>, tensor<16x1xi64>, tensor<16x32x64xf32> -> tensor<4x32x64xf32>
  axl.yield %dw : tensor<4x32x64xf32>
}

// -----

// What is rounded and transposed for each row is so for each matrix.
// CHECK-LABEL: axl.stage @behind
// CHECK: %[[N:.*]] = ax.cast %arg1 : tensor<4x32x64xf32> -> tensor<4x32x64xbf16>
// CHECK: %[[T:.*]] = ax.transpose %[[N]] [0, 2, 1] : tensor<4x32x64xbf16> -> tensor<4x64x32xbf16>
// CHECK: axl.grouped_matmul %{{.*}}, %[[T]][%{{.*}}] : tensor<16x64xbf16>, tensor<4x64x32xbf16>, tensor<16xi64> -> tensor<16x32xbf16>
axl.stage @behind(%i: tensor<16xi64>, %w: tensor<4x32x64xf32>, %x: tensor<16x64xbf16>) {
  %m = ax.gather %w[%i] axis 0 : tensor<4x32x64xf32>, tensor<16xi64> -> tensor<16x32x64xf32>
  %c = ax.cast %m : tensor<16x32x64xf32> -> tensor<16x32x64xbf16>
  %t = ax.transpose %c [0, 2, 1] : tensor<16x32x64xbf16> -> tensor<16x64x32xbf16>
  %y = ax.dot %x, %t batch [0] x [0] contract [1] x [1] : tensor<16x64xbf16>, tensor<16x64x32xbf16> -> tensor<16x32xbf16>
  axl.yield %y : tensor<16x32xbf16>
}

// -----

// And outer products that are transposed before they are added up.
// CHECK-LABEL: axl.stage @turned
// CHECK: axl.grouped_weight_gradient %[[X:.*]], %[[G:.*]][%{{.*}}] : tensor<16x64xf32>, tensor<16x32xf32>, tensor<16xi64> -> tensor<4x64x32xf32>
axl.stage @turned(%i: tensor<16x1xi64>, %g: tensor<16x32x1xf32>, %x: tensor<16x64x1xf32>) {
  %zeros = ax.constant dense<0.0> : tensor<4x64x32xf32> -> tensor<4x64x32xf32>
  %d = ax.dot %g, %x batch [0] x [0] contract [2] x [2] : tensor<16x32x1xf32>, tensor<16x64x1xf32> -> tensor<16x32x64xf32>
  %t = ax.transpose %d [0, 2, 1] : tensor<16x32x64xf32> -> tensor<16x64x32xf32>
  %dw = ax.scatter_nd add %zeros[%i], %t : tensor<4x64x32xf32>, tensor<16x1xi64>, tensor<16x64x32xf32> -> tensor<4x64x32xf32>
  axl.yield %dw : tensor<4x64x32xf32>
}

// -----

// Bytes and their scales, which are looked up each: all are widened once. What
// is one for all indices stays.
// CHECK-LABEL: axl.stage @bytes
// CHECK-SAME: %[[X:.*]]: tensor<16x6xf32>, %[[W:.*]]: tensor<4x8x6xui8>, %[[S:.*]]: tensor<4x8xf32>, %[[I:.*]]: tensor<16xi64>
// CHECK-NOT: ax.gather
// CHECK: %[[F:.*]] = ax.cast %[[W]] : tensor<4x8x6xui8> -> tensor<4x8x6xf32>
// CHECK: %[[Z:.*]] = ax.binary sub %[[F]], %{{.*}} : tensor<4x8x6xf32>, tensor<f32> -> tensor<4x8x6xf32>
// CHECK: %[[E:.*]] = ax.reshape %[[S]] : tensor<4x8xf32> -> tensor<4x8x1xf32>
// CHECK: %[[M:.*]] = ax.binary mul %[[Z]], %[[E]] : tensor<4x8x6xf32>, tensor<4x8x1xf32> -> tensor<4x8x6xf32>
// CHECK: axl.grouped_matmul %[[X]], %[[M]][%{{.*}}] transpose_w
axl.stage @bytes(%x: tensor<16x6xf32>, %w: tensor<4x8x6xui8>, %s: tensor<4x8xf32>, %i: tensor<16xi64>) {
  %zero = ax.constant dense<8.0> : tensor<f32> -> tensor<f32>
  %b = ax.gather %w[%i] axis 0 : tensor<4x8x6xui8>, tensor<16xi64> -> tensor<16x8x6xui8>
  %f = ax.cast %b : tensor<16x8x6xui8> -> tensor<16x8x6xf32>
  %z = ax.binary sub %f, %zero : tensor<16x8x6xf32>, tensor<f32> -> tensor<16x8x6xf32>
  %e = ax.gather %s[%i] axis 0 : tensor<4x8xf32>, tensor<16xi64> -> tensor<16x8xf32>
  %e3 = ax.reshape %e : tensor<16x8xf32> -> tensor<16x8x1xf32>
  %m = ax.binary mul %z, %e3 : tensor<16x8x6xf32>, tensor<16x8x1xf32> -> tensor<16x8x6xf32>
  %y = ax.dot %x, %m batch [0] x [0] contract [1] x [2] : tensor<16x6xf32>, tensor<16x8x6xf32> -> tensor<16x8xf32>
  axl.yield %y : tensor<16x8xf32>
}

// -----

// Scales that other indices look up, of another number of matrices, or that
// each row has its own of, are not those of matrices.
// CHECK-LABEL: axl.stage @scales
// CHECK-NOT: axl.grouped_matmul
axl.stage @scales(%x: tensor<16x6xf32>, %w: tensor<4x8x6xf32>, %s: tensor<4x8x1xf32>, %t: tensor<5x8x1xf32>, %i: tensor<16xi64>, %j: tensor<16xi64>, %r: tensor<16x1x1xf32>) {
  %b = ax.gather %w[%i] axis 0 : tensor<4x8x6xf32>, tensor<16xi64> -> tensor<16x8x6xf32>
  %e = ax.gather %s[%j] axis 0 : tensor<4x8x1xf32>, tensor<16xi64> -> tensor<16x8x1xf32>
  %m = ax.binary mul %b, %e : tensor<16x8x6xf32>, tensor<16x8x1xf32> -> tensor<16x8x6xf32>
  %y = ax.dot %x, %m batch [0] x [0] contract [1] x [2] : tensor<16x6xf32>, tensor<16x8x6xf32> -> tensor<16x8xf32>
  %e2 = ax.gather %t[%i] axis 0 : tensor<5x8x1xf32>, tensor<16xi64> -> tensor<16x8x1xf32>
  %m2 = ax.binary mul %b, %e2 : tensor<16x8x6xf32>, tensor<16x8x1xf32> -> tensor<16x8x6xf32>
  %y2 = ax.dot %x, %m2 batch [0] x [0] contract [1] x [2] : tensor<16x6xf32>, tensor<16x8x6xf32> -> tensor<16x8xf32>
  %m3 = ax.binary mul %b, %r : tensor<16x8x6xf32>, tensor<16x1x1xf32> -> tensor<16x8x6xf32>
  %y3 = ax.dot %x, %m3 batch [0] x [0] contract [1] x [2] : tensor<16x6xf32>, tensor<16x8x6xf32> -> tensor<16x8xf32>
  axl.yield %y, %y2, %y3 : tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>
}

// -----

// Of many rows a GPU brings each group's together, in tiles of 128, 2048 / 128 + 32
// of them; each meets its group's matrix, which is widened for it.
// CHECK-LABEL: axl.stage @tiles
// CHECK: axl.grouped_matmul
// CHECK: axl.grouped_weight_gradient
// GPU-LABEL: axl.stage @tiles
// GPU-SAME: %[[W:.*]]: tensor<32x8x6xbf16>, %[[X:.*]]: tensor<2048x6xf32>
// GPU: %[[ROW:.*]] = ax.scatter_nd set {{.*}} -> tensor<6144xi64>
// GPU: %[[G:.*]] = ax.binary min {{.*}} : tensor<48xi64>
// GPU: %[[M:.*]] = ax.gather %[[W]][%[[G]]] axis 0 : tensor<32x8x6xbf16>, tensor<48xi64> -> tensor<48x8x6xbf16>
// GPU: %[[F:.*]] = ax.cast %[[M]] : tensor<48x8x6xbf16> -> tensor<48x8x6xf32>
// GPU: %[[T:.*]] = ax.gather %[[X]][%{{.*}}] axis 0 : tensor<2048x6xf32>, tensor<6144xi64> -> tensor<6144x6xf32>
// GPU: %[[Z:.*]] = ax.select %{{.*}}, %[[T]], %{{.*}}
// GPU: %[[R:.*]] = ax.reshape %[[Z]] : tensor<6144x6xf32> -> tensor<48x128x6xf32>
// GPU: %[[Y:.*]] = ax.dot %[[R]], %[[F]] batch [0] x [0] contract [2] x [2]
// GPU: %[[P:.*]] = ax.reshape %[[Y]] : tensor<48x128x8xf32> -> tensor<6144x8xf32>
// GPU: ax.gather %[[P]][%{{.*}}] axis 0 : tensor<6144x8xf32>, tensor<2048xi64> -> tensor<2048x8xf32>
// GPU: %[[D:.*]] = ax.dot %{{.*}}, %{{.*}} batch [0] x [0] contract [1] x [1] : tensor<48x128x8xf32>, tensor<48x128x6xf32> -> tensor<48x8x6xf32>
// GPU: ax.scatter_nd add %{{.*}}[%{{.*}}], %[[D]] : tensor<32x8x6xf32>, tensor<48x1xi64>, tensor<48x8x6xf32> -> tensor<32x8x6xf32>
axl.stage @tiles(%w: tensor<32x8x6xbf16>, %x: tensor<2048x6xf32>, %i: tensor<2048xi64>, %g: tensor<2048x8x1xf32>, %x3: tensor<2048x6x1xf32>) {
  %m = ax.gather %w[%i] axis 0 : tensor<32x8x6xbf16>, tensor<2048xi64> -> tensor<2048x8x6xbf16>
  %f = ax.cast %m : tensor<2048x8x6xbf16> -> tensor<2048x8x6xf32>
  %y = ax.dot %x, %f batch [0] x [0] contract [1] x [2] : tensor<2048x6xf32>, tensor<2048x8x6xf32> -> tensor<2048x8xf32>
  %zeros = ax.constant dense<0.0> : tensor<32x8x6xf32> -> tensor<32x8x6xf32>
  %at = ax.reshape %i : tensor<2048xi64> -> tensor<2048x1xi64>
  %d = ax.dot %g, %x3 batch [0] x [0] contract [2] x [2] : tensor<2048x8x1xf32>, tensor<2048x6x1xf32> -> tensor<2048x8x6xf32>
  %dw = ax.scatter_nd add %zeros[%at], %d : tensor<32x8x6xf32>, tensor<2048x1xi64>, tensor<2048x8x6xf32> -> tensor<32x8x6xf32>
  axl.yield %y, %dw : tensor<2048x8xf32>, tensor<32x8x6xf32>
}

// -----

// What is a matrix for each index for one, and one for all of them for another, is
// none of both.
// CHECK-LABEL: axl.stage @both
// CHECK-NOT: axl.grouped_matmul
axl.stage @both(%x: tensor<16x6xf32>, %w: tensor<4x16x6xf32>, %v: tensor<4x16xf32>, %i: tensor<16xi64>) {
  %m = ax.gather %w[%i] axis 0 : tensor<4x16x6xf32>, tensor<16xi64> -> tensor<16x16x6xf32>
  %b = ax.gather %v[%i] axis 0 : tensor<4x16xf32>, tensor<16xi64> -> tensor<16x16xf32>
  %b3 = ax.reshape %b : tensor<16x16xf32> -> tensor<16x16x1xf32>
  %s = ax.binary add %m, %b3 : tensor<16x16x6xf32>, tensor<16x16x1xf32> -> tensor<16x16x6xf32>
  %c3 = ax.broadcast %b : tensor<16x16xf32> -> tensor<16x16x16xf32>
  %d = ax.slice %c3 starts [0, 0, 0] steps [1, 1, 1] : tensor<16x16x16xf32> -> tensor<16x16x6xf32>
  %p = ax.binary mul %s, %d : tensor<16x16x6xf32>, tensor<16x16x6xf32> -> tensor<16x16x6xf32>
  %y = ax.dot %x, %p batch [0] x [0] contract [1] x [2] : tensor<16x6xf32>, tensor<16x16x6xf32> -> tensor<16x16xf32>
  axl.yield %y : tensor<16x16xf32>
}

// -----

// Each look-up checks its indices: of as many matrices they are the same.
// CHECK-LABEL: axl.stage @checked
// CHECK: axl.grouped_matmul
axl.stage @checked(%x: tensor<16x6xf32>, %w: tensor<4x8x6xf32>, %s: tensor<4x8x1xf32>, %i: tensor<16xi64>) {
  %j = axl.check_indices %i sizes [4] of tensor<4x8x6xf32> order 0 : tensor<16xi64>
  %b = ax.gather %w[%j] axis 0 : tensor<4x8x6xf32>, tensor<16xi64> -> tensor<16x8x6xf32>
  %k = axl.check_indices %i sizes [4] of tensor<4x8x1xf32> order 1 : tensor<16xi64>
  %e = ax.gather %s[%k] axis 0 : tensor<4x8x1xf32>, tensor<16xi64> -> tensor<16x8x1xf32>
  %m = ax.binary mul %b, %e : tensor<16x8x6xf32>, tensor<16x8x1xf32> -> tensor<16x8x6xf32>
  %y = ax.dot %x, %m batch [0] x [0] contract [1] x [2] : tensor<16x6xf32>, tensor<16x8x6xf32> -> tensor<16x8xf32>
  axl.yield %y : tensor<16x8xf32>
}
