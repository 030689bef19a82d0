// RUN: axopt-opt %s -ax-normalize | FileCheck %s

ax.plan @lookup version 1 {
// CHECK-LABEL: ax.program @positions
// CHECK-NEXT: %[[A:.*]] = ax.slice %arg0 starts [0, 0] steps [1, 1] : tensor<8x4xf32> -> tensor<3x4xf32>
// CHECK-NEXT: %[[B:.*]] = ax.reshape %[[A]] : tensor<3x4xf32> -> tensor<1x3x4xf32>
// CHECK-NEXT: ax.return %[[B]]
ax.program @positions(%t: tensor<8x4xf32>) -> tensor<1x3x4xf32> {
  %i = ax.constant dense<[[0, 1, 2]]> : tensor<1x3xi64> -> tensor<1x3xi64>
  %0 = ax.gather %t[%i] axis 0 : tensor<8x4xf32>, tensor<1x3xi64> -> tensor<1x3x4xf32>
  ax.return %0 : tensor<1x3x4xf32>
}

// CHECK-LABEL: ax.program @last
// CHECK-NEXT: %[[A:.*]] = ax.slice %arg0 starts [0, 7, 0] steps [1, 1, 1] : tensor<2x8x4xf32> -> tensor<2x1x4xf32>
// CHECK-NEXT: ax.reshape %[[A]] : tensor<2x1x4xf32> -> tensor<2x4xf32>
ax.program @last(%x: tensor<2x8x4xf32>) -> tensor<2x4xf32> {
  %i = ax.constant dense<-1> : tensor<i64> -> tensor<i64>
  %0 = ax.gather %x[%i] axis 1 : tensor<2x8x4xf32>, tensor<i64> -> tensor<2x4xf32>
  ax.return %0 : tensor<2x4xf32>
}

// CHECK-LABEL: ax.program @same
// CHECK-NEXT: ax.slice %arg0 starts [1, 0] steps [1, 1] : tensor<8x4xf32> -> tensor<1x4xf32>
// CHECK-NEXT: ax.reshape {{.*}} -> tensor<1x1x4xf32>
// CHECK-NEXT: ax.broadcast {{.*}} -> tensor<2x3x4xf32>
ax.program @same(%t: tensor<8x4xf32>) -> tensor<2x3x4xf32> {
  %i = ax.constant dense<1> : tensor<2x3xi64> -> tensor<2x3xi64>
  %0 = ax.gather %t[%i] axis 0 : tensor<8x4xf32>, tensor<2x3xi64> -> tensor<2x3x4xf32>
  ax.return %0 : tensor<2x3x4xf32>
}

// CHECK-LABEL: ax.program @other
// CHECK: ax.gather
ax.program @other(%t: tensor<8x4xf32>) -> tensor<3x4xf32> {
  %i = ax.constant dense<[0, 1, 3]> : tensor<3xi64> -> tensor<3xi64>
  %0 = ax.gather %t[%i] axis 0 : tensor<8x4xf32>, tensor<3xi64> -> tensor<3x4xf32>
  ax.return %0 : tensor<3x4xf32>
}

// CHECK-LABEL: ax.program @repeated
// CHECK-NEXT: ax.reshape %arg0 : tensor<2x4xf32> -> tensor<2x1x4xf32>
// CHECK-NEXT: ax.broadcast {{.*}} -> tensor<2x3x4xf32>
// CHECK-NEXT: ax.reshape {{.*}} -> tensor<6x4xf32>
ax.program @repeated(%t: tensor<2x4xf32>) -> tensor<6x4xf32> {
  %i = ax.constant dense<[0, 0, 0, 1, 1, 1]> : tensor<6xi64> -> tensor<6xi64>
  %0 = ax.gather %t[%i] axis 0 : tensor<2x4xf32>, tensor<6xi64> -> tensor<6x4xf32>
  ax.return %0 : tensor<6x4xf32>
}

// CHECK-LABEL: ax.program @every_element
// CHECK-NEXT: ax.return %arg0
ax.program @every_element(%m: tensor<2x2xi1>) -> tensor<2x2xi1> {
  %i = ax.constant dense<[[[0, 0], [0, 1]], [[1, 0], [1, 1]]]> : tensor<2x2x2xi64> -> tensor<2x2x2xi64>
  %0 = ax.gather_nd %m[%i] batch_dims 0 : tensor<2x2xi1>, tensor<2x2x2xi64> -> tensor<2x2xi1>
  ax.return %0 : tensor<2x2xi1>
}

// CHECK-LABEL: ax.program @transposed
// CHECK: ax.gather_nd
ax.program @transposed(%m: tensor<2x2xi1>) -> tensor<2x2xi1> {
  %i = ax.constant dense<[[[0, 0], [1, 0]], [[0, 1], [1, 1]]]> : tensor<2x2x2xi64> -> tensor<2x2x2xi64>
  %0 = ax.gather_nd %m[%i] batch_dims 0 : tensor<2x2xi1>, tensor<2x2x2xi64> -> tensor<2x2xi1>
  ax.return %0 : tensor<2x2xi1>
}

// What is looked up in each sample is so in a batch.
// CHECK-LABEL: ax.program @of_samples
// CHECK: %[[A:.*]] = ax.gather_nd %arg0[%arg1] batch_dims 1 : tensor<3x8x4xf32>, tensor<3x1xi64> -> tensor<3x4xf32>
// CHECK: %[[C:.*]] = ax.concat %arg2, %arg2 dim 2 : tensor<3x2x1xi64>, tensor<3x2x1xi64> -> tensor<3x2x2xi64>
// CHECK: %[[B:.*]] = ax.gather_nd %arg0[%[[C]]] batch_dims 1 : tensor<3x8x4xf32>, tensor<3x2x2xi64> -> tensor<3x2xf32>
// CHECK: ax.return %[[A]], %[[B]]
ax.program @of_samples(%x: tensor<3x8x4xf32>, %i: tensor<3x1xi64>, %j: tensor<3x2x1xi64>) -> (tensor<3x4xf32>, tensor<3x2xf32>) {
  %n = ax.constant dense<[[0], [1], [2]]> : tensor<3x1xi64> -> tensor<3x1xi64>
  %0 = ax.concat %n, %i dim 1 : tensor<3x1xi64>, tensor<3x1xi64> -> tensor<3x2xi64>
  %1 = ax.gather_nd %x[%0] batch_dims 0 : tensor<3x8x4xf32>, tensor<3x2xi64> -> tensor<3x4xf32>
  %m = ax.constant dense<[[[0], [0]], [[1], [1]], [[-1], [-1]]]> : tensor<3x2x1xi64> -> tensor<3x2x1xi64>
  %2 = ax.concat %m, %j, %j dim 2 : tensor<3x2x1xi64>, tensor<3x2x1xi64>, tensor<3x2x1xi64> -> tensor<3x2x3xi64>
  %3 = ax.gather_nd %x[%2] batch_dims 0 : tensor<3x8x4xf32>, tensor<3x2x3xi64> -> tensor<3x2xf32>
  ax.return %1, %3 : tensor<3x4xf32>, tensor<3x2xf32>
}

// Several of each sample in one line.
// CHECK-LABEL: ax.program @of_samples_in_line
// CHECK: %[[R:.*]] = ax.reshape %arg1 : tensor<6x1xi64> -> tensor<3x2x1xi64>
// CHECK: %[[G:.*]] = ax.gather_nd %arg0[%[[R]]] batch_dims 1 : tensor<3x8x4xf32>, tensor<3x2x1xi64> -> tensor<3x2x4xf32>
// CHECK: ax.reshape %[[G]] : tensor<3x2x4xf32> -> tensor<6x4xf32>
ax.program @of_samples_in_line(%x: tensor<3x8x4xf32>, %i: tensor<6x1xi64>) -> tensor<6x4xf32> {
  %n = ax.constant dense<[[0], [0], [1], [1], [2], [2]]> : tensor<6x1xi64> -> tensor<6x1xi64>
  %0 = ax.concat %n, %i dim 1 : tensor<6x1xi64>, tensor<6x1xi64> -> tensor<6x2xi64>
  %1 = ax.gather_nd %x[%0] batch_dims 0 : tensor<3x8x4xf32>, tensor<6x2xi64> -> tensor<6x4xf32>
  ax.return %1 : tensor<6x4xf32>
}

// Samples in another order, and of some samples only.
// CHECK-LABEL: ax.program @of_other_samples
// CHECK-COUNT-2: batch_dims 0
ax.program @of_other_samples(%x: tensor<3x8x4xf32>, %i: tensor<3x1xi64>, %j: tensor<2x1xi64>) -> (tensor<3x4xf32>, tensor<2x4xf32>) {
  %n = ax.constant dense<[[0], [2], [1]]> : tensor<3x1xi64> -> tensor<3x1xi64>
  %0 = ax.concat %n, %i dim 1 : tensor<3x1xi64>, tensor<3x1xi64> -> tensor<3x2xi64>
  %1 = ax.gather_nd %x[%0] batch_dims 0 : tensor<3x8x4xf32>, tensor<3x2xi64> -> tensor<3x4xf32>
  %m = ax.constant dense<[[0], [1]]> : tensor<2x1xi64> -> tensor<2x1xi64>
  %2 = ax.concat %m, %j dim 1 : tensor<2x1xi64>, tensor<2x1xi64> -> tensor<2x2xi64>
  %3 = ax.gather_nd %x[%2] batch_dims 0 : tensor<3x8x4xf32>, tensor<2x2xi64> -> tensor<2x4xf32>
  ax.return %1, %3 : tensor<3x4xf32>, tensor<2x4xf32>
}

// Samples one behind another: what is looked up is inside of its own.
// CHECK-LABEL: ax.program @of_flat_samples
// CHECK: %[[I:.*]] = ax.arg_reduce %arg1 dim 1
// CHECK: %[[G:.*]] = ax.gather_nd %arg0[%[[I]]] batch_dims 1 : tensor<3x8x4xf32>, tensor<3x1xi64> -> tensor<3x4xf32>
// CHECK: ax.return %[[G]]
ax.program @of_flat_samples(%x: tensor<3x8x4xf32>, %w: tensor<3x8xi64>) -> tensor<3x4xf32> {
  %f = ax.reshape %x : tensor<3x8x4xf32> -> tensor<24x4xf32>
  %a = ax.arg_reduce %w dim 1 : tensor<3x8xi64> -> tensor<3x1xi64>
  %l = ax.reshape %a : tensor<3x1xi64> -> tensor<3xi64>
  %n = ax.constant dense<[0, 8, 16]> : tensor<3xi64> -> tensor<3xi64>
  %i = ax.binary add %l, %n : tensor<3xi64>, tensor<3xi64> -> tensor<3xi64>
  %0 = ax.gather %f[%i] axis 0 : tensor<24x4xf32>, tensor<3xi64> -> tensor<3x4xf32>
  ax.return %0 : tensor<3x4xf32>
}

// Numbers that are broadcast along the samples are none of theirs.
// CHECK-LABEL: ax.program @across_samples
// CHECK: ax.gather %{{.*}} axis 0
ax.program @across_samples(%x: tensor<3x8x4xf32>, %w: tensor<3x3x8xi64>) -> tensor<3x3x4xf32> {
  %f = ax.reshape %x : tensor<3x8x4xf32> -> tensor<24x4xf32>
  %a = ax.arg_reduce %w dim 2 : tensor<3x3x8xi64> -> tensor<3x3x1xi64>
  %l = ax.reshape %a : tensor<3x3x1xi64> -> tensor<3x3xi64>
  %n = ax.constant dense<[0, 8, 16]> : tensor<3xi64> -> tensor<3xi64>
  %i = ax.binary add %l, %n : tensor<3x3xi64>, tensor<3xi64> -> tensor<3x3xi64>
  %0 = ax.gather %f[%i] axis 0 : tensor<24x4xf32>, tensor<3x3xi64> -> tensor<3x3x4xf32>
  ax.return %0 : tensor<3x3x4xf32>
}

// The best of each sample.
// CHECK-LABEL: ax.program @best_of_flat_samples
// CHECK: ax.gather_nd %arg0[{{.*}}] batch_dims 1 : tensor<3x8x4xf32>, tensor<3x2x1xi64> -> tensor<3x2x4xf32>
ax.program @best_of_flat_samples(%x: tensor<3x8x4xf32>, %w: tensor<3x8xf32>) -> tensor<3x2x4xf32> {
  %f = ax.reshape %x : tensor<3x8x4xf32> -> tensor<24x4xf32>
  %v, %t = ax.top_k %w k 2 dim 1 : tensor<3x8xf32> -> tensor<3x2xf32>, tensor<3x2xi64>
  %n = ax.constant dense<[[0, 0], [8, 8], [16, 16]]> : tensor<3x2xi64> -> tensor<3x2xi64>
  %i = ax.binary add %t, %n : tensor<3x2xi64>, tensor<3x2xi64> -> tensor<3x2xi64>
  %0 = ax.gather %f[%i] axis 0 : tensor<24x4xf32>, tensor<3x2xi64> -> tensor<3x2x4xf32>
  ax.return %0 : tensor<3x2x4xf32>
}

// What may be before or behind its sample, and samples of another length.
// CHECK-LABEL: ax.program @of_any_samples
// CHECK-COUNT-3: ax.gather %{{.*}} axis 0
ax.program @of_any_samples(%x: tensor<3x8x4xf32>, %w: tensor<3x8xi64>, %j: tensor<3xi64>) -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) {
  %f = ax.reshape %x : tensor<3x8x4xf32> -> tensor<24x4xf32>
  %n = ax.constant dense<[0, 8, 16]> : tensor<3xi64> -> tensor<3xi64>
  %i = ax.binary add %j, %n : tensor<3xi64>, tensor<3xi64> -> tensor<3xi64>
  %0 = ax.gather %f[%i] axis 0 : tensor<24x4xf32>, tensor<3xi64> -> tensor<3x4xf32>
  %a = ax.arg_reduce %w dim 1 : tensor<3x8xi64> -> tensor<3x1xi64>
  %l = ax.reshape %a : tensor<3x1xi64> -> tensor<3xi64>
  %m = ax.constant dense<[0, 7, 14]> : tensor<3xi64> -> tensor<3xi64>
  %k = ax.binary add %l, %m : tensor<3xi64>, tensor<3xi64> -> tensor<3xi64>
  %1 = ax.gather %f[%k] axis 0 : tensor<24x4xf32>, tensor<3xi64> -> tensor<3x4xf32>
  %o = ax.constant dense<1> : tensor<3xi64> -> tensor<3xi64>
  %p = ax.binary add %l, %o : tensor<3xi64>, tensor<3xi64> -> tensor<3xi64>
  %q = ax.binary add %p, %n : tensor<3xi64>, tensor<3xi64> -> tensor<3xi64>
  %2 = ax.gather %f[%q] axis 0 : tensor<24x4xf32>, tensor<3xi64> -> tensor<3x4xf32>
  ax.return %0, %1, %2 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
}

