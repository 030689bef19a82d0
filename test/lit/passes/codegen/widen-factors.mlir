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
