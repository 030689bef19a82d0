// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-outline-stages))' | FileCheck %s

// The first value crosses stage 1 unused and is forwarded; the input goes to
// every stage that uses it; the constant is in both its stages; state that
// nothing loads goes.
// CHECK: ax.state @w : tensor<4xf32> stages [0, 2]
// CHECK-NOT: @unused
// CHECK: %[[A:.*]]:2 = ax.stage @stage0 on 0 (%{{.*}} = %[[X:.*]] : tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
// CHECK: ax.load @w
// CHECK: ax.yield
// CHECK: %[[T:.*]] = ax.transfer %[[A]]#0 from 0 to 1 slots 2
// CHECK: %[[U:.*]] = ax.transfer %[[A]]#1 from 0 to 1 slots 2
// CHECK: ax.stage @stage1 on 1 ({{.*}} = %[[T]] : tensor<4xf32>, {{.*}} = %[[U]] : tensor<4xf32>)
// CHECK-COUNT-2: ax.transfer {{.*}} from 1 to 2 slots 2
// CHECK: ax.stage @stage2 on 2 ({{.*}} = %[[X]] : tensor<4xf32>
// CHECK: ax.load @w
// CHECK: ax.return
ax.plan @p version 1 {
  ax.mesh [pipe = 3]
  ax.state @w : tensor<4xf32> from "w" offset 0 length 16
  ax.state @unused : tensor<4xf32> from "w" offset 16 length 16
  ax.program @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %w = ax.load @w : tensor<4xf32>
    %0 = ax.binary add %x, %w {stage = 0} : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %1 = ax.unary exp %0 {stage = 0} : tensor<4xf32> -> tensor<4xf32>
    %2 = ax.unary exp %1 {stage = 1} : tensor<4xf32> -> tensor<4xf32>
    %3 = ax.binary add %2, %0 {stage = 2} : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %4 = ax.binary add %3, %x {stage = 2} : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %5 = ax.binary add %4, %w {stage = 2} : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    ax.return %5 : tensor<4xf32>
  }
}
