// RUN: axopt-opt %s --split-input-file --pass-pipeline='builtin.module(ax.plan(ax-carry-states))' -verify-diagnostics | FileCheck %s

// Each rank keeps its heads: an output and an input become a state, which has the
// input's layout.
// CHECK: ax.plan @cache
// CHECK: ax.state @past : tensor<1x4x7x8xf32, #ax.layout<[{}, {col}, {}, {}]>>
// CHECK: ax.program @main(%[[NEW:.*]]: tensor<1x4x1x8xf32, {{.*}}> {ax.name = "new"}) -> (tensor<1x4x8x8xf32, {{.*}}> {ax.name = "all"}) {
// CHECK: %[[PAST:.*]] = ax.load @past : tensor<1x4x7x8xf32, #ax.layout<[{}, {col}, {}, {}]>>
// CHECK: %[[ALL:.*]] = ax.concat %[[PAST]], %[[NEW]]
// CHECK: %[[END:.*]] = ax.slice %[[ALL]]
// CHECK: ax.store @past, %[[END]]
// CHECK: ax.return %[[ALL]]
ax.plan @cache version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.program @main(%past: tensor<1x4x7x8xf32, #ax.layout<[{}, {col}, {}, {}]>> {ax.name = "past"}, %new: tensor<1x4x1x8xf32, #ax.layout<[{}, {col}, {}, {}]>> {ax.name = "new"}) -> (tensor<1x4x7x8xf32, #ax.layout<[{}, {col}, {}, {}]>> {ax.name = "present", ax.carried = "past"}, tensor<1x4x8x8xf32, #ax.layout<[{}, {col}, {}, {}]>> {ax.name = "all"}) {
    %all = ax.concat %past, %new dim 2 : tensor<1x4x7x8xf32, #ax.layout<[{}, {col}, {}, {}]>>, tensor<1x4x1x8xf32, #ax.layout<[{}, {col}, {}, {}]>> -> tensor<1x4x8x8xf32, #ax.layout<[{}, {col}, {}, {}]>>
    %end = ax.slice %all starts [0, 0, 1, 0] steps [1, 1, 1, 1] : tensor<1x4x8x8xf32, #ax.layout<[{}, {col}, {}, {}]>> -> tensor<1x4x7x8xf32, #ax.layout<[{}, {col}, {}, {}]>>
    ax.return %end, %all : tensor<1x4x7x8xf32, #ax.layout<[{}, {col}, {}, {}]>>, tensor<1x4x8x8xf32, #ax.layout<[{}, {col}, {}, {}]>>
  }
}

// -----

// What is stored is brought to the layout of the state; two programs have one, and
// the second, which takes it otherwise, gathers it.
// CHECK: ax.plan @two
// CHECK: ax.state @h : tensor<4x8xf32, #ax.layout<[{}, {col}]>>
// CHECK-NOT: ax.state
// CHECK: ax.program @main(
// CHECK: %[[H:.*]] = ax.load @h
// CHECK: %[[NEXT:.*]] = ax.unary tanh %[[H]]
// CHECK: ax.store @h, %[[NEXT]]
// CHECK: ax.program @prefill(
// CHECK: %[[H:.*]] = ax.load @h : tensor<4x8xf32, #ax.layout<[{}, {col}]>>
// CHECK: %[[WHOLE:.*]] = ax.all_gather %[[H]] over {col} because "it is stored as h is"
// CHECK: %[[NEXT:.*]] = ax.unary exp %[[WHOLE]]
// CHECK: %[[PART:.*]] = ax.all_slice %[[NEXT]] over {col}
// CHECK: ax.store @h, %[[PART]]
ax.plan @two version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.program @main(%h: tensor<4x8xf32, #ax.layout<[{}, {col}]>> {ax.name = "h"}) -> (tensor<4x8xf32, #ax.layout<[{}, {col}]>> {ax.name = "next", ax.carried = "h"}) {
    %0 = ax.unary tanh %h : tensor<4x8xf32, #ax.layout<[{}, {col}]>> -> tensor<4x8xf32, #ax.layout<[{}, {col}]>>
    ax.return %0 : tensor<4x8xf32, #ax.layout<[{}, {col}]>>
  }
  ax.program @prefill(%h: tensor<4x8xf32, #ax.layout<[{}, {}]>> {ax.name = "h"}) -> (tensor<4x8xf32, #ax.layout<[{}, {}]>> {ax.name = "next", ax.carried = "h"}) {
    %0 = ax.unary exp %h : tensor<4x8xf32, #ax.layout<[{}, {}]>> -> tensor<4x8xf32, #ax.layout<[{}, {}]>>
    ax.return %0 : tensor<4x8xf32, #ax.layout<[{}, {}]>>
  }
}

