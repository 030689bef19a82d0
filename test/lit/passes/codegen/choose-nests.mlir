// RUN: axopt-opt %s --axl-choose-nests --split-input-file | FileCheck %s

// Nothing to share rows of: the loop over all elements is what threads share.
// CHECK-LABEL: @flat
// CHECK: axl.fusion(%{{.*}}) nests ["32 iterations: 32(4x8)", "result 0: once"]
axl.stage @flat(%x: tensor<4x8xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<4x8xf32>):
    %1 = ax.unary neg %a : tensor<4x8xf32> -> tensor<4x8xf32>
    axl.yield %1 : tensor<4x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  axl.yield %0 : tensor<4x8xf32>
}

// -----

// Softmax is what it is written as; its exponential is kept in memory.
// CHECK-LABEL: @rows
// CHECK: axl.fusion(%{{.*}}) nests ["4 iterations: 4, 2432 bytes of scratch", "result 0: 600"]
// CHECK: ax.reduce max {{.*}}{axl.nests = ["elements: 600"]}
// CHECK: ax.unary exp {{.*}}axl.nests = ["whole: 600"]
// CHECK: ax.reduce sum {{.*}}{axl.nests = ["elements: 600"]}
axl.stage @rows(%x: tensor<4x600xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<4x600xf32>):
    %1 = ax.softmax %a dim 1 : tensor<4x600xf32> -> tensor<4x600xf32>
    axl.yield %1 : tensor<4x600xf32>
  } : (tensor<4x600xf32>) -> tensor<4x600xf32>
  axl.yield %0 : tensor<4x600xf32>
}

// -----

// The transpose's columns are in another order than the result's 24 numbers: a
// loop over them becomes one over 6 and one over 4.
// CHECK-LABEL: @split
// CHECK: nests ["1 iterations: once", "result 0: 6 4"]
axl.stage @split(%x: tensor<4x6xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<4x6xf32>):
    %1 = ax.transpose %a [1, 0] : tensor<4x6xf32> -> tensor<6x4xf32>
    %2 = ax.reshape %1 : tensor<6x4xf32> -> tensor<24xf32>
    axl.yield %2 : tensor<24xf32>
  } : (tensor<4x6xf32>) -> tensor<24xf32>
  axl.yield %0 : tensor<24xf32>
}

// -----

// The padding's edges are pieces of their own.
// CHECK-LABEL: @cut
// CHECK: nests ["8 iterations: 8", "result 0: 108[3,103]"]
axl.stage @cut(%x: tensor<8x100xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<8x100xf32>):
    %z = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
    %1 = ax.pad %a value %z : tensor<f32> low [0, 3] high [0, 5] : tensor<8x100xf32> -> tensor<8x108xf32>
    axl.yield %1 : tensor<8x108xf32>
  } : (tensor<8x100xf32>) -> tensor<8x108xf32>
  axl.yield %0 : tensor<8x108xf32>
}

// -----

// Many rows are summed in blocks.
// CHECK-LABEL: @blocks
// CHECK: nests ["1 iterations: once, 64 bytes of scratch", "result 0: 16"]
// CHECK: ax.reduce sum {{.*}}"blocks of rows: 32", "clear block: 16", "rows of block: 31 16", "add block: 16", "rows left: 8 16"]
axl.stage @blocks(%x: tensor<1000x16xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<1000x16xf32>):
    %1 = ax.reduce sum %a dims [0] : tensor<1000x16xf32> -> tensor<16xf32>
    axl.yield %1 : tensor<16xf32>
  } : (tensor<1000x16xf32>) -> tensor<16xf32>
  axl.yield %0 : tensor<16xf32>
}

// -----

