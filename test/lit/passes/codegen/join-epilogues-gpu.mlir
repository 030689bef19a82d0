// RUN: axopt-opt %s --axl-join-epilogues | FileCheck %s --check-prefixes=BOTH,CPU
// RUN: axopt-opt %s --axl-join-epilogues="gpu=true" | FileCheck %s --check-prefixes=BOTH,GPU

// ReLU and GELU by tanh are both's, behind a bias.
// BOTH: axl.stage @activations
// BOTH: axl.library
// BOTH: ax.binary add
// BOTH-NEXT: ax.unary relu
// BOTH-NEXT: axl.yield
// BOTH: axl.library
// BOTH: ax.binary add
// BOTH-NEXT: ax.unary gelu_tanh
// BOTH-NEXT: axl.yield
axl.stage @activations(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>, %b: tensor<8xbf16>) {
  %0 = ax.linear %x, %w : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %1 = ax.binary add %0, %b : tensor<4x8xbf16>, tensor<8xbf16> -> tensor<4x8xbf16>
  %2 = ax.unary relu %1 : tensor<4x8xbf16> -> tensor<4x8xbf16>
  %3 = ax.linear %2, %w : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %4 = ax.binary add %3, %b : tensor<4x8xbf16>, tensor<8xbf16> -> tensor<4x8xbf16>
  %5 = ax.unary gelu_tanh %4 : tensor<4x8xbf16> -> tensor<4x8xbf16>
  axl.yield %5 : tensor<4x8xbf16>
}

// GELU by erf is for a kernel of the GPU, and so are its like.
// BOTH: axl.stage @kernels
// BOTH: axl.library
// BOTH: ax.binary add
// CPU-NEXT: ax.unary gelu
// BOTH-NEXT: axl.yield
// GPU: ax.unary gelu
// CPU: axl.library
// CPU: ax.unary silu
// GPU: %[[P:.*]] = ax.linear
// GPU-NEXT: ax.unary silu %[[P]]
axl.stage @kernels(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) {
  %0 = ax.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %1 = ax.binary add %0, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %2 = ax.unary gelu %1 : tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = ax.linear %2, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %4 = ax.unary silu %3 : tensor<4x8xf32> -> tensor<4x8xf32>
  axl.yield %4 : tensor<4x8xf32>
}

// A residual is added before an activation, so that behind one it stays apart.
// BOTH: axl.stage @residuals
// BOTH: axl.library
// BOTH: ax.binary add
// BOTH-NEXT: ax.binary add
// BOTH-NEXT: axl.yield
// BOTH: %[[A:.*]] = axl.library
// BOTH: ax.unary relu
// CPU-NEXT: ax.binary add
// BOTH-NEXT: axl.yield
// GPU: %[[S:.*]] = ax.binary add %[[A]], %arg0
// CPU: axl.yield %[[A]]
// GPU: axl.yield %[[S]]
axl.stage @residuals(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) {
  %0 = ax.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %1 = ax.binary add %0, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %2 = ax.binary add %1, %x : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = ax.linear %2, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %4 = ax.unary relu %3 : tensor<4x8xf32> -> tensor<4x8xf32>
  %5 = ax.binary add %4, %x : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  axl.yield %5 : tensor<4x8xf32>
}

// Of convolutions cuDNN does nothing else.
// BOTH: axl.stage @others
// CPU: axl.library
// BOTH: ax.conv
// BOTH-NEXT: ax.binary add
// BOTH-NEXT: ax.unary relu
// CPU-NEXT: axl.yield
axl.stage @others(%x: tensor<1x2x4x4xf32>, %w: tensor<2x2x1x1xf32>) {
  %0 = ax.conv %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
  %1 = ax.binary add %0, %x : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
  %2 = ax.unary relu %1 : tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
  axl.yield %2 : tensor<1x2x4x4xf32>
}

// GELU by tanh of f64, which cuBLASLt rounds, is a kernel's on a GPU.
// BOTH: axl.stage @doubles
// CPU: axl.library
// CPU: ax.unary gelu_tanh
// GPU: %[[D:.*]] = ax.linear
// GPU-NEXT: ax.unary gelu_tanh %[[D]]
axl.stage @doubles(%x: tensor<4x8xf64>, %w: tensor<8x8xf64>) {
  %0 = ax.linear %x, %w : tensor<4x8xf64>, tensor<8x8xf64> -> tensor<4x8xf64>
  %1 = ax.unary gelu_tanh %0 : tensor<4x8xf64> -> tensor<4x8xf64>
  axl.yield %1 : tensor<4x8xf64>
}
