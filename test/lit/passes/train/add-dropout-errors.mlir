// RUN: axopt-opt %s -verify-diagnostics --pass-pipeline='builtin.module(ax.plan(ax-add-dropout))'

ax.plan @p version 1 {
  ax.state @random.seed : tensor<4xf32> from "w" offset 0 length 16
  // expected-error @+1 {{the model has a weight 'random.seed', and training keeps a state of that name}}
  ax.program @main(%x: tensor<4xf32> {ax.name = "x"}) -> tensor<4xf32> {
    %0 = ax.constant dense<0> : tensor<i64> -> tensor<i64>
    %1 = ax.dropout %x seed %0 step %0 rate 0.1 id 0 : tensor<4xf32>, tensor<i64>, tensor<i64> -> tensor<4xf32>
    ax.return %1 : tensor<4xf32>
  }
}
