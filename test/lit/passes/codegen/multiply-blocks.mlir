// RUN: axopt-opt %s --axl-multiply-blocks --split-input-file | FileCheck %s

// CHECK-LABEL: axl.stage @middle
// CHECK-NOT: ax.fake_quantize
// CHECK: %[[X:.*]] = ax.reshape %{{.*}} -> tensor<3x64xf32>
// CHECK: %[[W:.*]] = ax.reshape %arg1 : tensor<6x2x16xui8> -> tensor<6x32xui8>
// CHECK: %[[S:.*]] = ax.reshape %{{.*}} -> tensor<6x2xf32>
// CHECK: %[[Y:.*]] = axl.block_matmul %[[X]], %[[W]] scales %[[S]] bits 4 : tensor<3x64xf32>, tensor<6x32xui8>, tensor<6x2xf32> -> tensor<3x6xf32>
// CHECK: ax.reshape %[[Y]] : tensor<3x6xf32> -> tensor<1x3x6xf32>
axl.stage @middle(%x: tensor<1x3x64xf32>, %w: tensor<6x2x16xui8>, %s: tensor<12xf32>) {
  %p = ax.reshape %x : tensor<1x3x64xf32> -> tensor<1x3x2x32xf32>
  %q = ax.fake_quantize %p : tensor<1x3x2x32xf32> -> tensor<1x3x2x32xf32>
  %u = ax.reshape %q : tensor<1x3x2x32xf32> -> tensor<1x3x64xf32>
  %n = ax.constant dense<[0, 4]> : tensor<2xui8> -> tensor<2xui8>
  %m = ax.constant dense<15> : tensor<ui8> -> tensor<ui8>
  %b = ax.reshape %w : tensor<6x2x16xui8> -> tensor<6x32x1xui8>
  %h = ax.binary shr %b, %n : tensor<6x32x1xui8>, tensor<2xui8> -> tensor<6x32x2xui8>
  %a = ax.binary bit_and %h, %m : tensor<6x32x2xui8>, tensor<ui8> -> tensor<6x32x2xui8>
  %r = ax.reshape %a : tensor<6x32x2xui8> -> tensor<6x2x32xui8>
  %f = ax.cast %r : tensor<6x2x32xui8> -> tensor<6x2x32xf32>
  %c = ax.constant dense<8.0> : tensor<f32> -> tensor<f32>
  %l = ax.binary sub %f, %c : tensor<6x2x32xf32>, tensor<f32> -> tensor<6x2x32xf32>
  %d = ax.reshape %s : tensor<12xf32> -> tensor<6x2x1xf32>
  %k = ax.binary mul %l, %d : tensor<6x2x32xf32>, tensor<6x2x1xf32> -> tensor<6x2x32xf32>
  %e = ax.reshape %k : tensor<6x2x32xf32> -> tensor<6x64xf32>
  %y = ax.linear %u, %e {transpose_w} : tensor<1x3x64xf32>, tensor<6x64xf32> -> tensor<1x3x6xf32>
  axl.yield %y : tensor<1x3x6xf32>
}

// -----

// Zero points of bytes; floats of 16 bits on both sides of the product.
// CHECK-LABEL: axl.stage @zeros
// CHECK: %[[X:.*]] = ax.cast %{{.*}} -> tensor<3x64xf32>
// CHECK: %[[Z:.*]] = ax.reshape %arg3 : tensor<12xui8> -> tensor<6x2xui8>
// CHECK: %[[Y:.*]] = axl.block_matmul %[[X]], %{{.*}} scales %{{.*}} zeros %[[Z]] : tensor<6x2xui8> bits 4
// CHECK: ax.cast %[[Y]] : tensor<3x6xf32> -> tensor<3x6xf16>
axl.stage @zeros(%x: tensor<1x3x64xf16>, %w: tensor<6x2x16xui8>, %s: tensor<12xf32>, %z: tensor<12xui8>) {
  %p = ax.reshape %x : tensor<1x3x64xf16> -> tensor<1x3x2x32xf16>
  %q = ax.fake_quantize %p : tensor<1x3x2x32xf16> -> tensor<1x3x2x32xf16>
  %u = ax.reshape %q : tensor<1x3x2x32xf16> -> tensor<1x3x64xf16>
  %n = ax.constant dense<[0, 4]> : tensor<2xui8> -> tensor<2xui8>
  %m = ax.constant dense<15> : tensor<ui8> -> tensor<ui8>
  %b = ax.reshape %w : tensor<6x2x16xui8> -> tensor<6x32x1xui8>
  %h = ax.binary shr %b, %n : tensor<6x32x1xui8>, tensor<2xui8> -> tensor<6x32x2xui8>
  %a = ax.binary bit_and %h, %m : tensor<6x32x2xui8>, tensor<ui8> -> tensor<6x32x2xui8>
  %r = ax.reshape %a : tensor<6x32x2xui8> -> tensor<6x2x32xui8>
  %f = ax.cast %r : tensor<6x2x32xui8> -> tensor<6x2x32xf32>
  %i = ax.cast %z : tensor<12xui8> -> tensor<12xf32>
  %c = ax.reshape %i : tensor<12xf32> -> tensor<6x2x1xf32>
  %l = ax.binary sub %f, %c : tensor<6x2x32xf32>, tensor<6x2x1xf32> -> tensor<6x2x32xf32>
  %d = ax.reshape %s : tensor<12xf32> -> tensor<6x2x1xf32>
  %k = ax.binary mul %l, %d : tensor<6x2x32xf32>, tensor<6x2x1xf32> -> tensor<6x2x32xf32>
  %e = ax.reshape %k : tensor<6x2x32xf32> -> tensor<6x64xf32>
  %o = ax.cast %e : tensor<6x64xf32> -> tensor<6x64xf16>
  %y = ax.linear %u, %o {transpose_w} : tensor<1x3x64xf16>, tensor<6x64xf16> -> tensor<1x3x6xf16>
  axl.yield %y : tensor<1x3x6xf16>
}

