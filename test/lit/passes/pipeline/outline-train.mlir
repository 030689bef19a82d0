// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate,ax.plan(ax-add-optimizer{optimizer=sgd(lr=0.5)},ax-shard,ax-outline-stages,ax-schedule))' | FileCheck %s
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate,ax.plan(ax-add-optimizer{optimizer=sgd(lr=0.5)},ax-shard,ax-outline-stages,ax-schedule{schedule=gpipe}))' | FileCheck %s --check-prefix=GPIPE
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate,ax.plan(ax-add-optimizer{optimizer=sgd(lr=0.5)},ax-shard,ax-outline-stages{schedule=zero-bubble},ax-schedule{schedule=zero-bubble}))' | FileCheck %s --check-prefix=SPLIT
// RUN: sed 's/data = 2/data = 1/' %s | axopt-opt --pass-pipeline='builtin.module(ax-differentiate,ax.plan(ax-add-optimizer{optimizer=sgd(lr=0.5)},ax-shard,ax-outline-stages,ax-schedule))' | FileCheck %s --check-prefix=ALONE
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-schedule{schedule=best}))' 2>&1 | FileCheck %s --check-prefix=POLICY
// POLICY: there is no schedule 'best', but 1f1b, gpipe, {{.*}}

// The weight @w is on both stages, its gradients are of both, and both update
// it: each sends its own, and the norm is known when both were added up.
// CHECK: ax.state @w : {{.*}} stages [0, 1]
// CHECK: ax.state @v : {{.*}} stages [1]
// CHECK: %[[F0:.*]] = ax.stage @forward0 on 0 {{.*}} attributes {ax.slots = 2 : i64}
// CHECK: ax.transfer %[[F0]] from 0 to 1 slots 2
// CHECK: ax.stage @forward1 on 1
// CHECK: ax.stage @backward1 on 1 {{.*}} attributes {ax.action = "B"}
// CHECK: ax.transfer {{.*}} from 1 to 0
// CHECK: ax.stage @backward0 on 0 {{.*}} attributes {ax.action = "B"}
// The gradients are sums over micro-batches when they come to the update, and
// reduced over data once a step.
// CHECK: ax.stage @update0 on 0 {{.*}} attributes {ax.action = "U"}
// CHECK: ax.transfer {{.*}} from 0 to 1 slots 2 : tensor<4x4xf32, #ax.layout<[{}, {}], partial sum {data, micro}>>
// CHECK: ax.stage @update1.1 on 1 {{.*}} attributes {ax.action = "U", ax.part = 1 : i64}
// CHECK: ax.all_reduce {{.*}} over {micro}
// CHECK-NEXT: ax.all_reduce {{.*}} over {data}
// CHECK: ax.transfer {{.*}} from 1 to 0 slots 2 : tensor<4x4xf32, #ax.layout<[{}, {}], partial sum {data, micro}>>
// CHECK: ax.stage @update0.2 on 0
// CHECK: ax.stage @update1.2 on 1
// CHECK: ax.schedule "1f1b" {
// CHECK-NEXT: stage 0: "F0 F1 B0 F2 B1 B2 U U.2",
// CHECK-NEXT: stage 1: "F0 B0 F1 B1 F2 B2 U.1 U.2"

// On one rank of data a gradient that was added up is all that is kept for its norm
// and for its update; each reduces it over micro-batches, which is nothing to do.
// ALONE: %[[B1:.*]]:3 = ax.stage @backward1 on 1
// ALONE: ax.stage @update1.1 on 1 {{.*}}%[[G:arg[0-9]+]] = %[[B1]]#2 : tensor<4x4xf32, #ax.layout<[{}, {}], partial sum {micro}>>)
// ALONE: ax.all_reduce %[[G]] over {micro}
// ALONE: ax.stage @update1.2 on 1 {{.*}}%[[G:arg[0-9]+]] = %[[B1]]#2 : tensor<4x4xf32, #ax.layout<[{}, {}], partial sum {micro}>>)
// ALONE: %[[S:.*]] = ax.all_reduce %[[G]] over {micro}
// ALONE: ax.binary mul %[[S]], %{{.*}} {node = "update of v"}

// GPIPE: ax.stage @forward0 {{.*}} attributes {ax.slots = 3 : i64}
// GPIPE: ax.schedule "gpipe" {
// GPIPE-NEXT: stage 0: "F0 F1 F2 B0 B1 B2 U U.2",

// Nothing waits for gradients of weights; the first stage makes nothing else.
// SPLIT: ax.stage @weights1 on 1 {{.*}} attributes {ax.action = "W"}
// SPLIT: ax.schedule "zero-bubble" {
// SPLIT-NEXT: stage 0: "F0 F1 B0 F2 B1 B2 U U.2",
// SPLIT-NEXT: stage 1: "F0 B0 W0 F1 B1 W1 F2 B2 W2 U.1 U.2"
ax.plan @p version 3 {
  ax.mesh [pipe = 2, data = 2] in time [micro = 3]
  ax.state @w : tensor<4x4xf32> from "w" offset 0 length 64 {trainable}
  ax.state @v : tensor<4x4xf32> from "w" offset 64 length 64 {trainable}
  ax.program @main(%x: tensor<12x4xf32> {ax.name = "x"}, %t: tensor<12x4xf32> {ax.name = "t"}) -> (tensor<f32> {ax.name = "loss_sum", ax.role = #ax.role<loss_sum>}, tensor<f32> {ax.name = "loss_count", ax.role = #ax.role<loss_count>}) {
    %w = ax.load @w : tensor<4x4xf32>
    %v = ax.load @v : tensor<4x4xf32>
    %0 = ax.linear %x, %w {stage = 0} : tensor<12x4xf32>, tensor<4x4xf32> -> tensor<12x4xf32>
    %1 = ax.unary tanh %0 {stage = 0} : tensor<12x4xf32> -> tensor<12x4xf32>
    %2 = ax.linear %1, %v {stage = 1} : tensor<12x4xf32>, tensor<4x4xf32> -> tensor<12x4xf32>
    %3 = ax.linear %2, %w {stage = 1} : tensor<12x4xf32>, tensor<4x4xf32> -> tensor<12x4xf32>
    %4 = ax.binary mul %3, %t {stage = 1} : tensor<12x4xf32>, tensor<12x4xf32> -> tensor<12x4xf32>
    %sum = ax.reduce sum %4 dims [0, 1] {stage = 1} : tensor<12x4xf32> -> tensor<f32>
    %count = ax.constant dense<48.0> : tensor<f32> -> tensor<f32>
    ax.return %sum, %count : tensor<f32>, tensor<f32>
  }
}
