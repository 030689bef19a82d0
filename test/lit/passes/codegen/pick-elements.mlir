// RUN: axopt-opt %s --axl-pick-elements | FileCheck %s

// CHECK-LABEL: axl.stage @labels
// CHECK-SAME: (%[[X:.*]]: tensor<64x100xf32>, %[[L:.*]]: tensor<64x1xi64>)
// CHECK-DAG: %[[GE:.*]] = ax.compare ge %[[L]]
// CHECK-DAG: %[[LT:.*]] = ax.compare lt %[[L]]
// CHECK: %[[HERE:.*]] = ax.binary logical_and %[[GE]], %[[LT]]
// CHECK: %[[E:.*]] = ax.gather_elements %[[X]][%[[L]]] axis 1
// CHECK: %[[S:.*]] = ax.select %[[HERE]], %[[E]]
// CHECK: ax.reshape %[[S]] : tensor<64x1xf32> -> tensor<64xf32>
// CHECK-NOT: ax.reduce
axl.stage @labels(%x: tensor<64x100xf32>, %l: tensor<64x1xi64>) {
  %i = ax.iota dim 1 : tensor<1x100xi64>
  %z = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %c = ax.compare eq %l, %i : tensor<64x1xi64>, tensor<1x100xi64> -> tensor<64x100xi1>
  %s = ax.select %c, %x, %z : tensor<64x100xi1>, tensor<64x100xf32>, tensor<f32> -> tensor<64x100xf32>
  %r = ax.reduce sum %s dims [1] : tensor<64x100xf32> -> tensor<64xf32>
  axl.yield %r : tensor<64xf32>
}

// A shard's first index is the rank's.
// CHECK-LABEL: axl.stage @shard
// CHECK: %[[F:.*]] = ax.binary mul
// CHECK: %[[O:.*]] = ax.binary sub %{{.*}}, %[[F]] : tensor<64x1xi64>, tensor<i64>
// CHECK: ax.gather_elements %{{.*}}[%[[O]]] axis 1
axl.stage @shard(%x: tensor<64x100xf32>, %l: tensor<64x1xi64>, %rank: tensor<i64>) {
  %i = ax.iota dim 1 : tensor<1x100xi64>
  %z = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %n = ax.constant dense<100> : tensor<i64> -> tensor<i64>
  %f = ax.binary mul %rank, %n : tensor<i64>, tensor<i64> -> tensor<i64>
  %a = ax.binary add %i, %f : tensor<1x100xi64>, tensor<i64> -> tensor<1x100xi64>
  %c = ax.compare eq %a, %l : tensor<1x100xi64>, tensor<64x1xi64> -> tensor<64x100xi1>
  %s = ax.select %c, %x, %z : tensor<64x100xi1>, tensor<64x100xf32>, tensor<f32> -> tensor<64x100xf32>
  %r = ax.reduce sum %s dims [1] keep_dims : tensor<64x100xf32> -> tensor<64x1xf32>
  axl.yield %r : tensor<64x1xf32>
}

// Other dimensions, other numbers than 0, comparisons with each element, other
// reductions, and what others read, too, are as before.
// CHECK-LABEL: axl.stage @others
// CHECK-NOT: ax.gather_elements
axl.stage @others(%x: tensor<64x100xf32>, %l: tensor<64x1xi64>, %k: tensor<64x100xi64>) {
  %i = ax.iota dim 1 : tensor<1x100xi64>
  %z = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %o = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %c = ax.compare eq %l, %i : tensor<64x1xi64>, tensor<1x100xi64> -> tensor<64x100xi1>
  %0 = ax.select %c, %x, %z : tensor<64x100xi1>, tensor<64x100xf32>, tensor<f32> -> tensor<64x100xf32>
  %1 = ax.reduce sum %0 dims [0] : tensor<64x100xf32> -> tensor<100xf32>
  %2 = ax.select %c, %x, %o : tensor<64x100xi1>, tensor<64x100xf32>, tensor<f32> -> tensor<64x100xf32>
  %3 = ax.reduce sum %2 dims [1] : tensor<64x100xf32> -> tensor<64xf32>
  %d = ax.compare eq %k, %i : tensor<64x100xi64>, tensor<1x100xi64> -> tensor<64x100xi1>
  %4 = ax.select %d, %x, %z : tensor<64x100xi1>, tensor<64x100xf32>, tensor<f32> -> tensor<64x100xf32>
  %5 = ax.reduce sum %4 dims [1] : tensor<64x100xf32> -> tensor<64xf32>
  %6 = ax.select %c, %x, %z : tensor<64x100xi1>, tensor<64x100xf32>, tensor<f32> -> tensor<64x100xf32>
  %7 = ax.reduce max %6 dims [1] : tensor<64x100xf32> -> tensor<64xf32>
  %8 = ax.select %c, %x, %z : tensor<64x100xi1>, tensor<64x100xf32>, tensor<f32> -> tensor<64x100xf32>
  %9 = ax.reduce sum %8 dims [1] : tensor<64x100xf32> -> tensor<64xf32>
  axl.yield %1, %3, %5, %7, %8, %9 : tensor<100xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64x100xf32>, tensor<64xf32>
}

