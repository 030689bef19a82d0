// RUN: axopt-opt %s --axl-narrow-epilogues=gpu=true | FileCheck %s
// RUN: axopt-opt %s --axl-narrow-epilogues | FileCheck %s --check-prefix=CPU
// RUN: axopt-opt %s --axl-narrow-epilogues=gpu=true --axl-join-epilogues="gpu=true" | FileCheck %s --check-prefix=JOINED

// Mixed precision: what multiplies is bf16, what adds is f32.
// CHECK-LABEL: axl.stage @layer
// CHECK-DAG: %[[P:.*]] = ax.linear
// CHECK-DAG: %[[B:.*]] = ax.cast %{{.*}} : tensor<8xf32> -> tensor<8xbf16>
// CHECK: %[[S:.*]] = ax.binary add %[[P]], %[[B]] : tensor<4x8xbf16>
// CHECK-NEXT: %[[G:.*]] = ax.unary gelu_tanh %[[S]] : tensor<4x8xbf16>
// CHECK-NEXT: axl.yield %[[G]]
// JOINED-LABEL: axl.stage @layer
// JOINED: axl.library
// JOINED: ax.linear
// JOINED-NEXT: ax.binary add
// JOINED-NEXT: ax.unary gelu_tanh
axl.stage @layer(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>, %b: tensor<8xf32>) {
  %0 = ax.linear %x, %w : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %1 = ax.cast %0 : tensor<4x8xbf16> -> tensor<4x8xf32>
  %2 = ax.binary add %b, %1 : tensor<8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = ax.unary gelu_tanh %2 : tensor<4x8xf32> -> tensor<4x8xf32>
  %4 = ax.cast %3 : tensor<4x8xf32> -> tensor<4x8xbf16>
  axl.yield %4 : tensor<4x8xbf16>
}

// What somebody reads in f32 is widened for it.
// CHECK-LABEL: axl.stage @also_wide
// CHECK: %[[S:.*]] = ax.binary add %{{.*}} : tensor<4x8xf16>, tensor<8xf16> -> tensor<4x8xf16>
// CHECK-NEXT: %[[WIDE:.*]] = ax.cast %[[S]] : tensor<4x8xf16> -> tensor<4x8xf32>
// CHECK-NEXT: %[[R:.*]] = ax.unary relu %[[WIDE]] : tensor<4x8xf32>
// CHECK-NEXT: ax.cast %[[R]]
// CHECK-NEXT: ax.unary gelu_tanh %[[S]] : tensor<4x8xf16>
axl.stage @also_wide(%x: tensor<4x8xf16>, %w: tensor<8x8xf16>, %b: tensor<8xf32>) {
  %0 = ax.linear %x, %w : tensor<4x8xf16>, tensor<8x8xf16> -> tensor<4x8xf16>
  %1 = ax.cast %0 : tensor<4x8xf16> -> tensor<4x8xf32>
  %2 = ax.binary add %1, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %3 = ax.unary relu %2 : tensor<4x8xf32> -> tensor<4x8xf32>
  %4 = ax.cast %3 : tensor<4x8xf32> -> tensor<4x8xf16>
  %5 = ax.unary gelu_tanh %2 : tensor<4x8xf32> -> tensor<4x8xf32>
  %6 = ax.cast %5 : tensor<4x8xf32> -> tensor<4x8xf16>
  axl.yield %3, %4, %6 : tensor<4x8xf32>, tensor<4x8xf16>, tensor<4x8xf16>
}

// An activation without a bias.
// CHECK-LABEL: axl.stage @no_bias
// CHECK: %[[P:.*]] = ax.linear
// CHECK-NEXT: %[[G:.*]] = ax.unary relu %[[P]] : tensor<4x8xbf16>
// CHECK-NEXT: axl.yield %[[G]]
axl.stage @no_bias(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>) {
  %0 = ax.linear %x, %w : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %1 = ax.cast %0 : tensor<4x8xbf16> -> tensor<4x8xf32>
  %2 = ax.unary relu %1 : tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = ax.cast %2 : tensor<4x8xf32> -> tensor<4x8xbf16>
  axl.yield %3 : tensor<4x8xbf16>
}

