// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-float8{type=fp8},cse))' | FileCheck %s

// What attention gives is read as a factor by way of one view, in which rows lie as
// they did: that is rounded, in the stage of what it is a view of.
// CHECK-LABEL: ax.program @heads
// CHECK: %[[A:.*]] = ax.attention
// CHECK: %[[T:.*]] = ax.transpose %[[A]] [0, 2, 1, 3]
// CHECK: %[[R:.*]] = ax.reshape %[[T]] {stage = 0 : i64} : tensor<1x16x2x16xf32> -> tensor<16x32xf32>
// CHECK: ax.cast %{{.*}} {stage = 0 : i64} : tensor<16x32xf32> -> tensor<16x32xf8E4M3FN>
// CHECK: %[[ABS:.*]] = ax.unary abs %[[R]] {stage = 0 : i64}
// CHECK: ax.reduce max %[[ABS]] dims [0, 1] {stage = 0 : i64}

// A view that is another stage's is not; nor one where rows lie otherwise, nor what a
// kernel makes for others, too, which rounds it in passing.
// CHECK-LABEL: ax.program @far
// CHECK: ax.cast %{{.*}} {stage = 0 : i64} : tensor<1x2x16x16xf32> -> tensor<1x2x16x16xf8E4M3FN>
// CHECK-LABEL: ax.program @turned
// CHECK: ax.cast %{{.*}} : tensor<32x16xf32> -> tensor<32x16xf8E4M3FN>
// CHECK-LABEL: ax.program @shared
// CHECK: ax.cast %{{.*}} : tensor<4x4x32xf32> -> tensor<4x4x32xf8E4M3FN>
ax.plan @p version 3 {
  ax.state @w : tensor<32x16xf32> from "w" offset 0 length 2048 {trainable}
  ax.program @heads(%q: tensor<1x2x16x16xf32> {ax.name = "q"}) -> (tensor<16x16xf32> {ax.name = "y"}) {
    %a = ax.attention %q, %q, %q scale 0.25 {node = "a", stage = 0 : i64} : tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32> -> tensor<1x2x16x16xf32>
    %t = ax.transpose %a [0, 2, 1, 3] {stage = 0 : i64} : tensor<1x2x16x16xf32> -> tensor<1x16x2x16xf32>
    %r = ax.reshape %t {stage = 0 : i64} : tensor<1x16x2x16xf32> -> tensor<16x32xf32>
    %w = ax.load @w : tensor<32x16xf32>
    %y = ax.linear %r, %w {node = "fc", stage = 1 : i64} : tensor<16x32xf32>, tensor<32x16xf32> -> tensor<16x16xf32>
    ax.return %y : tensor<16x16xf32>
  }
  ax.program @far(%q: tensor<1x2x16x16xf32> {ax.name = "q"}) -> (tensor<16x16xf32> {ax.name = "y"}) {
    %a = ax.attention %q, %q, %q scale 0.25 {node = "a", stage = 0 : i64} : tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32>, tensor<1x2x16x16xf32> -> tensor<1x2x16x16xf32>
    %t = ax.transpose %a [0, 2, 1, 3] {stage = 1 : i64} : tensor<1x2x16x16xf32> -> tensor<1x16x2x16xf32>
    %r = ax.reshape %t {stage = 1 : i64} : tensor<1x16x2x16xf32> -> tensor<16x32xf32>
    %w = ax.load @w : tensor<32x16xf32>
    %y = ax.linear %r, %w {node = "fc", stage = 1 : i64} : tensor<16x32xf32>, tensor<32x16xf32> -> tensor<16x16xf32>
    ax.return %y : tensor<16x16xf32>
  }
  ax.program @turned(%x: tensor<32x16xf32> {ax.name = "x"}) -> (tensor<16x16xf32> {ax.name = "y"}) {
    %n = ax.unary neg %x : tensor<32x16xf32> -> tensor<32x16xf32>
    %t = ax.transpose %n [1, 0] : tensor<32x16xf32> -> tensor<16x32xf32>
    %w = ax.load @w : tensor<32x16xf32>
    %y = ax.linear %t, %w {node = "fc"} : tensor<16x32xf32>, tensor<32x16xf32> -> tensor<16x16xf32>
    ax.return %y : tensor<16x16xf32>
  }
  ax.program @shared(%x: tensor<4x4x32xf32> {ax.name = "x"}) -> (tensor<16x16xf32> {ax.name = "y"}, tensor<4x4x32xf32> {ax.name = "z"}) {
    %n = ax.unary neg %x : tensor<4x4x32xf32> -> tensor<4x4x32xf32>
    %r = ax.reshape %n : tensor<4x4x32xf32> -> tensor<16x32xf32>
    %w = ax.load @w : tensor<32x16xf32>
    %y = ax.linear %r, %w {node = "fc"} : tensor<16x32xf32>, tensor<32x16xf32> -> tensor<16x16xf32>
    %z = ax.unary abs %n : tensor<4x4x32xf32> -> tensor<4x4x32xf32>
    ax.return %y, %z : tensor<16x16xf32>, tensor<4x4x32xf32>
  }
}
