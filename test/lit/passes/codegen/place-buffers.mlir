// RUN: axopt-opt %s --axl-place-buffers --split-input-file | FileCheck %s

// What is read together lies apart, what is not does not; the result goes where
// the stage's goes, if nothing reads that place before.
// CHECK-LABEL: axl.stage @arena(
// CHECK-SAME: direct(0) attributes {arena_bytes = 128 : i64}
// CHECK: ax.linear {{.*}}{axl.places = [#axl.place<arena 0>]}
// CHECK: ax.linear {{.*}}{axl.places = [#axl.place<arena 64>]}
// CHECK: ax.linear {{.*}}{axl.places = [#axl.place<arena 0>]}
// CHECK: ax.linear {{.*}}{axl.places = [#axl.place<result 0>]}
// CHECK: ax.linear {{.*}}{axl.places = [#axl.place<arena 0>]}
axl.stage @arena(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) direct(0) {
  %0 = ax.linear %x, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %1 = ax.linear %0, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %2 = ax.linear %1, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %3 = ax.linear %2, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %4 = ax.linear %3, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  axl.yield %3, %4 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// A result in the memory of what is read last: a kernel's operand, a residual,
// an addend of a sum over ranks; but not of one that is read again.
ax.plan @p version 1 {
  ax.mesh [col = 2]
  axl.program @main {
    // CHECK-LABEL: axl.stage @replaced(
    // CHECK: axl.fusion(%{{.*}}) in_place [0] attributes {axl.places = [#axl.place<operand 0>]}
    // CHECK: ax.conv {{.*}}axl.places = [#axl.place<arena 0>]
    // CHECK: axl.library(%{{.*}}) attributes {axl.places = [#axl.place<operand 2>]}
    // CHECK: axl.all_reduce {{.*}}axl.places = [#axl.place<operand 0>]
    // CHECK: axl.all_reduce {{.*}}axl.places = [#axl.place<arena 128>]
    axl.stage @replaced(%s: tensor<4xf32>, %x: tensor<1x2x4x4xf32>, %w: tensor<2x2x1x1xf32>) {
      %0 = axl.fusion(%s) in_place [0] {
      ^bb0(%a: tensor<4xf32>):
        %5 = ax.unary neg %a : tensor<4xf32> -> tensor<4xf32>
        axl.yield %5 : tensor<4xf32>
      } : (tensor<4xf32>) -> tensor<4xf32>
      %1 = ax.conv %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
      %2 = axl.library(%x, %w, %1) {
      ^bb0(%a: tensor<1x2x4x4xf32>, %b: tensor<2x2x1x1xf32>, %c: tensor<1x2x4x4xf32>):
        %5 = ax.conv %a, %b strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
        %6 = ax.binary add %5, %c : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
        axl.yield %6 : tensor<1x2x4x4xf32>
      } : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
      %3 = axl.all_reduce sum %2 over {col} : tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
      %4 = axl.all_reduce sum %3 over {col} : tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
      axl.yield %0, %3, %4 : tensor<4xf32>, tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
    }
  }
}

// -----

// A new value is made where the state is, as soon as nothing reads the old one; not
// while something does, and not where two states become copies of one value.
ax.plan @p version 1 {
  ax.mesh [data = 2]
  ax.state @s : tensor<4xf32>
  ax.state @t : tensor<4xf32>
  axl.program @main {
    // CHECK-LABEL: axl.stage @stored(
    // CHECK: axl.all_gather {{.*}}axl.places = [#axl.place<result 0>]
    // CHECK: axl.all_gather {{.*}}axl.places = [#axl.place<arena
    axl.stage @stored(%x: tensor<2xf32>) loads(@s = %s: tensor<4xf32>, @t = %t: tensor<4xf32>) stores(@s, @t) {
      %0 = axl.all_gather %x dims [0] over {data} : tensor<2xf32> -> tensor<4xf32>
      %1 = axl.all_gather %x dims [0] over {data} : tensor<2xf32> -> tensor<4xf32>
      %2 = axl.all_reduce sum %t over {data} : tensor<4xf32> -> tensor<4xf32>
      axl.yield %0, %1 : tensor<4xf32>, tensor<4xf32>
    }
    // CHECK-LABEL: axl.stage @copied(
    // CHECK: axl.all_gather {{.*}}axl.places = [#axl.place<arena
    axl.stage @copied(%x: tensor<2xf32>) stores(@s, @t) {
      %0 = axl.all_gather %x dims [0] over {data} : tensor<2xf32> -> tensor<4xf32>
      axl.yield %0, %0 : tensor<4xf32>, tensor<4xf32>
    }
    // A sum that nothing reads afterwards is reduced where it is; one that is
    // read again, or by other stages, is not.
    // CHECK-LABEL: axl.stage @spent(
    // CHECK: axl.all_reduce sum %arg0 {{.*}}axl.places = [#axl.place<operand 0>]
    // CHECK: axl.all_reduce sum %arg1 {{.*}}axl.places = [#axl.place<arena
    // CHECK: axl.all_reduce sum %arg2 {{.*}}axl.places = [#axl.place<arena
    axl.stage @spent(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>, %z: tensor<4x4xf32>) attributes {axl.spent = array<i64: 0, 1>} {
      %0 = axl.all_reduce sum %x over {data} : tensor<4x4xf32> -> tensor<4x4xf32>
      %1 = axl.all_reduce sum %y over {data} : tensor<4x4xf32> -> tensor<4x4xf32>
      %2 = axl.all_reduce sum %z over {data} : tensor<4x4xf32> -> tensor<4x4xf32>
      %3 = ax.linear %0, %1 : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
      %4 = ax.linear %2, %y : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
      axl.yield %3, %4 : tensor<4x4xf32>, tensor<4x4xf32>
    }
  }
}

// -----

// What later steps read has memory of its own; what only the first step reads, in
// making that, lies in the arena.
// CHECK-LABEL: axl.stage @once(
// CHECK: axl.fusion(%{{.*}}) attributes {axl.once, axl.places = [#axl.place<arena 0>]}
// CHECK: ax.linear {{.*}} {axl.once, axl.places = [#axl.place<kept 0>]}
// CHECK: axl.fusion(%{{.*}}) attributes {axl.once, axl.places = [#axl.place<kept 1>]}
// CHECK: ax.linear {{.*}}{axl.places = [#axl.place<arena 0>]}
// CHECK: ax.linear {{.*}}{axl.places = [#axl.place<arena 64>]}
axl.stage @once(%x: tensor<4x4xf32>, %v: tensor<4x4xf32>, %w: tensor<4x4xf32>) {
  %0 = axl.fusion(%v) attributes {axl.once} {
  ^bb0(%a: tensor<4x4xf32>):
    %5 = ax.unary neg %a : tensor<4x4xf32> -> tensor<4x4xf32>
    axl.yield %5 : tensor<4x4xf32>
  } : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = ax.linear %0, %w {axl.once} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %2 = axl.fusion(%w) attributes {axl.once} {
  ^bb0(%a: tensor<4x4xf32>):
    %5 = ax.unary neg %a : tensor<4x4xf32> -> tensor<4x4xf32>
    axl.yield %5 : tensor<4x4xf32>
  } : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = ax.linear %x, %1 : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %4 = ax.linear %3, %2 : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  axl.yield %4 : tensor<4x4xf32>
}
