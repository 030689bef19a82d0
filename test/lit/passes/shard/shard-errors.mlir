// RUN: axopt-opt %s --split-input-file --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{dp=1 micro-batches=2},ax-shard))' -verify-diagnostics

ax.plan @p version 1 {
  ax.program @main(%x: tensor<4xf32> {ax.name = "x"}) -> (tensor<i64> {ax.name = "y"}) {
    // expected-error @+1 {{cannot be sharded: it has no sharding rule}}
    %0 = ax.axis_index {col} : tensor<i64>
    ax.return %0 : tensor<i64>
  }
}

// -----

// The first rows of all the batch, not of each of its slices.
ax.plan @p version 1 {
  ax.program @main(%x: tensor<4x8xf32> {ax.name = "x"}) -> (tensor<4x8xf32> {ax.name = "y"}) {
    // expected-error @+1 {{needs all of the batch at once (all_gather in time): run this model with --micro-batches=1}}
    %0 = ax.cumulative sum %x dim 0 : tensor<4x8xf32> -> tensor<4x8xf32>
    ax.return %0 : tensor<4x8xf32>
  }
}
