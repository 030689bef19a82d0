// RUN: axopt-opt %s --axl-split-reductions | FileCheck %s

// A part is in one piece, as are the rows of which it is.
// CHECK-LABEL: axl.stage @scalar
// CHECK: %[[X:.*]] = ax.reshape %{{.*}} : tensor<768x3072xf32> -> tensor<192x12288xf32>
// CHECK: %[[P:.*]] = ax.reduce sum %[[X]] dims [1] : tensor<192x12288xf32> -> tensor<192xf32>
// CHECK: %[[S:.*]] = ax.reduce sum %[[P]] dims [0] : tensor<192xf32> -> tensor<f32>
// CHECK: axl.yield %[[S]]
axl.stage @scalar(%x: tensor<768x3072xf32>) {
  %0 = ax.reduce sum %x dims [0, 1] : tensor<768x3072xf32> -> tensor<f32>
  axl.yield %0 : tensor<f32>
}

// Parts of columns are next to each other. Narrow floats are rounded in the end.
// CHECK-LABEL: axl.stage @columns
// CHECK: %[[W:.*]] = ax.cast %{{.*}} : tensor<8x1024x768xbf16> -> tensor<8x1024x768xf32>
// CHECK: %[[X:.*]] = ax.reshape %[[W]] : tensor<8x1024x768xf32> -> tensor<512x16x768xf32>
// CHECK: %[[P:.*]] = ax.reduce sum %[[X]] dims [0] : tensor<512x16x768xf32> -> tensor<16x768xf32>
// CHECK: %[[S:.*]] = ax.reduce sum %[[P]] dims [0] : tensor<16x768xf32> -> tensor<768xf32>
// CHECK: %[[N:.*]] = ax.cast %[[S]] : tensor<768xf32> -> tensor<768xbf16>
// CHECK: %[[K:.*]] = ax.reshape %[[N]] : tensor<768xbf16> -> tensor<1x1x768xbf16>
// CHECK: axl.yield %[[K]]
axl.stage @columns(%x: tensor<8x1024x768xbf16>) {
  %0 = ax.reduce sum %x dims [0, 1] keep_dims : tensor<8x1024x768xbf16> -> tensor<1x1x768xbf16>
  axl.yield %0 : tensor<1x1x768xbf16>
}

// Of several runs of dimensions, one is cut: the first that has enough.
// CHECK-LABEL: axl.stage @channels
// CHECK: %[[X:.*]] = ax.reshape %{{.*}} : tensor<32x64x3136xi32> -> tensor<8x4x64x3136xi32>
// CHECK: %[[P:.*]] = ax.reduce max %[[X]] dims [1, 3] : tensor<8x4x64x3136xi32> -> tensor<8x64xi32>
// CHECK: ax.reduce max %[[P]] dims [0] : tensor<8x64xi32> -> tensor<64xi32>
axl.stage @channels(%x: tensor<32x64x3136xi32>) {
  %0 = ax.reduce max %x dims [0, 2] : tensor<32x64x3136xi32> -> tensor<64xi32>
  axl.yield %0 : tensor<64xi32>
}

// CHECK-LABEL: axl.stage @image
// CHECK: %[[X:.*]] = ax.reshape %{{.*}} : tensor<1x64x80000xf32> -> tensor<1x64x8x10000xf32>
// CHECK: %[[P:.*]] = ax.reduce sum %[[X]] dims [0, 3] : tensor<1x64x8x10000xf32> -> tensor<64x8xf32>
// CHECK: ax.reduce sum %[[P]] dims [1] : tensor<64x8xf32> -> tensor<64xf32>
axl.stage @image(%x: tensor<1x64x80000xf32>) {
  %0 = ax.reduce sum %x dims [0, 2] : tensor<1x64x80000xf32> -> tensor<64xf32>
  axl.yield %0 : tensor<64xf32>
}

// What is large enough for a card, or small, or cannot be divided, stays.
// CHECK-LABEL: axl.stage @whole
// CHECK-COUNT-3: ax.reduce
// CHECK-NEXT: axl.yield
axl.stage @whole(%many: tensor<4096x3072xf32>, %few: tensor<65535xf32>, %prime: tensor<1000003xf32>) {
  %0 = ax.reduce sum %many dims [1] : tensor<4096x3072xf32> -> tensor<4096xf32>
  %1 = ax.reduce sum %few dims [0] : tensor<65535xf32> -> tensor<f32>
  %2 = ax.reduce sum %prime dims [0] : tensor<1000003xf32> -> tensor<f32>
  axl.yield %0, %1, %2 : tensor<4096xf32>, tensor<f32>, tensor<f32>
}

