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

// What is widened for several is made of more than it is: that is in memory, and
// each widens it. The sum is made once.
// CHECK-LABEL: axl.stage @widened
// CHECK: ax.binary add
// CHECK-NOT: ax.binary add
// CHECK: %[[N:.*]] = ax.cast %{{.*}} : tensor<64x8xf32> -> tensor<64x8xbf16>
// CHECK: %[[A:.*]] = ax.cast %[[N]] : tensor<64x8xbf16> -> tensor<64x8xf32>
// CHECK: ax.reduce sum %[[A]]
// CHECK: %[[B:.*]] = ax.cast %[[N]] : tensor<64x8xbf16> -> tensor<64x8xf32>
// CHECK: ax.unary exp %[[B]]
axl.stage @widened(%x: tensor<64x8xf32>, %y: tensor<64x8xf32>) {
  %0 = ax.binary add %x, %y : tensor<64x8xf32>, tensor<64x8xf32> -> tensor<64x8xf32>
  %1 = ax.cast %0 : tensor<64x8xf32> -> tensor<64x8xbf16>
  %2 = ax.cast %1 : tensor<64x8xbf16> -> tensor<64x8xf32>
  %3 = ax.reduce sum %2 dims [1] : tensor<64x8xf32> -> tensor<64xf32>
  %4 = ax.unary exp %2 : tensor<64x8xf32> -> tensor<64x8xf32>
  axl.yield %3, %4 : tensor<64xf32>, tensor<64x8xf32>
}

// Numbers for each column are made once, and both kernels find them in a cache.
// CHECK-LABEL: axl.stage @columns
// CHECK: %[[C:.*]] = ax.binary mul {{.*}} : tensor<64xf32>, tensor<64xf32>
// CHECK: %[[D:.*]] = ax.reshape %[[C]]
// CHECK: ax.binary mul %{{.*}}, %[[D]]
// CHECK-NOT: tensor<64xf32>, tensor<64xf32>
// CHECK: ax.binary mul %{{.*}} : tensor<64x64xf32>, tensor<1x64xf32>
// CHECK-NOT: tensor<64xf32>, tensor<64xf32>
// CHECK: axl.yield
axl.stage @columns(%x: tensor<64x64xbf16>, %a: tensor<64xf32>) {
  %0 = ax.cast %x : tensor<64x64xbf16> -> tensor<64x64xf32>
  %1 = ax.binary mul %a, %a : tensor<64xf32>, tensor<64xf32> -> tensor<64xf32>
  %2 = ax.reshape %1 : tensor<64xf32> -> tensor<1x64xf32>
  %3 = ax.binary mul %0, %2 : tensor<64x64xf32>, tensor<1x64xf32> -> tensor<64x64xf32>
  %4 = ax.reduce sum %3 dims [1] : tensor<64x64xf32> -> tensor<64xf32>
  %5 = ax.unary exp %3 : tensor<64x64xf32> -> tensor<64x64xf32>
  axl.yield %4, %5 : tensor<64xf32>, tensor<64x64xf32>
}

