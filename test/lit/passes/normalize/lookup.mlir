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
}