// Few long rows. What is as large as they are is there for each who reads it.
// CHECK-LABEL: axl.stage @norm(
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK: ax.reduce sum %{{.*}} dims [2] : tensor<4x40x10000xf32> -> tensor<4x40xf32>
// CHECK: %[[M:.*]] = ax.binary mul %{{.*}} : tensor<4x1xf32>, tensor<f32> -> tensor<4x1xf32>
// CHECK-COUNT-2: ax.binary sub %[[X]], %[[M]]
// CHECK: ax.reduce sum %{{.*}} dims [2] : tensor<4x40x10000xf32> -> tensor<4x40xf32>
// CHECK: ax.unary rsqrt
// CHECK-NOT: ax.layer_norm
axl.stage @norm(%x: tensor<4x400000xf32>) {
  %0 = ax.layer_norm %x axis 1 epsilon 1.0e-5 : tensor<4x400000xf32> -> tensor<4x400000xf32>
  axl.yield %0 : tensor<4x400000xf32>
}

// CHECK-LABEL: axl.stage @best
// CHECK-COUNT-2: ax.reduce max
// CHECK-COUNT-2: ax.reduce min
// CHECK-NOT: ax.arg_reduce
axl.stage @best(%x: tensor<8x128000xf32>) {
  %0 = ax.arg_reduce %x dim 1 : tensor<8x128000xf32> -> tensor<8x1xi64>
  axl.yield %0 : tensor<8x1xi64>
}

// A softmax of columns would be 32 blocks', and its sums 64 threads' of each.
// CHECK-LABEL: axl.stage @across
// CHECK: ax.reduce max %{{.*}} dims [1] keep_dims : tensor<32x1024x64xf32> -> tensor<32x1x64xf32>
// CHECK: ax.reduce sum %{{.*}} dims [1] keep_dims : tensor<32x1024x64xf32> -> tensor<32x1x64xf32>
// CHECK-NOT: ax.softmax
axl.stage @across(%x: tensor<32x1024x64xf32>) {
  %0 = ax.softmax %x dim 1 : tensor<32x1024x64xf32> -> tensor<32x1024x64xf32>
  axl.yield %0 : tensor<32x1024x64xf32>
}

// So would one of a few classes, of each pixel of an image, be eight blocks'.
// CHECK-LABEL: axl.stage @pixels
// CHECK: ax.reduce max %{{.*}} dims [1] keep_dims : tensor<8x21x65536xf32> -> tensor<8x1x65536xf32>
// CHECK: ax.reduce sum %{{.*}} dims [1] keep_dims : tensor<8x21x65536xf32> -> tensor<8x1x65536xf32>
// CHECK-NOT: ax.softmax
axl.stage @pixels(%x: tensor<8x21x65536xf32>) {
  %0 = ax.softmax %x dim 1 : tensor<8x21x65536xf32> -> tensor<8x21x65536xf32>
  axl.yield %0 : tensor<8x21x65536xf32>
}

// Of many rows, or over few elements, softmax and norms are one kernel each.
// CHECK-LABEL: axl.stage @rows
// CHECK: ax.softmax
// CHECK: ax.softmax
// CHECK: ax.softmax
// CHECK: ax.rms_norm
axl.stage @rows(%many: tensor<4096x65536xf32>, %short: tensor<32x16x64xf32>, %batch: tensor<4096x64x64xf32>, %few: tensor<8x8192xf32>) {
  %0 = ax.softmax %many dim 1 : tensor<4096x65536xf32> -> tensor<4096x65536xf32>
  %1 = ax.softmax %short dim 1 : tensor<32x16x64xf32> -> tensor<32x16x64xf32>
  %2 = ax.softmax %batch dim 1 : tensor<4096x64x64xf32> -> tensor<4096x64x64xf32>
  %3 = ax.rms_norm %few axis 1 epsilon 1.0e-5 : tensor<8x8192xf32> -> tensor<8x8192xf32>
  axl.yield %0, %1, %2, %3 : tensor<4096x65536xf32>, tensor<32x16x64xf32>, tensor<4096x64x64xf32>, tensor<8x8192xf32>
}

