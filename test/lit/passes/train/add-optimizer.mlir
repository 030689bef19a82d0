// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{optimizer=sgd(lr=0.5,momentum=0.9) clip-norm=2}))' | FileCheck %s
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{optimizer=adamw param-group=rank<2:weight_decay=0}))' | FileCheck %s --check-prefix=ADAM
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{optimizer=tiger}))' 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{optimizer=sgd(lr=-1)}))' 2>&1 | FileCheck %s --check-prefix=RANGE
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{optimizer=adam(betas=0.9:1)}))' 2>&1 | FileCheck %s --check-prefix=BETAS
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{optimizer=adamw(betas=0.8)}))' 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{optimizer=sgd(momentum=0x1)}))' 2>&1 | FileCheck %s --check-prefix=HEX
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{optimizer=sgd(nesterov=1)}))' 2>&1 | FileCheck %s --check-prefix=NESTEROV
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{optimizer=adam(betas=nan:0.9)}))' 2>&1 | FileCheck %s --check-prefix=NAN
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{optimizer=sgd(momentum=0.9,nesterov=0.5)}))' 2>&1 | FileCheck %s --check-prefix=HALF
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{param-group=*:lr=-0.5}))' 2>&1 | FileCheck %s --check-prefix=LESS
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{param-group=fc.weight}))' 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{param-group=rank<x:lr=1}))' 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{lr-schedule=cosine(warmup=5,steps=5)}))' 2>&1 | FileCheck %s --check-prefix=STEPS
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{lr-schedule=step}))' 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{optimizer=sgd(lr}))' 2>&1 | FileCheck %s --check-prefix=CALL
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{optimizer=sgd(lr=1,lr=2)}))' 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{optimizer=sgd(lr=much)}))' 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-add-optimizer{lr-schedule=constant(warmup=-1)}))' 2>&1 | FileCheck %s --check-prefix=NEGATIVE

// CALL: --optimizer option: give NAME(A,B,KEY=VALUE,...); several numbers of one option are KEY=1:2
// TWICE: --optimizer option: lr is given twice
// NUMBER: --optimizer option: sgd: lr=much: give a number
// NEGATIVE: --lr-schedule option: constant: warmup=-1 is negative
// KIND: --optimizer option: there is no optimizer 'tiger', but adam, adamw, {{.*}}sgd
// RANGE: --optimizer option: sgd: lr=-1 is not 0 or more
// BETAS: --optimizer option: adam: betas=0.9:1: give two numbers below 1, as 0.9:0.999
// ONE: --optimizer option: adamw: betas=0.8: give two numbers below 1, as 0.9:0.999
// HEX: --optimizer option: sgd: momentum=0x1: give a number
// NAN: --optimizer option: adam: betas=nan:0.9: give two numbers below 1
// HALF: --optimizer option: sgd: nesterov=0.5 is neither 0 nor 1
// LESS: --param-group option: group: lr=-0.5 is not 0 or more
// NESTEROV: --optimizer option: sgd: nesterov needs a momentum
// GROUP: --param-group option: give PATTERN|rank<N:lr=...,weight_decay=...
// RANK: --param-group option: rank< needs a number
// STEPS: --lr-schedule option: cosine: steps=5 is not more than warmup=5: give steps=N, the step at which it ends
// SCHEDULE: --lr-schedule option: there is no learning-rate schedule 'step', but constant, linear, cosine

// ADAM-DAG: ax.state @w.exp_avg : tensor<4x2xf32>
// ADAM-DAG: ax.state @w.exp_avg_sq : tensor<4x2xf32>
// ADAM-DAG: ax.state @b.exp_avg : tensor<2xf32>
// ADAM-DAG: ax.state @optimizer.step : tensor<i64>
// ADAM: ax.program

