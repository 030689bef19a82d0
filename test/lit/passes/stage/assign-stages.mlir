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

// What is done along with a product costs nothing there, and something elsewhere.
// CHECK-LABEL: ax.plan @along
// CHECK: ax.linear {{.*}} {stage = 0 : i64}
// CHECK: ax.unary relu {{.*}} {stage = 0 : i64}
// CHECK: ax.linear {{.*}} {stage = 1 : i64}
// CHECK: ax.unary relu {{.*}} {stage = 1 : i64}
ax.plan @along version 1 {
  ax.program @main(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {
    %0 = ax.linear %x, %x : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    %1 = ax.unary relu %0 : tensor<256x256xf32> -> tensor<256x256xf32>
    %2 = ax.linear %1, %1 : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    %3 = ax.unary relu %2 : tensor<256x256xf32> -> tensor<256x256xf32>
    ax.return %3 : tensor<256x256xf32>
  }
}

// -----

// Where there is no other cut, it is cut off.
// CHECK-LABEL: ax.plan @off
// CHECK: ax.linear {{.*}} {stage = 0 : i64}
// CHECK: ax.unary relu {{.*}} {stage = 1 : i64}
ax.plan @off version 1 {
  // expected-warning @+1 {{1 of 2 pipeline stages has next to nothing to do}}
  ax.program @main(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {
    %0 = ax.linear %x, %x : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    %1 = ax.unary relu %0 : tensor<256x256xf32> -> tensor<256x256xf32>
    ax.return %1 : tensor<256x256xf32>
  }
}

// -----

ax.plan @small version 1 {
  // expected-error @+1 {{operations of the program: 1, too few for 2 pipeline stages: use a smaller --pp}}
  ax.program @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = ax.unary exp %x : tensor<4xf32> -> tensor<4xf32>
    ax.return %0 : tensor<4xf32>
  }
}

// -----

// What only @main computes weighs as much as three products: without it the even
// cut of @eval would be behind the second. A weight stays where @main has it.
// CHECK-LABEL: ax.plan @follows
// CHECK: ax.program @main
// CHECK: ax.dot {{.*}} {node = "a", stage = 0 : i64}
// CHECK: ax.dot {{.*}} {node = "b", stage = 1 : i64}
// CHECK: ax.program @eval
// CHECK: ax.dot {{.*}} {node = "a", stage = 0 : i64}
// CHECK: ax.dot {{.*}} {node = "b", stage = 1 : i64}
// CHECK: ax.dot {{.*}} {node = "c", stage = 1 : i64}
// CHECK: ax.dot {{.*}} {node = "d", stage = 1 : i64}
ax.plan @follows version 1 {
  ax.state @a : tensor<256x256xf32> {trainable}
  ax.state @b : tensor<256x256xf32> {trainable}
  ax.program @main(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {
    %a = ax.load @a : tensor<256x256xf32>
    %b = ax.load @b : tensor<256x256xf32>
    %0 = ax.dot %x, %a batch [] x [] contract [1] x [0] {node = "a"} : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    %1 = ax.dot %0, %0 batch [] x [] contract [1] x [0] : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    %2 = ax.dot %1, %1 batch [] x [] contract [1] x [0] : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    %3 = ax.dot %2, %2 batch [] x [] contract [1] x [0] : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    %4 = ax.dot %3, %b batch [] x [] contract [1] x [0] {node = "b"} : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    %5 = ax.dot %4, %4 batch [] x [] contract [1] x [0] {node = "c"} : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    %6 = ax.dot %5, %5 batch [] x [] contract [1] x [0] {node = "d"} : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    ax.return %6 : tensor<256x256xf32>
  }
  ax.program @eval(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {
    %a = ax.load @a : tensor<256x256xf32>
    %b = ax.load @b : tensor<256x256xf32>
    %0 = ax.dot %x, %a batch [] x [] contract [1] x [0] {node = "a"} : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    %1 = ax.dot %0, %b batch [] x [] contract [1] x [0] {node = "b"} : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    %2 = ax.dot %1, %1 batch [] x [] contract [1] x [0] {node = "c"} : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    %3 = ax.dot %2, %2 batch [] x [] contract [1] x [0] {node = "d"} : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    ax.return %3 : tensor<256x256xf32>
  }
}

// -----

// Here none can: @eval uses @b before @a.
ax.plan @turned version 1 {
  ax.state @a : tensor<8x8xf32> {trainable}
  ax.state @b : tensor<8x8xf32> {trainable}
  ax.program @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %a = ax.load @a : tensor<8x8xf32>
    %b = ax.load @b : tensor<8x8xf32>
    %0 = ax.binary add %x, %a : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    %1 = ax.binary add %0, %b : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    ax.return %1 : tensor<8x8xf32>
  }
  // expected-error @+1 {{no 2 pipeline stages of @eval have the weights that those of the programs before it have: name the operations to cut after with --cut}}
  ax.program @eval(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
    %a = ax.load @a : tensor<8x8xf32>
    %b = ax.load @b : tensor<8x8xf32>
    %0 = ax.binary add %x, %b : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    %1 = ax.binary add %0, %a : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
    ax.return %1 : tensor<8x8xf32>
  }
}
