// RUN: axopt-opt %s --axl-fuse=gpu=true --axl-compute-once --split-input-file | FileCheck %s

// What products read of weights that do not change, be it behind a view. Whatever
// depends on an input is done in each step, and what is made for a kernel in it.
// CHECK-LABEL: axl.stage @weights
// CHECK-DAG: %[[W:.*]] = axl.fusion(%{{.*}}) attributes {axl.once} {
// CHECK-DAG: %[[B:.*]] = axl.fusion(%{{.*}}) attributes {axl.once} {
// CHECK: axl.library(%{{.*}}, %[[W]], %[[B]]) {
// CHECK: axl.fusion(%{{.*}}, %{{.*}}) {
// CHECK-NOT: axl.once
axl.stage @weights(%x: tensor<16x64xbf16>, %v: tensor<4096xf32>, %b: tensor<64xf32>) attributes {axl.frozen = array<i64: 1, 2>} {
  %0 = ax.reshape %v : tensor<4096xf32> -> tensor<64x64xf32>
  %1 = ax.cast %0 : tensor<64x64xf32> -> tensor<64x64xbf16>
  %2 = ax.cast %b : tensor<64xf32> -> tensor<64xbf16>
  %3 = axl.library(%x, %1, %2) {
  ^bb0(%p: tensor<16x64xbf16>, %q: tensor<64x64xbf16>, %r: tensor<64xbf16>):
    %6 = ax.linear %p, %q : tensor<16x64xbf16>, tensor<64x64xbf16> -> tensor<16x64xbf16>
    %7 = ax.binary add %6, %r : tensor<16x64xbf16>, tensor<64xbf16> -> tensor<16x64xbf16>
    axl.yield %7 : tensor<16x64xbf16>
  } : (tensor<16x64xbf16>, tensor<64x64xbf16>, tensor<64xbf16>) -> tensor<16x64xbf16>
  %4 = ax.cast %3 : tensor<16x64xbf16> -> tensor<16x64xf32>
  %5 = ax.binary add %4, %b : tensor<16x64xf32>, tensor<64xf32> -> tensor<16x64xf32>
  axl.yield %5 : tensor<16x64xf32>
}

// -----

// A state that steps change; and what the stage gives.
// CHECK-LABEL: axl.stage @not
// CHECK-NOT: axl.once
axl.stage @not(%x: tensor<16x64xbf16>, %v: tensor<64x64xf32>, %w: tensor<64x64xf32>) attributes {axl.frozen = array<i64: 2>} {
  %0 = ax.cast %v : tensor<64x64xf32> -> tensor<64x64xbf16>
  %1 = ax.linear %x, %0 : tensor<16x64xbf16>, tensor<64x64xbf16> -> tensor<16x64xbf16>
  %2 = ax.cast %w : tensor<64x64xf32> -> tensor<64x64xbf16>
  %3 = ax.linear %1, %2 : tensor<16x64xbf16>, tensor<64x64xbf16> -> tensor<16x64xbf16>
  axl.yield %2, %3 : tensor<64x64xbf16>, tensor<16x64xbf16>
}

// -----

// A product of weights, too. What lies in between may be as large as it is: that
// is there in the first step alone.
// CHECK-LABEL: axl.stage @chain
// CHECK: %[[F:.*]] = axl.fusion(%{{.*}}) attributes {axl.once} {
// CHECK: %[[P:.*]] = ax.linear %[[F]], %{{.*}} {axl.once}
// CHECK: ax.linear %{{.*}}, %[[P]] :
axl.stage @chain(%x: tensor<16x1024xf32>, %v: tensor<1024x1024xi8>, %w: tensor<1024x256xf32>) attributes {axl.frozen = array<i64: 1, 2>} {
  %0 = ax.cast %v : tensor<1024x1024xi8> -> tensor<1024x1024xf32>
  %1 = ax.linear %0, %w : tensor<1024x1024xf32>, tensor<1024x256xf32> -> tensor<1024x256xf32>
  %2 = ax.linear %x, %1 : tensor<16x1024xf32>, tensor<1024x256xf32> -> tensor<16x256xf32>
  axl.yield %2 : tensor<16x256xf32>
}

// -----

// Where something trains, weights of eight bits are not kept as f32, nor what is
// made of that; those that are few are.
ax.plan @q version 1 {
  ax.mesh [] in time [micro = 1]
  ax.state @t : tensor<4xf32> {trainable}
  axl.program @main {
    // CHECK-LABEL: axl.stage @grown
    // CHECK: axl.fusion(%{{.*}}) {
    // CHECK: ax.dot {{.*}} contract [1] x [0] : tensor
    // CHECK: axl.fusion(%{{.*}}) attributes {axl.once} {
    axl.stage @grown(%x: tensor<16x1024xf32>, %v: tensor<1024x1024xi8>, %w: tensor<1024x64xi8>) attributes {axl.frozen = array<i64: 1, 2>} {
      %0 = ax.cast %v : tensor<1024x1024xi8> -> tensor<1024x1024xf32>
      %4 = ax.dot %0, %0 batch [] x [] contract [1] x [0] : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
      %1 = ax.linear %x, %4 : tensor<16x1024xf32>, tensor<1024x1024xf32> -> tensor<16x1024xf32>
      %2 = ax.cast %w : tensor<1024x64xi8> -> tensor<1024x64xf32>
      %3 = ax.linear %1, %2 : tensor<16x1024xf32>, tensor<1024x64xf32> -> tensor<16x64xf32>
      axl.yield %3 : tensor<16x64xf32>
    }
  }
}

