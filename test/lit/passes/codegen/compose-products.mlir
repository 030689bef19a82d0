// RUN: axopt-opt %s --axl-compose-products=part-bytes=32768 --split-input-file | FileCheck %s
// RUN: axopt-opt %s --axl-compose-products --split-input-file | FileCheck %s --check-prefix=WHOLE
// RUN: axopt-opt %s --axl-compose-products=part-bytes=32768 --axl-merge-equal --split-input-file | FileCheck %s --check-prefix=MERGED
// RUN: axopt-opt %s --axl-compose-products=gpu --split-input-file | FileCheck %s --check-prefix=GPU

// Of one row, a sum: no matrix of f32 is in memory.
// CHECK-LABEL: axl.stage @row
// CHECK: %[[X:.*]] = ax.reshape %{{.*}} : tensor<1x1x64xf32> -> tensor<1x64xf32>
// CHECK: %[[P:.*]] = ax.binary mul %{{.*}}, %[[X]] : tensor<48x64xf32>, tensor<1x64xf32>
// CHECK: %[[S:.*]] = ax.reduce sum %[[P]] dims [1] : tensor<48x64xf32> -> tensor<48xf32>
// CHECK: %[[Y:.*]] = ax.reshape %[[S]] : tensor<48xf32> -> tensor<1x1x48xf32>
// CHECK: axl.yield %[[Y]]
// WHOLE-LABEL: axl.stage @row
// WHOLE-NOT: ax.linear
axl.stage @row(%x: tensor<1x1x64xf32>, %b: tensor<48x64xi8>) {
  %w = ax.cast %b : tensor<48x64xi8> -> tensor<48x64xf32>
  %y = ax.linear %x, %w {transpose_w} : tensor<1x1x64xf32>, tensor<48x64xf32> -> tensor<1x1x48xf32>
  axl.yield %y : tensor<1x1x48xf32>
}

// -----

// What numbers of the same byte are multiplied with lies apart: first what the lower
// halves of 32 bytes are, then the upper ones; but for a GPU.
// CHECK-LABEL: axl.stage @bytes
// CHECK: %[[X:.*]] = ax.reshape %arg0 : tensor<1x64xf32> -> tensor<1x32x2xf32>
// CHECK: %[[A:.*]] = ax.slice %[[X]] starts [0, 0, 0]
// CHECK: %[[L:.*]] = ax.reshape %[[A]] : tensor<1x32x1xf32> -> tensor<1x1x32xf32>
// CHECK: %[[B:.*]] = ax.slice %[[X]] starts [0, 0, 1]
// CHECK: %[[U:.*]] = ax.reshape %[[B]]
// CHECK: %[[C:.*]] = ax.concat %[[L]], %[[U]] dim 1
// CHECK: %[[T:.*]] = ax.transpose %[[C]] [0, 2, 1] : tensor<1x2x32xf32> -> tensor<1x32x2xf32>
// CHECK: %[[R:.*]] = ax.reshape %[[T]] : tensor<1x32x2xf32> -> tensor<1x64xf32>
// CHECK: ax.binary mul %{{.*}}, %[[R]] : tensor<48x64xf32>, tensor<1x64xf32>
// GPU-LABEL: axl.stage @bytes
// GPU-NOT: ax.concat
// GPU: ax.binary mul %{{.*}}, %arg0 : tensor<48x64xf32>, tensor<1x64xf32>
// GPU: axl.yield
axl.stage @bytes(%x: tensor<1x64xf32>, %b: tensor<48x32x1xui8>) {
  %shifts = ax.constant dense<[0, 4]> : tensor<2xui8> -> tensor<2xui8>
  %h = ax.binary shr %b, %shifts : tensor<48x32x1xui8>, tensor<2xui8> -> tensor<48x32x2xui8>
  %g = ax.reshape %h : tensor<48x32x2xui8> -> tensor<48x64xui8>
  %w = ax.cast %g : tensor<48x64xui8> -> tensor<48x64xf32>
  %y = ax.linear %x, %w {transpose_w} : tensor<1x64xf32>, tensor<48x64xf32> -> tensor<1x48xf32>
  axl.yield %y : tensor<1x48xf32>
}

// -----