// Two numbers in a byte are lanes, so that the innermost loop is over bytes; the
// sum of each block of 32 begins anew, for its scale does.
// CHECK-LABEL: @pairs
// CHECK: nests ["48 iterations: 48", "result 0: once"]
// CHECK: ax.reduce sum {{.*}}{axl.nests = ["elements: 2 16 <2>"]}
axl.stage @pairs(%x: tensor<1x64xf32>, %b: tensor<48x32x1xui8>, %s: tensor<48x2x1xf32>) {
  %0 = axl.fusion(%x, %b, %s) {
  ^bb0(%r: tensor<1x64xf32>, %c: tensor<48x32x1xui8>, %t: tensor<48x2x1xf32>):
    %shifts = ax.constant dense<[0, 4]> : tensor<2xui8> -> tensor<2xui8>
    %h = ax.binary shr %c, %shifts : tensor<48x32x1xui8>, tensor<2xui8> -> tensor<48x32x2xui8>
    %g = ax.reshape %h : tensor<48x32x2xui8> -> tensor<48x2x32xui8>
    %f = ax.cast %g : tensor<48x2x32xui8> -> tensor<48x2x32xf32>
    %v = ax.binary mul %f, %t : tensor<48x2x32xf32>, tensor<48x2x1xf32> -> tensor<48x2x32xf32>
    %w = ax.reshape %v : tensor<48x2x32xf32> -> tensor<48x64xf32>
    %p = ax.binary mul %w, %r : tensor<48x64xf32>, tensor<1x64xf32> -> tensor<48x64xf32>
    %y = ax.reduce sum %p dims [1] : tensor<48x64xf32> -> tensor<48xf32>
    axl.yield %y : tensor<48xf32>
  } : (tensor<1x64xf32>, tensor<48x32x1xui8>, tensor<48x2x1xf32>) -> tensor<48xf32>
  axl.yield %0 : tensor<48xf32>
}

// -----

// Nests within blocks of rows store: three of them are a loop, no lanes.
// CHECK-LABEL: @stores
// CHECK: ax.reduce sum {{.*}}"blocks of rows: 2 16 3"
axl.stage @stores(%x: tensor<2x16x3x20x50xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<2x16x3x20x50xf32>):
    %1 = ax.reduce sum %a dims [0, 2, 3] : tensor<2x16x3x20x50xf32> -> tensor<16x50xf32>
    axl.yield %1 : tensor<16x50xf32>
  } : (tensor<2x16x3x20x50xf32>) -> tensor<16x50xf32>
  axl.yield %0 : tensor<16x50xf32>
}

// -----

// Of rows in blocks that have a scale each, numbers at the same place of all blocks are
// added up, in 32 places here, and these at last: not each block to one number.
// CHECK-LABEL: @blocks
// CHECK: nests ["16 iterations: 16, 128 bytes of scratch", "result 0: once"]
// CHECK: ax.reduce sum {{.*}} {axl.nests = ["elements: 64 32", "clear: 32", "add block: 32"]}
axl.stage @blocks(%x: tensor<16x64x32xf32>, %s: tensor<16x64x1xf32>) {
  %0 = axl.fusion(%x, %s) {
  ^bb0(%a: tensor<16x64x32xf32>, %b: tensor<16x64x1xf32>):
    %1 = ax.binary mul %a, %b : tensor<16x64x32xf32>, tensor<16x64x1xf32> -> tensor<16x64x32xf32>
    %2 = ax.reshape %1 : tensor<16x64x32xf32> -> tensor<16x2048xf32>
    %3 = ax.reduce sum %2 dims [1] : tensor<16x2048xf32> -> tensor<16xf32>
    axl.yield %3 : tensor<16xf32>
  } : (tensor<16x64x32xf32>, tensor<16x64x1xf32>) -> tensor<16xf32>
  axl.yield %0 : tensor<16xf32>
}

// -----

// Of a concatenation each operand has a piece of the loop to itself.
// CHECK-LABEL: @concat
// CHECK: "result 0: 96[8,16,24,32,40,48,56,64,72,80,88]"
axl.stage @concat(%x: tensor<4x8xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<4x8xf32>):
    %1 = ax.concat %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a dim 1 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x96xf32>
    %2 = ax.unary neg %1 : tensor<4x96xf32> -> tensor<4x96xf32>
    axl.yield %2 : tensor<4x96xf32>
  } : (tensor<4x8xf32>) -> tensor<4x96xf32>
  axl.yield %0 : tensor<4x96xf32>
}

// -----

// Where much is made of it, nine at most, as that is written for each.
// CHECK-LABEL: @concat_and_more
// CHECK: "result 0: 96[8,16,24,32,40,48,56,72]"
axl.stage @concat_and_more(%x: tensor<4x8xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<4x8xf32>):
    %1 = ax.concat %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a, %a dim 1 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x96xf32>
    %2 = ax.unary exp %1 : tensor<4x96xf32> -> tensor<4x96xf32>
    %3 = ax.unary neg %2 : tensor<4x96xf32> -> tensor<4x96xf32>
    %4 = ax.unary tanh %3 : tensor<4x96xf32> -> tensor<4x96xf32>
    axl.yield %4 : tensor<4x96xf32>
  } : (tensor<4x8xf32>) -> tensor<4x96xf32>
  axl.yield %0 : tensor<4x96xf32>
}
