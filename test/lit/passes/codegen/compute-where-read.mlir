// RUN: axopt-opt %s --axl-compute-where-read | FileCheck %s

// Two kernels may read x, each of which widens it; a product reads what is there.
// CHECK-LABEL: axl.stage @several
// CHECK: %[[A:.*]] = ax.cast %[[X:[^ ]*]] : tensor<64x8xbf16> -> tensor<64x8xf32>
// CHECK: ax.dot %[[A]], %[[A]]
// CHECK: ax.reduce sum %[[A]]
// CHECK: %[[B:.*]] = ax.cast %[[X]]
// CHECK: ax.unary exp %[[B]]
axl.stage @several(%x: tensor<64x8xbf16>) {
  %0 = ax.cast %x : tensor<64x8xbf16> -> tensor<64x8xf32>
  %1 = ax.dot %0, %0 batch [] x [] contract [1] x [1] : tensor<64x8xf32>, tensor<64x8xf32> -> tensor<64x64xf32>
  %2 = ax.reduce sum %0 dims [1] : tensor<64x8xf32> -> tensor<64xf32>
  %3 = ax.unary exp %0 : tensor<64x8xf32> -> tensor<64x8xf32>
  axl.yield %1, %2, %3 : tensor<64x64xf32>, tensor<64xf32>, tensor<64x8xf32>
}

// What becomes narrower is worked out once.
// CHECK-LABEL: axl.stage @narrowed
// CHECK-COUNT-1: ax.cast
// CHECK-NOT: ax.cast
axl.stage @narrowed(%x: tensor<64x8xf32>) {
  %0 = ax.cast %x : tensor<64x8xf32> -> tensor<64x8xbf16>
  %1 = ax.unary exp %0 : tensor<64x8xbf16> -> tensor<64x8xbf16>
  %2 = ax.unary neg %0 : tensor<64x8xbf16> -> tensor<64x8xbf16>
  axl.yield %1, %2 : tensor<64x8xbf16>, tensor<64x8xbf16>
}

// Of exponentials of bf16 the whole chain; what it subtracts is small. What takes
// long (erf) is done once.
// CHECK-LABEL: axl.stage @chain
// CHECK: %[[C:.*]] = ax.cast %[[X:[^ ]*]]
// CHECK: %[[S:.*]] = ax.binary sub %[[C]]
// CHECK: %[[E:.*]] = ax.unary exp %[[S]]
// CHECK: ax.reduce sum %[[E]]
// CHECK: %[[C2:.*]] = ax.cast %[[X]]
// CHECK: %[[S2:.*]] = ax.binary sub %[[C2]]
// CHECK: %[[E2:.*]] = ax.unary exp %[[S2]]
// CHECK: ax.binary mul %[[E2]], %[[E2]]
// CHECK-COUNT-1: ax.unary erf
// CHECK-NOT: ax.unary erf
axl.stage @chain(%x: tensor<64x64xbf16>, %m: tensor<64x1xf32>) {
  %0 = ax.cast %x : tensor<64x64xbf16> -> tensor<64x64xf32>
  %1 = ax.binary sub %0, %m : tensor<64x64xf32>, tensor<64x1xf32> -> tensor<64x64xf32>
  %2 = ax.unary exp %1 : tensor<64x64xf32> -> tensor<64x64xf32>
  %3 = ax.reduce sum %2 dims [1] : tensor<64x64xf32> -> tensor<64xf32>
  %4 = ax.binary mul %2, %2 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %5 = ax.cast %x : tensor<64x64xbf16> -> tensor<64x64xf32>
  %6 = ax.unary erf %5 : tensor<64x64xf32> -> tensor<64x64xf32>
  %7 = ax.unary neg %6 : tensor<64x64xf32> -> tensor<64x64xf32>
  %8 = ax.unary abs %6 : tensor<64x64xf32> -> tensor<64x64xf32>
  axl.yield %3, %4, %7, %8 : tensor<64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
}

// A mask by the number of a column.
// CHECK-LABEL: axl.stage @mask
// CHECK-COUNT-2: ax.compare
axl.stage @mask(%l: tensor<64x1xi64>, %x: tensor<64x64xf32>) {
  %0 = ax.iota dim 1 : tensor<1x64xi64>
  %1 = ax.compare eq %0, %l : tensor<1x64xi64>, tensor<64x1xi64> -> tensor<64x64xi1>
  %2 = ax.cast %1 : tensor<64x64xi1> -> tensor<64x64xf32>
  %3 = ax.select %1, %x, %2 : tensor<64x64xi1>, tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  axl.yield %2, %3 : tensor<64x64xf32>, tensor<64x64xf32>
}
