// RUN: axopt-opt %s --ax-transpose-float8 | FileCheck %s

// What is loaded is transposed, and so is what it is multiplied with. Nothing is left of
// what was there.
// CHECK-LABEL: ax.program @main
// CHECK-NOT: tensor<1x16xf32>
// CHECK: %[[W:.*]] = ax.load @w : tensor<32x16xf8E4M3FN>
// CHECK: %[[T:.*]] = ax.transpose %[[W]] [1, 0] : tensor<32x16xf8E4M3FN> -> tensor<16x32xf8E4M3FN>
// CHECK: %[[V:.*]] = ax.cast %[[T]] : tensor<16x32xf8E4M3FN> -> tensor<16x32xf32>
// CHECK: %[[S:.*]] = ax.reshape %{{.*}} : tensor<16xf32> -> tensor<16x1xf32>
// CHECK: %[[M:.*]] = ax.binary mul %[[V]], %[[S]] : tensor<16x32xf32>, tensor<16x1xf32> -> tensor<16x32xf32>
// CHECK-NOT: ax.binary
// CHECK: %[[C:.*]] = ax.cast %[[M]] : tensor<16x32xf32> -> tensor<16x32xbf16>
// CHECK: ax.linear %{{.*}}, %[[C]] {transpose_w} : tensor<4x32xbf16>, tensor<16x32xbf16> -> tensor<4x16xbf16>
ax.plan @p version 3 {
  ax.state @w : tensor<32x16xf8E4M3FN> from "w" offset 0 length 512
  ax.state @s : tensor<16xf32> from "w" offset 512 length 64
  ax.program @main(%x: tensor<4x32xf8E4M3FN> {ax.name = "x"}) -> (tensor<4x16xbf16> {ax.name = "y"}) {
    %w = ax.load @w : tensor<32x16xf8E4M3FN>
    %s = ax.load @s : tensor<16xf32>
    %0 = ax.cast %w : tensor<32x16xf8E4M3FN> -> tensor<32x16xf32>
    %r = ax.reshape %s : tensor<16xf32> -> tensor<1x16xf32>
    %1 = ax.binary mul %0, %r : tensor<32x16xf32>, tensor<1x16xf32> -> tensor<32x16xf32>
    %2 = ax.cast %1 : tensor<32x16xf32> -> tensor<32x16xbf16>
    %3 = ax.cast %x : tensor<4x32xf8E4M3FN> -> tensor<4x32xbf16>
    %4 = ax.linear %3, %2 : tensor<4x32xbf16>, tensor<32x16xbf16> -> tensor<4x16xbf16>
    ax.return %4 : tensor<4x16xbf16>
  }
}
