// RUN: axopt-opt %s --axl-narrow-epilogues | FileCheck %s
// RUN: axopt-opt %s --axl-narrow-epilogues --axl-join-epilogues="gpu=true" | FileCheck %s --check-prefix=JOINED

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
// CHECK-NEXT: ax.unary relu %[[S]] : tensor<4x8xf16>
axl.stage @also_wide(%x: tensor<4x8xf16>, %w: tensor<8x8xf16>, %b: tensor<8xf32>) {
  %0 = ax.linear %x, %w : tensor<4x8xf16>, tensor<8x8xf16> -> tensor<4x8xf16>
  %1 = ax.cast %0 : tensor<4x8xf16> -> tensor<4x8xf32>
  %2 = ax.binary add %1, %b : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %3 = ax.unary relu %2 : tensor<4x8xf32> -> tensor<4x8xf32>
  %4 = ax.cast %3 : tensor<4x8xf32> -> tensor<4x8xf16>
  %5 = ax.unary relu %2 : tensor<4x8xf32> -> tensor<4x8xf32>
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