// Of bf16 it is a sum of f32. Rows of the matrix are read as they lie, in groups,
// which are independent of each other.
// CHECK-LABEL: axl.stage @columns
// CHECK-DAG: %[[W:.*]] = ax.reshape %{{.*}} : tensor<60x500xbf16> -> tensor<15x4x500xbf16>
// CHECK-DAG: %[[F:.*]] = ax.cast %[[W]] : tensor<15x4x500xbf16> -> tensor<15x4x500xf32>
// CHECK: %[[P:.*]] = ax.binary mul %[[F]], %{{.*}} : tensor<15x4x500xf32>, tensor<15x4x1xf32>
// CHECK: %[[G:.*]] = ax.reduce sum %[[P]] dims [1] : tensor<15x4x500xf32> -> tensor<15x500xf32>
// CHECK: %[[S:.*]] = ax.reduce sum %[[G]] dims [0] : tensor<15x500xf32> -> tensor<500xf32>
// CHECK: ax.cast %[[S]] : tensor<500xf32> -> tensor<500xbf16>
axl.stage @columns(%x: tensor<60xbf16>, %b: tensor<60x500xi8>) {
  %w = ax.cast %b : tensor<60x500xi8> -> tensor<60x500xbf16>
  %y = ax.dot %x, %w batch [] x [] contract [0] x [0] : tensor<60xbf16>, tensor<60x500xbf16> -> tensor<500xbf16>
  axl.yield %y : tensor<500xbf16>
}

// -----

// Numbers of four bits with a scale each 32. Of more rows than one, products of
// parts: 384 rows are 96 kB of f32, of which 128 are made at a time.
// CHECK-LABEL: axl.stage @parts
// CHECK: %[[B:.*]] = ax.slice %arg1 starts [128, 0] steps [1, 1] {axl.apart = 0 : i64} : tensor<384x32xui8> -> tensor<128x32xui8>
// CHECK: %[[C:.*]] = ax.reshape %[[B]] : tensor<128x32xui8> -> tensor<128x32x1xui8>
// CHECK: %[[H:.*]] = ax.binary shr %[[C]], %{{.*}} : tensor<128x32x1xui8>, tensor<2xui8>
// CHECK: %[[F:.*]] = ax.cast %{{.*}} : tensor<128x2x32xui8> -> tensor<128x2x32xf32>
// CHECK: %[[S:.*]] = ax.slice %arg2 starts [256] steps [1] {axl.apart = 0 : i64} : tensor<768xf32> -> tensor<256xf32>
// CHECK: %[[T:.*]] = ax.reshape %[[S]] : tensor<256xf32> -> tensor<128x2x1xf32>
// CHECK: ax.binary mul %[[F]], %[[T]]
// CHECK: %[[Y:.*]] = ax.linear %arg0, %{{.*}} {transpose_w} : tensor<2x64xf32>, tensor<128x64xf32> -> tensor<2x128xf32>
// CHECK: ax.linear {{.*}} -> tensor<2x128xf32>
// CHECK: %[[R:.*]] = ax.concat %{{.*}}, %[[Y]], %{{.*}} dim 1
// CHECK: axl.yield %[[R]]
// WHOLE-LABEL: axl.stage @parts
// WHOLE: ax.linear {{.*}} : tensor<2x64xf32>, tensor<384x64xf32>
axl.stage @parts(%x: tensor<2x64xf32>, %b: tensor<384x32xui8>, %s: tensor<768xf32>) {
  %shifts = ax.constant dense<[0, 4]> : tensor<2xui8> -> tensor<2xui8>
  %mask = ax.constant dense<15> : tensor<ui8> -> tensor<ui8>
  %c = ax.reshape %b : tensor<384x32xui8> -> tensor<384x32x1xui8>
  %h = ax.binary shr %c, %shifts : tensor<384x32x1xui8>, tensor<2xui8> -> tensor<384x32x2xui8>
  %m = ax.binary bit_and %h, %mask : tensor<384x32x2xui8>, tensor<ui8> -> tensor<384x32x2xui8>
  %g = ax.reshape %m : tensor<384x32x2xui8> -> tensor<384x2x32xui8>
  %f = ax.cast %g : tensor<384x2x32xui8> -> tensor<384x2x32xf32>
  %t = ax.reshape %s : tensor<768xf32> -> tensor<384x2x1xf32>
  %v = ax.binary mul %f, %t : tensor<384x2x32xf32>, tensor<384x2x1xf32> -> tensor<384x2x32xf32>
  %w = ax.reshape %v : tensor<384x2x32xf32> -> tensor<384x64xf32>
  %y = ax.linear %x, %w {transpose_w} : tensor<2x64xf32>, tensor<384x64xf32> -> tensor<2x384xf32>
  axl.yield %y : tensor<2x384xf32>
}

// -----