// Of what something else reads, too, the largest of each row is found first, before
// that: whose kernel may find it.
// CHECK-LABEL: axl.stage @beside
// CHECK: %[[A:.*]] = ax.unary abs %[[X:.*]] : tensor<4x128x640xf32>
// CHECK: %[[P:.*]] = ax.reduce max %[[A]] dims [2] : tensor<4x128x640xf32> -> tensor<4x128xf32>
// CHECK: ax.binary add %[[X]], %[[X]]
// CHECK: %[[M:.*]] = ax.reduce max %[[P]] dims [0, 1] : tensor<4x128xf32> -> tensor<f32>
// CHECK: axl.yield %{{.*}}, %[[M]]
axl.stage @beside(%x: tensor<4x128x640xf32>) {
  %0 = ax.binary add %x, %x : tensor<4x128x640xf32>, tensor<4x128x640xf32> -> tensor<4x128x640xf32>
  %1 = ax.unary abs %x : tensor<4x128x640xf32> -> tensor<4x128x640xf32>
  %2 = ax.reduce max %1 dims [0, 1, 2] : tensor<4x128x640xf32> -> tensor<f32>
  axl.yield %0, %2 : tensor<4x128x640xf32>, tensor<f32>
}

// So is that of rows which is wanted itself.
// CHECK-LABEL: axl.stage @besideRows
// CHECK: ax.unary abs
// CHECK-NEXT: ax.reduce max
// CHECK-NEXT: ax.binary add
axl.stage @besideRows(%x: tensor<512x640xf32>) {
  %0 = ax.binary add %x, %x : tensor<512x640xf32>, tensor<512x640xf32> -> tensor<512x640xf32>
  %1 = ax.unary abs %x : tensor<512x640xf32> -> tensor<512x640xf32>
  %2 = ax.reduce max %1 dims [1] : tensor<512x640xf32> -> tensor<512xf32>
  axl.yield %0, %2 : tensor<512x640xf32>, tensor<512xf32>
}

// Not where that may depend on it, or for a sum, whose bits would be others, or of
// few rows.
// CHECK-LABEL: axl.stage @apart
// CHECK-COUNT-2: tensor<512x640xf32> -> tensor<32x10240xf32>
// CHECK: tensor<16x20480xf32> -> tensor<1280x256xf32>
axl.stage @apart(%x: tensor<512x640xf32>, %y: tensor<512x640xf32>, %z: tensor<16x20480xf32>) {
  %0 = ax.reduce max %x dims [0, 1] : tensor<512x640xf32> -> tensor<f32>
  %1 = ax.binary div %x, %0 : tensor<512x640xf32>, tensor<f32> -> tensor<512x640xf32>
  %2 = ax.unary neg %y : tensor<512x640xf32> -> tensor<512x640xf32>
  %3 = ax.reduce sum %y dims [0, 1] : tensor<512x640xf32> -> tensor<f32>
  %4 = ax.unary neg %z : tensor<16x20480xf32> -> tensor<16x20480xf32>
  %5 = ax.reduce max %z dims [0, 1] : tensor<16x20480xf32> -> tensor<f32>
  axl.yield %1, %2, %3, %4, %5 : tensor<512x640xf32>, tensor<512x640xf32>, tensor<f32>, tensor<16x20480xf32>, tensor<f32>
}

// How wide what is read is decides, not what is made of it: a product of bf16 is cut
// like one of its factors.
// CHECK-LABEL: axl.stage @products
// CHECK-COUNT-2: tensor<8x1568x256xf32> -> tensor<1568x256xf32>
axl.stage @products(%x: tensor<64x196x256xbf16>, %m: tensor<256xf32>) {
  %0 = ax.cast %x : tensor<64x196x256xbf16> -> tensor<64x196x256xf32>
  %1 = ax.reduce sum %0 dims [0, 1] : tensor<64x196x256xf32> -> tensor<256xf32>
  %2 = ax.binary sub %0, %m : tensor<64x196x256xf32>, tensor<256xf32> -> tensor<64x196x256xf32>
  %3 = ax.binary mul %2, %2 : tensor<64x196x256xf32>, tensor<64x196x256xf32> -> tensor<64x196x256xf32>
  %4 = ax.reduce sum %3 dims [0, 1] : tensor<64x196x256xf32> -> tensor<256xf32>
  axl.yield %1, %4 : tensor<256xf32>, tensor<256xf32>
}
