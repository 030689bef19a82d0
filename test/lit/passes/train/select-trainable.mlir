// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-select-trainable))' | FileCheck %s
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-select-trainable{trainable=fc*,table frozen=fc.bias}))' | FileCheck %s --check-prefix=NAMED
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-select-trainable{frozen=nothing*}))' 2>&1 | FileCheck %s --check-prefix=NONE

// By role: an embedding, what is added to it, weight and bias. Frequencies meet
// only positions, which no parameter made; a single number is no parameter. A
// scale counts if a constant is added to it, too, and a weight that is computed
// from weights, or multiplied in batches, and what is put beside; statistics do not.
// CHECK: ax.state @table {{.*}} {trainable}
// CHECK: ax.state @position {{.*}} {trainable}
// CHECK: ax.state @frequencies
// CHECK-NOT: trainable
// CHECK: ax.state @fc.weight {{.*}} {trainable}
// CHECK: ax.state @fc.bias {{.*}} {trainable}
// CHECK: ax.state @factor
// CHECK-NOT: trainable
// CHECK: ax.state @scale {{.*}} {trainable}
// CHECK: ax.state @direction {{.*}} {trainable}
// CHECK: ax.state @length {{.*}} {trainable}
// CHECK: ax.state @experts {{.*}} {trainable}
// CHECK: ax.state @class {{.*}} {trainable}
// CHECK: ax.state @mean :
// CHECK-NOT: trainable
// CHECK-NOT: ax.weight_kind
// CHECK: ax.program

// NAMED: ax.state @table {{.*}} {trainable}
// NAMED: ax.state @position
// NAMED-NOT: trainable
// NAMED: ax.state @fc.weight {{.*}} {trainable}
// NAMED: ax.state @fc.bias
// NAMED-NOT: trainable
// NAMED: ax.program

// NONE: error: no weight is called 'nothing*' that could be trained: --inspect=all lists them
ax.plan @p version 1 {
  ax.state @table : tensor<8x4xf32> from "w" offset 0 length 128
  ax.state @position : tensor<2x4xf32> from "w" offset 0 length 32
  ax.state @frequencies : tensor<4xf32> from "w" offset 0 length 16
  ax.state @fc.weight : tensor<4x4xf32> from "w" offset 0 length 64
  ax.state @fc.bias : tensor<4xf32> from "w" offset 0 length 16
  ax.state @factor : tensor<f32> from "w" offset 0 length 4
  ax.state @scale : tensor<4xf32> from "w" offset 0 length 16
  ax.state @direction : tensor<4x4xf32> from "w" offset 0 length 64
  ax.state @length : tensor<4xf32> from "w" offset 0 length 16
  ax.state @experts : tensor<2x4x4xf32> from "w" offset 0 length 128
  ax.state @class : tensor<1x4xf32> from "w" offset 0 length 16
  ax.state @mean : tensor<4xf32> from "w" offset 0 length 16 {ax.weight_kind = "statistic"}
  ax.program @main(%x: tensor<2xi64>) -> tensor<3x4xf32> {
    %t = ax.load @table : tensor<8x4xf32>
    %p = ax.load @position : tensor<2x4xf32>
    %f = ax.load @frequencies : tensor<4xf32>
    %w = ax.load @fc.weight : tensor<4x4xf32>
    %b = ax.load @fc.bias : tensor<4xf32>
    %e = ax.gather %t[%x] axis 0 : tensor<8x4xf32>, tensor<2xi64> -> tensor<2x4xf32>
    %s = ax.binary add %e, %p : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
    %n = ax.cast %x : tensor<2xi64> -> tensor<2xf32>
    %c = ax.reshape %n : tensor<2xf32> -> tensor<2x1xf32>
    %a = ax.binary mul %c, %f : tensor<2x1xf32>, tensor<4xf32> -> tensor<2x4xf32>
    %r = ax.unary cos %a : tensor<2x4xf32> -> tensor<2x4xf32>
    %k = ax.load @factor : tensor<f32>
    %h = ax.binary mul %s, %k : tensor<2x4xf32>, tensor<f32> -> tensor<2x4xf32>
    %m = ax.binary mul %h, %r : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<2x4xf32>
    %mw = ax.linear %m, %w : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
    %y = ax.binary add %mw, %b : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>
    %scale = ax.load @scale : tensor<4xf32>
    %one = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
    %plus = ax.binary add %scale, %one : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
    %norm = ax.rms_norm %y scale %plus : tensor<4xf32> axis 1 epsilon 1.0e-5 : tensor<2x4xf32> -> tensor<2x4xf32>
    %direction = ax.load @direction : tensor<4x4xf32>
    %length = ax.load @length : tensor<4xf32>
    %sum = ax.reduce sum %direction dims [0] keep_dims : tensor<4x4xf32> -> tensor<1x4xf32>
    %unit = ax.binary div %direction, %sum : tensor<4x4xf32>, tensor<1x4xf32> -> tensor<4x4xf32>
    %w2 = ax.binary mul %unit, %length : tensor<4x4xf32>, tensor<4xf32> -> tensor<4x4xf32>
    %z = ax.linear %norm, %w2 : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
    %experts = ax.load @experts : tensor<2x4x4xf32>
    %cut = ax.reshape %z : tensor<2x4xf32> -> tensor<2x1x4xf32>
    %dot = ax.dot %cut, %experts batch [0] x [0] contract [2] x [1] : tensor<2x1x4xf32>, tensor<2x4x4xf32> -> tensor<2x1x4xf32>
    %out = ax.reshape %dot : tensor<2x1x4xf32> -> tensor<2x4xf32>
    %mean = ax.load @mean : tensor<4xf32>
    %away = ax.binary sub %out, %mean : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>
    %class = ax.load @class : tensor<1x4xf32>
    %all = ax.concat %away, %class dim 0 : tensor<2x4xf32>, tensor<1x4xf32> -> tensor<3x4xf32>
    ax.return %all : tensor<3x4xf32>
  }
}
