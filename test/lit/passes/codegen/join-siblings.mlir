// RUN: axopt-opt %s --axl-fuse=gpu=true --axl-join-kernels --split-input-file | FileCheck %s
// RUN: axopt-opt %s --axl-fuse --split-input-file | FileCheck %s --check-prefix=CPU

// Both gradients of silu(gate) * up read what comes back, and the gate: one kernel
// makes them, before the first is needed. What that takes more is little beside the
// weights.
// CHECK-LABEL: axl.stage @gated
// CHECK: %[[D:.*]] = ax.linear %arg0
// CHECK: %[[R:.*]]:2 = axl.fusion
// CHECK: ax.linear %[[R]]#0
// CHECK: ax.linear %[[R]]#1
// CHECK-NOT: axl.fusion
// CPU-LABEL: axl.stage @gated
// CPU-COUNT-2: = axl.fusion
axl.stage @gated(%y: tensor<1024x1024xbf16>, %w: tensor<1024x1024xbf16>, %x: tensor<1024x1024xbf16>, %weights: tensor<64x1024x1024xbf16>) {
  %gate = ax.linear %x, %w : tensor<1024x1024xbf16>, tensor<1024x1024xbf16> -> tensor<1024x1024xbf16>
  %up = ax.linear %gate, %w : tensor<1024x1024xbf16>, tensor<1024x1024xbf16> -> tensor<1024x1024xbf16>
  %dy = ax.linear %y, %w : tensor<1024x1024xbf16>, tensor<1024x1024xbf16> -> tensor<1024x1024xbf16>
  %0 = ax.unary silu %gate : tensor<1024x1024xbf16> -> tensor<1024x1024xbf16>
  %1 = ax.binary mul %dy, %0 : tensor<1024x1024xbf16>, tensor<1024x1024xbf16> -> tensor<1024x1024xbf16>
  %2 = ax.linear %1, %w : tensor<1024x1024xbf16>, tensor<1024x1024xbf16> -> tensor<1024x1024xbf16>
  %3 = ax.binary mul %dy, %up : tensor<1024x1024xbf16>, tensor<1024x1024xbf16> -> tensor<1024x1024xbf16>
  %4 = ax.unary sigmoid %gate : tensor<1024x1024xbf16> -> tensor<1024x1024xbf16>
  %5 = ax.binary mul %3, %4 : tensor<1024x1024xbf16>, tensor<1024x1024xbf16> -> tensor<1024x1024xbf16>
  %6 = ax.linear %5, %w : tensor<1024x1024xbf16>, tensor<1024x1024xbf16> -> tensor<1024x1024xbf16>
  axl.yield %2, %6 : tensor<1024x1024xbf16>, tensor<1024x1024xbf16>
}

// -----

