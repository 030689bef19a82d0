// RUN: axopt-opt %s --axl-compose-top-k | FileCheck %s
// RUN: axopt-opt %s --axl-compose-top-k --axl-merge-equal --axl-fuse=gpu=true | FileCheck %s --check-prefix=FUSED

// Pairs are compared by who counts them, and are not in memory.
// FUSED-LABEL: axl.stage @largest
// FUSED: axl.yield %{{.*}} : tensor<2x5xi64>
// FUSED: axl.yield %{{.*}} : tensor<2x3xi64>
// FUSED-LABEL: axl.stage @integers
// FUSED-NOT: axl.yield {{.*}}tensor<{{.*}}xi1>
// FUSED-NOT: axl.yield {{.*}}tensor<2x5x5

// An element's place is the number of those of its row that come before it.
// CHECK-LABEL: axl.stage @largest
// CHECK-DAG: ax.reshape %{{.*}} : tensor<2x5xf32> -> tensor<2x5x1xf32>
// CHECK-DAG: ax.reshape %{{.*}} : tensor<2x5xf32> -> tensor<2x1x5xf32>
// CHECK: %[[P:.*]] = ax.reduce sum %{{.*}} dims [2] : tensor<2x5x5xi64> -> tensor<2x5xi64>
// CHECK: %[[Q:.*]] = ax.reshape %[[P]] : tensor<2x5xi64> -> tensor<2x1x5xi64>
// CHECK: ax.compare eq %[[Q]], %{{.*}} -> tensor<2x3x5xi1>
// CHECK: %[[I:.*]] = ax.reduce sum %{{.*}} dims [2] : tensor<2x3x5xi64> -> tensor<2x3xi64>
// CHECK: %[[V:.*]] = ax.gather_elements %{{.*}}[%[[I]]] axis 1
// CHECK: axl.yield %[[V]], %[[I]]
axl.stage @largest(%a: tensor<2x5xf32>) {
  %v, %i = ax.top_k %a k 3 dim 1 : tensor<2x5xf32> -> tensor<2x3xf32>, tensor<2x3xi64>
  axl.yield %v, %i : tensor<2x3xf32>, tensor<2x3xi64>
}

// Integers are all numbers.
// CHECK-LABEL: axl.stage @integers
// CHECK-NOT: is_nan
// CHECK-NOT: ax.top_k
axl.stage @integers(%a: tensor<2x5xi32>) {
  %v, %i = ax.top_k %a k 3 dim 1 {smallest} : tensor<2x5xi32> -> tensor<2x3xi32>, tensor<2x3xi64>
  axl.yield %v, %i : tensor<2x3xi32>, tensor<2x3xi64>
}

// 2^32 comparisons are done, and no more.
// CHECK-LABEL: axl.stage @long
// CHECK: ax.top_k %{{.*}} : tensor<2x65536xf32>
axl.stage @long(%a: tensor<65536xf32>, %b: tensor<2x65536xf32>) {
  %v, %i = ax.top_k %a k 3 dim 0 : tensor<65536xf32> -> tensor<3xf32>, tensor<3xi64>
  %w, %j = ax.top_k %b k 3 dim 1 : tensor<2x65536xf32> -> tensor<2x3xf32>, tensor<2x3xi64>
  axl.yield %i, %j : tensor<3xi64>, tensor<2x3xi64>
}
