// RUN: axopt-opt %s --axl-read-rounded | FileCheck %s
// RUN: axopt-opt %s --axl-read-rounded --axl-split-reductions --axl-compute-where-read --axl-fuse="gpu" | FileCheck %s --check-prefix=KERNELS

// A Linear's gradients: of its input, of its weight, and of its bias, which is
// written before what it sums is rounded.
// CHECK-LABEL: axl.stage @gradients
// CHECK: %[[DY:.*]] = ax.unary tanh
// CHECK-NEXT: %[[ROUNDED:.*]] = ax.cast %[[DY]] : tensor<4x16x32xf32> -> tensor<4x16x32xbf16>
// CHECK-NEXT: %[[WIDE:.*]] = ax.cast %[[ROUNDED]] : tensor<4x16x32xbf16> -> tensor<4x16x32xf32>
// CHECK-NEXT: ax.reduce sum %[[WIDE]] dims [0, 1]
// CHECK-NEXT: ax.linear %[[ROUNDED]]
// CHECK-NEXT: ax.dot %{{.*}}, %[[ROUNDED]]

// Nobody writes what is not rounded.
// KERNELS-LABEL: axl.stage @gradients
// KERNELS: : (tensor<4x16x32xf32>) -> tensor<4x16x32xbf16>
// KERNELS: : (tensor<4x16x32xbf16>) -> tensor<32xf32>
axl.stage @gradients(%z: tensor<4x16x32xf32>, %x: tensor<4x16x8xbf16>, %w: tensor<8x32xbf16>) {
  %0 = ax.unary tanh %z : tensor<4x16x32xf32> -> tensor<4x16x32xf32>
  %1 = ax.reduce sum %0 dims [0, 1] : tensor<4x16x32xf32> -> tensor<32xf32>
  %2 = ax.cast %0 : tensor<4x16x32xf32> -> tensor<4x16x32xbf16>
  %3 = ax.linear %2, %w {transpose_w} : tensor<4x16x32xbf16>, tensor<8x32xbf16> -> tensor<4x16x8xbf16>
  %4 = ax.dot %x, %2 batch [] x [] contract [0, 1] x [0, 1] : tensor<4x16x8xbf16>, tensor<4x16x32xbf16> -> tensor<8x32xbf16>
  axl.yield %1, %3, %4 : tensor<32xf32>, tensor<4x16x8xbf16>, tensor<8x32xbf16>
}

// Of f16, when it was rounded before.
// CHECK-LABEL: axl.stage @behind
// CHECK: ax.cast
// CHECK: ax.linear
// CHECK: %[[WIDE:.*]] = ax.cast %{{.*}} : tensor<64x32xf16> -> tensor<64x32xf32>
// CHECK-NEXT: ax.reduce sum %[[WIDE]]
axl.stage @behind(%z: tensor<64x32xf32>, %w: tensor<8x32xf16>) {
  %0 = ax.unary tanh %z : tensor<64x32xf32> -> tensor<64x32xf32>
  %1 = ax.cast %0 : tensor<64x32xf32> -> tensor<64x32xf16>
  %2 = ax.linear %1, %w {transpose_w} : tensor<64x32xf16>, tensor<8x32xf16> -> tensor<64x8xf16>
  %3 = ax.reduce sum %0 dims [0] : tensor<64x32xf32> -> tensor<32xf32>
  axl.yield %2, %3 : tensor<64x8xf16>, tensor<32xf32>
}

// What stays: a maximum, a sum over columns, what no product reads rounded, what is
// in memory as it is, and what is a view of something smaller.
// CHECK-LABEL: axl.stage @others
// CHECK: %[[Y:.*]] = ax.unary tanh
// CHECK: ax.reduce max %[[Y]]
// CHECK: ax.reduce sum %[[Y]] dims [1]
// CHECK: %[[Z:.*]] = ax.unary neg
// CHECK: ax.reduce sum %[[Z]] dims [0]
// CHECK: ax.reduce sum %arg0 dims [0]
// CHECK: %[[V:.*]] = ax.broadcast
// CHECK: ax.reduce sum %[[V]] dims [0]
axl.stage @others(%x: tensor<64x32xf32>, %row: tensor<32xf32>, %w: tensor<8x32xbf16>) {
  %0 = ax.unary tanh %x : tensor<64x32xf32> -> tensor<64x32xf32>
  %1 = ax.cast %0 : tensor<64x32xf32> -> tensor<64x32xbf16>
  %2 = ax.linear %1, %w {transpose_w} : tensor<64x32xbf16>, tensor<8x32xbf16> -> tensor<64x8xbf16>
  %3 = ax.reduce max %0 dims [0] : tensor<64x32xf32> -> tensor<32xf32>
  %4 = ax.reduce sum %0 dims [1] : tensor<64x32xf32> -> tensor<64xf32>
  %5 = ax.unary neg %x : tensor<64x32xf32> -> tensor<64x32xf32>
  %6 = ax.cast %5 : tensor<64x32xf32> -> tensor<64x32xbf16>
  %7 = ax.reduce sum %5 dims [0] : tensor<64x32xf32> -> tensor<32xf32>
  %8 = ax.cast %x : tensor<64x32xf32> -> tensor<64x32xbf16>
  %9 = ax.linear %8, %w {transpose_w} : tensor<64x32xbf16>, tensor<8x32xbf16> -> tensor<64x8xbf16>
  %10 = ax.reduce sum %x dims [0] : tensor<64x32xf32> -> tensor<32xf32>
  %11 = ax.broadcast %row : tensor<32xf32> -> tensor<64x32xf32>
  %12 = ax.cast %11 : tensor<64x32xf32> -> tensor<64x32xbf16>
  %13 = ax.linear %12, %w {transpose_w} : tensor<64x32xbf16>, tensor<8x32xbf16> -> tensor<64x8xbf16>
  %14 = ax.reduce sum %11 dims [0] : tensor<64x32xf32> -> tensor<32xf32>
  axl.yield %2, %3, %4, %6, %7, %9, %10, %13, %14 : tensor<64x8xbf16>, tensor<32xf32>, tensor<64xf32>, tensor<64x32xbf16>, tensor<32xf32>, tensor<64x8xbf16>, tensor<32xf32>, tensor<64x8xbf16>, tensor<32xf32>
}
