// RUN: axopt-opt %s --axl-localize | FileCheck %s

// The sum of a product whose hidden dimension is split unevenly: the padding of
// the input is masked, that of the weight is zero. What nobody reads goes.
// CHECK: ax.state @w
// CHECK: axl.program @main {
// CHECK-NEXT: axl.stage @forward0(%[[X:.*]]: tensor<4x4xf32>) loads(@w = %[[W:.*]]: tensor<4x5xf32>) direct(0) {
// CHECK: %[[I:.*]] = axl.axis_index {col} : tensor<i64>
// CHECK: %[[VALID:.*]] = ax.compare lt
// CHECK: %[[MASKED:.*]] = ax.select %[[VALID]], %[[X]]
// CHECK: %[[P:.*]] = ax.linear %[[MASKED]], %[[W]] : tensor<4x4xf32>, tensor<4x5xf32> -> tensor<4x5xf32>
// CHECK: %[[R:.*]] = axl.all_reduce sum %[[P]] over {col} because "k of fc is split" : tensor<4x5xf32> -> tensor<4x5xf32>
// CHECK-NOT: ax.unary
// CHECK: axl.yield %[[R]] : tensor<4x5xf32>
ax.plan @p version 1 {
  ax.mesh [col = 2]
  ax.state @w : tensor<7x5xf32, #ax.layout<[{col}, {}]>> stages [0]
  ax.program @main(%x: tensor<4x7xf32, #ax.layout<[{}, {col}]>>) -> tensor<4x5xf32> {
    %s = ax.stage @forward0 on 0 (%a = %x : tensor<4x7xf32, #ax.layout<[{}, {col}]>>) -> (tensor<4x5xf32>) {
      %w = ax.load @w : tensor<7x5xf32, #ax.layout<[{col}, {}]>>
      %p = ax.linear %a, %w : tensor<4x7xf32, #ax.layout<[{}, {col}]>>, tensor<7x5xf32, #ax.layout<[{col}, {}]>> -> tensor<4x5xf32, #ax.layout<[{}, {}], partial sum {col}>>
      %r = ax.all_reduce %p over {col} because "k of fc is split" : tensor<4x5xf32, #ax.layout<[{}, {}], partial sum {col}>> -> tensor<4x5xf32>
      %unread = ax.unary neg %r : tensor<4x5xf32> -> tensor<4x5xf32>
      ax.yield %r : tensor<4x5xf32>
    }
    ax.schedule "once" { stage 0: "F0" }
    ax.return %s : tensor<4x5xf32>
  }
}
