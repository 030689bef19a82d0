// RUN: axopt-opt %s --axl-join-linears --split-input-file | FileCheck %s

// Queries, keys and values, of weights that are there as they are and of one that
// is cast, which comes first. Fewer keys than queries are fewer columns.
// CHECK-LABEL: axl.stage @projections
// CHECK-SAME: %[[X:.*]]: tensor<2x8x64xbf16>, %[[Q:.*]]: tensor<64x64xbf16>, %[[K:.*]]: tensor<64x16xf32>, %[[V:.*]]: tensor<64x16xbf16>
// CHECK: %[[C:.*]] = ax.cast %[[K]]
// CHECK: %[[W:.*]] = ax.concat %[[Q]], %[[C]], %[[V]] dim 1 : {{.*}} -> tensor<64x96xbf16>
// CHECK: %[[Y:.*]] = ax.linear %[[X]], %[[W]] : tensor<2x8x64xbf16>, tensor<64x96xbf16> -> tensor<2x8x96xbf16>
// CHECK: %[[A:.*]] = ax.slice %[[Y]] starts [0, 0, 0] {{.*}} -> tensor<2x8x64xbf16>
// CHECK: %[[B:.*]] = ax.slice %[[Y]] starts [0, 0, 64] {{.*}} -> tensor<2x8x16xbf16>
// CHECK: %[[D:.*]] = ax.slice %[[Y]] starts [0, 0, 80] {{.*}} -> tensor<2x8x16xbf16>
// CHECK: ax.unary exp %[[A]]
// CHECK: ax.unary neg %[[B]]
// CHECK: ax.unary tanh %[[D]]
axl.stage @projections(%x: tensor<2x8x64xbf16>, %q: tensor<64x64xbf16>, %k: tensor<64x16xf32>, %v: tensor<64x16xbf16>) attributes {axl.frozen = array<i64: 1, 2, 3>} {
  %0 = ax.linear %x, %q : tensor<2x8x64xbf16>, tensor<64x64xbf16> -> tensor<2x8x64xbf16>
  %1 = ax.unary exp %0 : tensor<2x8x64xbf16> -> tensor<2x8x64xbf16>
  %2 = ax.cast %k : tensor<64x16xf32> -> tensor<64x16xbf16>
  %3 = ax.linear %x, %2 : tensor<2x8x64xbf16>, tensor<64x16xbf16> -> tensor<2x8x16xbf16>
  %4 = ax.unary neg %3 : tensor<2x8x16xbf16> -> tensor<2x8x16xbf16>
  %5 = ax.linear %x, %v : tensor<2x8x64xbf16>, tensor<64x16xbf16> -> tensor<2x8x16xbf16>
  %6 = ax.unary tanh %5 : tensor<2x8x16xbf16> -> tensor<2x8x16xbf16>
  axl.yield %1, %4, %6 : tensor<2x8x64xbf16>, tensor<2x8x16xbf16>, tensor<2x8x16xbf16>
}

// -----