// What is written into a box, whose rows are not the last.
// CHECK-LABEL: ax.program @written_slice
// CHECK-DAG: %[[B:.*]] = ax.slice %arg0 starts [0, 0, 0] steps [1, 1, 1] : tensor<2x6x4xf32> -> tensor<2x3x4xf32>
// CHECK-DAG: %[[A:.*]] = ax.slice %arg0 starts [0, 5, 0] steps [1, 1, 1] : tensor<2x6x4xf32> -> tensor<2x1x4xf32>
// CHECK: %[[C:.*]] = ax.concat %[[B]], %arg1, %[[A]] dim 1
// CHECK: ax.return %[[C]]
ax.program @written_slice(%x: tensor<2x6x4xf32>, %y: tensor<2x2x4xf32>) -> tensor<2x6x4xf32> {
  %i = ax.constant dense<[[[0, 3], [0, -2]], [[1, 3], [1, 4]]]> : tensor<2x2x2xi64> -> tensor<2x2x2xi64>
  %0 = ax.scatter_nd set %x[%i], %y : tensor<2x6x4xf32>, tensor<2x2x2xi64>, tensor<2x2x4xf32> -> tensor<2x6x4xf32>
  ax.return %0 : tensor<2x6x4xf32>
}

// A box of 25 million elements, by the numbers of each dimension; not with two
// dimensions the other way round.
// CHECK-LABEL: ax.program @written_large
// CHECK: %[[C:.*]] = ax.concat %{{.*}}, %arg1, %{{.*}} dim 1 : tensor<1x1x5000xf32>, tensor<1x5000x5000xf32>, tensor<1x2x5000xf32> -> tensor<1x5003x5000xf32>
// CHECK: %[[O:.*]] = ax.scatter_nd set %arg0
// CHECK: ax.return %[[C]], %[[O]]
ax.program @written_large(%x: tensor<1x5003x5000xf32>, %y: tensor<1x5000x5000xf32>) -> (tensor<1x5003x5000xf32>, tensor<1x5003x5000xf32>) {
  %sample = ax.constant dense<0> : tensor<1x5000x5000x1xi64> -> tensor<1x5000x5000x1xi64>
  %n = ax.iota dim 0 : tensor<5000xi64>
  %one = ax.constant dense<1> : tensor<i64> -> tensor<i64>
  %m = ax.binary add %n, %one : tensor<5000xi64>, tensor<i64> -> tensor<5000xi64>
  %column = ax.reshape %m : tensor<5000xi64> -> tensor<5000x1xi64>
  %rows = ax.broadcast %column : tensor<5000x1xi64> -> tensor<1x5000x5000xi64>
  %i = ax.reshape %rows : tensor<1x5000x5000xi64> -> tensor<1x5000x5000x1xi64>
  %columns = ax.broadcast %n : tensor<5000xi64> -> tensor<1x5000x5000xi64>
  %j = ax.reshape %columns : tensor<1x5000x5000xi64> -> tensor<1x5000x5000x1xi64>
  %k = ax.concat %sample, %i, %j dim 3 : tensor<1x5000x5000x1xi64>, tensor<1x5000x5000x1xi64>, tensor<1x5000x5000x1xi64> -> tensor<1x5000x5000x3xi64>
  %0 = ax.scatter_nd set %x[%k], %y : tensor<1x5003x5000xf32>, tensor<1x5000x5000x3xi64>, tensor<1x5000x5000xf32> -> tensor<1x5003x5000xf32>
  %l = ax.concat %sample, %j, %i dim 3 : tensor<1x5000x5000x1xi64>, tensor<1x5000x5000x1xi64>, tensor<1x5000x5000x1xi64> -> tensor<1x5000x5000x3xi64>
  %1 = ax.scatter_nd set %x[%l], %y : tensor<1x5003x5000xf32>, tensor<1x5000x5000x3xi64>, tensor<1x5000x5000xf32> -> tensor<1x5003x5000xf32>
  ax.return %0, %1 : tensor<1x5003x5000xf32>, tensor<1x5003x5000xf32>
}

