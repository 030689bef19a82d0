// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{pp=2},ax-assign-stages{cut=first}))' | FileCheck %s
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{pp=2},ax-assign-stages{cut=nowhere}))' 2>&1 | FileCheck %s --check-prefix=NOWHERE
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{pp=2},ax-assign-stages{cut=first,third}))' 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{pp=2},ax-assign-stages{cut=third}))' 2>&1 | FileCheck %s --check-prefix=LAST
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{pp=3},ax-assign-stages{cut=second,first}))' 2>&1 | FileCheck %s --check-prefix=ORDER

// CHECK: ax.unary exp {{.*}}stage = 0 : i64
// CHECK: ax.unary exp {{.*}}stage = 1 : i64
// CHECK: ax.unary exp {{.*}}stage = 1 : i64
// NOWHERE: error: {{.*}}has no node named 'nowhere' to cut after
// MANY: error: --cut names 2 places, which makes 3 stages, not 2: give --pp=3
// ORDER: error: {{.*}}cut after 'first' does not come after the cut before it
// LAST: error: {{.*}}cut after 'third' leaves the last stage empty
ax.plan @p version 1 {
  ax.program @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
    %0 = ax.unary exp %x {node = "first"} : tensor<64x64xf32> -> tensor<64x64xf32>
    %1 = ax.unary exp %0 {node = "second"} : tensor<64x64xf32> -> tensor<64x64xf32>
    %2 = ax.unary exp %1 {node = "third"} : tensor<64x64xf32> -> tensor<64x64xf32>
    ax.return %2 : tensor<64x64xf32>
  }
}