// Rows need not divide, nor need each have its own scale; what they are made of may
// begin with another dimension.
// CHECK-LABEL: axl.stage @uneven
// CHECK-DAG: ax.slice %{{.*}} starts [256, 0] steps [1, 1] {{.*}}: tensor<320x64xui8> -> tensor<64x64xui8>
// CHECK-DAG: ax.cast %{{.*}} : tensor<64x64xui8> -> tensor<64x64xf32>
// CHECK: ax.concat {{.*}} : tensor<2x128xf32>, tensor<2x128xf32>, tensor<2x64xf32> -> tensor<2x320xf32>
axl.stage @uneven(%x: tensor<2x64xf32>, %b: tensor<8x2560xui8>, %s: tensor<1x64xf32>) {
  %c = ax.reshape %b : tensor<8x2560xui8> -> tensor<320x64xui8>
  %f = ax.cast %c : tensor<320x64xui8> -> tensor<320x64xf32>
  %w = ax.binary mul %f, %s : tensor<320x64xf32>, tensor<1x64xf32> -> tensor<320x64xf32>
  %y = ax.linear %x, %w {transpose_w} : tensor<2x64xf32>, tensor<320x64xf32> -> tensor<2x320xf32>
  axl.yield %y : tensor<2x320xf32>
}

// -----

// Where rows of the matrix are added up, so are parts, each to the sum of those before;
// but not of 16 bits.
// CHECK-LABEL: axl.stage @sum
// CHECK: %[[A:.*]] = ax.slice %arg0 starts [0, 0] steps [1, 1] : tensor<2x384xf32> -> tensor<2x128xf32>
// CHECK: %[[P:.*]] = ax.linear %[[A]], %{{.*}} : tensor<2x128xf32>, tensor<128x64xf32> -> tensor<2x64xf32>
// CHECK: %[[B:.*]] = ax.slice %arg0 starts [0, 128] steps [1, 1]
// CHECK: %[[Q:.*]] = ax.linear %[[B]], %{{.*}} : tensor<2x128xf32>, tensor<128x64xf32> -> tensor<2x64xf32>
// CHECK-NEXT: %[[S:.*]] = ax.binary add %[[P]], %[[Q]] {ax.action = "B"}
// CHECK: ax.slice %arg0 starts [0, 256]
// CHECK: %[[R:.*]] = ax.linear
// CHECK-NEXT: ax.binary add %[[S]], %[[R]] {ax.action = "B"}
// CHECK: ax.linear %arg1, %{{.*}} : tensor<2x384xbf16>, tensor<384x64xbf16> -> tensor<2x64xbf16>
axl.stage @sum(%x: tensor<2x384xf32>, %z: tensor<2x384xbf16>, %b: tensor<384x64xi8>, %c: tensor<384x64xi8>) {
  %w = ax.cast %b : tensor<384x64xi8> -> tensor<384x64xf32>
  %y = ax.linear %x, %w {ax.action = "B"} : tensor<2x384xf32>, tensor<384x64xf32> -> tensor<2x64xf32>
  %v = ax.cast %c : tensor<384x64xi8> -> tensor<384x64xbf16>
  %u = ax.linear %z, %v : tensor<2x384xbf16>, tensor<384x64xbf16> -> tensor<2x64xbf16>
  axl.yield %y, %u : tensor<2x64xf32>, tensor<2x64xbf16>
}

// -----

// Each 32 rows have a scale, of which a part has four.
// CHECK-LABEL: axl.stage @shared
// CHECK: ax.slice %arg1 starts [4, 0, 0] steps [1, 1, 1] {{.*}}: tensor<8x32x64xi8> -> tensor<4x32x64xi8>
// CHECK: ax.slice %arg2 starts [4, 0, 0] steps [1, 1, 1] {{.*}}: tensor<8x1x64xf32> -> tensor<4x1x64xf32>
// CHECK: ax.linear {{.*}} : tensor<2x128xf32>, tensor<128x64xf32> -> tensor<2x64xf32>
axl.stage @shared(%x: tensor<2x256xf32>, %b: tensor<8x32x64xi8>, %s: tensor<8x1x64xf32>) {
  %f = ax.cast %b : tensor<8x32x64xi8> -> tensor<8x32x64xf32>
  %m = ax.binary mul %f, %s : tensor<8x32x64xf32>, tensor<8x1x64xf32> -> tensor<8x32x64xf32>
  %w = ax.reshape %m : tensor<8x32x64xf32> -> tensor<256x64xf32>
  %y = ax.linear %x, %w : tensor<2x256xf32>, tensor<256x64xf32> -> tensor<2x64xf32>
  axl.yield %y : tensor<2x64xf32>
}

// -----

