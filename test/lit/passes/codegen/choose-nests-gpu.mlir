// RUN: axopt-opt %s --axl-choose-nests=gpu --split-input-file | FileCheck %s

// Each element is an iteration, the last dimension fastest. Four neighbours are
// lanes of one thread, which stores them at once.
// CHECK-LABEL: @flat
// CHECK: nests ["800 iterations: 8 25 <4>", "result 0: once"]
axl.stage @flat(%x: tensor<100x8xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<100x8xf32>):
    %1 = ax.transpose %a [1, 0] : tensor<100x8xf32> -> tensor<8x100xf32>
    axl.yield %1 : tensor<8x100xf32>
  } : (tensor<100x8xf32>) -> tensor<8x100xf32>
  axl.yield %0 : tensor<8x100xf32>
}

// -----

// What is padding is decided by each.
// CHECK-LABEL: @padded
// CHECK: nests ["864 iterations: 8 27 <4>", "result 0: once"]
axl.stage @padded(%x: tensor<8x100xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<8x100xf32>):
    %z = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
    %1 = ax.pad %a value %z : tensor<f32> low [0, 3] high [0, 5] : tensor<8x100xf32> -> tensor<8x108xf32>
    axl.yield %1 : tensor<8x108xf32>
  } : (tensor<8x100xf32>) -> tensor<8x108xf32>
  axl.yield %0 : tensor<8x108xf32>
}

// -----

// A row is one, with all that is summed: threads do it together.
// CHECK-LABEL: @rows
// CHECK: nests ["4 iterations: 4, each by 256 threads, 2432 bytes of scratch", "result 0: 150 <4>"]
// CHECK: ax.reduce max {{.*}} {axl.nests = ["elements: 150 <4>"]}
// CHECK: ax.unary exp {{.*}} axl.nests = ["whole: 150 <4>"]}
axl.stage @rows(%x: tensor<4x600xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<4x600xf32>):
    %1 = ax.softmax %a dim 1 : tensor<4x600xf32> -> tensor<4x600xf32>
    axl.yield %1 : tensor<4x600xf32>
  } : (tensor<4x600xf32>) -> tensor<4x600xf32>
  axl.yield %0 : tensor<4x600xf32>
}

// -----

// Results of other sizes share what divides both.
// CHECK-LABEL: @two
// CHECK: nests ["8 iterations: 8", "result 0: <4>", "result 1: once"]
axl.stage @two(%x: tensor<8x4xf32>, %y: tensor<8xf32>) {
  %0:2 = axl.fusion(%x, %y) {
  ^bb0(%a: tensor<8x4xf32>, %b: tensor<8xf32>):
    %1 = ax.unary neg %a : tensor<8x4xf32> -> tensor<8x4xf32>
    %2 = ax.unary neg %b : tensor<8xf32> -> tensor<8xf32>
    axl.yield %1, %2 : tensor<8x4xf32>, tensor<8xf32>
  } : (tensor<8x4xf32>, tensor<8xf32>) -> (tensor<8x4xf32>, tensor<8xf32>)
  axl.yield %0#0, %0#1 : tensor<8x4xf32>, tensor<8xf32>
}

// -----

// What is summed over leading dimensions is a column's: neighbours read
// neighbours then, each of them four columns.
// CHECK-LABEL: @columns
// CHECK: nests ["96 iterations: 24 <4>, each by 64 threads, 8 columns", "result 0: once"]
// CHECK: axl.nests = ["elements: 1024"]
axl.stage @columns(%x: tensor<1024x96xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<1024x96xf32>):
    %1 = ax.reduce sum %a dims [0] : tensor<1024x96xf32> -> tensor<96xf32>
    axl.yield %1 : tensor<96xf32>
  } : (tensor<1024x96xf32>) -> tensor<96xf32>
  axl.yield %0 : tensor<96xf32>
}

// -----