// What is made of more than a kernel may work out again is widened where it is
// read all the same.
// CHECK-LABEL: axl.stage @long_chain
// CHECK: %[[N:.*]] = ax.cast %{{.*}} : tensor<64x8xf32> -> tensor<64x8xbf16>
// CHECK: %[[A:.*]] = ax.cast %[[N]]
// CHECK: ax.reduce sum %[[A]]
// CHECK: %[[B:.*]] = ax.cast %[[N]]
// CHECK: ax.unary exp %[[B]]
axl.stage @long_chain(%x: tensor<64x8xf32>) {
  %0 = ax.constant dense<1> : tensor<i8> -> tensor<i8>
  %1 = ax.unary abs %x : tensor<64x8xf32> -> tensor<64x8xf32>
  %2 = ax.unary neg %1 : tensor<64x8xf32> -> tensor<64x8xf32>
  %3 = ax.unary abs %2 : tensor<64x8xf32> -> tensor<64x8xf32>
  %4 = ax.unary neg %3 : tensor<64x8xf32> -> tensor<64x8xf32>
  %5 = ax.unary abs %4 : tensor<64x8xf32> -> tensor<64x8xf32>
  %6 = ax.unary neg %5 : tensor<64x8xf32> -> tensor<64x8xf32>
  %7 = ax.unary abs %6 : tensor<64x8xf32> -> tensor<64x8xf32>
  %8 = ax.unary neg %7 : tensor<64x8xf32> -> tensor<64x8xf32>
  %9 = ax.unary abs %8 : tensor<64x8xf32> -> tensor<64x8xf32>
  %10 = ax.unary neg %9 : tensor<64x8xf32> -> tensor<64x8xf32>
  %11 = ax.unary abs %10 : tensor<64x8xf32> -> tensor<64x8xf32>
  %12 = ax.unary neg %11 : tensor<64x8xf32> -> tensor<64x8xf32>
  %13 = ax.unary abs %12 : tensor<64x8xf32> -> tensor<64x8xf32>
  %14 = ax.unary neg %13 : tensor<64x8xf32> -> tensor<64x8xf32>
  %15 = ax.unary abs %14 : tensor<64x8xf32> -> tensor<64x8xf32>
  %16 = ax.unary neg %15 : tensor<64x8xf32> -> tensor<64x8xf32>
  %17 = ax.unary abs %16 : tensor<64x8xf32> -> tensor<64x8xf32>
  %18 = ax.unary neg %17 : tensor<64x8xf32> -> tensor<64x8xf32>
  %19 = ax.unary abs %18 : tensor<64x8xf32> -> tensor<64x8xf32>
  %20 = ax.unary neg %19 : tensor<64x8xf32> -> tensor<64x8xf32>
  %21 = ax.cast %20 : tensor<64x8xf32> -> tensor<64x8xbf16>
  %22 = ax.cast %21 : tensor<64x8xbf16> -> tensor<64x8xf32>
  %23 = ax.reduce sum %22 dims [1] : tensor<64x8xf32> -> tensor<64xf32>
  %24 = ax.unary exp %22 : tensor<64x8xf32> -> tensor<64x8xf32>
  axl.yield %23, %24 : tensor<64xf32>, tensor<64x8xf32>
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

// Views of it that products read are of one tensor in memory.
// CHECK-LABEL: axl.stage @viewed
// CHECK-COUNT-1: ax.cast
// CHECK-NOT: ax.cast
axl.stage @viewed(%x: tensor<64x64xbf16>) {
  %0 = ax.cast %x : tensor<64x64xbf16> -> tensor<64x64xf32>
  %1 = ax.transpose %0 [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
  %2 = ax.reshape %0 : tensor<64x64xf32> -> tensor<64x64xf32>
  %3 = ax.dot %1, %2 batch [] x [] contract [1] x [1] : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  axl.yield %3 : tensor<64x64xf32>
}

// An exponential that more elements read than it has is worked out once.
// CHECK-LABEL: axl.stage @wider
// CHECK-COUNT-1: ax.unary exp
// CHECK-NOT: ax.unary exp
axl.stage @wider(%x: tensor<1x64xbf16>, %a: tensor<9x64xf32>, %b: tensor<8x64xf32>) {
  %0 = ax.cast %x : tensor<1x64xbf16> -> tensor<1x64xf32>
  %1 = ax.unary exp %0 : tensor<1x64xf32> -> tensor<1x64xf32>
  %2 = ax.binary mul %a, %1 : tensor<9x64xf32>, tensor<1x64xf32> -> tensor<9x64xf32>
  %3 = ax.binary mul %b, %1 : tensor<8x64xf32>, tensor<1x64xf32> -> tensor<8x64xf32>
  axl.yield %2, %3 : tensor<9x64xf32>, tensor<8x64xf32>
}

// Each is made of two views of the one before: looked at once.
// CHECK-LABEL: axl.stage @doubled
// CHECK: axl.yield
axl.stage @doubled(%x: tensor<64x64xbf16>) {
  %v0 = ax.cast %x : tensor<64x64xbf16> -> tensor<64x64xf32>
  %r1 = ax.reshape %v0 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v1 = ax.binary mul %r1, %r1 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r2 = ax.reshape %v1 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v2 = ax.binary mul %r2, %r2 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r3 = ax.reshape %v2 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v3 = ax.binary mul %r3, %r3 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r4 = ax.reshape %v3 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v4 = ax.binary mul %r4, %r4 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r5 = ax.reshape %v4 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v5 = ax.binary mul %r5, %r5 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r6 = ax.reshape %v5 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v6 = ax.binary mul %r6, %r6 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r7 = ax.reshape %v6 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v7 = ax.binary mul %r7, %r7 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r8 = ax.reshape %v7 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v8 = ax.binary mul %r8, %r8 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r9 = ax.reshape %v8 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v9 = ax.binary mul %r9, %r9 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r10 = ax.reshape %v9 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v10 = ax.binary mul %r10, %r10 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r11 = ax.reshape %v10 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v11 = ax.binary mul %r11, %r11 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r12 = ax.reshape %v11 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v12 = ax.binary mul %r12, %r12 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r13 = ax.reshape %v12 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v13 = ax.binary mul %r13, %r13 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r14 = ax.reshape %v13 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v14 = ax.binary mul %r14, %r14 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r15 = ax.reshape %v14 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v15 = ax.binary mul %r15, %r15 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r16 = ax.reshape %v15 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v16 = ax.binary mul %r16, %r16 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r17 = ax.reshape %v16 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v17 = ax.binary mul %r17, %r17 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r18 = ax.reshape %v17 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v18 = ax.binary mul %r18, %r18 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r19 = ax.reshape %v18 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v19 = ax.binary mul %r19, %r19 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r20 = ax.reshape %v19 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v20 = ax.binary mul %r20, %r20 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r21 = ax.reshape %v20 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v21 = ax.binary mul %r21, %r21 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r22 = ax.reshape %v21 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v22 = ax.binary mul %r22, %r22 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r23 = ax.reshape %v22 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v23 = ax.binary mul %r23, %r23 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r24 = ax.reshape %v23 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v24 = ax.binary mul %r24, %r24 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r25 = ax.reshape %v24 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v25 = ax.binary mul %r25, %r25 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r26 = ax.reshape %v25 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v26 = ax.binary mul %r26, %r26 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r27 = ax.reshape %v26 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v27 = ax.binary mul %r27, %r27 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r28 = ax.reshape %v27 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v28 = ax.binary mul %r28, %r28 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r29 = ax.reshape %v28 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v29 = ax.binary mul %r29, %r29 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r30 = ax.reshape %v29 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v30 = ax.binary mul %r30, %r30 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r31 = ax.reshape %v30 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v31 = ax.binary mul %r31, %r31 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r32 = ax.reshape %v31 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v32 = ax.binary mul %r32, %r32 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r33 = ax.reshape %v32 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v33 = ax.binary mul %r33, %r33 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r34 = ax.reshape %v33 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v34 = ax.binary mul %r34, %r34 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r35 = ax.reshape %v34 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v35 = ax.binary mul %r35, %r35 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r36 = ax.reshape %v35 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v36 = ax.binary mul %r36, %r36 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r37 = ax.reshape %v36 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v37 = ax.binary mul %r37, %r37 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r38 = ax.reshape %v37 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v38 = ax.binary mul %r38, %r38 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r39 = ax.reshape %v38 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v39 = ax.binary mul %r39, %r39 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %r40 = ax.reshape %v39 : tensor<64x64xf32> -> tensor<64x64xf32>
  %v40 = ax.binary mul %r40, %r40 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %y = ax.unary neg %v40 : tensor<64x64xf32> -> tensor<64x64xf32>
  %z = ax.unary abs %v40 : tensor<64x64xf32> -> tensor<64x64xf32>
  axl.yield %y, %z : tensor<64x64xf32>, tensor<64x64xf32>
}

// As large as x, which others read, too: nobody writes the difference. Where x is
// there for this alone, the difference is in memory instead.
// CHECK-LABEL: axl.stage @norm
// CHECK-COUNT-2: ax.binary sub
// CHECK-LABEL: axl.stage @alone
// CHECK-COUNT-1: ax.binary sub
// CHECK-NOT: ax.binary sub
axl.stage @norm(%a: tensor<64x64xf32>, %m: tensor<64x1xf32>, %y: tensor<64x64xf32>) {
  %x = ax.unary exp %a : tensor<64x64xf32> -> tensor<64x64xf32>
  %0 = ax.binary sub %x, %m : tensor<64x64xf32>, tensor<64x1xf32> -> tensor<64x64xf32>
  %1 = ax.binary mul %0, %y : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %2 = ax.reduce sum %0 dims [0] : tensor<64x64xf32> -> tensor<64xf32>
  %3 = ax.unary neg %x : tensor<64x64xf32> -> tensor<64x64xf32>
  %4 = ax.reduce sum %x dims [0] : tensor<64x64xf32> -> tensor<64xf32>
  axl.yield %1, %2, %3, %4 : tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>, tensor<64xf32>
}
axl.stage @alone(%a: tensor<64x64xf32>, %m: tensor<64x1xf32>, %y: tensor<64x64xf32>) {
  %b = ax.unary erf %a : tensor<64x64xf32> -> tensor<64x64xf32>
  %0 = ax.binary sub %b, %m : tensor<64x64xf32>, tensor<64x1xf32> -> tensor<64x64xf32>
  %1 = ax.binary mul %0, %y : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %2 = ax.reduce sum %0 dims [0] : tensor<64x64xf32> -> tensor<64xf32>
  axl.yield %1, %2 : tensor<64x64xf32>, tensor<64xf32>
}

// Two tensors are read instead of one: that is more, not less.
// CHECK-LABEL: axl.stage @two
// CHECK-COUNT-1: ax.binary add
// CHECK-NOT: ax.binary add
axl.stage @two(%a: tensor<64x64xbf16>, %b: tensor<64x64xf32>) {
  %0 = ax.cast %a : tensor<64x64xbf16> -> tensor<64x64xf32>
  %1 = ax.binary add %0, %b : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %2 = ax.unary neg %1 : tensor<64x64xf32> -> tensor<64x64xf32>
  %3 = ax.unary exp %1 : tensor<64x64xf32> -> tensor<64x64xf32>
  axl.yield %2, %3 : tensor<64x64xf32>, tensor<64x64xf32>
}

// A number is made once.
// CHECK-LABEL: axl.stage @number
// CHECK-COUNT-1: ax.unary neg
// CHECK-NOT: ax.unary neg
axl.stage @number(%s: tensor<f32>, %a: tensor<64x64xf32>, %b: tensor<64x64xf32>) {
  %0 = ax.unary neg %s : tensor<f32> -> tensor<f32>
  %1 = ax.binary mul %a, %0 : tensor<64x64xf32>, tensor<f32> -> tensor<64x64xf32>
  %2 = ax.binary mul %b, %0 : tensor<64x64xf32>, tensor<f32> -> tensor<64x64xf32>
  axl.yield %1, %2 : tensor<64x64xf32>, tensor<64x64xf32>
}

// The largest of each row is found by the kernel of what stands behind it, and reads
// what that reads.
// CHECK-LABEL: axl.stage @beside
// CHECK: %[[A:.*]] = ax.cast
// CHECK: ax.unary neg %[[A]]
// CHECK: %[[B:.*]] = ax.cast
// CHECK: ax.unary abs %[[B]]
// CHECK: ax.reduce max
// CHECK: ax.binary add %[[B]], %[[B]]
axl.stage @beside(%a: tensor<256x128xbf16>) {
  %x = ax.cast %a : tensor<256x128xbf16> -> tensor<256x128xf32>
  %0 = ax.unary neg %x : tensor<256x128xf32> -> tensor<256x128xf32>
  %1 = ax.unary abs %x : tensor<256x128xf32> -> tensor<256x128xf32>
  %2 = ax.reduce max %1 dims [1] : tensor<256x128xf32> -> tensor<256xf32>
  %3 = ax.binary add %x, %x : tensor<256x128xf32>, tensor<256x128xf32> -> tensor<256x128xf32>
  axl.yield %0, %2, %3 : tensor<256x128xf32>, tensor<256xf32>, tensor<256x128xf32>
}

// Where nothing stands behind it, it has its own; and so has that of few rows.
// CHECK-LABEL: axl.stage @last
// CHECK-COUNT-2: ax.cast
// CHECK-LABEL: axl.stage @few
// CHECK-COUNT-3: ax.cast
axl.stage @last(%a: tensor<256x128xbf16>) {
  %x = ax.cast %a : tensor<256x128xbf16> -> tensor<256x128xf32>
  %0 = ax.unary neg %x : tensor<256x128xf32> -> tensor<256x128xf32>
  %1 = ax.unary abs %x : tensor<256x128xf32> -> tensor<256x128xf32>
  %2 = ax.reduce max %1 dims [1] : tensor<256x128xf32> -> tensor<256xf32>
  axl.yield %0, %2 : tensor<256x128xf32>, tensor<256xf32>
}
axl.stage @few(%a: tensor<64x128xbf16>) {
  %x = ax.cast %a : tensor<64x128xbf16> -> tensor<64x128xf32>
  %0 = ax.unary neg %x : tensor<64x128xf32> -> tensor<64x128xf32>
  %1 = ax.unary abs %x : tensor<64x128xf32> -> tensor<64x128xf32>
  %2 = ax.reduce max %1 dims [1] : tensor<64x128xf32> -> tensor<64xf32>
  %3 = ax.binary add %x, %x : tensor<64x128xf32>, tensor<64x128xf32> -> tensor<64x128xf32>
  axl.yield %0, %2, %3 : tensor<64x128xf32>, tensor<64xf32>, tensor<64x128xf32>
}

// And what is behind both may still be made of what they read: the exponentials of a
// loss, for its gradient.
// CHECK-LABEL: axl.stage @loss
// CHECK: %[[A:.*]] = ax.cast
// CHECK: ax.reduce max %[[A]]
// CHECK: ax.unary exp
// CHECK: ax.reduce sum
// CHECK: ax.cast %arg0
// CHECK: ax.unary exp
// CHECK: ax.binary div
axl.stage @loss(%a: tensor<256x128xbf16>) {
  %x = ax.cast %a : tensor<256x128xbf16> -> tensor<256x128xf32>
  %0 = ax.reduce max %x dims [1] keep_dims : tensor<256x128xf32> -> tensor<256x1xf32>
  %1 = ax.binary sub %x, %0 : tensor<256x128xf32>, tensor<256x1xf32> -> tensor<256x128xf32>
  %2 = ax.unary exp %1 : tensor<256x128xf32> -> tensor<256x128xf32>
  %3 = ax.reduce sum %2 dims [1] keep_dims : tensor<256x128xf32> -> tensor<256x1xf32>
  %4 = ax.binary div %2, %3 : tensor<256x128xf32>, tensor<256x1xf32> -> tensor<256x128xf32>
  axl.yield %4 : tensor<256x128xf32>
}

// What is made of one exponential is so again for a gradient, not kept in f32.
// CHECK-LABEL: axl.stage @gated
// CHECK-COUNT-2: ax.unary silu
// CHECK-LABEL: axl.stage @long
// CHECK-COUNT-1: ax.unary gelu
// CHECK-NOT: ax.unary gelu
axl.stage @gated(%a: tensor<256x128xbf16>, %b: tensor<256x128xf32>, %d: tensor<256x128xf32>) {
  %x = ax.cast %a : tensor<256x128xbf16> -> tensor<256x128xf32>
  %0 = ax.unary silu %x : tensor<256x128xf32> -> tensor<256x128xf32>
  %1 = ax.binary mul %0, %b : tensor<256x128xf32>, tensor<256x128xf32> -> tensor<256x128xf32>
  %2 = ax.binary mul %0, %d : tensor<256x128xf32>, tensor<256x128xf32> -> tensor<256x128xf32>
  axl.yield %1, %2 : tensor<256x128xf32>, tensor<256x128xf32>
}
axl.stage @long(%a: tensor<256x128xbf16>, %b: tensor<256x128xf32>, %d: tensor<256x128xf32>) {
  %x = ax.cast %a : tensor<256x128xbf16> -> tensor<256x128xf32>
  %0 = ax.unary gelu %x : tensor<256x128xf32> -> tensor<256x128xf32>
  %1 = ax.binary mul %0, %b : tensor<256x128xf32>, tensor<256x128xf32> -> tensor<256x128xf32>
  %2 = ax.binary mul %0, %d : tensor<256x128xf32>, tensor<256x128xf32> -> tensor<256x128xf32>
  axl.yield %1, %2 : tensor<256x128xf32>, tensor<256x128xf32>
}

// Each of many steps wants a part of its own: in memory they have one kernel.
// CHECK-LABEL: axl.stage @steps
// CHECK-COUNT-1: ax.binary add
// CHECK-NOT: ax.binary add
axl.stage @steps(%x: tensor<6x64x64xf32>, %bias: tensor<64xf32>) {
  %0 = ax.binary add %x, %bias : tensor<6x64x64xf32>, tensor<64xf32> -> tensor<6x64x64xf32>
  %a = ax.slice %0 starts [0, 0, 0] steps [1, 1, 1] : tensor<6x64x64xf32> -> tensor<1x64x64xf32>
  %b = ax.slice %0 starts [1, 0, 0] steps [1, 1, 1] : tensor<6x64x64xf32> -> tensor<1x64x64xf32>
  %c = ax.slice %0 starts [2, 0, 0] steps [1, 1, 1] : tensor<6x64x64xf32> -> tensor<1x64x64xf32>
  %d = ax.slice %0 starts [3, 0, 0] steps [1, 1, 1] : tensor<6x64x64xf32> -> tensor<1x64x64xf32>
  %e = ax.slice %0 starts [4, 0, 0] steps [1, 1, 1] : tensor<6x64x64xf32> -> tensor<1x64x64xf32>
  %f = ax.unary tanh %a : tensor<1x64x64xf32> -> tensor<1x64x64xf32>
  %g = ax.unary tanh %b : tensor<1x64x64xf32> -> tensor<1x64x64xf32>
  %h = ax.unary tanh %c : tensor<1x64x64xf32> -> tensor<1x64x64xf32>
  %i = ax.unary tanh %d : tensor<1x64x64xf32> -> tensor<1x64x64xf32>
  %j = ax.unary tanh %e : tensor<1x64x64xf32> -> tensor<1x64x64xf32>
  axl.yield %f, %g, %h, %i, %j : tensor<1x64x64xf32>, tensor<1x64x64xf32>, tensor<1x64x64xf32>, tensor<1x64x64xf32>, tensor<1x64x64xf32>
}
