// RUN: axopt-opt %s --axl-mark-in-place | FileCheck %s

// The weight is read last by what makes it anew; the sum is read at other
// elements than it is written, the second state by somebody later.
// CHECK: axl.fusion(%{{.*}}, %{{.*}}) in_place [0] {
// CHECK: axl.fusion(%{{.*}}) {
// CHECK: axl.fusion(%{{.*}}, %{{.*}}) {
// CHECK: axl.fusion(%{{.*}}) {

// The new value of the first state is read where it stays; that of the second goes
// to an output, too, as it is or as a part.
// CHECK: ax.plan @read
// CHECK: axl.fusion(%{{.*}}, %{{.*}}) in_place [0] {
// CHECK: axl.fusion(%{{.*}}, %{{.*}}) {
// CHECK: axl.fusion(%{{.*}}) {
ax.plan @p version 1 {
  ax.mesh [col = 1] in time [micro = 2]
  ax.state @w : tensor<8xf32> stages [0]
  ax.state @v : tensor<8xf32> stages [0]
  axl.program @main {
    axl.stage @s(%g: tensor<8xf32>) loads(@w = %w: tensor<8xf32>, @v = %v: tensor<8xf32>) adds(0 = %sum: tensor<4xf32>) stores(@w, @v) {
      %0 = axl.fusion(%w, %g) {
      ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
        %4 = ax.binary sub %a, %b : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
        axl.yield %4 : tensor<8xf32>
      } : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      %1 = axl.fusion(%sum) {
      ^bb0(%a: tensor<4xf32>):
        %4 = ax.slice %a starts [3] steps [-1] : tensor<4xf32> -> tensor<4xf32>
        axl.yield %4 : tensor<4xf32>
      } : (tensor<4xf32>) -> tensor<4xf32>
      %2 = axl.fusion(%v, %g) {
      ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
        %4 = ax.binary sub %a, %b : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
        axl.yield %4 : tensor<8xf32>
      } : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      %3 = axl.fusion(%v) {
      ^bb0(%a: tensor<8xf32>):
        %4 = ax.unary neg %a : tensor<8xf32> -> tensor<8xf32>
        axl.yield %4 : tensor<8xf32>
      } : (tensor<8xf32>) -> tensor<8xf32>
      axl.yield %1, %3, %0, %2 : tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
    }
  }
}

ax.plan @read version 1 {
  ax.mesh [col = 1] in time [micro = 1]
  ax.state @w : tensor<8xf32> stages [0]
  ax.state @v : tensor<8xf32> stages [0]
  axl.program @main {
    axl.stage @s(%g: tensor<8xf32>) loads(@w = %w: tensor<8xf32>, @v = %v: tensor<8xf32>) stores(@w, @v) {
      %0 = axl.fusion(%w, %g) {
      ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
        %4 = ax.binary sub %a, %b : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
        axl.yield %4 : tensor<8xf32>
      } : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      %1 = axl.fusion(%v, %g) {
      ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
        %4 = ax.binary sub %a, %b : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
        axl.yield %4 : tensor<8xf32>
      } : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      %2 = axl.fusion(%0) {
      ^bb0(%a: tensor<8xf32>):
        %4 = ax.unary neg %a : tensor<8xf32> -> tensor<8xf32>
        axl.yield %4 : tensor<8xf32>
      } : (tensor<8xf32>) -> tensor<8xf32>
      %3 = ax.reshape %1 : tensor<8xf32> -> tensor<2x4xf32>
      axl.yield %2, %3, %0, %1 : tensor<8xf32>, tensor<2x4xf32>, tensor<8xf32>, tensor<8xf32>
    }
  }
}