// So it is with dimensions before it, too, and with what is made of the sums.
// CHECK-LABEL: @between
// CHECK: nests ["2048 iterations: 32 16 <4>, each by 64 threads, 8 columns", "result 0: once"]
// CHECK: axl.nests = ["elements: 1024"]
axl.stage @between(%x: tensor<32x1024x64xf32>, %y: tensor<2048xf32>) {
  %0 = axl.fusion(%x, %y) {
  ^bb0(%a: tensor<32x1024x64xf32>, %b: tensor<2048xf32>):
    %1 = ax.reduce sum %a dims [1] : tensor<32x1024x64xf32> -> tensor<32x64xf32>
    %2 = ax.reshape %1 : tensor<32x64xf32> -> tensor<2048xf32>
    %3 = ax.binary add %b, %2 : tensor<2048xf32>, tensor<2048xf32> -> tensor<2048xf32>
    axl.yield %3 : tensor<2048xf32>
  } : (tensor<32x1024x64xf32>, tensor<2048xf32>) -> tensor<2048xf32>
  axl.yield %0 : tensor<2048xf32>
}

// -----

// Threads do columns of a scatter, each all updates of its own in their order.
// CHECK-LABEL: @scatter
// CHECK: nests ["1 iterations: once, each by 256 threads", "result 0: 630(9x70)"]
// CHECK: axl.nests = ["first: 315(9x35) <2>", "update: 70", "in order: 40"]
axl.stage @scatter(%x: tensor<9x70xf32>, %i: tensor<40x1xi64>, %u: tensor<40x70xf32>) {
  %0 = axl.fusion(%x, %i, %u) {
  ^bb0(%a: tensor<9x70xf32>, %b: tensor<40x1xi64>, %c: tensor<40x70xf32>):
    %1 = ax.scatter_nd add %a[%b], %c : tensor<9x70xf32>, tensor<40x1xi64>, tensor<40x70xf32> -> tensor<9x70xf32>
    axl.yield %1 : tensor<9x70xf32>
  } : (tensor<9x70xf32>, tensor<40x1xi64>, tensor<40x70xf32>) -> tensor<9x70xf32>
  axl.yield %0 : tensor<9x70xf32>
}

// -----

// As many lanes as the widest elements have in 16 bytes.
// CHECK-LABEL: @narrow
// CHECK: nests ["1024 iterations: 128(8x16) <8>", "result 0: once"]
// CHECK: nests ["1024 iterations: 256(8x32) <4>", "result 0: once"]
axl.stage @narrow(%x: tensor<8x128xbf16>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<8x128xbf16>):
    %1 = ax.unary neg %a : tensor<8x128xbf16> -> tensor<8x128xbf16>
    axl.yield %1 : tensor<8x128xbf16>
  } : (tensor<8x128xbf16>) -> tensor<8x128xbf16>
  %2 = axl.fusion(%0) {
  ^bb0(%a: tensor<8x128xbf16>):
    %1 = ax.cast %a : tensor<8x128xbf16> -> tensor<8x128xf32>
    axl.yield %1 : tensor<8x128xf32>
  } : (tensor<8x128xbf16>) -> tensor<8x128xf32>
  axl.yield %2 : tensor<8x128xf32>
}

// -----

// Rows of 6 begin at multiples of 2, and those of 7 at any number. Neighbours
// that are read far from each other are no reason for lanes.
// CHECK-LABEL: @aligned
// CHECK: nests ["48 iterations: 24(8x3) <2>", "result 0: once"]
// CHECK: nests ["42 iterations: 42(6x7)", "result 0: once"]
// CHECK: nests ["48 iterations: 8 6", "result 0: once"]
axl.stage @aligned(%x: tensor<8x6xf32>, %y: tensor<6x7xf32>,
                   %z: tensor<6x8xf32>, %w: tensor<6x8xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<8x6xf32>):
    %1 = ax.unary neg %a : tensor<8x6xf32> -> tensor<8x6xf32>
    axl.yield %1 : tensor<8x6xf32>
  } : (tensor<8x6xf32>) -> tensor<8x6xf32>
  %2 = axl.fusion(%y) {
  ^bb0(%a: tensor<6x7xf32>):
    %1 = ax.unary neg %a : tensor<6x7xf32> -> tensor<6x7xf32>
    axl.yield %1 : tensor<6x7xf32>
  } : (tensor<6x7xf32>) -> tensor<6x7xf32>
  %3 = axl.fusion(%z, %w) {
  ^bb0(%a: tensor<6x8xf32>, %b: tensor<6x8xf32>):
    %1 = ax.transpose %a [1, 0] : tensor<6x8xf32> -> tensor<8x6xf32>
    %4 = ax.transpose %b [1, 0] : tensor<6x8xf32> -> tensor<8x6xf32>
    %5 = ax.binary add %1, %4 : tensor<8x6xf32>, tensor<8x6xf32> -> tensor<8x6xf32>
    axl.yield %5 : tensor<8x6xf32>
  } : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<8x6xf32>
  axl.yield %0, %2, %3 : tensor<8x6xf32>, tensor<6x7xf32>, tensor<8x6xf32>
}

