// RUN: axopt-opt %s --axl-write-transposed | FileCheck %s

// Rows stay rows: attention writes each position's heads side by side.
// CHECK: axl.stage @rows(%[[X:.*]]: tensor<1x2x5x4xf32>)
// CHECK: %[[R:.*]] = axl.library(%[[X]], %[[X]], %[[X]]) {
// CHECK: %[[A:.*]] = ax.attention
// CHECK: %[[T:.*]] = ax.transpose %[[A]] [0, 2, 1, 3]
// CHECK: axl.yield %[[T]]
// CHECK: axl.yield %[[R]] : tensor<1x5x2x4xf32>
axl.stage @rows(%x: tensor<1x2x5x4xf32>) {
  %0 = ax.attention %x, %x, %x scale 5.000000e-01 : tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32> -> tensor<1x2x5x4xf32>
  %1 = ax.transpose %0 [0, 2, 1, 3] : tensor<1x2x5x4xf32> -> tensor<1x5x2x4xf32>
  axl.yield %1 : tensor<1x5x2x4xf32>
}

// CHECK: axl.stage @columns
// CHECK-NOT: axl.library
axl.stage @columns(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>) {
  %0 = ax.linear %x, %w : tensor<4x8xf32>, tensor<8x6xf32> -> tensor<4x6xf32>
  %1 = ax.transpose %0 [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
  axl.yield %1 : tensor<6x4xf32>
}

// The gradient reads what was written so transposed.
// CHECK: axl.stage @trained(%[[X:.*]]: tensor<1x2x5x8xf16>, %[[G:.*]]: tensor<1x2x5x8xf16>)
// CHECK: %[[R:.*]]:2 = axl.library(%[[X]], %[[X]], %[[X]]) {
// CHECK: %[[A:.*]], %[[S:.*]] = axl.attention
// CHECK: %[[T:.*]] = ax.transpose %[[A]] [0, 2, 1, 3]
// CHECK: axl.yield %[[S]], %[[T]]
// CHECK: %[[B:.*]] = ax.transpose %[[R]]#1 [0, 2, 1, 3] : tensor<1x5x2x8xf16> -> tensor<1x2x5x8xf16>
// CHECK: axl.attention_gradient %[[X]], %[[X]], %[[X]], %[[B]], %[[G]] sums %[[R]]#0
// CHECK: axl.yield %[[R]]#1
axl.stage @trained(%x: tensor<1x2x5x8xf16>, %g: tensor<1x2x5x8xf16>) {
  %0, %s = axl.attention %x, %x, %x scale 5.000000e-01 : tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16> -> tensor<1x2x5x8xf16>, tensor<1x2x5xf32>
  %dq, %dk, %dv = axl.attention_gradient %x, %x, %x, %0, %g sums %s scale 5.000000e-01 : tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>, tensor<1x2x5xf32> -> tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>
  %1 = ax.transpose %0 [0, 2, 1, 3] : tensor<1x2x5x8xf16> -> tensor<1x5x2x8xf16>
  axl.yield %1, %dq, %dk, %dv : tensor<1x5x2x8xf16>, tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>
}

// Projections of q, k and v in one have their gradients in one.
// CHECK: axl.stage @joined(%[[X:.*]]: tensor<1x2x5x8xf16>)
// CHECK: %[[R:.*]] = axl.library(%[[X]], %[[X]], %[[X]], %[[X]], %[[X]]) {
// CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = ax.attention_gradient
// CHECK: %[[C:.*]] = ax.concat
// CHECK: axl.yield %[[C]]
// CHECK: -> tensor<1x5x48xf16>{{$}}
// CHECK-NEXT: axl.yield %[[R]]
axl.stage @joined(%x: tensor<1x2x5x8xf16>) {
  %dq, %dk, %dv = ax.attention_gradient %x, %x, %x, %x, %x scale 5.000000e-01 : tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16> -> tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>
  %0 = ax.transpose %dq [0, 2, 1, 3] : tensor<1x2x5x8xf16> -> tensor<1x5x2x8xf16>
  %1 = ax.transpose %dk [0, 2, 1, 3] : tensor<1x2x5x8xf16> -> tensor<1x5x2x8xf16>
  %2 = ax.transpose %dv [0, 2, 1, 3] : tensor<1x2x5x8xf16> -> tensor<1x5x2x8xf16>
  %3 = ax.reshape %0 : tensor<1x5x2x8xf16> -> tensor<1x5x16xf16>
  %4 = ax.reshape %1 : tensor<1x5x2x8xf16> -> tensor<1x5x16xf16>
  %5 = ax.reshape %2 : tensor<1x5x2x8xf16> -> tensor<1x5x16xf16>
  %6 = ax.concat %3, %4, %5 dim 2 : tensor<1x5x16xf16>, tensor<1x5x16xf16>, tensor<1x5x16xf16> -> tensor<1x5x48xf16>
  axl.yield %6 : tensor<1x5x48xf16>
}

// Where one of them is wanted by itself, too, or rows of 16 bytes begin
// anywhere, they are only transposed.
// CHECK: axl.stage @apart(%[[X:.*]]: tensor<1x2x5x8xf16>, %[[Y:.*]]: tensor<1x2x5x4xf16>)
// CHECK: %[[R:.*]]:3 = axl.library(
// CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = ax.attention_gradient
// CHECK: %[[T:.*]] = ax.transpose %[[DQ]]
// CHECK: %[[U:.*]] = ax.transpose %[[DK]]
// CHECK: axl.yield %[[DV]], %[[T]], %[[U]]
// CHECK: ax.concat
// CHECK: axl.library(
// CHECK: ax.attention_gradient
// CHECK-NOT: ax.concat
// CHECK: axl.yield
// CHECK: ax.concat
axl.stage @apart(%x: tensor<1x2x5x8xf16>, %y: tensor<1x2x5x4xf16>) {
  %dq, %dk, %dv = ax.attention_gradient %x, %x, %x, %x, %x scale 5.000000e-01 : tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16> -> tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>, tensor<1x2x5x8xf16>
  %0 = ax.transpose %dq [0, 2, 1, 3] : tensor<1x2x5x8xf16> -> tensor<1x5x2x8xf16>
  %1 = ax.transpose %dk [0, 2, 1, 3] : tensor<1x2x5x8xf16> -> tensor<1x5x2x8xf16>
  %2 = ax.transpose %dv [0, 2, 1, 3] : tensor<1x2x5x8xf16> -> tensor<1x5x2x8xf16>
  %3 = ax.concat %0, %1, %2 dim 3 : tensor<1x5x2x8xf16>, tensor<1x5x2x8xf16>, tensor<1x5x2x8xf16> -> tensor<1x5x2x24xf16>
  %eq, %ek, %ev = ax.attention_gradient %y, %y, %y, %y, %y scale 5.000000e-01 : tensor<1x2x5x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x4xf16> -> tensor<1x2x5x4xf16>, tensor<1x2x5x4xf16>, tensor<1x2x5x4xf16>
  %4 = ax.transpose %eq [0, 2, 1, 3] : tensor<1x2x5x4xf16> -> tensor<1x5x2x4xf16>
  %5 = ax.transpose %ek [0, 2, 1, 3] : tensor<1x2x5x4xf16> -> tensor<1x5x2x4xf16>
  %6 = ax.transpose %ev [0, 2, 1, 3] : tensor<1x2x5x4xf16> -> tensor<1x5x2x4xf16>
  %7 = ax.concat %4, %5, %6 dim 3 : tensor<1x5x2x4xf16>, tensor<1x5x2x4xf16>, tensor<1x5x2x4xf16> -> tensor<1x5x2x12xf16>
  axl.yield %3, %dv, %7 : tensor<1x5x2x24xf16>, tensor<1x2x5x8xf16>, tensor<1x5x2x12xf16>
}
