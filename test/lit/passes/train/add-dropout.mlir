// RUN: axopt-opt %s --split-input-file --pass-pipeline='builtin.module(ax.plan(ax-add-dropout{rate=0.1}))' -verify-diagnostics | FileCheck %s
// RUN: axopt-opt %s --split-input-file --pass-pipeline='builtin.module(ax.plan(ax-add-dropout))' | FileCheck %s --check-prefix=NONE

// NONE-NOT: rate 1.0{{.*}}e-01

// On the embeddings' sum behind its norm, on probabilities, and on what is
// added to the residual; not on the sum of two Linears. Stages stay.
// CHECK-LABEL: ax.plan @model
// CHECK-DAG: ax.state @random.seed : tensor<i64>
// CHECK-DAG: ax.state @optimizer.step : tensor<i64>
// CHECK: %[[STEP:.*]] = ax.load @optimizer.step
// CHECK: %[[SEED:.*]] = ax.load @random.seed
// CHECK: ax.binary add
// CHECK: %[[X:.*]] = ax.layer_norm
// CHECK: %[[D:.*]] = ax.dropout %[[X]] seed %[[SEED]] step %[[STEP]] rate 1.000000e-01 id 0 {stage = 0 : i64}
// CHECK: %[[P:.*]] = ax.softmax
// CHECK: %[[Q:.*]] = ax.dropout %[[P]] {{.*}} id 1 {stage = 1 : i64}
// CHECK: ax.dot %[[Q]]
// CHECK-NOT: ax.attention
// CHECK: %[[L:.*]] = ax.linear
// CHECK: %[[B:.*]] = ax.binary add %[[L]]
// CHECK: %[[O:.*]] = ax.dropout %[[B]] {{.*}} id 2 {stage = 1 : i64}
// CHECK: ax.binary add %[[D]], %[[O]]
// CHECK-NOT: ax.dropout
ax.plan @model version 1 {
  ax.state @words : tensor<16x8xf32> from "w" offset 0 length 512 {trainable}
  ax.state @places : tensor<4x8xf32> from "w" offset 0 length 128 {trainable}
  ax.state @w : tensor<8x8xf32> from "w" offset 0 length 256 {trainable}
  ax.state @b : tensor<8xf32> from "w" offset 0 length 32 {trainable}
  // expected-remark @+1 {{dropout on 1 embeddings, 1 attention probabilities, 1 Linears before the sum with the residual}}
  ax.program @main(%i: tensor<2x4xi64> {ax.name = "i"}) -> (tensor<2x4x8xf32> {ax.name = "y"}) {
    %words = ax.load @words : tensor<16x8xf32>
    %places = ax.load @places : tensor<4x8xf32>
    %w = ax.load @w : tensor<8x8xf32>
    %b = ax.load @b : tensor<8xf32>
    %e = ax.gather %words[%i] axis 0 {stage = 0 : i64} : tensor<16x8xf32>, tensor<2x4xi64> -> tensor<2x4x8xf32>
    %s = ax.binary add %e, %places {stage = 0 : i64} : tensor<2x4x8xf32>, tensor<4x8xf32> -> tensor<2x4x8xf32>
    %x = ax.layer_norm %s axis 2 epsilon 1.0e-05 {stage = 0 : i64} : tensor<2x4x8xf32> -> tensor<2x4x8xf32>
    %l = ax.linear %x, %w {stage = 0 : i64} : tensor<2x4x8xf32>, tensor<8x8xf32> -> tensor<2x4x8xf32>
    %q = ax.reshape %l {stage = 0 : i64} : tensor<2x4x8xf32> -> tensor<2x2x4x4xf32>
    %a = ax.attention %q, %q, %q scale 5.0e-01 {causal, stage = 1 : i64} : tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32> -> tensor<2x2x4x4xf32>
    %m = ax.reshape %a {stage = 1 : i64} : tensor<2x2x4x4xf32> -> tensor<2x4x8xf32>
    %o = ax.linear %m, %w {stage = 1 : i64} : tensor<2x4x8xf32>, tensor<8x8xf32> -> tensor<2x4x8xf32>
    %p = ax.binary add %o, %b {stage = 1 : i64} : tensor<2x4x8xf32>, tensor<8xf32> -> tensor<2x4x8xf32>
    %r = ax.binary add %x, %p {stage = 1 : i64} : tensor<2x4x8xf32>, tensor<2x4x8xf32> -> tensor<2x4x8xf32>
    %u = ax.linear %r, %w {stage = 1 : i64} : tensor<2x4x8xf32>, tensor<8x8xf32> -> tensor<2x4x8xf32>
    %v = ax.linear %r, %w {stage = 1 : i64} : tensor<2x4x8xf32>, tensor<8x8xf32> -> tensor<2x4x8xf32>
    %y = ax.binary add %u, %v {stage = 1 : i64} : tensor<2x4x8xf32>, tensor<2x4x8xf32> -> tensor<2x4x8xf32>
    ax.return %y : tensor<2x4x8xf32>
  }
}

