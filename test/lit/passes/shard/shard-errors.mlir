// RUN: axopt-opt %s --split-input-file --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{dp=1 micro-batches=2},ax-shard))' -verify-diagnostics

ax.plan @p version 1 {
  ax.program @main(%x: tensor<4xf32> {ax.name = "x"}) -> (tensor<i64> {ax.name = "y"}) {
    // expected-error @+1 {{cannot be sharded: it has no sharding rule}}
    %0 = axl.axis_index {col} : tensor<i64>
    ax.return %0 : tensor<i64>
  }
}

// -----

// The first rows of all the batch, not of each of its slices.
ax.plan @p version 1 {
  ax.program @main(%x: tensor<4x8xf32> {ax.name = "x"}) -> (tensor<4x8xf32> {ax.name = "y"}) {
    // expected-error @+1 {{needs all of the batch at once (all_gather in time, because x is pinned (the batch is split)): run this model with --micro-batches=1}}
    %0 = ax.cumulative sum %x dim 0 : tensor<4x8xf32> -> tensor<4x8xf32>
    ax.return %0 : tensor<4x8xf32>
  }
}

// -----

// An exporter has repeated a weight for each sample.
ax.plan @p version 1 {
  ax.state @class : tensor<4x8xf32> from "w" offset 0 length 128 {trainable}
  ax.program @main(%x: tensor<4x8xf32> {ax.name = "x"}) -> (tensor<4x8xf32> {ax.name = "y"}) {
    %w = ax.load @class : tensor<4x8xf32>
    %0 = ax.binary mul %x, %w {ax.action = "B"} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    // expected-error @+1 {{'class' has a part for each sample of the batch, and is updated as a whole: use --micro-batches=1, or --frozen=class}}
    %1 = ax.binary sub %w, %0 {ax.action = "U"} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    ax.store @class, %1 : tensor<4x8xf32>
    ax.return %x : tensor<4x8xf32>
  }
}

// -----

// Such a weight's gradient is of each slice, and the norm of all gradients of all.
ax.plan @p version 1 {
  ax.state @class : tensor<4x8xf32> from "w" offset 0 length 128 {trainable}
  ax.program @main(%x: tensor<4x8xf32> {ax.name = "x"}) -> (tensor<4x8xf32> {ax.name = "y"}) {
    %w = ax.load @class : tensor<4x8xf32>
    %0 = ax.binary mul %x, %w : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    // expected-error @+1 {{needs all of the batch at once (all_gather in time, because ax.binary is split (the batch is split)): run this model with --micro-batches=1, or, as 'class' has a part for each sample of the batch, with --frozen=class}}
    %1 = ax.cumulative sum %0 dim 0 : tensor<4x8xf32> -> tensor<4x8xf32>
    ax.return %1 : tensor<4x8xf32>
  }
}