// -----

// Else those of eight bits, and of f16, are f32 once and for all. Two numbers of
// four bits in each byte would be eight times as large, and stay.
// CHECK-LABEL: axl.stage @widened
// CHECK: axl.fusion(%{{.*}}) attributes {axl.once} {
// CHECK: axl.fusion(%{{.*}}) attributes {axl.once} {
// CHECK: axl.fusion(%{{.*}}) {
// CHECK-NOT: axl.once
axl.stage @widened(%x: tensor<16x1024xf32>, %v: tensor<1024x1024xi8>, %w: tensor<1024x1024xf16>, %f: tensor<1024x512xui8>) attributes {axl.frozen = array<i64: 1, 2, 3>} {
  %0 = ax.cast %v : tensor<1024x1024xi8> -> tensor<1024x1024xf32>
  %1 = ax.linear %x, %0 : tensor<16x1024xf32>, tensor<1024x1024xf32> -> tensor<16x1024xf32>
  %2 = ax.cast %w : tensor<1024x1024xf16> -> tensor<1024x1024xf32>
  %3 = ax.linear %1, %2 : tensor<16x1024xf32>, tensor<1024x1024xf32> -> tensor<16x1024xf32>
  %4 = ax.concat %f, %f dim 1 : tensor<1024x512xui8>, tensor<1024x512xui8> -> tensor<1024x1024xui8>
  %5 = ax.cast %4 : tensor<1024x1024xui8> -> tensor<1024x1024xbf16>
  %6 = ax.cast %3 : tensor<16x1024xf32> -> tensor<16x1024xbf16>
  %7 = ax.linear %6, %5 : tensor<16x1024xbf16>, tensor<1024x1024xbf16> -> tensor<16x1024xbf16>
  axl.yield %7 : tensor<16x1024xbf16>
}

// -----

// A rank's number may be that of the micro-batch.
ax.plan @p version 1 {
  ax.mesh [] in time [micro = 2]
  axl.program @main {
    // CHECK-LABEL: axl.stage @slices
    // CHECK-NOT: axl.once
    axl.stage @slices(%x: tensor<16x64xf32>, %v: tensor<64x64xf32>) attributes {axl.frozen = array<i64: 1>} {
      %0 = axl.axis_index {micro} : tensor<i64>
      %1 = ax.cast %0 : tensor<i64> -> tensor<f32>
      %2 = ax.binary mul %v, %1 : tensor<64x64xf32>, tensor<f32> -> tensor<64x64xf32>
      %3 = ax.linear %x, %2 : tensor<16x64xf32>, tensor<64x64xf32> -> tensor<16x64xf32>
      axl.yield %3 : tensor<16x64xf32>
    }
  }
}

// -----

// A sum over weights that each step goes on with is in a kernel of its own, for the
// first step; what each step makes of its input is not.
// CHECK-LABEL: axl.stage @sums(
// CHECK: %[[S:.*]] = axl.fusion(%{{.*}}) attributes {axl.once} {
// CHECK: ax.reduce sum
// CHECK-NEXT: axl.yield
// CHECK-NOT: axl.once
// CHECK: axl.fusion(%[[S]], %{{.*}}) {
// CHECK: ax.binary mul
// CHECK: ax.reduce sum
// CHECK: ax.binary mul
// CHECK-NOT: axl.once
axl.stage @sums(%x: tensor<64x32xf32>, %z: tensor<f32>, %w: tensor<64x32xi8>) attributes {axl.frozen = array<i64: 2>} {
  %0 = ax.cast %w : tensor<64x32xi8> -> tensor<64x32xi32>
  %1 = ax.reduce sum %0 dims [0] : tensor<64x32xi32> -> tensor<32xi32>
  %2 = ax.cast %1 : tensor<32xi32> -> tensor<32xf32>
  %3 = ax.binary mul %2, %z : tensor<32xf32>, tensor<f32> -> tensor<32xf32>
  %4 = ax.reduce sum %x dims [0] : tensor<64x32xf32> -> tensor<32xf32>
  %5 = ax.binary mul %4, %z : tensor<32xf32>, tensor<f32> -> tensor<32xf32>
  axl.yield %3, %5 : tensor<32xf32>, tensor<32xf32>
}