// -----

ax.plan @none version 1 {
  ax.state @w : tensor<8x8xf32> from "w" offset 0 length 256 {trainable}
  // expected-error @+1 {{has no place for dropout: neither embeddings nor attention nor sums with a residual}}
  ax.program @main(%x: tensor<4x8xf32> {ax.name = "x"}) -> (tensor<4x8xf32> {ax.name = "y"}) {
    %w = ax.load @w : tensor<8x8xf32>
    %y = ax.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    ax.return %y : tensor<4x8xf32>
  }
}

// -----

// Random numbers of the model itself, also in evaluation, which gets no dropout.
// CHECK-LABEL: ax.plan @noise
// CHECK-DAG: ax.state @random.seed : tensor<i64>
// CHECK: ax.program @main
// CHECK: %[[STEP:.*]] = ax.load @optimizer.step
// CHECK: %[[SEED:.*]] = ax.load @random.seed
// CHECK: ax.uniform seed %[[SEED]] step %[[STEP]] id 2
// CHECK: ax.dropout {{.*}} id 3
// CHECK: ax.program @eval
// CHECK: %[[STEP:.*]] = ax.load @optimizer.step
// CHECK: %[[SEED:.*]] = ax.load @random.seed
// CHECK: ax.uniform seed %[[SEED]] step %[[STEP]] id 2
// CHECK-NOT: ax.dropout
ax.plan @noise version 1 {
  ax.state @w : tensor<8x8xf32> from "w" offset 0 length 256 {trainable}
  // expected-remark @+1 {{dropout on 0 embeddings, 0 attention probabilities, 1 Linears before the sum with the residual}}
  ax.program @main(%x: tensor<4x8xf32> {ax.name = "x"}) -> (tensor<4x8xf32> {ax.name = "y"}) {
    %w = ax.load @w : tensor<8x8xf32>
    %zero = ax.constant dense<0> : tensor<i64> -> tensor<i64>
    %u = ax.uniform seed %zero step %zero id 2 : tensor<i64>, tensor<i64> -> tensor<4x8xf32>
    %n = ax.binary mul %x, %u : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    %l = ax.linear %n, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %y = ax.binary add %x, %l : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    ax.return %y : tensor<4x8xf32>
  }
  // expected-remark @+1 {{random numbers take part in evaluation}}
  ax.program @eval(%x: tensor<4x8xf32> {ax.name = "x"}) -> (tensor<4x8xf32> {ax.name = "y"}) {
    %w = ax.load @w : tensor<8x8xf32>
    %zero = ax.constant dense<0> : tensor<i64> -> tensor<i64>
    %u = ax.uniform seed %zero step %zero id 2 : tensor<i64>, tensor<i64> -> tensor<4x8xf32>
    %n = ax.binary mul %x, %u : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    %l = ax.linear %n, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %y = ax.binary add %x, %l : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    ax.return %y : tensor<4x8xf32>
  }
}
