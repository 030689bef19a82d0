// RUN: axopt-opt %s --axl-join-accumulation | FileCheck %s
// RUN: axopt-opt %s --axl-join-accumulation --axl-fuse=gpu --axl-mark-in-place --axl-place-buffers | FileCheck %s --check-prefix=PLACED

// Gradients of two weights, which two products give: they add to their sums. Of
// the others one is scaled, one is a maximum, one is read by somebody else, of
// one the sum is, one is not of the first micro-batch, and one is rounded.
// CHECK-LABEL: axl.stage @train
// CHECK-SAME: adds(0 = %[[W:[a-z0-9]+]]: tensor<8x16xf32>, 1 = %[[V:[a-z0-9]+]]: tensor<8x16xf32>, 2 = %[[SCALED:[a-z0-9]+]]:
// CHECK: %[[R0:.*]] = axl.library(%[[X:.*]], %[[DY:.*]], %[[W]]) {
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4x8xbf16>, %[[B:.*]]: tensor<4x16xbf16>, %[[SUM:.*]]: tensor<8x16xf32>):
// CHECK-NEXT: %[[P:.*]] = ax.dot %[[A]], %[[B]]
// CHECK-NEXT: %[[NEW:.*]] = axl.accumulate %[[P]] to %[[SUM]] over {micro} : tensor<8x16xf32>
// CHECK-NEXT: axl.yield %[[NEW]]
// CHECK: %[[R1:.*]] = axl.library(%{{.*}}, %{{.*}}, %[[V]]) {
// CHECK: ax.linear
// CHECK-NEXT: axl.accumulate
// CHECK-NOT: axl.accumulate
// CHECK: axl.yield %[[R0]], %[[R1]], %{{.*}} :

// PLACED-LABEL: axl.stage @train
// PLACED: axl.accumulate
// PLACED: axl.places = [#axl.place<operand 2>]
// PLACED: axl.accumulate
// PLACED: axl.places = [#axl.place<operand 2>]
ax.plan @p version 1 {
  ax.mesh [col = 1] in time [micro = 2]
  axl.program @main {
    axl.stage @train(%x: tensor<4x8xbf16>, %dy: tensor<4x16xbf16>, %x2: tensor<8x4xf32>, %dy2: tensor<4x16xf32>, %scale: tensor<8x16xf32>, %bf: tensor<8x4xbf16>) adds(0 = %w: tensor<8x16xf32>, 1 = %v: tensor<8x16xf32>, 2 = %scaled: tensor<8x16xf32>, 3 = %max: tensor<8x16xf32>, 4 = %shared: tensor<8x16xf32>, 5 = %read: tensor<8x16xf32>, 7 = %other: tensor<8x16xf32>, 8 = %narrow: tensor<8x16xbf16>) {
      %i = axl.axis_index {micro} : tensor<i64>
      %c0 = ax.constant dense<0> : tensor<i64> -> tensor<i64>
      %c1 = ax.constant dense<1> : tensor<i64> -> tensor<i64>
      %first = ax.compare eq %i, %c0 : tensor<i64>, tensor<i64> -> tensor<i1>
      %second = ax.compare eq %i, %c1 : tensor<i64>, tensor<i64> -> tensor<i1>

      %p0 = ax.dot %x, %dy batch [] x [] contract [0] x [0] : tensor<4x8xbf16>, tensor<4x16xbf16> -> tensor<8x16xf32>
      %a0 = ax.binary add %w, %p0 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
      %r0 = ax.select %first, %p0, %a0 : tensor<i1>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>

      %p1 = ax.linear %x2, %dy2 : tensor<8x4xf32>, tensor<4x16xf32> -> tensor<8x16xf32>
      %a1 = ax.binary add %v, %p1 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
      %r1 = ax.select %first, %p1, %a1 : tensor<i1>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>

      %p2 = ax.linear %x2, %dy2 : tensor<8x4xf32>, tensor<4x16xf32> -> tensor<8x16xf32>
      %s2 = ax.binary mul %p2, %scale : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
      %a2 = ax.binary add %scaled, %s2 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
      %r2 = ax.select %first, %s2, %a2 : tensor<i1>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>

      %p3 = ax.linear %x2, %dy2 : tensor<8x4xf32>, tensor<4x16xf32> -> tensor<8x16xf32>
      %a3 = ax.binary max %max, %p3 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
      %r3 = ax.select %first, %p3, %a3 : tensor<i1>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>

      %p4 = ax.linear %x2, %dy2 : tensor<8x4xf32>, tensor<4x16xf32> -> tensor<8x16xf32>
      %a4 = ax.binary add %shared, %p4 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
      %r4 = ax.select %first, %p4, %a4 : tensor<i1>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
      %u4 = ax.unary neg %p4 : tensor<8x16xf32> -> tensor<8x16xf32>

      %p5 = ax.linear %x2, %dy2 : tensor<8x4xf32>, tensor<4x16xf32> -> tensor<8x16xf32>
      %a5 = ax.binary add %read, %p5 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
      %r5 = ax.select %first, %p5, %a5 : tensor<i1>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
      %u5 = ax.binary add %read, %u4 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>

      %p7 = ax.linear %x2, %dy2 : tensor<8x4xf32>, tensor<4x16xf32> -> tensor<8x16xf32>
      %a7 = ax.binary add %other, %p7 : tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
      %r7 = ax.select %second, %p7, %a7 : tensor<i1>, tensor<8x16xf32>, tensor<8x16xf32> -> tensor<8x16xf32>

      %p8 = ax.linear %bf, %dy : tensor<8x4xbf16>, tensor<4x16xbf16> -> tensor<8x16xbf16>
      %w8 = ax.cast %p8 : tensor<8x16xbf16> -> tensor<8x16xf32>
      %n8 = ax.cast %w8 : tensor<8x16xf32> -> tensor<8x16xbf16>
      %a8 = ax.binary add %narrow, %n8 : tensor<8x16xbf16>, tensor<8x16xbf16> -> tensor<8x16xbf16>
      %r8 = ax.select %first, %n8, %a8 : tensor<i1>, tensor<8x16xbf16>, tensor<8x16xbf16> -> tensor<8x16xbf16>
      axl.yield %r0, %r1, %r2, %r3, %r4, %r5, %u5, %r7, %r8 : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xbf16>
    }
  }
}
