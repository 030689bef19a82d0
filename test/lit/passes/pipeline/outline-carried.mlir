// RUN: axopt-opt %s --split-input-file --pass-pipeline='builtin.module(ax.plan(ax-outline-stages))' | FileCheck %s

// What a step carries is stored by the list that makes it, where that stage alone
// reads it; the state that the first stage reads, and the second makes, is sent
// back at the step's end.
// CHECK: ax.state @own : tensor<4xf32, {{.*}}> stages [1]
// CHECK: ax.state @back : tensor<4xf32, {{.*}}> stages [0]
// CHECK: ax.stage @forward0 on 0
// CHECK-NOT: ax.store
// CHECK: ax.stage @forward1 on 1
// CHECK: ax.store @own
// CHECK-NOT: ax.store @back
// CHECK: ax.transfer {{.*}} from 1 to 0
// CHECK: ax.stage @update0.1 on 0
// CHECK: ax.store @back
#l = #ax.layout<[{}]>
ax.plan @p version 1 {
  ax.mesh [pipe = 2, data = 1, depth = 1, row = 1, col = 1] in time [micro = 1]
  ax.state @own : tensor<4xf32, #l>
  ax.state @back : tensor<4xf32, #l>
  ax.program @main(%x: tensor<4xf32, #l> {ax.name = "x"}) -> (tensor<4xf32, #l> {ax.name = "y"}) {
    %own = ax.load @own : tensor<4xf32, #l>
    %back = ax.load @back : tensor<4xf32, #l>
    %0 = ax.binary add %x, %back {stage = 0 : i64} : tensor<4xf32, #l>, tensor<4xf32, #l> -> tensor<4xf32, #l>
    %1 = ax.binary add %0, %own {stage = 1 : i64} : tensor<4xf32, #l>, tensor<4xf32, #l> -> tensor<4xf32, #l>
    ax.store @own, %1 {stage = 1 : i64} : tensor<4xf32, #l>
    %2 = ax.unary tanh %1 {stage = 1 : i64} : tensor<4xf32, #l> -> tensor<4xf32, #l>
    ax.store @back, %2 {stage = 1 : i64} : tensor<4xf32, #l>
    ax.return %2 : tensor<4xf32, #l>
  }
}