// -----

// Two that change places.
// CHECK: ax.plan @swap
// CHECK-DAG: %[[A:.*]] = ax.load @a
// CHECK-DAG: %[[B:.*]] = ax.load @b
// CHECK-DAG: ax.store @a, %[[B]]
// CHECK-DAG: ax.store @b, %[[A]]
ax.plan @swap version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 1] in time [micro = 1]
  ax.program @main(%a: tensor<4xf32, #ax.layout<[{}]>> {ax.name = "a"}, %b: tensor<4xf32, #ax.layout<[{}]>> {ax.name = "b"}) -> (tensor<4xf32, #ax.layout<[{}]>> {ax.name = "x", ax.carried = "a"}, tensor<4xf32, #ax.layout<[{}]>> {ax.name = "y", ax.carried = "b"}, tensor<4xf32, #ax.layout<[{}]>> {ax.name = "z"}) {
    %z = ax.binary add %a, %b : tensor<4xf32, #ax.layout<[{}]>>, tensor<4xf32, #ax.layout<[{}]>> -> tensor<4xf32, #ax.layout<[{}]>>
    ax.return %b, %a, %z : tensor<4xf32, #ax.layout<[{}]>>, tensor<4xf32, #ax.layout<[{}]>>, tensor<4xf32, #ax.layout<[{}]>>
  }
}

// -----

ax.plan @micro version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 1] in time [micro = 2]
  // expected-error @+1 {{input 'h' is carried from step to step: use --micro-batches=1}}
  ax.program @main(%h: tensor<4xf32, #ax.layout<[{}]>> {ax.name = "h"}) -> (tensor<4xf32, #ax.layout<[{}]>> {ax.name = "next", ax.carried = "h"}) {
    %0 = ax.unary tanh %h : tensor<4xf32, #ax.layout<[{}]>> -> tensor<4xf32, #ax.layout<[{}]>>
    ax.return %0 : tensor<4xf32, #ax.layout<[{}]>>
  }
}

// -----

ax.plan @none version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 1] in time [micro = 1]
  // expected-error @+1 {{'ax.program' op has no input 'past', which output 'next' is in the next step}}
  ax.program @main(%h: tensor<4xf32, #ax.layout<[{}]>> {ax.name = "h"}) -> (tensor<4xf32, #ax.layout<[{}]>> {ax.name = "next", ax.carried = "past"}) {
    %0 = ax.unary tanh %h : tensor<4xf32, #ax.layout<[{}]>> -> tensor<4xf32, #ax.layout<[{}]>>
    ax.return %0 : tensor<4xf32, #ax.layout<[{}]>>
  }
}

// -----

ax.plan @shapes version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 1] in time [micro = 1]
  ax.program @main(%h: tensor<4xf32, #ax.layout<[{}]>> {ax.name = "h"}) -> (tensor<4xf32, #ax.layout<[{}]>> {ax.name = "next", ax.carried = "h"}) {
    ax.return %h : tensor<4xf32, #ax.layout<[{}]>>
  }
  // expected-error @+1 {{input 'h' of @prefill is 'tensor<5xf32>', and of a program before it 'tensor<4xf32>': what is carried has one shape}}
  ax.program @prefill(%h: tensor<5xf32, #ax.layout<[{}]>> {ax.name = "h"}) -> (tensor<5xf32, #ax.layout<[{}]>> {ax.name = "next", ax.carried = "h"}) {
    ax.return %h : tensor<5xf32, #ax.layout<[{}]>>
  }
}
