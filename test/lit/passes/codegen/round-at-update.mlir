// RUN: axopt-opt %s --axl-round-at-update --split-input-file | FileCheck %s
// RUN: axopt-opt %s --axl-round-at-update --axl-mark-in-place --axl-place-buffers --split-input-file | FileCheck %s --check-prefix=PLACED

// The update leaves the weight rounded, too, which only the first step does.
// CHECK-LABEL: ax.plan @one
// CHECK: %[[V:.*]] = axl.fusion(%{{.*}}) attributes {axl.copies = array<i64: 0>, axl.once} {
// CHECK: ax.linear %{{.*}}, %[[V]] :
// CHECK: %[[U:.*]]:2 = axl.fusion(%{{.*}}, %{{.*}}) attributes {axl.copies = array<i64: -1, 0>} {
// CHECK: %[[NEW:.*]] = ax.binary sub
// CHECK: %[[COPY:.*]] = ax.cast %[[NEW]] : tensor<4x4xf32> -> tensor<4x4xbf16>
// CHECK: axl.yield %[[NEW]], %[[COPY]]
// CHECK: axl.yield %{{.*}}, %[[U]]#0 :
// PLACED-LABEL: ax.plan @one
// PLACED: axl.fusion(%{{.*}}) attributes {{{.*}}axl.places = [#axl.place<copy 0>]} {
// PLACED: axl.fusion(%{{.*}}) in_place [0, -1] attributes {{{.*}}axl.places = [#axl.place<operand 0>, #axl.place<copy 0>]} {
ax.plan @one version 1 {
  ax.mesh []
  ax.state @w : tensor<4x4xf32> stages [0]
  axl.program @step attributes {axl.owned = [@w]} {
    axl.stage @s(%x: tensor<4x4xbf16>, %g: tensor<4x4xf32>) loads(@w = %w: tensor<4x4xf32>) stores(@w) {
      %0 = axl.fusion(%w) {
      ^bb0(%a: tensor<4x4xf32>):
        %3 = ax.cast %a : tensor<4x4xf32> -> tensor<4x4xbf16>
        axl.yield %3 : tensor<4x4xbf16>
      } : (tensor<4x4xf32>) -> tensor<4x4xbf16>
      %1 = ax.linear %x, %0 : tensor<4x4xbf16>, tensor<4x4xbf16> -> tensor<4x4xbf16>
      %2 = axl.fusion(%w, %g) {
      ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
        %3 = ax.binary sub %a, %b : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
        axl.yield %3 : tensor<4x4xf32>
      } : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      axl.yield %1, %2 : tensor<4x4xbf16>, tensor<4x4xf32>
    }
  }
}

// -----

// Lists that are done for each micro-batch share it; a new value that no kernel
// makes is rounded by one behind.
// CHECK-LABEL: ax.plan @lists
// CHECK: axl.stage @f
// CHECK: axl.fusion(%{{.*}}) attributes {axl.copies = array<i64: 0>, axl.once} {
// CHECK: axl.stage @b
// CHECK: axl.fusion(%{{.*}}) attributes {axl.copies = array<i64: 0>, axl.once} {
// CHECK: axl.fusion(%{{.*}}) attributes {axl.copies = array<i64: 1>, axl.once} {
// CHECK: axl.stage @u
// CHECK: %[[NEW:.*]] = ax.linear
// CHECK: axl.fusion(%[[NEW]]) attributes {axl.copies = array<i64: 0>} {
// CHECK-NEXT: ^bb0
// CHECK-NEXT: ax.cast %{{.*}} : tensor<4x4xf32> -> tensor<4x4xbf16>
// CHECK: axl.fusion(%[[NEW]]) attributes {axl.copies = array<i64: 1>} {
// CHECK-NEXT: ^bb0
// CHECK-NEXT: ax.cast %{{.*}} : tensor<4x4xf32> -> tensor<4x4xf16>
// CHECK: axl.yield %[[NEW]] :
ax.plan @lists version 1 {
  ax.mesh [] in time [micro = 2]
  ax.state @w : tensor<4x4xf32> stages [0]
  axl.program @step attributes {axl.owned = [@w]} {
    axl.stage @f(%x: tensor<4x4xbf16>) loads(@w = %w: tensor<4x4xf32>) {
      %0 = axl.fusion(%w) {
      ^bb0(%a: tensor<4x4xf32>):
        %3 = ax.cast %a : tensor<4x4xf32> -> tensor<4x4xbf16>
        axl.yield %3 : tensor<4x4xbf16>
      } : (tensor<4x4xf32>) -> tensor<4x4xbf16>
      %1 = ax.linear %x, %0 : tensor<4x4xbf16>, tensor<4x4xbf16> -> tensor<4x4xbf16>
      axl.yield %1 : tensor<4x4xbf16>
    }
    axl.stage @b(%x: tensor<4x4xbf16>, %y: tensor<4x4xf16>) loads(@w = %w: tensor<4x4xf32>) {
      %0 = axl.fusion(%w) {
      ^bb0(%a: tensor<4x4xf32>):
        %5 = ax.cast %a : tensor<4x4xf32> -> tensor<4x4xbf16>
        axl.yield %5 : tensor<4x4xbf16>
      } : (tensor<4x4xf32>) -> tensor<4x4xbf16>
      %1 = ax.linear %x, %0 : tensor<4x4xbf16>, tensor<4x4xbf16> -> tensor<4x4xbf16>
      %2 = axl.fusion(%w) {
      ^bb0(%a: tensor<4x4xf32>):
        %5 = ax.cast %a : tensor<4x4xf32> -> tensor<4x4xf16>
        axl.yield %5 : tensor<4x4xf16>
      } : (tensor<4x4xf32>) -> tensor<4x4xf16>
      %3 = ax.linear %y, %2 : tensor<4x4xf16>, tensor<4x4xf16> -> tensor<4x4xf16>
      axl.yield %1, %3 : tensor<4x4xbf16>, tensor<4x4xf16>
    }
    axl.stage @u(%g: tensor<4x4xf32>) loads(@w = %w: tensor<4x4xf32>) stores(@w) {
      %0 = ax.linear %w, %g : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
      axl.yield %0 : tensor<4x4xf32>
    }
  }
}

