// RUN: axopt-opt %s --axl-merge-equal | FileCheck %s

// CHECK: axl.stage @s(%[[X:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[E:.*]] = ax.unary exp %[[X]]
// CHECK-NEXT: %[[R:.*]] = axl.all_reduce sum %[[E]]
// CHECK-NEXT: axl.yield %[[R]], %[[R]]
axl.stage @s(%x: tensor<4xf32>) {
  %0 = ax.unary exp %x : tensor<4xf32> -> tensor<4xf32>
  %1 = ax.unary exp %x : tensor<4xf32> -> tensor<4xf32>
  %2 = ax.unary log %1 : tensor<4xf32> -> tensor<4xf32>
  %3 = ax.unary neg %2 : tensor<4xf32> -> tensor<4xf32>
  %4 = axl.all_reduce sum %0 over {col} : tensor<4xf32> -> tensor<4xf32>
  %5 = axl.all_reduce sum %1 over {col} : tensor<4xf32> -> tensor<4xf32>
  axl.yield %4, %5 : tensor<4xf32>, tensor<4xf32>
}

// Wider and as narrow again is what it was; narrower and as wide again is not.
// CHECK: axl.stage @widened(%[[X:.*]]: tensor<4xbf16>, %[[Y:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[N:.*]] = ax.unary neg %[[X]]
// CHECK-NEXT: %[[B:.*]] = ax.cast %[[Y]]
// CHECK-NEXT: %[[W:.*]] = ax.cast %[[B]]
// CHECK-NEXT: axl.yield %[[N]], %[[W]]
axl.stage @widened(%x: tensor<4xbf16>, %y: tensor<4xf32>) {
  %0 = ax.cast %x : tensor<4xbf16> -> tensor<4xf32>
  %1 = ax.cast %0 : tensor<4xf32> -> tensor<4xbf16>
  %2 = ax.unary neg %1 : tensor<4xbf16> -> tensor<4xbf16>
  %3 = ax.cast %y : tensor<4xf32> -> tensor<4xbf16>
  %4 = ax.cast %3 : tensor<4xbf16> -> tensor<4xf32>
  axl.yield %2, %4 : tensor<4xbf16>, tensor<4xf32>
}

// f16 has numbers that bf16 has not.
// CHECK: axl.stage @other(%[[X:.*]]: tensor<4xf16>)
// CHECK-NEXT: %[[B:.*]] = ax.cast %[[X]]
// CHECK-NEXT: %[[H:.*]] = ax.cast %[[B]]
// CHECK-NEXT: axl.yield %[[H]]
axl.stage @other(%x: tensor<4xf16>) {
  %0 = ax.cast %x : tensor<4xf16> -> tensor<4xbf16>
  %1 = ax.cast %0 : tensor<4xbf16> -> tensor<4xf16>
  axl.yield %1 : tensor<4xf16>
}
