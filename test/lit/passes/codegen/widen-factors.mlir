// RUN: axopt-opt %s --axl-widen-factors | FileCheck %s --check-prefixes=CHECK,CPU
// RUN: axopt-opt %s --axl-widen-factors=gpu=true | FileCheck %s --check-prefixes=CHECK,GPU

// CHECK-LABEL: axl.stage @products
// CPU: %[[X:.*]] = ax.cast %{{.*}} : tensor<4x8xf8E4M3FN> -> tensor<4x8xf32>
// CPU: %[[W:.*]] = ax.cast %{{.*}} : tensor<8x16xf8E5M2> -> tensor<8x16xf32>
// CPU: ax.linear %[[X]], %[[W]] : tensor<4x8xf32>, tensor<8x16xf32> -> tensor<4x16xf32>
// GPU: ax.linear %{{.*}}, %{{.*}} : tensor<4x8xbf16>, tensor<8x16xbf16> -> tensor<4x16xf32>
// What is done along stays.
// CHECK: axl.library
// CPU: ax.dot %{{.*}} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x4xf32>
// GPU: ax.dot %{{.*}} : tensor<4x8xbf16>, tensor<4x8xbf16> -> tensor<4x4xf32>
// CHECK: ax.transpose
// Others, and other types, too.
// CHECK: ax.linear %{{.*}} : tensor<4x8xf16>, tensor<8x16xf16> -> tensor<4x16xf32>
axl.stage @products(%x: tensor<4x8xf8E4M3FN>, %w: tensor<8x16xf8E5M2>, %h: tensor<4x8xf16>, %v: tensor<8x16xf16>) {
  %y = ax.linear %x, %w : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E5M2> -> tensor<4x16xf32>
  %z = axl.library (%x, %x) {
  ^bb0(%a: tensor<4x8xf8E4M3FN>, %b: tensor<4x8xf8E4M3FN>):
    %d = ax.dot %a, %b batch [] x [] contract [1] x [1] : tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN> -> tensor<4x4xf32>
    %t = ax.transpose %d [1, 0] : tensor<4x4xf32> -> tensor<4x4xf32>
    axl.yield %t : tensor<4x4xf32>
  } : (tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN>) -> tensor<4x4xf32>
  %u = ax.linear %h, %v : tensor<4x8xf16>, tensor<8x16xf16> -> tensor<4x16xf32>
  axl.yield %y, %z, %u : tensor<4x16xf32>, tensor<4x4xf32>, tensor<4x16xf32>
}

// What cuBLASLt multiplies in eight bits stays: factors of which one is
// f8E4M3FN, with multiples of 16 terms of a sum, rows and columns.
// RUN: axopt-opt %s --axl-widen-factors="gpu=true float8=true" | FileCheck %s --check-prefix=KEEP
// KEEP-LABEL: axl.stage @fit
// KEEP-NOT: ax.cast
// KEEP: axl.yield
axl.stage @fit(%x: tensor<2x8x16xf8E4M3FN>, %w: tensor<16x32xf8E5M2>, %b: tensor<2x16x16xf8E4M3FN>) {
  %y = ax.linear %x, %w : tensor<2x8x16xf8E4M3FN>, tensor<16x32xf8E5M2> -> tensor<2x8x32xf32>
  %z = ax.dot %b, %b batch [0] x [0] contract [1] x [2] : tensor<2x16x16xf8E4M3FN>, tensor<2x16x16xf8E4M3FN> -> tensor<2x16x16xf32>
  axl.yield %y, %z : tensor<2x8x32xf32>, tensor<2x16x16xf32>
}

// The last one writes rows of 8.
// KEEP-LABEL: axl.stage @unfit
// KEEP: ax.linear %{{.*}} {axl.widened} : tensor<16x8xbf16>, tensor<8x16xbf16>
// KEEP: ax.linear %{{.*}} : tensor<16x16xbf16>, tensor<16x8xbf16>
// KEEP: ax.linear %{{.*}} : tensor<8x16xbf16>, tensor<16x16xbf16>
// KEEP: ax.linear %{{.*}} : tensor<16x16xbf16>, tensor<16x16xbf16>
// KEEP: ax.dot %{{.*}} : tensor<16x16xbf16>, tensor<16xbf16>
// KEEP: ax.dot %{{.*}} : tensor<16xbf16>, tensor<16x16xbf16>
// KEEP: ax.linear %{{.*}} : tensor<0x16xbf16>, tensor<16x16xbf16>
// KEEP: ax.linear %{{.*}} : tensor<2x8x16xbf16>, tensor<16x16xbf16>
axl.stage @unfit(%a: tensor<16x8xf8E4M3FN>, %b: tensor<8x16xf8E4M3FN>, %c: tensor<16x16xf8E5M2>, %d: tensor<16xf8E4M3FN>, %e: tensor<0x16xf8E4M3FN>, %f: tensor<2x8x16xf8E4M3FN>) {
  %terms = ax.linear %a, %b : tensor<16x8xf8E4M3FN>, tensor<8x16xf8E4M3FN> -> tensor<16x16xf32>
  %columns = ax.linear %c, %a : tensor<16x16xf8E5M2>, tensor<16x8xf8E4M3FN> -> tensor<16x8xf32>
  %rows = ax.linear %b, %c : tensor<8x16xf8E4M3FN>, tensor<16x16xf8E5M2> -> tensor<8x16xf32>
  %types = ax.linear %c, %c : tensor<16x16xf8E5M2>, tensor<16x16xf8E5M2> -> tensor<16x16xf32>
  %vector = ax.dot %c, %d batch [] x [] contract [1] x [0] : tensor<16x16xf8E5M2>, tensor<16xf8E4M3FN> -> tensor<16xf32>
  %row = ax.dot %d, %c batch [] x [] contract [0] x [0] : tensor<16xf8E4M3FN>, tensor<16x16xf8E5M2> -> tensor<16xf32>
  %none = ax.linear %e, %c : tensor<0x16xf8E4M3FN>, tensor<16x16xf8E5M2> -> tensor<0x16xf32>
  %moved = axl.library (%f, %c) {
  ^bb0(%g: tensor<2x8x16xf8E4M3FN>, %h: tensor<16x16xf8E5M2>):
    %y = ax.linear %g, %h : tensor<2x8x16xf8E4M3FN>, tensor<16x16xf8E5M2> -> tensor<2x8x16xf32>
    %t = ax.transpose %y [1, 0, 2] : tensor<2x8x16xf32> -> tensor<8x2x16xf32>
    axl.yield %t : tensor<8x2x16xf32>
  } : (tensor<2x8x16xf8E4M3FN>, tensor<16x16xf8E5M2>) -> tensor<8x2x16xf32>
  axl.yield %terms, %columns, %rows, %types, %vector, %row, %none, %moved : tensor<16x16xf32>, tensor<16x8xf32>, tensor<8x16xf32>, tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<0x16xf32>, tensor<8x2x16xf32>
}
