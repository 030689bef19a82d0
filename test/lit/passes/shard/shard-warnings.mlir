// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=4 dp=3},ax-shard))' 2>&1 | FileCheck %s
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=4},ax-shard{strict=true}))' 2>&1 | FileCheck %s --check-prefix=STRICT

// CHECK: warning: {{.*}}the batch of 4 (input 'x') is not divided by data = 3
// CHECK: warning: its 10 output features are not divided by 4: replicated instead
// STRICT: error: its 10 output features are not divided by 4: replicated instead; --strict makes it an error

// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{dp=4 micro-batches=2},ax-shard))' 2>&1 | FileCheck %s --check-prefix=MICRO
// MICRO: warning: the batch of 4 (input 'x') is not divided by data x micro = 8: the micro-batches compute the same; choose a batch that 8 divides
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{dp=8},ax-shard))' 2>&1 | FileCheck %s --check-prefix=DATA
// DATA: warning: the batch of 4 (input 'x') is not divided by data = 8: the ranks along data compute the same; choose a batch that 8 divides
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{dp=3 micro-batches=3},ax-shard))' 2>&1 | FileCheck %s --check-prefix=BOTH --implicit-check-not='is not divided'
// BOTH: warning: the batch of 4 (input 'x') is not divided by data x micro = 9: the ranks along data and the micro-batches compute the same; choose a batch that 9 divides
ax.plan @p version 1 {
  ax.state @w : tensor<63x10xf32> from "w" offset 0 length 2520
  ax.program @main(%x: tensor<4x63xf32> {ax.name = "x"}) -> (tensor<4x10xf32> {ax.name = "y"}) {
    %w = ax.load @w : tensor<63x10xf32>
    %y = ax.linear %x, %w : tensor<4x63xf32>, tensor<63x10xf32> -> tensor<4x10xf32>
    ax.return %y : tensor<4x10xf32>
  }
}
