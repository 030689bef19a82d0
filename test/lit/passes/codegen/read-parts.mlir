// RUN: axopt-opt %s --axl-read-parts --split-input-file | FileCheck %s

// Two kernels that negate another part each are one.
// CHECK-LABEL: axl.stage @parts
// CHECK: %[[V:.*]] = ax.reshape %arg0 : tensor<64x16xf32> -> tensor<8x128xf32>
// CHECK: %[[P:.*]] = ax.slice %[[V]] starts [4, 0] steps [1, 1] : tensor<8x128xf32> -> tensor<4x128xf32>
// CHECK: axl.fusion(%[[P]])
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4x128xf32>):
// CHECK-NEXT: %[[T:.*]] = ax.transpose %[[A]]
// CHECK-NEXT: ax.unary neg %[[T]]
axl.stage @parts(%x: tensor<64x16xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<64x16xf32>):
    %1 = ax.reshape %a : tensor<64x16xf32> -> tensor<8x128xf32>
    %2 = ax.slice %1 starts [4, 0] steps [1, 1] : tensor<8x128xf32> -> tensor<4x128xf32>
    %3 = ax.transpose %2 [1, 0] : tensor<4x128xf32> -> tensor<128x4xf32>
    %4 = ax.unary neg %3 : tensor<128x4xf32> -> tensor<128x4xf32>
    axl.yield %4 : tensor<128x4xf32>
  } : (tensor<64x16xf32>) -> tensor<128x4xf32>
  axl.yield %0 : tensor<128x4xf32>
}

// -----

// In pieces, not at 64 bytes, with others that read more: as they are.
// CHECK-LABEL: axl.stage @stay
// CHECK-NOT: ax.slice
// CHECK: axl.fusion(%arg0, %arg1, %arg2)
axl.stage @stay(%x: tensor<8x32xf32>, %y: tensor<64xf32>, %z: tensor<2x16xf32>) {
  %0 = axl.fusion(%x, %y, %z) {
  ^bb0(%a: tensor<8x32xf32>, %b: tensor<64xf32>, %c: tensor<2x16xf32>):
    %1 = ax.slice %a starts [0, 16] steps [1, 1] : tensor<8x32xf32> -> tensor<8x16xf32>
    %2 = ax.slice %b starts [8] steps [1] : tensor<64xf32> -> tensor<16xf32>
    %3 = ax.slice %c starts [1, 0] steps [1, 1] : tensor<2x16xf32> -> tensor<1x16xf32>
    %4 = ax.reduce sum %c dims [0] : tensor<2x16xf32> -> tensor<16xf32>
    %5 = ax.binary add %1, %2 : tensor<8x16xf32>, tensor<16xf32> -> tensor<8x16xf32>
    %6 = ax.binary add %5, %3 : tensor<8x16xf32>, tensor<1x16xf32> -> tensor<8x16xf32>
    %7 = ax.binary add %6, %4 : tensor<8x16xf32>, tensor<16xf32> -> tensor<8x16xf32>
    axl.yield %7 : tensor<8x16xf32>
  } : (tensor<8x32xf32>, tensor<64xf32>, tensor<2x16xf32>) -> tensor<8x16xf32>
  axl.yield %0 : tensor<8x16xf32>
}

// -----

// What is written in place is the whole of an operand.
// CHECK-LABEL: axl.stage @placed
// CHECK-NOT: ax.slice
// CHECK: axl.fusion(%arg0, %arg1) in_place [1]
axl.stage @placed(%x: tensor<32xf32>, %y: tensor<32xf32>) {
  %0 = axl.fusion(%x, %y) in_place [1] {
  ^bb0(%a: tensor<32xf32>, %b: tensor<32xf32>):
    %1 = ax.slice %b starts [0] steps [1] : tensor<32xf32> -> tensor<32xf32>
    %2 = ax.binary add %a, %1 : tensor<32xf32>, tensor<32xf32> -> tensor<32xf32>
    axl.yield %2 : tensor<32xf32>
  } : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
  axl.yield %0 : tensor<32xf32>
}
