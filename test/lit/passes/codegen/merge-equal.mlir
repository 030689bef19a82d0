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