// -----

// Of short rows, lanes would leave threads without work; of those that fewer
// threads do, there are fewer lanes.
// CHECK-LABEL: @short
// CHECK: nests ["64 iterations: 64, each by 32 threads{{.*}}", "result 0: 32"]
// CHECK: nests ["64 iterations: 64, each by 32 threads{{.*}}", "result 0: 32 <2>"]
axl.stage @short(%x: tensor<64x32xf32>, %y: tensor<64x64xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<64x32xf32>):
    %1 = ax.softmax %a dim 1 : tensor<64x32xf32> -> tensor<64x32xf32>
    axl.yield %1 : tensor<64x32xf32>
  } : (tensor<64x32xf32>) -> tensor<64x32xf32>
  %2 = axl.fusion(%y) {
  ^bb0(%a: tensor<64x64xf32>):
    %1 = ax.softmax %a dim 1 : tensor<64x64xf32> -> tensor<64x64xf32>
    axl.yield %1 : tensor<64x64xf32>
  } : (tensor<64x64xf32>) -> tensor<64x64xf32>
  axl.yield %0, %2 : tensor<64x32xf32>, tensor<64x64xf32>
}

// -----

// An operand that lies along another dimension is read in tiles, by a block; of
// 16 by 16, where 32 do not divide.
// CHECK-LABEL: @tiles
// CHECK: nests ["6144 iterations: 3 2 {32x8} <4>, each by 256 threads, 4224 bytes of scratch", "result 0: once"]
// CHECK: nests ["3840 iterations: 5 3 {16x2} <8>, each by 32 threads, 576 bytes of scratch", "result 0: once"]
axl.stage @tiles(%x: tensor<64x96xf32>, %y: tensor<48x80xbf16>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<64x96xf32>):
    %1 = ax.transpose %a [1, 0] : tensor<64x96xf32> -> tensor<96x64xf32>
    axl.yield %1 : tensor<96x64xf32>
  } : (tensor<64x96xf32>) -> tensor<96x64xf32>
  %2 = axl.fusion(%y) {
  ^bb0(%a: tensor<48x80xbf16>):
    %1 = ax.transpose %a [1, 0] : tensor<48x80xbf16> -> tensor<80x48xbf16>
    axl.yield %1 : tensor<80x48xbf16>
  } : (tensor<48x80xbf16>) -> tensor<80x48xbf16>
  axl.yield %0, %2 : tensor<96x64xf32>, tensor<80x48xbf16>
}

// -----

// A result that is another one transposed is written in tiles, and nothing is
// read for it.
// CHECK-LABEL: @written
// CHECK: nests ["6144 iterations: 2 3 {32x8} <4>, each by 256 threads, 1152 bytes of scratch", "result 0: once"]
axl.stage @written(%x: tensor<64x96xf32>) {
  %0:2 = axl.fusion(%x) {
  ^bb0(%a: tensor<64x96xf32>):
    %1 = ax.cast %a : tensor<64x96xf32> -> tensor<64x96xf8E4M3FN>
    %2 = ax.transpose %1 [1, 0] : tensor<64x96xf8E4M3FN> -> tensor<96x64xf8E4M3FN>
    axl.yield %1, %2 : tensor<64x96xf8E4M3FN>, tensor<96x64xf8E4M3FN>
  } : (tensor<64x96xf32>) -> (tensor<64x96xf8E4M3FN>, tensor<96x64xf8E4M3FN>)
  axl.yield %0#0, %0#1 : tensor<64x96xf8E4M3FN>, tensor<96x64xf8E4M3FN>
}