// -----

// Zero points that were folded to floats, several or one.
// CHECK-LABEL: axl.stage @folded
// CHECK: %[[Z:.*]] = ax.constant dense<{{\[\[\[1\], \[2\]\], \[\[3\], \[4\]\]}}, {{.*}}> : tensor<6x2x1xui8>
// CHECK: %[[R:.*]] = ax.reshape %[[Z]] : tensor<6x2x1xui8> -> tensor<6x2xui8>
// CHECK: axl.block_matmul %{{.*}}, %{{.*}} scales %{{.*}} zeros %[[R]] : tensor<6x2xui8> bits 4
axl.stage @folded(%x: tensor<1x3x64xf32>, %w: tensor<6x2x16xui8>, %s: tensor<12xf32>) {
  %p = ax.reshape %x : tensor<1x3x64xf32> -> tensor<1x3x2x32xf32>
  %q = ax.fake_quantize %p : tensor<1x3x2x32xf32> -> tensor<1x3x2x32xf32>
  %u = ax.reshape %q : tensor<1x3x2x32xf32> -> tensor<1x3x64xf32>
  %n = ax.constant dense<[0, 4]> : tensor<2xui8> -> tensor<2xui8>
  %m = ax.constant dense<15> : tensor<ui8> -> tensor<ui8>
  %b = ax.reshape %w : tensor<6x2x16xui8> -> tensor<6x32x1xui8>
  %h = ax.binary shr %b, %n : tensor<6x32x1xui8>, tensor<2xui8> -> tensor<6x32x2xui8>
  %a = ax.binary bit_and %h, %m : tensor<6x32x2xui8>, tensor<ui8> -> tensor<6x32x2xui8>
  %r = ax.reshape %a : tensor<6x32x2xui8> -> tensor<6x2x32xui8>
  %f = ax.cast %r : tensor<6x2x32xui8> -> tensor<6x2x32xf32>
  %c = ax.constant dense<[[[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]], [[7.0], [8.0]], [[9.0], [0.0]], [[15.0], [8.0]]]> : tensor<6x2x1xf32> -> tensor<6x2x1xf32>
  %l = ax.binary sub %f, %c : tensor<6x2x32xf32>, tensor<6x2x1xf32> -> tensor<6x2x32xf32>
  %d = ax.reshape %s : tensor<12xf32> -> tensor<6x2x1xf32>
  %k = ax.binary mul %l, %d : tensor<6x2x32xf32>, tensor<6x2x1xf32> -> tensor<6x2x32xf32>
  %e = ax.reshape %k : tensor<6x2x32xf32> -> tensor<6x64xf32>
  %y = ax.linear %u, %e {transpose_w} : tensor<1x3x64xf32>, tensor<6x64xf32> -> tensor<1x3x6xf32>
  axl.yield %y : tensor<1x3x6xf32>
}

// -----

