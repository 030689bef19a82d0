// RUN: axopt-opt %s --ax-transpose-float8 | FileCheck %s

// A factor that is wider, a weight that lies so, and one that is computed.
// CHECK-NOT: ax.transpose
ax.plan @p version 3 {
  ax.state @w : tensor<16x16xf8E4M3FN> from "w" offset 0 length 256
  ax.program @main(%x: tensor<4x16xf8E4M3FN> {ax.name = "x"}, %y: tensor<4x16xf32> {ax.name = "y"}) -> (
      tensor<4x16xf32> {ax.name = "a"}, tensor<4x16xf32> {ax.name = "b"}, tensor<4x16xf32> {ax.name = "c"}) {
    %w = ax.load @w : tensor<16x16xf8E4M3FN>
    %0 = ax.cast %w : tensor<16x16xf8E4M3FN> -> tensor<16x16xf32>
    %1 = ax.cast %x : tensor<4x16xf8E4M3FN> -> tensor<4x16xf32>
    %2 = ax.linear %y, %0 : tensor<4x16xf32>, tensor<16x16xf32> -> tensor<4x16xf32>
    %3 = ax.linear %1, %0 {transpose_w} : tensor<4x16xf32>, tensor<16x16xf32> -> tensor<4x16xf32>
    %4 = ax.binary add %2, %3 : tensor<4x16xf32>, tensor<4x16xf32> -> tensor<4x16xf32>
    %5 = ax.concat %4, %4, %4, %4 dim 0 : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32> -> tensor<16x16xf32>
    %6 = ax.cast %5 : tensor<16x16xf32> -> tensor<16x16xf8E4M3FN>
    %7 = ax.cast %6 : tensor<16x16xf8E4M3FN> -> tensor<16x16xf32>
    %8 = ax.linear %1, %7 : tensor<4x16xf32>, tensor<16x16xf32> -> tensor<4x16xf32>
    ax.return %2, %3, %8 : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>
  }
}