// -----

// Two of them have a tile each.
// CHECK-LABEL: @tilesOfTwo
// CHECK: nests ["8192 iterations: 2 2 2 {32x32}, each by 256 threads, 8448 bytes of scratch", "result 0: once"]
axl.stage @tilesOfTwo(%x: tensor<2x64x64xf32>, %y: tensor<2x64x64xf32>) {
  %0 = axl.fusion(%x, %y) {
  ^bb0(%a: tensor<2x64x64xf32>, %b: tensor<2x64x64xf32>):
    %1 = ax.transpose %a [0, 2, 1] : tensor<2x64x64xf32> -> tensor<2x64x64xf32>
    %2 = ax.transpose %b [0, 2, 1] : tensor<2x64x64xf32> -> tensor<2x64x64xf32>
    %3 = ax.binary mul %1, %2 : tensor<2x64x64xf32>, tensor<2x64x64xf32> -> tensor<2x64x64xf32>
    axl.yield %3 : tensor<2x64x64xf32>
  } : (tensor<2x64x64xf32>, tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  axl.yield %0 : tensor<2x64x64xf32>
}

// -----

// Each part of a scatter's result is an iteration: every 512th row. It looks at
// 8192 updates at a time, in lists; threads do columns of those that are its own.
// CHECK-LABEL: @embedding
// CHECK: nests ["512 iterations: 512, each by 512 threads, 34816 bytes of scratch", "result 0: 75385"]
// CHECK: ax.scatter_nd add {{.*}} {axl.nests = ["first: 99 768", "update: 768", "round: 2", "lists: 256", "list: 32"]}
axl.stage @embedding(%x: tensor<50257x768xf32>, %i: tensor<16384x1xi64>, %u: tensor<16384x768xf32>) {
  %0 = axl.fusion(%x, %i, %u) {
  ^bb0(%a: tensor<50257x768xf32>, %b: tensor<16384x1xi64>, %c: tensor<16384x768xf32>):
    %1 = ax.scatter_nd add %a[%b], %c : tensor<50257x768xf32>, tensor<16384x1xi64>, tensor<16384x768xf32> -> tensor<50257x768xf32>
    axl.yield %1 : tensor<50257x768xf32>
  } : (tensor<50257x768xf32>, tensor<16384x1xi64>, tensor<16384x768xf32>) -> tensor<50257x768xf32>
  axl.yield %0 : tensor<50257x768xf32>
}

// -----

// Rows that are the last dimension are written as they lie. Columns that look at
// their own updates are parts before rows are.
// CHECK-LABEL: @last
// CHECK: ax.scatter_elements {{.*}} {axl.nests = ["first: 32 50272(1571x32)", "update: 32", "in order: 5", "in group: once"]}
axl.stage @last(%x: tensor<16384x50257xf32>, %i: tensor<16384x5xi64>, %u: tensor<16384x5xf32>) {
  %0 = axl.fusion(%x, %i, %u) {
  ^bb0(%a: tensor<16384x50257xf32>, %b: tensor<16384x5xi64>, %c: tensor<16384x5xf32>):
    %1 = ax.scatter_elements add %a[%b], %c axis 1 : tensor<16384x50257xf32>, tensor<16384x5xi64>, tensor<16384x5xf32> -> tensor<16384x50257xf32>
    axl.yield %1 : tensor<16384x50257xf32>
  } : (tensor<16384x50257xf32>, tensor<16384x5xi64>, tensor<16384x5xf32>) -> tensor<16384x50257xf32>
  axl.yield %0 : tensor<16384x50257xf32>
}
