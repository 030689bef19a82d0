// RUN: axopt-opt %s --split-input-file --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{pp=2},ax-assign-stages))' --verify-diagnostics | FileCheck %s

// The cut halves the work.
// CHECK-LABEL: ax.plan @even
// CHECK-COUNT-2: ax.dot {{.*}} {stage = 0 : i64}
// CHECK-COUNT-2: ax.dot {{.*}} {stage = 1 : i64}
ax.plan @even version 1 {
  ax.program @main(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {
    %0 = ax.dot %x, %x batch [] x [] contract [1] x [0] : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    %1 = ax.dot %0, %0 batch [] x [] contract [1] x [0] : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    %2 = ax.dot %1, %1 batch [] x [] contract [1] x [0] : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    %3 = ax.dot %2, %2 batch [] x [] contract [1] x [0] : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    ax.return %3 : tensor<256x256xf32>
  }
}

// -----

// CHECK-LABEL: ax.plan @cheap
// Of cuts that cost the same, the one that sends least.
// CHECK: ax.unary exp {{.*}} {stage = 0 : i64}
// CHECK: ax.slice {{.*}} {stage = 0 : i64}
// CHECK: ax.unary exp {{.*}} {stage = 1 : i64}
ax.plan @cheap version 1 {
  ax.program @main(%x: tensor<64x64xf32>) -> tensor<8x64xf32> {
    %0 = ax.unary exp %x : tensor<64x64xf32> -> tensor<64x64xf32>
    %1 = ax.slice %0 starts [0, 0] steps [1, 1] : tensor<64x64xf32> -> tensor<8x64xf32>
    %2 = ax.unary exp %1 : tensor<8x64xf32> -> tensor<8x64xf32>
    ax.return %2 : tensor<8x64xf32>
  }
}

// -----

ax.plan @small version 1 {
  // expected-error @+1 {{has 1 operations, too few for 2 pipeline stages: use a smaller --pp}}
  ax.program @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = ax.unary exp %x : tensor<4xf32> -> tensor<4xf32>
    ax.return %0 : tensor<4xf32>
  }
}
