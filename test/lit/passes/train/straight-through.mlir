// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-straight-through))' | FileCheck %s

// What rounding adds has no gradient, nor what is outside of the range; zero
// points are taken off in floats, and moves between the two are done with floats.
ax.plan @p version 1 {
  ax.state @w : tensor<4x2xf32> from "w" offset 0 length 32 {ax.may_be_trained}
  ax.state @frozen : tensor<4x2xf32> from "w" offset 32 length 32
  ax.state @zero_points : tensor<2xi8> from "w" offset 64 length 2
  // CHECK-LABEL: ax.program @main
  ax.program @main() -> (tensor<2x4xf32>, tensor<4x2xf32>) {
    %low = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
    %high = ax.constant dense<255.0> : tensor<f32> -> tensor<f32>
    %z = ax.constant dense<3.0> : tensor<f32> -> tensor<f32>
    %zi = ax.constant dense<3> : tensor<i32> -> tensor<i32>
    // CHECK: %[[W:.*]] = ax.load @w
    %w = ax.load @w : tensor<4x2xf32>
    // CHECK: %[[R:.*]] = ax.unary round %[[W]]
    %r = ax.unary round %w {stage = 2 : i64} : tensor<4x2xf32> -> tensor<4x2xf32>
    // CHECK: %[[V:.*]] = ax.binary add %[[R]]
    %v = ax.binary add %r, %z {stage = 2 : i64} : tensor<4x2xf32>, tensor<f32> -> tensor<4x2xf32>
    %m = ax.binary max %v, %low {stage = 2 : i64} : tensor<4x2xf32>, tensor<f32> -> tensor<4x2xf32>
    %c = ax.binary min %m, %high {stage = 2 : i64} : tensor<4x2xf32>, tensor<f32> -> tensor<4x2xf32>
    // CHECK: %[[Q:.*]] = ax.cast %{{.*}} -> tensor<4x2xui8>
    // CHECK: %[[REST:.*]] = ax.binary sub %[[R]], %[[W]] {ax.no_gradient, stage = 2 : i64}
    // CHECK: %[[SUM:.*]] = ax.binary add %[[W]], %[[REST]]
    // CHECK: %[[WHOLE:.*]] = ax.binary add %[[SUM]]
    // CHECK: %[[GE:.*]] = ax.compare ge %[[V]]
    // CHECK: %[[LE:.*]] = ax.compare le %[[V]]
    // CHECK: %[[IN:.*]] = ax.binary logical_and %[[GE]], %[[LE]]
    // CHECK: %[[CUT:.*]] = ax.cast %[[Q]] {ax.no_gradient, stage = 2 : i64} : tensor<4x2xui8> -> tensor<4x2xf32>
    // CHECK: %[[F:.*]] = ax.select %[[IN]], %[[WHOLE]], %[[CUT]]
    // CHECK: %[[T:.*]] = ax.transpose %[[F]] [1, 0] : tensor<4x2xf32>
    // CHECK: %[[Y:.*]] = ax.binary sub %[[T]], %{{.*}} : tensor<2x4xf32>, tensor<f32>
    %q = ax.cast %c {stage = 2 : i64} : tensor<4x2xf32> -> tensor<4x2xui8>
    %t = ax.transpose %q [1, 0] : tensor<4x2xui8> -> tensor<2x4xui8>
    %i = ax.cast %t : tensor<2x4xui8> -> tensor<2x4xi32>
    %d = ax.binary sub %i, %zi : tensor<2x4xi32>, tensor<i32> -> tensor<2x4xi32>
    %y = ax.cast %d : tensor<2x4xi32> -> tensor<2x4xf32>

    // What is not trained stays as it is.
    // CHECK: ax.load @frozen
    // CHECK-NOT: ax.no_gradient
    %l = ax.load @frozen : tensor<4x2xf32>
    %lr = ax.unary round %l : tensor<4x2xf32> -> tensor<4x2xf32>
    %lm = ax.binary max %lr, %low : tensor<4x2xf32>, tensor<f32> -> tensor<4x2xf32>
    %lc = ax.binary min %lm, %high : tensor<4x2xf32>, tensor<f32> -> tensor<4x2xf32>
    %lq = ax.cast %lc : tensor<4x2xf32> -> tensor<4x2xui8>
    %ly = ax.cast %lq : tensor<4x2xui8> -> tensor<4x2xf32>
    // CHECK: ax.return %[[Y]]
    ax.return %y, %ly : tensor<2x4xf32>, tensor<4x2xf32>
  }

  // A range of fewer than all bits has no gradient outside of it.
  // CHECK-LABEL: ax.program @cut
  ax.program @cut() -> tensor<4x2xf32> {
    %low = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
    %high = ax.constant dense<255.0> : tensor<f32> -> tensor<f32>
    %most = ax.constant dense<127> : tensor<ui8> -> tensor<ui8>
    %w = ax.load @w : tensor<4x2xf32>
    %r = ax.unary round %w : tensor<4x2xf32> -> tensor<4x2xf32>
    %m = ax.binary max %r, %low : tensor<4x2xf32>, tensor<f32> -> tensor<4x2xf32>
    %c = ax.binary min %m, %high : tensor<4x2xf32>, tensor<f32> -> tensor<4x2xf32>
    %q = ax.cast %c : tensor<4x2xf32> -> tensor<4x2xui8>
    // CHECK: %[[F:.*]] = ax.select
    // CHECK: %[[LE:.*]] = ax.compare le %[[F]], %[[MOST:.*]] : tensor<4x2xf32>, tensor<f32>
    // CHECK: %[[Y:.*]] = ax.select %[[LE]], %[[F]], %[[MOST]]
    %s = ax.binary min %q, %most : tensor<4x2xui8>, tensor<ui8> -> tensor<4x2xui8>
    %y = ax.cast %s : tensor<4x2xui8> -> tensor<4x2xf32>
    // CHECK: ax.return %[[Y]]
    ax.return %y : tensor<4x2xf32>
  }

  // Zero points may be a state, whose type says that they are small; what is made
  // of nothing says nothing.
  // CHECK-LABEL: ax.program @zeros
  ax.program @zeros() -> (tensor<4x2xf32>, tensor<4x2xf32>) {
    %low = ax.constant dense<-128.0> : tensor<f32> -> tensor<f32>
    %high = ax.constant dense<127.0> : tensor<f32> -> tensor<f32>
    %w = ax.load @w : tensor<4x2xf32>
    %r = ax.unary round %w : tensor<4x2xf32> -> tensor<4x2xf32>
    %m = ax.binary max %r, %low : tensor<4x2xf32>, tensor<f32> -> tensor<4x2xf32>
    %c = ax.binary min %m, %high : tensor<4x2xf32>, tensor<f32> -> tensor<4x2xf32>
    %q = ax.cast %c : tensor<4x2xf32> -> tensor<4x2xi8>
    %i = ax.cast %q : tensor<4x2xi8> -> tensor<4x2xi32>
    %z8 = ax.load @zero_points : tensor<2xi8>
    %z = ax.cast %z8 : tensor<2xi8> -> tensor<2xi32>
    // CHECK: %[[F:.*]] = ax.select
    // CHECK: %[[Z:.*]] = ax.cast %{{.*}} : tensor<2xi32> -> tensor<2xf32>
    // CHECK: %[[Y:.*]] = ax.binary sub %[[F]], %[[Z]]
    %d = ax.binary sub %i, %z : tensor<4x2xi32>, tensor<2xi32> -> tensor<4x2xi32>
    %y = ax.cast %d : tensor<4x2xi32> -> tensor<4x2xf32>
    %n = ax.iota dim 0 : tensor<4x2xi32>
    // CHECK: %[[S:.*]] = ax.binary sub %{{.*}} : tensor<4x2xi32>, tensor<4x2xi32>
    // CHECK: %[[V:.*]] = ax.cast %[[S]]
    %s = ax.binary sub %i, %n : tensor<4x2xi32>, tensor<4x2xi32> -> tensor<4x2xi32>
    %v = ax.cast %s : tensor<4x2xi32> -> tensor<4x2xf32>
    // CHECK: ax.return %[[Y]], %[[V]]
    ax.return %y, %v : tensor<4x2xf32>, tensor<4x2xf32>
  }

  // Differences that wrap, and signs that are lost, stay integers.
  // CHECK-LABEL: ax.program @wrapping
  ax.program @wrapping() -> (tensor<4x2xf32>, tensor<4x2xf32>) {
    %low = ax.constant dense<-128.0> : tensor<f32> -> tensor<f32>
    %high = ax.constant dense<127.0> : tensor<f32> -> tensor<f32>
    %z = ax.constant dense<100> : tensor<si8> -> tensor<si8>
    %w = ax.load @w : tensor<4x2xf32>
    %r = ax.unary round %w : tensor<4x2xf32> -> tensor<4x2xf32>
    %m = ax.binary max %r, %low : tensor<4x2xf32>, tensor<f32> -> tensor<4x2xf32>
    %c = ax.binary min %m, %high : tensor<4x2xf32>, tensor<f32> -> tensor<4x2xf32>
    %q = ax.cast %c : tensor<4x2xf32> -> tensor<4x2xsi8>
    %d = ax.binary sub %q, %z : tensor<4x2xsi8>, tensor<si8> -> tensor<4x2xsi8>
    // CHECK: %[[S:.*]] = ax.binary sub %{{.*}} : tensor<4x2xsi8>, tensor<si8>
    // CHECK: %[[D:.*]] = ax.cast %[[S]] :
    %y = ax.cast %d : tensor<4x2xsi8> -> tensor<4x2xf32>
    %u = ax.cast %q : tensor<4x2xsi8> -> tensor<4x2xui16>
    // CHECK: %[[U16:.*]] = ax.cast %{{.*}} -> tensor<4x2xui16>
    // CHECK: %[[U:.*]] = ax.cast %[[U16]] :
    %v = ax.cast %u : tensor<4x2xui16> -> tensor<4x2xf32>
    // CHECK: ax.return %[[D]], %[[U]]
    ax.return %y, %v : tensor<4x2xf32>, tensor<4x2xf32>
  }

  // So does what cuts to another range.
  // CHECK-LABEL: ax.program @other
  ax.program @other() -> tensor<4x2xf32> {
    %low = ax.constant dense<-7.0> : tensor<f32> -> tensor<f32>
    %high = ax.constant dense<7.0> : tensor<f32> -> tensor<f32>
    %w = ax.load @w : tensor<4x2xf32>
    %r = ax.unary round %w : tensor<4x2xf32> -> tensor<4x2xf32>
    %m = ax.binary max %r, %low : tensor<4x2xf32>, tensor<f32> -> tensor<4x2xf32>
    %c = ax.binary min %m, %high : tensor<4x2xf32>, tensor<f32> -> tensor<4x2xf32>
    %q = ax.cast %c : tensor<4x2xf32> -> tensor<4x2xi8>
    // CHECK-NOT: ax.no_gradient
    // CHECK: ax.return
    %y = ax.cast %q : tensor<4x2xi8> -> tensor<4x2xf32>
    ax.return %y : tensor<4x2xf32>
  }
}
