// RUN: axopt-opt %s --axl-round-float8 | FileCheck %s

// CHECK-LABEL: axl.stage @products
// CHECK: %[[Y:.*]] = ax.linear %{{.*}} : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E5M2> -> tensor<4x16xf32>
// CHECK: %[[R:.*]] = ax.cast %[[Y]] : tensor<4x16xf32> -> tensor<4x16xbf16>
// CHECK: %[[D:.*]] = ax.dot %{{.*}} -> tensor<4x4xf32>
// CHECK: %[[E:.*]] = ax.cast %[[D]] : tensor<4x4xf32> -> tensor<4x4xbf16>
// Sums, and products of other types, stay.
// CHECK: %[[S:.*]] = ax.linear %{{.*}} -> tensor<4x16xf32>
// CHECK: %[[B:.*]] = ax.linear %{{.*}} : tensor<4x16xbf16>, tensor<16x4xbf16> -> tensor<4x4xbf16>
// CHECK-NOT: ax.cast
// CHECK: axl.yield %[[R]], %[[E]], %[[S]], %[[B]]
axl.stage @products(%x: tensor<4x8xf8E4M3FN>, %w: tensor<8x16xf8E5M2>, %v: tensor<16x4xbf16>) {
  %y = ax.linear %x, %w : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E5M2> -> tensor<4x16xbf16>
  %d = ax.dot %x, %x batch [] x [] contract [1] x [1] : tensor<4x8xf8E4M3FN>, tensor<4x8xf8E4M3FN> -> tensor<4x4xbf16>
  %s = ax.linear %x, %w : tensor<4x8xf8E4M3FN>, tensor<8x16xf8E5M2> -> tensor<4x16xf32>
  %b = ax.linear %y, %v : tensor<4x16xbf16>, tensor<16x4xbf16> -> tensor<4x4xbf16>
  axl.yield %y, %d, %s, %b : tensor<4x16xbf16>, tensor<4x4xbf16>, tensor<4x16xf32>, tensor<4x4xbf16>
}
