// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-outline-stages))' -verify-diagnostics

ax.plan @p version 1 {
  ax.mesh [pipe = 2]
  ax.program @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = ax.unary exp %x {stage = 1} : tensor<4xf32> -> tensor<4xf32>
    // expected-error @+1 {{in stage 0 needs a value that a later stage makes}}
    %1 = ax.unary exp %0 {stage = 0} : tensor<4xf32> -> tensor<4xf32>
    ax.return %1 : tensor<4xf32>
  }
}