// A product and the gradient of its input have the parts of their matrix for
// themselves: none is in memory from one to the other.
// MERGED-LABEL: axl.stage @both
// MERGED-NOT: axl.apart
// MERGED-COUNT-4: ax.cast %{{.*}} : tensor<128x64xi8> -> tensor<128x64xf32>
// MERGED-NOT: ax.cast
// MERGED: axl.yield
axl.stage @both(%x: tensor<2x64xf32>, %g: tensor<2x256xf32>, %b: tensor<256x64xi8>) {
  %w = ax.cast %b : tensor<256x64xi8> -> tensor<256x64xf32>
  %y = ax.linear %x, %w {transpose_w} : tensor<2x64xf32>, tensor<256x64xf32> -> tensor<2x256xf32>
  %d = ax.linear %g, %w : tensor<2x256xf32>, tensor<256x64xf32> -> tensor<2x64xf32>
  axl.yield %y, %d : tensor<2x256xf32>, tensor<2x64xf32>
}

// -----

// What is made of as many bytes is made once; what is transposed on the way has no
// part for each row, and of a batch of matrices there is none. Of 512 rows
// the result is larger than the matrix.
// CHECK-LABEL: axl.stage @stay
// CHECK-NOT: ax.slice
// CHECK: ax.linear {{.*}} : tensor<1x64xf32>, tensor<384x64xf32>
// CHECK: ax.linear {{.*}} : tensor<2x64xf32>, tensor<384x64xf32>
// CHECK-DAG: ax.dot {{.*}} : tensor<3x1x64xf32>, tensor<3x64x384xf32>
axl.stage @stay(%x: tensor<1x64xf32>, %z: tensor<2x64xf32>, %u: tensor<3x1x64xf32>, %h: tensor<512x64xf32>,
                %a: tensor<384x64xf32>, %b: tensor<64x384xi8>, %c: tensor<3x64x384xi8>) {
  %w = ax.unary neg %a : tensor<384x64xf32> -> tensor<384x64xf32>
  %y = ax.linear %x, %w {transpose_w} : tensor<1x64xf32>, tensor<384x64xf32> -> tensor<1x384xf32>
  %t = ax.transpose %b [1, 0] : tensor<64x384xi8> -> tensor<384x64xi8>
  %r = ax.reshape %t : tensor<384x64xi8> -> tensor<64x384xi8>
  %q = ax.reshape %r : tensor<64x384xi8> -> tensor<24576xi8>
  %n = ax.unary neg %q : tensor<24576xi8> -> tensor<24576xi8>
  %o = ax.slice %n starts [0] steps [1] : tensor<24576xi8> -> tensor<24576xi8>
  %p = ax.reshape %o : tensor<24576xi8> -> tensor<1x384x64xi8>
  %k = ax.unary neg %p : tensor<1x384x64xi8> -> tensor<1x384x64xi8>
  %l = ax.reshape %k : tensor<1x384x64xi8> -> tensor<384x64xi8>
  %f = ax.cast %l : tensor<384x64xi8> -> tensor<384x64xf32>
  %v = ax.linear %z, %f {transpose_w} : tensor<2x64xf32>, tensor<384x64xf32> -> tensor<2x384xf32>
  %g = ax.cast %c : tensor<3x64x384xi8> -> tensor<3x64x384xf32>
  %d = ax.dot %u, %g batch [0] x [0] contract [2] x [1] : tensor<3x1x64xf32>, tensor<3x64x384xf32> -> tensor<3x1x384xf32>
  %i = ax.cast %b : tensor<64x384xi8> -> tensor<64x384xf32>
  %j = ax.linear %h, %i : tensor<512x64xf32>, tensor<64x384xf32> -> tensor<512x384xf32>
  axl.yield %y, %v, %d, %j : tensor<1x384xf32>, tensor<2x384xf32>, tensor<3x1x384xf32>, tensor<512x384xf32>
}

// -----

