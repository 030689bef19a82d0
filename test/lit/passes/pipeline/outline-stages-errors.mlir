// RUN: axopt-opt %s -split-input-file --pass-pipeline='builtin.module(ax.plan(ax-outline-stages))' -verify-diagnostics

ax.plan @p version 1 {
  ax.mesh [pipe = 2]
  ax.program @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{of stage 1 makes what stage 0 needs before}}
    %0 = ax.unary exp %x {stage = 1} : tensor<4xf32> -> tensor<4xf32>
    %1 = ax.unary exp %0 {stage = 0} : tensor<4xf32> -> tensor<4xf32>
    ax.return %1 : tensor<4xf32>
  }
}

// -----

// The sum is there only after all micro-batches.
ax.plan @p version 1 {
  ax.mesh [pipe = 1] in time [micro = 2]
  ax.program @main(%x: tensor<4xf32, #ax.layout<[{micro}]>>) -> tensor<4xf32, #ax.layout<[{micro}]>> {
    %0 = ax.reduce sum %x dims [0] : tensor<4xf32, #ax.layout<[{micro}]>> -> tensor<f32, #ax.layout<[], partial sum {micro}>>
    %1 = ax.all_reduce %0 over {micro} : tensor<f32, #ax.layout<[], partial sum {micro}>> -> tensor<f32>
    // expected-error @+1 {{needs all of the batch at once: use --micro-batches=1}}
    %2 = ax.binary mul %x, %1 : tensor<4xf32, #ax.layout<[{micro}]>>, tensor<f32> -> tensor<4xf32, #ax.layout<[{micro}]>>
    ax.return %2 : tensor<4xf32, #ax.layout<[{micro}]>>
  }
}