// CHECK-LABEL: axl.stage @one
// CHECK: %[[Z:.*]] = ax.constant dense<3> : tensor<ui8>
// CHECK: %[[B:.*]] = ax.broadcast %{{.*}} -> tensor<6x2xui8>
// CHECK: axl.block_matmul %{{.*}}, %{{.*}} scales %{{.*}} zeros %[[B]] : tensor<6x2xui8> bits 4
axl.stage @one(%x: tensor<1x3x64xf32>, %w: tensor<6x2x16xui8>, %s: tensor<12xf32>) {
  %p = ax.reshape %x : tensor<1x3x64xf32> -> tensor<1x3x2x32xf32>
  %q = ax.fake_quantize %p : tensor<1x3x2x32xf32> -> tensor<1x3x2x32xf32>
  %u = ax.reshape %q : tensor<1x3x2x32xf32> -> tensor<1x3x64xf32>
  %n = ax.constant dense<[0, 4]> : tensor<2xui8> -> tensor<2xui8>
  %m = ax.constant dense<15> : tensor<ui8> -> tensor<ui8>
  %b = ax.reshape %w : tensor<6x2x16xui8> -> tensor<6x32x1xui8>
  %h = ax.binary shr %b, %n : tensor<6x32x1xui8>, tensor<2xui8> -> tensor<6x32x2xui8>
  %a = ax.binary bit_and %h, %m : tensor<6x32x2xui8>, tensor<ui8> -> tensor<6x32x2xui8>
  %r = ax.reshape %a : tensor<6x32x2xui8> -> tensor<6x2x32xui8>
  %f = ax.cast %r : tensor<6x2x32xui8> -> tensor<6x2x32xf32>
  %c = ax.constant dense<3.0> : tensor<f32> -> tensor<f32>
  %l = ax.binary sub %f, %c : tensor<6x2x32xf32>, tensor<f32> -> tensor<6x2x32xf32>
  %d = ax.reshape %s : tensor<12xf32> -> tensor<6x2x1xf32>
  %k = ax.binary mul %l, %d : tensor<6x2x32xf32>, tensor<6x2x1xf32> -> tensor<6x2x32xf32>
  %e = ax.reshape %k : tensor<6x2x32xf32> -> tensor<6x64xf32>
  %y = ax.linear %u, %e {transpose_w} : tensor<1x3x64xf32>, tensor<6x64xf32> -> tensor<1x3x6xf32>
  axl.yield %y : tensor<1x3x6xf32>
}

// -----

// Bytes are numbers of eight bits.
// CHECK-LABEL: axl.stage @bytes
// CHECK: axl.block_matmul %{{.*}}, %{{.*}} scales %{{.*}} bits 8 : tensor<3x64xf32>, tensor<6x64xui8>, tensor<6x2xf32> -> tensor<3x6xf32>
axl.stage @bytes(%x: tensor<1x3x64xf32>, %w: tensor<6x2x32xui8>, %s: tensor<12xf32>) {
  %p = ax.reshape %x : tensor<1x3x64xf32> -> tensor<1x3x2x32xf32>
  %q = ax.fake_quantize %p : tensor<1x3x2x32xf32> -> tensor<1x3x2x32xf32>
  %u = ax.reshape %q : tensor<1x3x2x32xf32> -> tensor<1x3x64xf32>
  %f = ax.cast %w : tensor<6x2x32xui8> -> tensor<6x2x32xf32>
  %c = ax.constant dense<128.0> : tensor<f32> -> tensor<f32>
  %l = ax.binary sub %f, %c : tensor<6x2x32xf32>, tensor<f32> -> tensor<6x2x32xf32>
  %d = ax.reshape %s : tensor<12xf32> -> tensor<6x2x1xf32>
  %k = ax.binary mul %l, %d : tensor<6x2x32xf32>, tensor<6x2x1xf32> -> tensor<6x2x32xf32>
  %e = ax.reshape %k : tensor<6x2x32xf32> -> tensor<6x64xf32>
  %y = ax.linear %u, %e {transpose_w} : tensor<1x3x64xf32>, tensor<6x64xf32> -> tensor<1x3x6xf32>
  axl.yield %y : tensor<1x3x6xf32>
}

// -----