// A scale of each column, or of all, stands behind the sum of integers; one that is
// different for what is summed up does not.
// CHECK-LABEL: axl.stage @scaled
// CHECK: %[[W:.*]] = ax.cast %arg1 : tensor<48x64xi8> -> tensor<48x64xf32>
// CHECK: %[[P:.*]] = ax.binary mul %[[W]], %{{.*}} : tensor<48x64xf32>, tensor<1x64xf32>
// CHECK: %[[S:.*]] = ax.reduce sum %[[P]] dims [1]
// CHECK: %[[C:.*]] = ax.reshape %arg2 : tensor<48x1xf32> -> tensor<48xf32>
// CHECK: ax.binary mul %[[S]], %[[C]] : tensor<48xf32>, tensor<48xf32>
// CHECK: %[[R:.*]] = ax.reduce sum %{{.*}} dims [0]
// CHECK: %[[D:.*]] = ax.reshape %arg3 : tensor<f32> -> tensor<1xf32>
// CHECK: ax.binary mul %[[R]], %[[D]] : tensor<64xf32>, tensor<1xf32>
// CHECK: %[[V:.*]] = ax.binary mul %{{.*}}, %arg4 : tensor<48x64xf32>, tensor<1x64xf32>
// CHECK: ax.binary mul %[[V]], %{{.*}} : tensor<48x64xf32>, tensor<1x64xf32>
// CHECK: ax.reduce sum
// CHECK-NOT: ax.binary
// CHECK: axl.yield
axl.stage @scaled(%x: tensor<1x64xf32>, %b: tensor<48x64xi8>, %rows: tensor<48x1xf32>, %one: tensor<f32>, %columns: tensor<1x64xf32>, %z: tensor<1x48xf32>) {
  %c = ax.cast %b : tensor<48x64xi8> -> tensor<48x64xf32>
  %w = ax.binary mul %c, %rows : tensor<48x64xf32>, tensor<48x1xf32> -> tensor<48x64xf32>
  %0 = ax.linear %x, %w {transpose_w} : tensor<1x64xf32>, tensor<48x64xf32> -> tensor<1x48xf32>
  %u = ax.binary mul %c, %one : tensor<48x64xf32>, tensor<f32> -> tensor<48x64xf32>
  %1 = ax.linear %z, %u : tensor<1x48xf32>, tensor<48x64xf32> -> tensor<1x64xf32>
  %v = ax.binary mul %c, %columns : tensor<48x64xf32>, tensor<1x64xf32> -> tensor<48x64xf32>
  %2 = ax.linear %x, %v {transpose_w} : tensor<1x64xf32>, tensor<48x64xf32> -> tensor<1x48xf32>
  axl.yield %0, %1, %2 : tensor<1x48xf32>, tensor<1x64xf32>, tensor<1x48xf32>
}

// -----

// Each row with the bytes that it looks up: a sum, which reads them where they are.
// CHECK-LABEL: axl.stage @look_up
// CHECK: %[[X:.*]] = ax.reshape %arg0 : tensor<3x64xf32> -> tensor<3x1x64xf32>
// CHECK: %[[P:.*]] = ax.binary mul %{{.*}}, %[[X]] : tensor<3x48x64xf32>, tensor<3x1x64xf32>
// CHECK: ax.reduce sum %[[P]] dims [2] : tensor<3x48x64xf32> -> tensor<3x48xf32>
// GPU-LABEL: axl.stage @look_up
// GPU-NOT: ax.dot
axl.stage @look_up(%x: tensor<3x64xf32>, %b: tensor<4x48x64xi8>, %i: tensor<3xi64>) {
  %m = ax.gather %b[%i] axis 0 : tensor<4x48x64xi8>, tensor<3xi64> -> tensor<3x48x64xi8>
  %w = ax.cast %m : tensor<3x48x64xi8> -> tensor<3x48x64xf32>
  %y = ax.dot %x, %w batch [0] x [0] contract [1] x [2] : tensor<3x64xf32>, tensor<3x48x64xf32> -> tensor<3x48xf32>
  axl.yield %y : tensor<3x48xf32>
}

// -----

// Many rows go by groups, on a GPU when there is one more than matrices; and floats
// of full width always.
// CHECK-LABEL: axl.stage @many
// CHECK: ax.dot
// CHECK: ax.dot
// GPU-LABEL: axl.stage @many
// GPU: ax.dot
axl.stage @many(%x: tensor<9x64xf32>, %b: tensor<1x48x64xi8>, %i: tensor<9xi64>, %f: tensor<10x48x64xf32>) {
  %m = ax.gather %b[%i] axis 0 : tensor<1x48x64xi8>, tensor<9xi64> -> tensor<9x48x64xi8>
  %w = ax.cast %m : tensor<9x48x64xi8> -> tensor<9x48x64xf32>
  %y = ax.dot %x, %w batch [0] x [0] contract [1] x [2] : tensor<9x64xf32>, tensor<9x48x64xf32> -> tensor<9x48xf32>
  %n = ax.gather %f[%i] axis 0 : tensor<10x48x64xf32>, tensor<9xi64> -> tensor<9x48x64xf32>
  %z = ax.dot %x, %n batch [0] x [0] contract [1] x [2] : tensor<9x64xf32>, tensor<9x48x64xf32> -> tensor<9x48xf32>
  axl.yield %y, %z : tensor<9x48xf32>, tensor<9x48xf32>
}