// Of two dimensions, the last one first.
// CHECK-LABEL: ax.program @written_box
// CHECK: %[[S:.*]] = ax.slice %arg0 starts [1, 0] steps [1, 1] : tensor<3x4xf32> -> tensor<1x2xf32>
// CHECK: %[[C:.*]] = ax.concat %[[S]], %arg1 dim 1 : tensor<1x2xf32>, tensor<1x2xf32> -> tensor<1x4xf32>
// CHECK: %[[R:.*]] = ax.concat {{.*}}, %[[C]], {{.*}} dim 0 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32> -> tensor<3x4xf32>
// CHECK: ax.return %[[R]]
ax.program @written_box(%x: tensor<3x4xf32>, %y: tensor<1x2xf32>) -> tensor<3x4xf32> {
  %i = ax.constant dense<[[[1, 2], [1, 3]]]> : tensor<1x2x2xi64> -> tensor<1x2x2xi64>
  %0 = ax.scatter_nd set %x[%i], %y : tensor<3x4xf32>, tensor<1x2x2xi64>, tensor<1x2xf32> -> tensor<3x4xf32>
  ax.return %0 : tensor<3x4xf32>
}

// What is added, every second row, and rows in another order.
// CHECK-LABEL: ax.program @written_otherwise
// CHECK-COUNT-3: ax.scatter_nd
ax.program @written_otherwise(%x: tensor<4x2xf32>, %y: tensor<2x2xf32>) -> tensor<4x2xf32> {
  %i = ax.constant dense<[[0], [1]]> : tensor<2x1xi64> -> tensor<2x1xi64>
  %j = ax.constant dense<[[0], [2]]> : tensor<2x1xi64> -> tensor<2x1xi64>
  %k = ax.constant dense<[[1], [0]]> : tensor<2x1xi64> -> tensor<2x1xi64>
  %0 = ax.scatter_nd add %x[%i], %y : tensor<4x2xf32>, tensor<2x1xi64>, tensor<2x2xf32> -> tensor<4x2xf32>
  %1 = ax.scatter_nd set %0[%j], %y : tensor<4x2xf32>, tensor<2x1xi64>, tensor<2x2xf32> -> tensor<4x2xf32>
  %2 = ax.scatter_nd set %1[%k], %y : tensor<4x2xf32>, tensor<2x1xi64>, tensor<2x2xf32> -> tensor<4x2xf32>
  ax.return %2 : tensor<4x2xf32>
}
}
