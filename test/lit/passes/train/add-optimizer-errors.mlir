// RUN: axopt-opt %s --split-input-file -verify-diagnostics --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer))'

ax.plan @p version 1 {
  // expected-error @+1 {{has no gradients: differentiate it first}}
  ax.program @main() -> (tensor<f32> {ax.name = "loss_sum"}) {
    %0 = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
    ax.return %0 : tensor<f32>
  }
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{is trained, but is 'tensor<4xf16>': only f32 states can be}}
  ax.state @w : tensor<4xf16> from "w" offset 0 length 8 {trainable}
  ax.program @main() -> (tensor<4xf16> {ax.name = "gradient of w"}) {
    %w = ax.load @w : tensor<4xf16>
    ax.return %w : tensor<4xf16>
  }
}

// -----

ax.plan @p version 1 {
  ax.state @w : tensor<4xf32> from "w" offset 0 length 16 {trainable}
  // expected-error @+1 {{has no loss: add one first}}
  ax.program @main() -> (tensor<4xf32> {ax.name = "gradient of w"}) {
    %w = ax.load @w : tensor<4xf32>
    ax.return %w : tensor<4xf32>
  }
}