// The model's outputs go, also one that is called as a state, and what only they
// needed; its own update of a state is stored.
// CHECK: ax.state @w.momentum : tensor<4x2xf32>
// CHECK: ax.program @main
// CHECK-SAME: -> (tensor<f32> {ax.name = "loss", ax.role = #ax.role<loss>}, tensor<f32> {ax.name = "gradient_norm", ax.role = #ax.role<gradient_norm>}, tensor<f32> {ax.name = "learning_rate", ax.role = #ax.role<learning_rate>})
ax.plan @p version 3 {
  ax.state @w : tensor<4x2xf32> from "w" offset 0 length 32 {trainable}
  ax.state @b : tensor<2xf32> from "w" offset 0 length 8 {trainable}
  ax.state @mean : tensor<2xf32> from "w" offset 0 length 8
  ax.program @main(%x: tensor<3x4xf32> {ax.name = "x"}) -> (
      tensor<3x2xf32> {ax.name = "y"}, tensor<3x4xf32> {ax.name = "z"},
      tensor<4x2xf32> {ax.name = "w"}, tensor<2xf32> {ax.name = "mean", ax.statistic = 1},
      tensor<f32> {ax.name = "loss_sum", ax.role = #ax.role<loss_sum>}, tensor<f32> {ax.name = "loss_count", ax.role = #ax.role<loss_count>},
      tensor<4x2xf32> {ax.gradient_of = @w, ax.name = "gradient of w"},
      tensor<2xf32> {ax.gradient_of = @b, ax.name = "gradient of b"}) {
    // CHECK-NOT: ax.unary
    // CHECK: ax.load @w : tensor<4x2xf32>
    %sin = ax.unary sin %x : tensor<3x4xf32> -> tensor<3x4xf32>
    %z = ax.unary tanh %sin : tensor<3x4xf32> -> tensor<3x4xf32>
    %w = ax.load @w : tensor<4x2xf32>
    %b = ax.load @b : tensor<2xf32>
    %xw = ax.linear %x, %w : tensor<3x4xf32>, tensor<4x2xf32> -> tensor<3x2xf32>
    %y = ax.binary add %xw, %b : tensor<3x2xf32>, tensor<2xf32> -> tensor<3x2xf32>
    %mean = ax.reduce sum %y dims [0] : tensor<3x2xf32> -> tensor<2xf32>
    // CHECK: %[[SUM:.*]] = ax.reduce sum %{{.*}} dims [0, 1] : tensor<3x2xf32> -> tensor<f32>
    %sum = ax.reduce sum %y dims [0, 1] : tensor<3x2xf32> -> tensor<f32>
    %count = ax.constant dense<3.0> : tensor<f32> -> tensor<f32>
    // CHECK: %[[GW:.*]] = ax.unary exp {{.*}} {ax.action = "B"}
    %gw = ax.unary exp %w : tensor<4x2xf32> -> tensor<4x2xf32>
    %gb = ax.unary exp %b : tensor<2xf32> -> tensor<2xf32>
    // CHECK: ax.binary mul %[[GW]], %[[GW]] {ax.action = "U"}
    // CHECK: %[[OK:.*]] = ax.binary logical_and {{.*}} {ax.action = "U"}
    // CHECK: %[[MEAN:.*]] = ax.select %[[OK]]
    // CHECK-NOT: ax.store @w,
    // CHECK: ax.store @mean, %[[MEAN]] {ax.action = "U"}
    // CHECK: ax.binary min {{.*}} {ax.action = "U"} : tensor<f32>
    // CHECK: %[[STEP:.*]] = ax.select %[[OK]]
    // CHECK: ax.store @optimizer.step, %[[STEP]]
    // CHECK: %[[MOMENTUM:.*]] = ax.select %[[OK]]
    // CHECK: ax.store @w.momentum, %[[MOMENTUM]]
    // CHECK: ax.store @w,
    // CHECK-NOT: ax.store @w,
    // CHECK: ax.store @b.momentum
    // CHECK: ax.store @b,
    ax.return %y, %z, %w, %mean, %sum, %count, %gw, %gb : tensor<3x2xf32>, tensor<3x4xf32>, tensor<4x2xf32>, tensor<2xf32>, tensor<f32>, tensor<f32>, tensor<4x2xf32>, tensor<2xf32>
  }
}