// Not where the second reads what is made behind the first; not where what it makes
// would be much beside what is there all the time; not of little; and not what is
// returned, which may be an update that writes over a state.
// CHECK-LABEL: axl.stage @behind
// CHECK-COUNT-2: = axl.fusion
// CHECK-LABEL: axl.stage @longer
// CHECK-COUNT-2: = axl.fusion
// CHECK-LABEL: axl.stage @small
// CHECK-COUNT-2: = axl.fusion
// CHECK-LABEL: axl.stage @returned
// CHECK-COUNT-2: = axl.fusion
axl.stage @behind(%y: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>, %weights: tensor<64x1024x1024xf32>) {
  %a = ax.linear %y, %w : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
  %0 = ax.unary neg %a : tensor<1024x1024xf32> -> tensor<1024x1024xf32>
  %1 = ax.linear %0, %w : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
  %2 = ax.binary mul %a, %1 : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
  %3 = ax.linear %2, %w : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
  axl.yield %3 : tensor<1024x1024xf32>
}
axl.stage @longer(%y: tensor<1024x1024xbf16>, %w: tensor<1024x1024xbf16>, %weights: tensor<32x1024x1024xbf16>) {
  %a = ax.linear %y, %w : tensor<1024x1024xbf16>, tensor<1024x1024xbf16> -> tensor<1024x1024xbf16>
  %0 = ax.unary neg %a : tensor<1024x1024xbf16> -> tensor<1024x1024xbf16>
  %1 = ax.linear %0, %w : tensor<1024x1024xbf16>, tensor<1024x1024xbf16> -> tensor<1024x1024xbf16>
  %2 = ax.unary abs %a : tensor<1024x1024xbf16> -> tensor<1024x1024xbf16>
  %3 = ax.linear %2, %w : tensor<1024x1024xbf16>, tensor<1024x1024xbf16> -> tensor<1024x1024xbf16>
  axl.yield %1, %3 : tensor<1024x1024xbf16>, tensor<1024x1024xbf16>
}
axl.stage @small(%y: tensor<64x64xf32>, %w: tensor<64x64xf32>, %weights: tensor<64x1024x1024xf32>) {
  %a = ax.linear %y, %w : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %0 = ax.unary neg %a : tensor<64x64xf32> -> tensor<64x64xf32>
  %1 = ax.linear %0, %w : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %2 = ax.unary abs %a : tensor<64x64xf32> -> tensor<64x64xf32>
  %3 = ax.linear %2, %w : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  axl.yield %1, %3 : tensor<64x64xf32>, tensor<64x64xf32>
}
axl.stage @returned(%y: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>, %weights: tensor<64x1024x1024xf32>) {
  %a = ax.linear %y, %w : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
  %0 = ax.unary neg %a : tensor<1024x1024xf32> -> tensor<1024x1024xf32>
  %1 = ax.linear %0, %w : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
  %2 = ax.unary abs %a : tensor<1024x1024xf32> -> tensor<1024x1024xf32>
  axl.yield %1, %2 : tensor<1024x1024xf32>, tensor<1024x1024xf32>
}

// -----

// Sums of the same rows or columns, which are little to keep, also where others read
// on what they are of. Not sums of others.
// CHECK-LABEL: axl.stage @sums
// CHECK: %[[R:.*]]:2 = axl.fusion
// CHECK-COUNT-2: ax.reduce
// CHECK: ax.linear %[[R]]#0
// CHECK: ax.linear %[[R]]#1
// CHECK: axl.fusion
// CHECK-NOT: axl.fusion
// CHECK-LABEL: axl.stage @others
// CHECK-COUNT-2: = axl.fusion
axl.stage @sums(%x: tensor<1024x1024xf32>, %y: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>) {
  %0 = ax.reduce sum %x dims [0] keep_dims : tensor<1024x1024xf32> -> tensor<1x1024xf32>
  %1 = ax.linear %0, %w : tensor<1x1024xf32>, tensor<1024x1024xf32> -> tensor<1x1024xf32>
  %2 = ax.binary mul %x, %y : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
  %3 = ax.reduce sum %2 dims [0] keep_dims : tensor<1024x1024xf32> -> tensor<1x1024xf32>
  %4 = ax.linear %3, %w : tensor<1x1024xf32>, tensor<1024x1024xf32> -> tensor<1x1024xf32>
  %5 = ax.unary neg %x : tensor<1024x1024xf32> -> tensor<1024x1024xf32>
  axl.yield %1, %4, %5 : tensor<1x1024xf32>, tensor<1x1024xf32>, tensor<1024x1024xf32>
}
axl.stage @others(%x: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>) {
  %0 = ax.reduce sum %x dims [0] : tensor<1024x1024xf32> -> tensor<1024xf32>
  %1 = ax.linear %0, %w : tensor<1024xf32>, tensor<1024x1024xf32> -> tensor<1024xf32>
  %2 = ax.reduce sum %x dims [1] : tensor<1024x1024xf32> -> tensor<1024xf32>
  %3 = ax.linear %2, %w {transpose_w} : tensor<1024xf32>, tensor<1024x1024xf32> -> tensor<1024xf32>
  axl.yield %1, %3 : tensor<1024xf32>, tensor<1024xf32>
}