// -----

// A copy that is read behind the update; one that would be rounded once a step as
// it is; and a state that others change, too.
// CHECK-LABEL: ax.plan @not
// CHECK-NOT: axl.once
ax.plan @not version 1 {
  ax.mesh []
  ax.state @u : tensor<4x4xf32> stages [0]
  ax.state @v : tensor<4x4xf32> stages [0]
  ax.state @w : tensor<4x4xf32> stages [0]
  axl.program @step attributes {axl.owned = [@u, @v]} {
    axl.stage @s(%x: tensor<4x4xbf16>, %g: tensor<4x4xf32>) loads(@u = %u: tensor<4x4xf32>, @v = %v: tensor<4x4xf32>, @w = %w: tensor<4x4xf32>) stores(@u, @v, @w) {
      %0 = axl.fusion(%u) {
      ^bb0(%a: tensor<4x4xf32>):
        %9 = ax.cast %a : tensor<4x4xf32> -> tensor<4x4xbf16>
        axl.yield %9 : tensor<4x4xbf16>
      } : (tensor<4x4xf32>) -> tensor<4x4xbf16>
      %1 = axl.fusion(%v) {
      ^bb0(%a: tensor<4x4xf32>):
        %9 = ax.cast %a : tensor<4x4xf32> -> tensor<4x4xbf16>
        axl.yield %9 : tensor<4x4xbf16>
      } : (tensor<4x4xf32>) -> tensor<4x4xbf16>
      %2 = axl.fusion(%w) {
      ^bb0(%a: tensor<4x4xf32>):
        %9 = ax.cast %a : tensor<4x4xf32> -> tensor<4x4xbf16>
        axl.yield %9 : tensor<4x4xbf16>
      } : (tensor<4x4xf32>) -> tensor<4x4xbf16>
      %3 = axl.fusion(%u, %g) {
      ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
        %9 = ax.binary sub %a, %b : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
        axl.yield %9 : tensor<4x4xf32>
      } : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %4 = ax.linear %x, %0 : tensor<4x4xbf16>, tensor<4x4xbf16> -> tensor<4x4xbf16>
      %5 = ax.linear %4, %1 : tensor<4x4xbf16>, tensor<4x4xbf16> -> tensor<4x4xbf16>
      %6 = ax.linear %5, %2 : tensor<4x4xbf16>, tensor<4x4xbf16> -> tensor<4x4xbf16>
      %7 = ax.linear %v, %g : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
      %8 = axl.fusion(%w, %g) {
      ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>):
        %9 = ax.binary sub %a, %b : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
        axl.yield %9 : tensor<4x4xf32>
      } : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      axl.yield %6, %3, %7, %8 : tensor<4x4xbf16>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
    }
  }
}
