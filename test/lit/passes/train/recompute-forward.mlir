// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate,ax.plan(ax-recompute-forward))' | FileCheck %s --check-prefix=NONE
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate,ax.plan(ax-recompute-forward{mode=selective}))' | FileCheck %s --check-prefix=SELECTIVE
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate,ax.plan(ax-recompute-forward{mode=full}))' | FileCheck %s --check-prefix=FULL
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate,ax.plan(ax-recompute-forward{mode=full}),cse)' | FileCheck %s --check-prefix=FULL
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate,ax.plan(ax-recompute-forward{mode=layer1.*}))' | FileCheck %s --check-prefix=PATTERN
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate,ax.plan(ax-recompute-forward{mode=budget:1GiB}))' | FileCheck %s --check-prefix=NONE
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate,ax.plan(ax-recompute-forward{mode=budget:2.15MiB}))' | FileCheck %s --check-prefix=BUDGET
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate,ax.plan(ax-recompute-forward{mode=budget:100kB}))' 2>&1 | FileCheck %s --check-prefix=SMALL
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate,ax.plan(ax-recompute-forward{mode=budget:much}))' 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate,ax.plan(ax-recompute-forward{mode=layer7.*}))' 2>&1 | FileCheck %s --check-prefix=NODE
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate,ax.plan(ax-recompute-forward{mode=layer[}))' 2>&1 | FileCheck %s --check-prefix=GLOB

// SMALL: error: --recompute=budget:100kB: a rank needs {{.*}} MB with everything computed again that can be; use more ranks, --zero or a smaller batch
// SIZE: --mode option: give a size, as budget:2GiB or budget:500MB (units: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)
// NODE: error: --recompute=layer7.* is neither none, selective, full nor budget:SIZE, and no node is called so
// GLOB: --mode option: invalid glob pattern

// NONE-NOT: recomputed

// Activations are, each right before the backward pass of its layer, products
// are not.
// SELECTIVE: ax.reduce sum
// SELECTIVE-NOT: ax.linear {{.*}}recomputed
// SELECTIVE: ax.unary gelu {{.*}}ax.action = "B", recomputed
// SELECTIVE: ax.unary erf
// SELECTIVE-NOT: ax.linear {{.*}}recomputed
// SELECTIVE: ax.unary gelu {{.*}}ax.action = "B", recomputed
// SELECTIVE-NOT: recomputed

// What lies between the sums with what came before, for each as late as can be.
// Nobody needs the second product again; what comes before the loss is there.
// FULL: ax.reduce sum
// FULL: ax.linear %[[X0:.*]], %{{.*}} {ax.action = "B", recomputed}
// FULL-NEXT: ax.unary gelu {{.*}}ax.action = "B", recomputed
// FULL-NOT: recomputed
// FULL: ax.unary erf
// FULL: ax.linear %arg0, %{{.*}} {ax.action = "B", recomputed}
// FULL-NEXT: ax.unary gelu {{.*}}ax.action = "B", recomputed
// FULL-NOT: recomputed

// PATTERN: ax.linear %{{.*}} {ax.action = "B", recomputed}
// PATTERN: ax.unary gelu {{.*}}ax.action = "B", recomputed
// PATTERN-NOT: recomputed

// What is cheap goes first.
// BUDGET: ax.reduce sum
// BUDGET-NOT: ax.linear {{.*}}recomputed
// BUDGET: ax.unary gelu {{.*}}ax.action = "B", recomputed
// BUDGET-NOT: ax.linear {{.*}}recomputed
ax.plan @p version 1 {
  ax.state @up0 : tensor<64x256xf32> from "w" offset 0 length 65536 {trainable}
  ax.state @down0 : tensor<256x64xf32> from "w" offset 0 length 65536 {trainable}
  ax.state @up1 : tensor<64x256xf32> from "w" offset 0 length 65536 {trainable}
  ax.state @down1 : tensor<256x64xf32> from "w" offset 0 length 65536 {trainable}
  ax.state @head : tensor<64x64xf32> from "w" offset 0 length 16384 {trainable}
  ax.program @main(%x: tensor<256x64xf32> {ax.name = "x"}) -> (tensor<f32> {ax.name = "loss"}) {
    %u0 = ax.load @up0 : tensor<64x256xf32>
    %d0 = ax.load @down0 : tensor<256x64xf32>
    %h0 = ax.linear %x, %u0 : tensor<256x64xf32>, tensor<64x256xf32> -> tensor<256x256xf32> loc("layer0.up")
    %a0 = ax.unary gelu %h0 : tensor<256x256xf32> -> tensor<256x256xf32> loc("layer0.gelu")
    %p0 = ax.linear %a0, %d0 : tensor<256x256xf32>, tensor<256x64xf32> -> tensor<256x64xf32> loc("layer0.down")
    %x0 = ax.binary add %x, %p0 : tensor<256x64xf32>, tensor<256x64xf32> -> tensor<256x64xf32>
    %u1 = ax.load @up1 : tensor<64x256xf32>
    %d1 = ax.load @down1 : tensor<256x64xf32>
    %h1 = ax.linear %x0, %u1 : tensor<256x64xf32>, tensor<64x256xf32> -> tensor<256x256xf32> loc("layer1.up")
    %a1 = ax.unary gelu %h1 : tensor<256x256xf32> -> tensor<256x256xf32> loc("layer1.gelu")
    %p1 = ax.linear %a1, %d1 : tensor<256x256xf32>, tensor<256x64xf32> -> tensor<256x64xf32> loc("layer1.down")
    %x1 = ax.binary add %x0, %p1 : tensor<256x64xf32>, tensor<256x64xf32> -> tensor<256x64xf32>
    %w = ax.load @head : tensor<64x64xf32>
    %y = ax.linear %x1, %w : tensor<256x64xf32>, tensor<64x64xf32> -> tensor<256x64xf32>
    %q = ax.binary mul %y, %y : tensor<256x64xf32>, tensor<256x64xf32> -> tensor<256x64xf32>
    %loss = ax.reduce sum %q dims [0, 1] : tensor<256x64xf32> -> tensor<f32>
    ax.return %loss : tensor<f32>
  }
}