// Numbers that index nothing: of another type; one for the whole row, of nothing.
// CHECK-LABEL: axl.stage @indices
// CHECK-NOT: ax.gather_elements
axl.stage @indices(%x: tensor<64x100xf32>, %l: tensor<64x1xi16>, %k: tensor<64x1xi64>, %e: tensor<64x0xf32>) {
  %z = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %i = ax.iota dim 1 : tensor<1x100xi16>
  %c = ax.compare eq %l, %i : tensor<64x1xi16>, tensor<1x100xi16> -> tensor<64x100xi1>
  %0 = ax.select %c, %x, %z : tensor<64x100xi1>, tensor<64x100xf32>, tensor<f32> -> tensor<64x100xf32>
  %1 = ax.reduce sum %0 dims [1] : tensor<64x100xf32> -> tensor<64xf32>
  %o = ax.iota dim 1 : tensor<1x1xi64>
  %d = ax.compare eq %k, %o : tensor<64x1xi64>, tensor<1x1xi64> -> tensor<64x1xi1>
  %2 = ax.select %d, %x, %z : tensor<64x1xi1>, tensor<64x100xf32>, tensor<f32> -> tensor<64x100xf32>
  %3 = ax.reduce sum %2 dims [1] : tensor<64x100xf32> -> tensor<64xf32>
  %n = ax.iota dim 1 : tensor<1x0xi64>
  %f = ax.compare eq %k, %n : tensor<64x1xi64>, tensor<1x0xi64> -> tensor<64x0xi1>
  %4 = ax.select %f, %e, %z : tensor<64x0xi1>, tensor<64x0xf32>, tensor<f32> -> tensor<64x0xf32>
  %5 = ax.reduce sum %4 dims [1] : tensor<64x0xf32> -> tensor<64xf32>
  axl.yield %1, %3, %5 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}

// What a row operation makes is in no memory: the kernel goes on with the row. The
// row's own numbers are nothing against it.
// CHECK-LABEL: axl.stage @rows
// CHECK: ax.softmax
// CHECK-NOT: ax.gather_elements
// CHECK: ax.reduce sum
// CHECK: ax.binary sub
// CHECK: ax.gather_elements
axl.stage @rows(%x: tensor<64x100xf32>, %k: tensor<64x1xi64>) {
  %z = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %i = ax.iota dim 1 : tensor<1x100xi64>
  %c = ax.compare eq %k, %i : tensor<64x1xi64>, tensor<1x100xi64> -> tensor<64x100xi1>
  %p = ax.softmax %x dim 1 : tensor<64x100xf32> -> tensor<64x100xf32>
  %n = ax.unary neg %p : tensor<64x100xf32> -> tensor<64x100xf32>
  %0 = ax.select %c, %n, %z : tensor<64x100xi1>, tensor<64x100xf32>, tensor<f32> -> tensor<64x100xf32>
  %1 = ax.reduce sum %0 dims [1] : tensor<64x100xf32> -> tensor<64xf32>
  %m = ax.reduce max %x dims [1] keep_dims : tensor<64x100xf32> -> tensor<64x1xf32>
  %d = ax.binary sub %x, %m : tensor<64x100xf32>, tensor<64x1xf32> -> tensor<64x100xf32>
  %2 = ax.select %c, %d, %z : tensor<64x100xi1>, tensor<64x100xf32>, tensor<f32> -> tensor<64x100xf32>
  %3 = ax.reduce sum %2 dims [1] : tensor<64x100xf32> -> tensor<64xf32>
  axl.yield %1, %3 : tensor<64xf32>, tensor<64xf32>
}
