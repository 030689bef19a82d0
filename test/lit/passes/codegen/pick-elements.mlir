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

// Other dimensions, other numbers than 0, comparisons with each element, and what
// others read, too, are sums as before.
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
  axl.yield %1, %3, %5, %7 : tensor<100xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}