// Numbers that bf16 or f16 lack count where a sum is read in f32: as it is, by
// what is no activation, behind a view, or beside an activation by what nobody
// rounds.
// CHECK-LABEL: axl.stage @f32
// CHECK-NOT: -> tensor<8xbf16>
// CHECK-COUNT-4: ax.binary add {{.*}} : tensor<4x8xf32>, tensor<8xf32>
axl.stage @f32(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>, %v: tensor<8x8xbf16>, %b: tensor<8xf32>) {
  %0 = ax.linear %x, %w : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %1 = ax.cast %0 : tensor<4x8xbf16> -> tensor<4x8xf32>
  %2 = ax.binary add %1, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %3 = ax.cast %2 : tensor<4x8xf32> -> tensor<4x8xbf16>
  %4 = ax.linear %x, %v : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %5 = ax.cast %4 : tensor<4x8xbf16> -> tensor<4x8xf32>
  %6 = ax.binary add %5, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %7 = ax.binary sub %6, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %8 = ax.cast %7 : tensor<4x8xf32> -> tensor<4x8xbf16>
  %9 = ax.linear %x, %w {transpose_w} : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %10 = ax.cast %9 : tensor<4x8xbf16> -> tensor<4x8xf32>
  %11 = ax.binary add %10, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %12 = ax.reshape %11 : tensor<4x8xf32> -> tensor<8x4xf32>
  %13 = ax.reduce sum %12 dims [0] : tensor<8x4xf32> -> tensor<4xf32>
  %14 = ax.linear %x, %v {transpose_w} : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %15 = ax.cast %14 : tensor<4x8xbf16> -> tensor<4x8xf32>
  %16 = ax.binary add %15, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %17 = ax.unary relu %16 : tensor<4x8xf32> -> tensor<4x8xf32>
  %18 = ax.cast %17 : tensor<4x8xf32> -> tensor<4x8xbf16>
  %19 = ax.binary mul %16, %16 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %20 = ax.reduce sum %19 dims [0, 1] : tensor<4x8xf32> -> tensor<f32>
  axl.yield %2, %3, %8, %13, %18, %20 : tensor<4x8xf32>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4xf32>, tensor<4x8xbf16>, tensor<f32>
}

// Parts of what is rounded, each after it is moved, and a gradient that is
// rounded for products, and summed as it is.
// CHECK-LABEL: axl.stage @moved
// CHECK-COUNT-2: ax.binary add {{.*}} : tensor<4x8xbf16>, tensor<8xbf16>
// CHECK-NOT: ax.binary add
// CHECK: ax.unary tanh %[[S:[0-9]+]] : tensor<4x8xbf16>
// CHECK: ax.unary tanh %[[S]] {recomputed} : tensor<4x8xbf16>
axl.stage @moved(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>, %v: tensor<8x8xbf16>, %b: tensor<8xf32>, %dy: tensor<4x8xf32>) {
  %0 = ax.linear %x, %w : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %1 = ax.cast %0 : tensor<4x8xbf16> -> tensor<4x8xf32>
  %2 = ax.binary add %1, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %3 = ax.reshape %2 : tensor<4x8xf32> -> tensor<2x2x8xf32>
  %4 = ax.transpose %3 [1, 0, 2] : tensor<2x2x8xf32> -> tensor<2x2x8xf32>
  %5 = ax.cast %4 : tensor<2x2x8xf32> -> tensor<2x2x8xbf16>
  %6 = ax.linear %x, %v : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %7 = ax.cast %6 : tensor<4x8xbf16> -> tensor<4x8xf32>
  %8 = ax.binary add %7, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %9 = ax.unary tanh %8 : tensor<4x8xf32> -> tensor<4x8xf32>
  %10 = ax.cast %9 : tensor<4x8xf32> -> tensor<4x8xbf16>
  // Who computes again has a cast and a sum of its own.
  %11 = ax.cast %6 : tensor<4x8xbf16> -> tensor<4x8xf32>
  %12 = ax.binary add %11, %b {recomputed} : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %16 = ax.unary tanh %12 {recomputed} : tensor<4x8xf32> -> tensor<4x8xf32>
  %17 = ax.cast %16 : tensor<4x8xf32> -> tensor<4x8xbf16>
  %13 = ax.binary mul %12, %dy : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %14 = ax.cast %13 : tensor<4x8xf32> -> tensor<4x8xbf16>
  %15 = ax.reduce sum %13 dims [0] : tensor<4x8xf32> -> tensor<8xf32>
  axl.yield %5, %10, %14, %15, %17 : tensor<2x2x8xbf16>, tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<8xf32>, tensor<4x8xbf16>
}

