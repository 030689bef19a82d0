// RUN: axopt-opt %s --split-input-file -verify-diagnostics --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer))'

ax.plan @p version 3 {
  // expected-error @+1 {{has no gradients: differentiate it first}}
  ax.program @main() -> (tensor<f32> {ax.name = "loss_sum", ax.role = #ax.role<loss_sum>}) {
    %0 = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
    ax.return %0 : tensor<f32>
  }
}

// -----

ax.plan @p version 3 {
  // expected-error @+1 {{weight 'w' is to be trained, but is 'tensor<4xf64>': only weights of f32, f16 and bf16 can be; export the model in f32, or give --frozen}}
  ax.state @w : tensor<4xf64> from "w" offset 0 length 32 {trainable}
  ax.program @main() -> (tensor<4xf64> {ax.gradient_of = @w, ax.name = "gradient of w"}) {
    %w = ax.load @w : tensor<4xf64>
    ax.return %w : tensor<4xf64>
  }
}

// -----

ax.plan @p version 3 {
  ax.state @w : tensor<4xf32> from "w" offset 0 length 16 {trainable}
  // expected-error @+1 {{has no loss: add one first}}
  ax.program @main() -> (tensor<4xf32> {ax.gradient_of = @w, ax.name = "gradient of w"}) {
    %w = ax.load @w : tensor<4xf32>
    ax.return %w : tensor<4xf32>
  }
}

// -----

// Training's own states.
ax.plan @p version 3 {
  ax.state @w : tensor<4xf32> from "w" offset 0 length 16 {trainable}
  ax.state @w.exp_avg : tensor<3xf32> from "w" offset 0 length 12
  ax.state @optimizer.step : tensor<i64> from "w" offset 0 length 8
  // expected-error @+2 {{the model has a weight 'w.exp_avg', and training keeps a state of that name: rename the initializer}}
  // expected-error @+1 {{the model has a weight 'optimizer.step', and}}
  ax.program @main(%x: tensor<4xf32> {ax.name = "x"}) -> (
      tensor<f32> {ax.name = "loss_sum", ax.role = #ax.role<loss_sum>}, tensor<f32> {ax.name = "loss_count", ax.role = #ax.role<loss_count>},
      tensor<4xf32> {ax.gradient_of = @w, ax.name = "gradient of w"}) {
    %w = ax.load @w : tensor<4xf32>
    %e = ax.load @w.exp_avg : tensor<3xf32>
    %0 = ax.binary mul %w, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %1 = ax.reduce sum %0 dims [0] : tensor<4xf32> -> tensor<f32>
    %2 = ax.reduce sum %e dims [0] : tensor<3xf32> -> tensor<f32>
    ax.return %1, %2, %0 : tensor<f32>, tensor<f32>, tensor<4xf32>
  }
}

// -----

// Every input is cut, not the first one alone.
ax.plan @p version 3 {
  ax.mesh [data = 2] in time [micro = 2]
  ax.state @w : tensor<4xf32> from "w" offset 0 length 16 {trainable}
  // expected-error @+1 {{takes a batch of 6 (input 'z'), which is not divided by 2 micro-batches, and the ranks that share it}}
  ax.program @main(%x: tensor<8x4xf32> {ax.name = "x"}, %z: tensor<6x4xf32> {ax.name = "z"}) -> (
      tensor<4xf32> {ax.gradient_of = @w, ax.name = "gradient of w"}) {
    %w = ax.load @w : tensor<4xf32>
    ax.return %w : tensor<4xf32>
  }
}

// -----

// What a model makes of its statistics has a state to go to.
ax.plan @p version 3 {
  ax.state @w : tensor<4xf32> from "w" offset 0 length 16 {trainable}
  ax.state @mean : tensor<4xf32> from "w" offset 0 length 16
  // expected-error @+1 {{result 'mean' has 'ax.statistic', which wants a state of its name, and the number of the batch's parts (i64)}}
  ax.program @main(%x: tensor<4xf32> {ax.name = "x"}) -> (
      tensor<4xf32> {ax.name = "mean", ax.statistic},
      tensor<f32> {ax.name = "loss_sum", ax.role = #ax.role<loss_sum>}, tensor<f32> {ax.name = "loss_count", ax.role = #ax.role<loss_count>},
      tensor<4xf32> {ax.gradient_of = @w, ax.name = "gradient of w"}) {
    %w = ax.load @w : tensor<4xf32>
    %0 = ax.binary mul %w, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %1 = ax.reduce sum %0 dims [0] : tensor<4xf32> -> tensor<f32>
    ax.return %x, %1, %1, %0 : tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<4xf32>
  }
}

// -----

ax.plan @p version 3 {
  ax.state @w : tensor<4xf32> from "w" offset 0 length 16 {trainable}
  // expected-error @+1 {{result 'mean' has 'ax.statistic', which wants a state}}
  ax.program @main(%x: tensor<4xf32> {ax.name = "x"}) -> (
      tensor<4xf32> {ax.name = "mean", ax.statistic = 1},
      tensor<f32> {ax.name = "loss_sum", ax.role = #ax.role<loss_sum>}, tensor<f32> {ax.name = "loss_count", ax.role = #ax.role<loss_count>},
      tensor<4xf32> {ax.gradient_of = @w, ax.name = "gradient of w"}) {
    %w = ax.load @w : tensor<4xf32>
    %0 = ax.binary mul %w, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %1 = ax.reduce sum %0 dims [0] : tensor<4xf32> -> tensor<f32>
    ax.return %x, %1, %1, %0 : tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<4xf32>
  }
}