// Zero points that are no whole numbers, and rows that are not rounded, or by other
// blocks.
// CHECK-LABEL: axl.stage @others
// CHECK-NOT: axl.block_matmul
axl.stage @others(%x: tensor<1x3x64xf32>, %w: tensor<6x2x16xui8>, %s: tensor<12xf32>, %v: tensor<1x3x64xf32>) {
  %p = ax.reshape %x : tensor<1x3x64xf32> -> tensor<1x3x2x32xf32>
  %q = ax.fake_quantize %p : tensor<1x3x2x32xf32> -> tensor<1x3x2x32xf32>
  %u = ax.reshape %q : tensor<1x3x2x32xf32> -> tensor<1x3x64xf32>
  %n = ax.constant dense<[0, 4]> : tensor<2xui8> -> tensor<2xui8>
  %m = ax.constant dense<15> : tensor<ui8> -> tensor<ui8>
  %b = ax.reshape %w : tensor<6x2x16xui8> -> tensor<6x32x1xui8>
  %h = ax.binary shr %b, %n : tensor<6x32x1xui8>, tensor<2xui8> -> tensor<6x32x2xui8>
  %a = ax.binary bit_and %h, %m : tensor<6x32x2xui8>, tensor<ui8> -> tensor<6x32x2xui8>
  %r = ax.reshape %a : tensor<6x32x2xui8> -> tensor<6x2x32xui8>
  %f = ax.cast %r : tensor<6x2x32xui8> -> tensor<6x2x32xf32>
  %c = ax.constant dense<7.5> : tensor<f32> -> tensor<f32>
  %l = ax.binary sub %f, %c : tensor<6x2x32xf32>, tensor<f32> -> tensor<6x2x32xf32>
  %d = ax.reshape %s : tensor<12xf32> -> tensor<6x2x1xf32>
  %k = ax.binary mul %l, %d : tensor<6x2x32xf32>, tensor<6x2x1xf32> -> tensor<6x2x32xf32>
  %e = ax.reshape %k : tensor<6x2x32xf32> -> tensor<6x64xf32>
  %y1 = ax.linear %u, %e {transpose_w} : tensor<1x3x64xf32>, tensor<6x64xf32> -> tensor<1x3x6xf32>
  %c2 = ax.constant dense<8.0> : tensor<f32> -> tensor<f32>
  %l2 = ax.binary sub %f, %c2 : tensor<6x2x32xf32>, tensor<f32> -> tensor<6x2x32xf32>
  %d2 = ax.reshape %s : tensor<12xf32> -> tensor<6x2x1xf32>
  %k2 = ax.binary mul %l2, %d2 : tensor<6x2x32xf32>, tensor<6x2x1xf32> -> tensor<6x2x32xf32>
  %e2 = ax.reshape %k2 : tensor<6x2x32xf32> -> tensor<6x64xf32>
  %y2 = ax.linear %v, %e2 {transpose_w} : tensor<1x3x64xf32>, tensor<6x64xf32> -> tensor<1x3x6xf32>
  %p3 = ax.reshape %x : tensor<1x3x64xf32> -> tensor<1x3x4x16xf32>
  %q3 = ax.fake_quantize %p3 : tensor<1x3x4x16xf32> -> tensor<1x3x4x16xf32>
  %u3 = ax.reshape %q3 : tensor<1x3x4x16xf32> -> tensor<1x3x64xf32>
  %y3 = ax.linear %u3, %e2 {transpose_w} : tensor<1x3x64xf32>, tensor<6x64xf32> -> tensor<1x3x6xf32>
  axl.yield %y1, %y2, %y3 : tensor<1x3x6xf32>, tensor<1x3x6xf32>, tensor<1x3x6xf32>
}

// -----

// Numbers of a byte that do not lie side by side are bytes, once they are parted.
// CHECK-LABEL: axl.stage @spread
// CHECK: axl.block_matmul %{{.*}} bits 8
axl.stage @spread(%x: tensor<1x3x64xf32>, %w: tensor<6x2x16xui8>, %s: tensor<12xf32>) {
  %p = ax.reshape %x : tensor<1x3x64xf32> -> tensor<1x3x2x32xf32>
  %q = ax.fake_quantize %p : tensor<1x3x2x32xf32> -> tensor<1x3x2x32xf32>
  %u = ax.reshape %q : tensor<1x3x2x32xf32> -> tensor<1x3x64xf32>
  %n = ax.constant dense<[[0], [4]]> : tensor<2x1xui8> -> tensor<2x1xui8>
  %m = ax.constant dense<15> : tensor<ui8> -> tensor<ui8>
  %b = ax.reshape %w : tensor<6x2x16xui8> -> tensor<6x1x32xui8>
  %h = ax.binary shr %b, %n : tensor<6x1x32xui8>, tensor<2x1xui8> -> tensor<6x2x32xui8>
  %a = ax.binary bit_and %h, %m : tensor<6x2x32xui8>, tensor<ui8> -> tensor<6x2x32xui8>
  %r = ax.reshape %a : tensor<6x2x32xui8> -> tensor<6x2x32xui8>
  %f = ax.cast %r : tensor<6x2x32xui8> -> tensor<6x2x32xf32>
  %c = ax.constant dense<8.0> : tensor<f32> -> tensor<f32>
  %l = ax.binary sub %f, %c : tensor<6x2x32xf32>, tensor<f32> -> tensor<6x2x32xf32>
  %d = ax.reshape %s : tensor<12xf32> -> tensor<6x2x1xf32>
  %k = ax.binary mul %l, %d : tensor<6x2x32xf32>, tensor<6x2x1xf32> -> tensor<6x2x32xf32>
  %e = ax.reshape %k : tensor<6x2x32xf32> -> tensor<6x64xf32>
  %y = ax.linear %u, %e {transpose_w} : tensor<1x3x64xf32>, tensor<6x64xf32> -> tensor<1x3x6xf32>
  axl.yield %y : tensor<1x3x6xf32>
}