// Biases and an activation, weights as rows; what has another activation, or no
// bias, stays.
// CHECK-LABEL: axl.stage @biases
// CHECK-DAG: %[[W:.*]] = ax.concat %{{.*}}, %{{.*}} dim 0 : tensor<32x64xf32>, tensor<16x64xf32> -> tensor<48x64xf32>
// CHECK-DAG: %[[B:.*]] = ax.concat %{{.*}}, %{{.*}} dim 0 : tensor<32xf32>, tensor<16xf32> -> tensor<48xf32>
// CHECK: %[[Y:.*]] = axl.library(%{{.*}}, %[[W]], %[[B]]) {
// CHECK-NEXT: ^bb0(%{{.*}}: tensor<8x64xf32>, %{{.*}}: tensor<48x64xf32>, %{{.*}}: tensor<48xf32>)
// CHECK: ax.linear {{.*}} -> tensor<8x48xf32>
// CHECK: ax.binary add {{.*}} -> tensor<8x48xf32>
// CHECK: ax.unary relu {{.*}} -> tensor<8x48xf32>
// CHECK: -> tensor<8x48xf32>
// CHECK-DAG: ax.slice %[[Y]] starts [0, 0] {{.*}} -> tensor<8x32xf32>
// CHECK-DAG: ax.slice %[[Y]] starts [0, 32] {{.*}} -> tensor<8x16xf32>
// CHECK: axl.library
// CHECK: ax.unary gelu_tanh
// CHECK: ax.linear {{.*}} -> tensor<8x32xf32>
// CHECK-NOT: ax.linear
axl.stage @biases(%x: tensor<8x64xf32>, %v: tensor<32x64xf32>, %w: tensor<16x64xf32>, %a: tensor<32xf32>, %b: tensor<16xf32>) attributes {axl.frozen = array<i64: 1, 2, 3, 4>} {
  %0 = axl.library(%x, %v, %a) {
  ^bb0(%p: tensor<8x64xf32>, %q: tensor<32x64xf32>, %r: tensor<32xf32>):
    %7 = ax.linear %p, %q {transpose_w} : tensor<8x64xf32>, tensor<32x64xf32> -> tensor<8x32xf32>
    %8 = ax.binary add %7, %r : tensor<8x32xf32>, tensor<32xf32> -> tensor<8x32xf32>
    %9 = ax.unary relu %8 : tensor<8x32xf32> -> tensor<8x32xf32>
    axl.yield %9 : tensor<8x32xf32>
  } : (tensor<8x64xf32>, tensor<32x64xf32>, tensor<32xf32>) -> tensor<8x32xf32>
  %1 = axl.library(%x, %w, %b) {
  ^bb0(%p: tensor<8x64xf32>, %q: tensor<16x64xf32>, %r: tensor<16xf32>):
    %7 = ax.linear %p, %q {transpose_w} : tensor<8x64xf32>, tensor<16x64xf32> -> tensor<8x16xf32>
    %8 = ax.binary add %7, %r : tensor<8x16xf32>, tensor<16xf32> -> tensor<8x16xf32>
    %9 = ax.unary relu %8 : tensor<8x16xf32> -> tensor<8x16xf32>
    axl.yield %9 : tensor<8x16xf32>
  } : (tensor<8x64xf32>, tensor<16x64xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  %2 = axl.library(%x, %w, %b) {
  ^bb0(%p: tensor<8x64xf32>, %q: tensor<16x64xf32>, %r: tensor<16xf32>):
    %7 = ax.linear %p, %q {transpose_w} : tensor<8x64xf32>, tensor<16x64xf32> -> tensor<8x16xf32>
    %8 = ax.binary add %7, %r : tensor<8x16xf32>, tensor<16xf32> -> tensor<8x16xf32>
    %9 = ax.unary gelu_tanh %8 : tensor<8x16xf32> -> tensor<8x16xf32>
    axl.yield %9 : tensor<8x16xf32>
  } : (tensor<8x64xf32>, tensor<16x64xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  %3 = ax.linear %x, %v {transpose_w} : tensor<8x64xf32>, tensor<32x64xf32> -> tensor<8x32xf32>
  %4 = ax.unary exp %0 : tensor<8x32xf32> -> tensor<8x32xf32>
  %5 = ax.unary neg %1 : tensor<8x16xf32> -> tensor<8x16xf32>
  %10 = ax.unary neg %2 : tensor<8x16xf32> -> tensor<8x16xf32>
  %6 = ax.unary neg %3 : tensor<8x32xf32> -> tensor<8x32xf32>
  axl.yield %4, %5, %10, %6 : tensor<8x32xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x32xf32>
}

// -----

// Nothing is joined that the stage gives, whose weight steps change or is large,
// or that has rows of no multiple of 16 bytes, or many results.
// CHECK-LABEL: axl.stage @alone
// CHECK-NOT: ax.concat
axl.stage @alone(%x: tensor<8x64xf32>, %v: tensor<64x16xf32>, %w: tensor<64x16xf32>, %large: tensor<64x32768xf32>, %odd: tensor<64x3xf32>, %long: tensor<131072x64xf32>, %u: tensor<64x16xf32>) attributes {axl.frozen = array<i64: 1, 3, 4, 6>} {
  %0 = ax.linear %x, %v : tensor<8x64xf32>, tensor<64x16xf32> -> tensor<8x16xf32>
  %1 = ax.linear %x, %w : tensor<8x64xf32>, tensor<64x16xf32> -> tensor<8x16xf32>
  %2 = ax.linear %x, %large : tensor<8x64xf32>, tensor<64x32768xf32> -> tensor<8x32768xf32>
  %3 = ax.linear %x, %odd : tensor<8x64xf32>, tensor<64x3xf32> -> tensor<8x3xf32>
  %4 = ax.linear %x, %v : tensor<8x64xf32>, tensor<64x16xf32> -> tensor<8x16xf32>
  %5 = ax.reshape %4 : tensor<8x16xf32> -> tensor<128xf32>
  %6 = ax.unary neg %0 : tensor<8x16xf32> -> tensor<8x16xf32>
  %7 = ax.unary neg %1 : tensor<8x16xf32> -> tensor<8x16xf32>
  %8 = ax.unary neg %2 : tensor<8x32768xf32> -> tensor<8x32768xf32>
  %9 = ax.unary neg %3 : tensor<8x3xf32> -> tensor<8x3xf32>
  %10 = ax.linear %long, %v : tensor<131072x64xf32>, tensor<64x16xf32> -> tensor<131072x16xf32>
  %11 = ax.linear %long, %u : tensor<131072x64xf32>, tensor<64x16xf32> -> tensor<131072x16xf32>
  %12 = ax.binary add %10, %11 : tensor<131072x16xf32>, tensor<131072x16xf32> -> tensor<131072x16xf32>
  axl.yield %5, %6, %7, %8, %9, %12 : tensor<128xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x32768xf32>, tensor<8x3xf32>, tensor<131072x16xf32>
}

// -----

// Layers that share weights: equal ones lie beside each other once, and others
// would be there a second time. What is unpacked is larger than it was.
// CHECK-LABEL: axl.stage @shared
// CHECK-COUNT-2: ax.concat %{{.*}}, %{{.*}} dim 1
// CHECK-NOT: ax.concat
axl.stage @shared(%x: tensor<8x64xf32>, %y: tensor<8x64xf32>, %z: tensor<8x64xf32>, %t: tensor<8x64xf32>, %v: tensor<64x16xf32>, %w: tensor<64x16xf32>, %p: tensor<64x16xi8>, %q: tensor<64x16xi8>) attributes {axl.frozen = array<i64: 4, 5, 6, 7>} {
  %a = ax.linear %x, %v : tensor<8x64xf32>, tensor<64x16xf32> -> tensor<8x16xf32>
  %b = ax.linear %x, %w : tensor<8x64xf32>, tensor<64x16xf32> -> tensor<8x16xf32>
  %c = ax.linear %y, %v : tensor<8x64xf32>, tensor<64x16xf32> -> tensor<8x16xf32>
  %d = ax.linear %y, %w : tensor<8x64xf32>, tensor<64x16xf32> -> tensor<8x16xf32>
  %e = ax.linear %z, %w : tensor<8x64xf32>, tensor<64x16xf32> -> tensor<8x16xf32>
  %f = ax.linear %z, %v : tensor<8x64xf32>, tensor<64x16xf32> -> tensor<8x16xf32>
  %g = ax.cast %p : tensor<64x16xi8> -> tensor<64x16xf32>
  %h = ax.cast %q : tensor<64x16xi8> -> tensor<64x16xf32>
  %i = ax.linear %t, %g : tensor<8x64xf32>, tensor<64x16xf32> -> tensor<8x16xf32>
  %j = ax.linear %t, %h : tensor<8x64xf32>, tensor<64x16xf32> -> tensor<8x16xf32>
  %0 = ax.binary add %a, %b : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %1 = ax.binary add %c, %d : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %2 = ax.binary add %e, %f : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  %3 = ax.binary add %i, %j : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
  axl.yield %0, %1, %2, %3 : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>
}