// A question has no narrower answer.
// CHECK-LABEL: axl.stage @question
// CHECK: ax.unary is_nan %{{.*}} : tensor<4x8xf32> -> tensor<4x8xi1>
axl.stage @question(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>) {
  %0 = ax.linear %x, %w : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %1 = ax.cast %0 : tensor<4x8xbf16> -> tensor<4x8xf32>
  %2 = ax.unary is_nan %1 : tensor<4x8xf32> -> tensor<4x8xi1>
  %3 = ax.cast %2 : tensor<4x8xi1> -> tensor<4x8xbf16>
  axl.yield %3 : tensor<4x8xbf16>
}

// Left alone: what the product gives is read by others, and what is added is no
// bias, or not added.
// CHECK-LABEL: axl.stage @others
// CHECK: ax.cast %{{.*}} : tensor<4x8xbf16> -> tensor<4x8xf32>
// CHECK: ax.binary add {{.*}} : tensor<4x8xf32>, tensor<8xf32>
// CHECK: ax.binary add {{.*}} : tensor<4x8xf32>, tensor<4x8xf32>
// CHECK: ax.binary mul {{.*}} : tensor<4x8xf32>, tensor<8xf32>
axl.stage @others(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>, %b: tensor<8xf32>, %r: tensor<4x8xf32>) {
  %0 = ax.linear %x, %w : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %1 = ax.cast %0 : tensor<4x8xbf16> -> tensor<4x8xf32>
  %2 = ax.binary add %1, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %3 = ax.linear %0, %w : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %4 = ax.cast %3 : tensor<4x8xbf16> -> tensor<4x8xf32>
  %5 = ax.binary add %4, %r : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %6 = ax.linear %x, %w {transpose_w} : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %7 = ax.cast %6 : tensor<4x8xbf16> -> tensor<4x8xf32>
  %8 = ax.binary mul %7, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  axl.yield %2, %5, %8 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// What attention reads is f32 on processors, with or without a bias, through views;
// not what a kernel reads, too.
// CPU-LABEL: axl.stage @attention
// CPU: %[[Q:.*]] = ax.linear {{.*}} -> tensor<4x8xf32>
// CPU-NEXT: ax.binary add %[[Q]], %{{.*}} : tensor<4x8xf32>
// CPU: %[[K:.*]] = ax.linear {{.*}} -> tensor<4x8xf32>
// CPU-NEXT: ax.reshape %[[K]]
// CPU: ax.linear {{.*}} -> tensor<4x8xbf16>
// CHECK-LABEL: axl.stage @attention
// CHECK-COUNT-3: ax.linear {{.*}} -> tensor<4x8xbf16>
axl.stage @attention(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>, %b: tensor<8xf32>) {
  %0 = ax.linear %x, %w : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %1 = ax.cast %0 : tensor<4x8xbf16> -> tensor<4x8xf32>
  %2 = ax.binary add %1, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %q = ax.reshape %2 : tensor<4x8xf32> -> tensor<1x1x4x8xf32>
  %3 = ax.linear %x, %w {transpose_w} : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %4 = ax.cast %3 : tensor<4x8xbf16> -> tensor<4x8xf32>
  %k = ax.reshape %4 : tensor<4x8xf32> -> tensor<1x1x4x8xf32>
  %y = ax.unary neg %x : tensor<4x8xbf16> -> tensor<4x8xbf16>
  %5 = ax.linear %y, %w : tensor<4x8xbf16>, tensor<8x8xbf16> -> tensor<4x8xbf16>
  %6 = ax.cast %5 : tensor<4x8xbf16> -> tensor<4x8xf32>
  %v = ax.reshape %6 : tensor<4x8xf32> -> tensor<1x1x4x8xf32>
  %n = ax.unary neg %6 : tensor<4x8xf32> -> tensor<4x8xf32>
  %a = ax.attention %q, %k, %v scale 1.0 : tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32>, tensor<1x1x4x8xf32> -> tensor<1x1x4x8xf32>
  axl.yield %a, %n : tensor<1x1x4x8xf32>, tensor<4x8xf32>
}

// Behind a convolution a processor's library adds what the block before gave, too.
// CPU-LABEL: axl.stage @block
// CPU: %[[B:.*]] = ax.cast %{{.*}} : tensor<4x1x1xf32> -> tensor<4x1x1xbf16>
// CPU: %[[S:.*]] = ax.binary add %{{.*}}, %[[B]] : tensor<1x4x5x5xbf16>
// CPU-NEXT: %[[Z:.*]] = ax.binary add %[[S]], %[[R:.*]] : tensor<1x4x5x5xbf16>
// CPU-NEXT: ax.unary relu %[[Z]] : tensor<1x4x5x5xbf16>
// A GPU's adds nothing, and a kernel makes it in f32.
// CHECK-LABEL: axl.stage @block
// CHECK-COUNT-2: ax.binary add {{.*}}xf32>
axl.stage @block(%x: tensor<1x4x5x5xbf16>, %w: tensor<4x4x1x1xbf16>, %b: tensor<4x1x1xf32>, %r: tensor<1x4x5x5xbf16>) {
  %0 = ax.conv %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x4x5x5xbf16>, tensor<4x4x1x1xbf16> -> tensor<1x4x5x5xbf16>
  %1 = ax.cast %0 : tensor<1x4x5x5xbf16> -> tensor<1x4x5x5xf32>
  %2 = ax.binary add %1, %b : tensor<1x4x5x5xf32>, tensor<4x1x1xf32> -> tensor<1x4x5x5xf32>
  %3 = ax.cast %r : tensor<1x4x5x5xbf16> -> tensor<1x4x5x5xf32>
  %4 = ax.binary add %2, %3 : tensor<1x4x5x5xf32>, tensor<1x4x5x5xf32> -> tensor<1x4x5x5xf32>
  %5 = ax.cast %4 : tensor<1x4x5x5xf32> -> tensor<1x4x5x5xbf16>
  %6 = ax.unary relu %5 : tensor<1x4x5x5xbf16> -> tensor<1x4x5x5xbf16>
  axl.yield %6 : tensor<1x4x5x5xbf16>
}

// Two convolutions, with a bias each.
// CPU-LABEL: axl.stage @two_convolutions
// CPU-DAG: %[[S:.*]] = ax.binary add %{{.*}} : tensor<1x4x5x5xbf16>, tensor<4x1x1xbf16>
// CPU-DAG: %[[T:.*]] = ax.binary add %{{.*}} : tensor<1x4x5x5xbf16>, tensor<4x1x1xbf16>
// CPU: ax.binary add %{{.*}}, %{{.*}} : tensor<1x4x5x5xbf16>, tensor<1x4x5x5xbf16>
axl.stage @two_convolutions(%x: tensor<1x4x5x5xbf16>, %w: tensor<4x4x1x1xbf16>, %v: tensor<4x4x1x1xbf16>, %b: tensor<4x1x1xf32>) {
  %0 = ax.conv %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x4x5x5xbf16>, tensor<4x4x1x1xbf16> -> tensor<1x4x5x5xbf16>
  %1 = ax.cast %0 : tensor<1x4x5x5xbf16> -> tensor<1x4x5x5xf32>
  %2 = ax.binary add %1, %b : tensor<1x4x5x5xf32>, tensor<4x1x1xf32> -> tensor<1x4x5x5xf32>
  %3 = ax.conv %x, %v strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x4x5x5xbf16>, tensor<4x4x1x1xbf16> -> tensor<1x4x5x5xbf16>
  %4 = ax.cast %3 : tensor<1x4x5x5xbf16> -> tensor<1x4x5x5xf32>
  %5 = ax.binary add %4, %b : tensor<1x4x5x5xf32>, tensor<4x1x1xf32> -> tensor<1x4x5x5xf32>
  %6 = ax.binary add %5, %2 : tensor<1x4x5x5xf32>, tensor<1x4x5x5xf32> -> tensor<1x4x5x5xf32>
  %7 = ax.cast %6 : tensor<1x4x5x5xf32> -> tensor<1x4x5x5xbf16>
  axl.yield %7 : tensor<1x4x5x5xbf16>
}

// What is added has more digits, or the sum is read in f32: it stays.
// CPU-LABEL: axl.stage @wide_blocks
// CPU-COUNT-4: ax.binary add {{.*}}xf32>
// CPU-NOT: ax.binary add
axl.stage @wide_blocks(%x: tensor<1x4x5x5xbf16>, %w: tensor<4x4x1x1xbf16>, %v: tensor<4x4x1x1xbf16>, %b: tensor<4x1x1xf32>, %r: tensor<1x4x5x5xf32>, %q: tensor<1x4x5x5xbf16>) {
  %0 = ax.conv %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x4x5x5xbf16>, tensor<4x4x1x1xbf16> -> tensor<1x4x5x5xbf16>
  %1 = ax.cast %0 : tensor<1x4x5x5xbf16> -> tensor<1x4x5x5xf32>
  %2 = ax.binary add %1, %b : tensor<1x4x5x5xf32>, tensor<4x1x1xf32> -> tensor<1x4x5x5xf32>
  %3 = ax.binary add %2, %r : tensor<1x4x5x5xf32>, tensor<1x4x5x5xf32> -> tensor<1x4x5x5xf32>
  %4 = ax.cast %3 : tensor<1x4x5x5xf32> -> tensor<1x4x5x5xbf16>
  %5 = ax.conv %x, %v strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x4x5x5xbf16>, tensor<4x4x1x1xbf16> -> tensor<1x4x5x5xbf16>
  %6 = ax.cast %5 : tensor<1x4x5x5xbf16> -> tensor<1x4x5x5xf32>
  %7 = ax.binary add %6, %b : tensor<1x4x5x5xf32>, tensor<4x1x1xf32> -> tensor<1x4x5x5xf32>
  %8 = ax.cast %q : tensor<1x4x5x5xbf16> -> tensor<1x4x5x5xf32>
  %9 = ax.binary add %7, %8 : tensor<1x4x5x5xf32>, tensor<1x4x5x5xf32> -> tensor<1x4x5x5xf32>
  axl.yield %4, %9 : tensor<1x4x5x5xbf16>, tensor<1x4x5x5xf32>
}

// In f16 a processor's library adds nothing.
// CPU-LABEL: axl.stage @half
// CPU: ax.binary add {{.*}} : tensor<1x4x5x5xf32>, tensor<4x1x1xf32>
axl.stage @half(%x: tensor<1x4x5x5xf16>, %w: tensor<4x4x1x1xf16>, %b: tensor<4x1x1xf32>) {
  %0 = ax.conv %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x4x5x5xf16>, tensor<4x4x1x1xf16> -> tensor<1x4x5x5xf16>
  %1 = ax.cast %0 : tensor<1x4x5x5xf16> -> tensor<1x4x5x5xf32>
  %2 = ax.binary add %1, %b : tensor<1x4x5x5xf32>, tensor<4x1x1xf32> -> tensor<1x4x5x5xf32>
  %3 = ax.cast %2 : tensor<1x4x5x5xf32> -> tensor<1x4x5x5xf16>
  axl.yield %3 : tensor<1x4x5x5xf16>
}