// -----

// Rows that are rounded to floats of eight bits as well.
// CHECK-LABEL: axl.stage @eight
// CHECK-NOT: axl.block_matmul
axl.stage @eight(%x: tensor<1x3x64xf32>, %w: tensor<6x2x16xui8>, %s: tensor<12xf32>) {
  %p = ax.reshape %x : tensor<1x3x64xf32> -> tensor<1x3x2x32xf32>
  %q = ax.fake_quantize %p : tensor<1x3x2x32xf32> -> tensor<1x3x2x32xf32>
  %u = ax.reshape %q : tensor<1x3x2x32xf32> -> tensor<1x3x64xf32>
  %n = ax.constant dense<[0, 4]> : tensor<2xui8> -> tensor<2xui8>
  %m = ax.constant dense<15> : tensor<ui8> -> tensor<ui8>
  %b = ax.reshape %w : tensor<6x2x16xui8> -> tensor<6x32x1xui8>
  %h = ax.binary shr %b, %n : tensor<6x32x1xui8>, tensor<2xui8> -> tensor<6x32x2xui8>
  %a = ax.binary bit_and %h, %m : tensor<6x32x2xui8>, tensor<ui8> -> tensor<6x32x2xui8>
  %r = ax.reshape %a : tensor<6x32x2xui8> -> tensor<6x2x32xui8>
  %f = ax.cast %r : tensor<6x2x32xui8> -> tensor<6x2x32xf32>
  %c = ax.constant dense<8.0> : tensor<f32> -> tensor<f32>
  %l = ax.binary sub %f, %c : tensor<6x2x32xf32>, tensor<f32> -> tensor<6x2x32xf32>
  %d = ax.reshape %s : tensor<12xf32> -> tensor<6x2x1xf32>
  %k = ax.binary mul %l, %d : tensor<6x2x32xf32>, tensor<6x2x1xf32> -> tensor<6x2x32xf32>
  %e = ax.reshape %k : tensor<6x2x32xf32> -> tensor<6x64xf32>
  %v = ax.cast %u : tensor<1x3x64xf32> -> tensor<1x3x64xf8E4M3FN>
  %t = ax.cast %v : tensor<1x3x64xf8E4M3FN> -> tensor<1x3x64xf32>
  %y = ax.linear %t, %e {transpose_w} : tensor<1x3x64xf32>, tensor<6x64xf32> -> tensor<1x3x6xf32>
  axl.yield %y : tensor<1x3x6xf32>
}

// -----

// Scales of half a row's blocks each: rows of the weight are parts of what they scale.
// CHECK-LABEL: axl.stage @halves
// CHECK-NOT: axl.block_matmul
axl.stage @halves(%x: tensor<3x64xf32>, %w: tensor<3x2x64xui8>, %s: tensor<3x2x1xf32>) {
  %p = ax.reshape %x : tensor<3x64xf32> -> tensor<3x2x32xf32>
  %q = ax.fake_quantize %p : tensor<3x2x32xf32> -> tensor<3x2x32xf32>
  %u = ax.reshape %q : tensor<3x2x32xf32> -> tensor<3x64xf32>
  %f = ax.cast %w : tensor<3x2x64xui8> -> tensor<3x2x64xf32>
  %c = ax.constant dense<128.0> : tensor<f32> -> tensor<f32>
  %l = ax.binary sub %f, %c : tensor<3x2x64xf32>, tensor<f32> -> tensor<3x2x64xf32>
  %k = ax.binary mul %l, %s : tensor<3x2x64xf32>, tensor<3x2x1xf32> -> tensor<3x2x64xf32>
  %e = ax.reshape %k : tensor<3x2x64xf32> -> tensor<6x64xf32>
  %y = ax.linear %u, %e {transpose_w} : tensor<3x64xf32>, tensor<6x64xf32> -> tensor<3x6xf32>
  axl.yield %y : tensor<3x6xf32>
}
