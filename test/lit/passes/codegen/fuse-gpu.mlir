// RUN: axopt-opt %s --axl-fuse | FileCheck %s --check-prefixes=BOTH,CPU
// RUN: axopt-opt %s --axl-fuse="gpu=true" | FileCheck %s --check-prefixes=BOTH,GPU

// cuBLASLt reads no row again and again: what repeats one is written out, by a kernel.
// BOTH: axl.stage @rows(%[[X:.*]]: tensor<8xf32>
// CPU-NOT: axl.fusion
// CPU: ax.linear
// GPU: %[[D:.*]] = axl.fusion(%[[X]]) {
// GPU: ax.broadcast
// GPU: axl.yield
// GPU: ax.linear %[[D]]
axl.stage @rows(%x: tensor<8xf32>, %w: tensor<8x8xf32>) {
  %0 = ax.broadcast %x : tensor<8xf32> -> tensor<4x8xf32>
  %1 = ax.linear %0, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  axl.yield %1 : tensor<4x8xf32>
}

// Of a residual it does: rows one behind another, or all the same.
// BOTH: axl.stage @row(
// BOTH-NOT: axl.fusion
// BOTH: axl.yield
axl.stage @row(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %r: tensor<8xf32>) {
  %0 = ax.broadcast %r : tensor<8xf32> -> tensor<4x8xf32>
  %1 = axl.library(%x, %w, %0) {
  ^bb0(%a: tensor<4x8xf32>, %b: tensor<8x8xf32>, %c: tensor<4x8xf32>):
    %2 = ax.linear %a, %b : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %3 = ax.binary add %2, %c : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    axl.yield %3 : tensor<4x8xf32>
  } : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  axl.yield %1 : tensor<4x8xf32>
}

// But no columns.
// BOTH: axl.stage @columns(%[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<8x8xf32>, %[[R:.*]]: tensor<8x4xf32>)
// CPU-NOT: axl.fusion
// CPU: ax.transpose %[[R]]
// CPU: axl.library
// GPU: %[[D:.*]] = axl.fusion(%[[R]]) {
// GPU: ax.transpose
// GPU: axl.library(%[[X]], %[[W]], %[[D]])
axl.stage @columns(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %r: tensor<8x4xf32>) {
  %0 = ax.transpose %r [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
  %1 = axl.library(%x, %w, %0) {
  ^bb0(%a: tensor<4x8xf32>, %b: tensor<8x8xf32>, %c: tensor<4x8xf32>):
    %2 = ax.linear %a, %b : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %3 = ax.binary add %2, %c : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    axl.yield %3 : tensor<4x8xf32>
  } : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  axl.yield %1 : tensor<4x8xf32>
}

// Transposed factors it reads as they lie.
// BOTH: axl.stage @transposed
// BOTH-NOT: axl.fusion
// BOTH: axl.yield
axl.stage @transposed(%x: tensor<8x4xf32>, %w: tensor<8x8xf32>) {
  %0 = ax.transpose %x [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
  %1 = ax.linear %0, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  axl.yield %1 : tensor<4x8xf32>
}

// Threads have a place of a sum of columns each, and go on with it there.
// BOTH: axl.stage @places
// BOTH: axl.fusion
// BOTH: ax.reduce sum
// CPU: axl.fusion
// GPU-NOT: axl.fusion
// BOTH: ax.binary add
// BOTH: axl.stage @few
axl.stage @places(%x: tensor<16x64xf32>, %y: tensor<1x64xf32>) {
  %0 = ax.reduce sum %x dims [0] : tensor<16x64xf32> -> tensor<64xf32>
  %1 = ax.reshape %0 : tensor<64xf32> -> tensor<1x64xf32>
  %2 = ax.binary add %y, %1 : tensor<1x64xf32>, tensor<1x64xf32> -> tensor<1x64xf32>
  axl.yield %2 : tensor<1x64xf32>
}

// A row is one block's: what is larger than few rows is made by another kernel.
// BOTH: axl.fusion
// BOTH: ax.reduce sum
// CPU-NOT: axl.fusion
// GPU: axl.fusion
// BOTH: ax.binary div
axl.stage @few(%x: tensor<512xf32>, %y: tensor<100000xf32>) {
  %0 = ax.reduce sum %x dims [0] : tensor<512xf32> -> tensor<f32>
  %1 = ax.binary div %y, %0 : tensor<100000xf32>, tensor<f32> -> tensor<100000xf32>
  axl.yield %1 : tensor<100000xf32>
}

// Of many rows it is made by the same.
// BOTH: axl.stage @many
// BOTH: axl.fusion
// BOTH: ax.reduce sum
// BOTH-NOT: axl.fusion
// BOTH: ax.binary div
// BOTH: axl.stage @other
axl.stage @many(%x: tensor<512x8xf32>, %y: tensor<512x100xf32>) {
  %0 = ax.reduce sum %x dims [1] keep_dims : tensor<512x8xf32> -> tensor<512x1xf32>
  %1 = ax.binary div %y, %0 : tensor<512x100xf32>, tensor<512x1xf32> -> tensor<512x100xf32>
  axl.yield %1 : tensor<512x100xf32>
}

// A kernel that has more elements than places, or other rows, is another one.
// BOTH: axl.fusion
// BOTH: ax.reduce sum %{{.*}} dims [0]
// BOTH: axl.fusion
// BOTH: ax.reduce sum %{{.*}} dims [1]
// BOTH-NOT: axl.fusion
// BOTH: ax.binary add
axl.stage @other(%x: tensor<16x64xf32>, %y: tensor<64x64xf32>, %z: tensor<64x64xf32>) {
  %0 = ax.reduce sum %x dims [0] : tensor<16x64xf32> -> tensor<64xf32>
  %1 = ax.reduce sum %y dims [1] keep_dims : tensor<64x64xf32> -> tensor<64x1xf32>
  %2 = ax.binary add %z, %0 : tensor<64x64xf32>, tensor<64xf32> -> tensor<64x64xf32>
  %3 = ax.binary add %2, %1 : tensor<64x64xf32>, tensor<64x1xf32> -> tensor<64x64xf32>
  axl.yield %3 : tensor<64x64xf32>
}

// A number of each row that another kernel reads, too, is a result of the kernel
// that goes on with rows.
// BOTH: axl.stage @statistics
// CPU: axl.fusion
// CPU: axl.fusion
// CPU: axl.fusion
// GPU: %[[F:.*]]:2 = axl.fusion
// GPU: ax.reduce max
// GPU: axl.fusion({{.*}}%[[F]]#0
// GPU-NOT: axl.fusion
// BOTH: axl.yield
axl.stage @statistics(%x: tensor<64x32xf32>) {
  %0 = ax.reduce sum %x dims [1] keep_dims : tensor<64x32xf32> -> tensor<64x1xf32>
  %1 = ax.unary neg %0 : tensor<64x1xf32> -> tensor<64x1xf32>
  %2 = ax.binary mul %x, %1 : tensor<64x32xf32>, tensor<64x1xf32> -> tensor<64x32xf32>
  %3 = ax.reduce max %2 dims [1] keep_dims : tensor<64x32xf32> -> tensor<64x1xf32>
  %4 = ax.binary sub %x, %3 : tensor<64x32xf32>, tensor<64x1xf32> -> tensor<64x32xf32>
  %5 = ax.binary add %x, %1 : tensor<64x32xf32>, tensor<64x1xf32> -> tensor<64x32xf32>
  %6 = ax.reduce sum %5 dims [0] : tensor<64x32xf32> -> tensor<32xf32>
  axl.yield %4, %6 : tensor<64x32xf32>, tensor<32xf32>
}

// A number of each row that is read as one of each column is none of the row's:
// all of them are needed in each.
// BOTH: axl.stage @across
// BOTH: axl.fusion
// BOTH: ax.reduce sum
// BOTH: axl.fusion
// BOTH: ax.reduce max
// BOTH: axl.stage @directly
// BOTH: axl.fusion
// BOTH: ax.reduce sum
// BOTH: axl.fusion
// BOTH: ax.reduce max
axl.stage @across(%x: tensor<64x64xf32>, %b: tensor<64x32xf32>) {
  %v = ax.reduce sum %b dims [1] : tensor<64x32xf32> -> tensor<64xf32>
  %c = ax.constant dense<0.5> : tensor<f32> -> tensor<f32>
  %h = ax.binary mul %v, %c : tensor<64xf32>, tensor<f32> -> tensor<64xf32>
  %l = ax.binary sub %x, %h : tensor<64x64xf32>, tensor<64xf32> -> tensor<64x64xf32>
  %m = ax.reduce max %l dims [1] keep_dims : tensor<64x64xf32> -> tensor<64x1xf32>
  %y = ax.binary sub %l, %m : tensor<64x64xf32>, tensor<64x1xf32> -> tensor<64x64xf32>
  axl.yield %y : tensor<64x64xf32>
}
axl.stage @directly(%x: tensor<64x64xf32>, %b: tensor<64x32xf32>) {
  %v = ax.reduce sum %b dims [1] : tensor<64x32xf32> -> tensor<64xf32>
  %l = ax.binary sub %x, %v : tensor<64x64xf32>, tensor<64xf32> -> tensor<64x64xf32>
  %m = ax.reduce max %l dims [1] keep_dims : tensor<64x64xf32> -> tensor<64x1xf32>
  %y = ax.binary sub %l, %m : tensor<64x64xf32>, tensor<64x1xf32> -> tensor<64x64xf32>
  axl.yield %y : tensor<64x64xf32>
}

// Of 16 bits cuDNN reads what is turned, and not what is behind that: images,
// and weights, which a CPU has dense.
// BOTH: axl.stage @images(%[[X:.*]]: tensor<2x8x4x4xbf16>, %[[W:.*]]: tensor<8x8x3x3xbf16>)
// CPU-NOT: axl.fusion
// CPU: ax.conv
// GPU: %[[A:.*]] = axl.fusion(%[[X]]) {
// GPU: ax.transpose
// GPU: -> tensor<2x4x4x8xbf16>
// GPU: %[[A1:.*]] = ax.transpose %[[A]] [0, 3, 1, 2]
// GPU: %[[B:.*]] = axl.fusion(%[[W]]) {
// GPU: ax.transpose
// GPU: -> tensor<8x3x3x8xbf16>
// GPU: %[[B1:.*]] = ax.transpose %[[B]] [0, 3, 1, 2]
// GPU: ax.conv %[[A1]], %[[B1]]
axl.stage @images(%x: tensor<2x8x4x4xbf16>, %w: tensor<8x8x3x3xbf16>) {
  %0 = ax.transpose %x [0, 2, 3, 1] : tensor<2x8x4x4xbf16> -> tensor<2x4x4x8xbf16>
  %1 = ax.transpose %0 [0, 3, 1, 2] : tensor<2x4x4x8xbf16> -> tensor<2x8x4x4xbf16>
  %2 = ax.transpose %w [0, 2, 3, 1] : tensor<8x8x3x3xbf16> -> tensor<8x3x3x8xbf16>
  %3 = ax.transpose %2 [0, 3, 1, 2] : tensor<8x3x3x8xbf16> -> tensor<8x8x3x3xbf16>
  %4 = ax.conv %1, %3 strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] : tensor<2x8x4x4xbf16>, tensor<8x8x3x3xbf16> -> tensor<2x8x4x4xbf16>
  axl.yield %4 : tensor<2x8x4x4xbf16>
}

// What begins between two multiples of 16 bytes is copied.
// BOTH: axl.stage @begins
// CPU-NOT: axl.fusion
// GPU: axl.fusion
// GPU: ax.slice
// BOTH: ax.conv
axl.stage @begins(%x: tensor<3x4x4x3xbf16>, %w: tensor<3x3x1x1xbf16>) {
  %0 = ax.slice %x starts [1, 0, 0, 0] steps [1, 1, 1, 1] : tensor<3x4x4x3xbf16> -> tensor<2x4x4x3xbf16>
  %1 = ax.reshape %0 : tensor<2x4x4x3xbf16> -> tensor<1x8x4x3xbf16>
  %2 = ax.slice %1 starts [0, 1, 0, 0] steps [1, 1, 1, 1] : tensor<1x8x4x3xbf16> -> tensor<1x7x4x3xbf16>
  %3 = ax.transpose %2 [0, 3, 1, 2] : tensor<1x7x4x3xbf16> -> tensor<1x3x7x4xbf16>
  %4 = ax.conv %3, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x3x7x4xbf16>, tensor<3x3x1x1xbf16> -> tensor<1x3x7x4xbf16>
  axl.yield %4 : tensor<1x3x7x4xbf16>
}

// The largest of each row is found by whoever has the rows, though neither reads
// the other. What that makes of bytes is transposed by a kernel of its own, which
// reads no more than bytes.
// BOTH: axl.stage @beside(%[[X:.*]]: tensor<512x640xf32>)
// GPU: %[[Q:.*]]:2 = axl.fusion(%[[X]]) {
// GPU-NEXT: bb0
// GPU-NEXT: ax.unary abs
// GPU-NEXT: ax.reduce max
// GPU-NEXT: ax.binary add
// GPU-NEXT: ax.cast
// GPU-NEXT: axl.yield
// GPU: %[[T:.*]] = axl.fusion(%[[Q]]#1) {
// GPU-NEXT: bb0
// GPU-NEXT: ax.transpose
// GPU-NEXT: axl.yield
// GPU: axl.yield %[[Q]]#0, %[[Q]]#1, %[[T]]
axl.stage @beside(%x: tensor<512x640xf32>) {
  %0 = ax.unary abs %x : tensor<512x640xf32> -> tensor<512x640xf32>
  %1 = ax.reduce max %0 dims [1] : tensor<512x640xf32> -> tensor<512xf32>
  %2 = ax.binary add %x, %x : tensor<512x640xf32>, tensor<512x640xf32> -> tensor<512x640xf32>
  %3 = ax.cast %2 : tensor<512x640xf32> -> tensor<512x640xf8E4M3FN>
  %4 = ax.transpose %3 [1, 0] : tensor<512x640xf8E4M3FN> -> tensor<640x512xf8E4M3FN>
  axl.yield %1, %3, %4 : tensor<512xf32>, tensor<512x640xf8E4M3FN>, tensor<640x512xf8E4M3FN>
}

// Few rows would leave most of a card idle; what makes more than the rows has other
// loops; and an update writes over its state.
// BOTH: axl.stage @fewBeside(
// GPU-COUNT-2: axl.fusion
// GPU: axl.stage @more(
// GPU-COUNT-2: axl.fusion
// GPU: axl.stage @update(
// GPU-COUNT-2: axl.fusion
// BOTH: axl.yield %{{.*}}, %{{.*}} : tensor<512xf32>, tensor<512x640xf32>
axl.stage @fewBeside(%x: tensor<4x640xf32>) {
  %0 = ax.reduce max %x dims [1] : tensor<4x640xf32> -> tensor<4xf32>
  %1 = ax.cast %x : tensor<4x640xf32> -> tensor<4x640xbf16>
  axl.yield %0, %1 : tensor<4xf32>, tensor<4x640xbf16>
}
axl.stage @more(%x: tensor<512x640xf32>, %y: tensor<512x640x64xf32>) {
  %0 = ax.reduce max %x dims [1] : tensor<512x640xf32> -> tensor<512xf32>
  %1 = ax.reshape %x : tensor<512x640xf32> -> tensor<512x640x1xf32>
  %2 = ax.binary mul %y, %1 : tensor<512x640x64xf32>, tensor<512x640x1xf32> -> tensor<512x640x64xf32>
  axl.yield %0, %2 : tensor<512xf32>, tensor<512x640x64xf32>
}
axl.stage @update(%x: tensor<512x640xf32>) {
  %0 = ax.reduce max %x dims [1] : tensor<512x640xf32> -> tensor<512xf32>
  %1 = ax.unary neg %x : tensor<512x640xf32> -> tensor<512x640xf32>
  axl.yield %0, %1 : tensor<512xf32>, tensor<512x640xf32>
}

// Not by what waits for it, nor by what has other rows.
// BOTH: axl.stage @apart(
// GPU-COUNT-3: axl.fusion
// GPU-NOT: axl.fusion
// BOTH: axl.yield %{{.*}}, %{{.*}} : tensor<512x640xf32>, tensor<640x512xf32>
axl.stage @apart(%x: tensor<512x640xf32>) {
  %0 = ax.unary abs %x : tensor<512x640xf32> -> tensor<512x640xf32>
  %1 = ax.reduce max %0 dims [1] : tensor<512x640xf32> -> tensor<512xf32>
  %2 = ax.reshape %1 : tensor<512xf32> -> tensor<1x512xf32>
  %3 = ax.linear %2, %x : tensor<1x512xf32>, tensor<512x640xf32> -> tensor<1x640xf32>
  %4 = ax.binary mul %x, %3 : tensor<512x640xf32>, tensor<1x640xf32> -> tensor<512x640xf32>
  %5 = ax.transpose %x [1, 0] : tensor<512x640xf32> -> tensor<640x512xf32>
  %6 = ax.unary neg %5 : tensor<640x512xf32> -> tensor<640x512xf32>
  axl.yield %4, %6 : tensor<512x640xf32>, tensor<640x512xf32>
}
