// RUN: axopt-opt %s --axl-compose-checks | FileCheck %s
// RUN: axopt-opt %s --axl-compose-checks --axl-fuse="gpu=true" | FileCheck %s --check-prefix=FUSED

// The word is made in one kernel, and indices are made safe where they are read.
// CHECK-LABEL: axl.stage @embedding
// CHECK-DAG: %[[I:.*]] = ax.reshape %[[IDS:.*]] : tensor<2x3xi64> -> tensor<6x1xi64>
// CHECK-DAG: %[[P:.*]] = ax.reshape %{{.*}} : tensor<6xi64> -> tensor<6x1xi64>
// CHECK-DAG: %[[LEAST:.*]] = ax.constant dense<-8> : tensor<i64>
// CHECK-DAG: %[[LOW:.*]] = ax.compare lt %[[I]], %[[LEAST]]
// CHECK-DAG: %[[SIZE:.*]] = ax.constant dense<8> : tensor<i64>
// CHECK-DAG: %[[HIGH:.*]] = ax.compare ge %[[I]], %[[SIZE]]
// CHECK: %[[BAD:.*]] = ax.binary logical_or %[[LOW]], %[[HIGH]]
// CHECK: %[[NONE:.*]] = ax.constant dense<9223372036854775807> : tensor<i64>
// CHECK: %[[PLACES:.*]] = ax.select %[[BAD]], %[[P]], %[[NONE]]
// CHECK: %[[FIRST:.*]] = ax.reduce min %[[PLACES]] dims [0, 1]
// CHECK: %[[IS:.*]] = ax.compare eq %[[P]], %[[FIRST]]
// CHECK: %[[ONE:.*]] = ax.select %[[IS]], %[[I]], %{{.*}}
// CHECK: %[[INDEX:.*]] = ax.reduce sum %[[ONE]] dims [0, 1]
// CHECK: %[[WORD:.*]] = ax.select %{{.*}}, %[[FIRST]], %[[INDEX]]
// CHECK: axl.report_fault %[[WORD]] among tensor<2x3xi64> sizes [8] of tensor<4x3xi64> order 5 : tensor<2xi64>
// CHECK: %[[SAFE:.*]] = ax.binary floor_mod %{{.*}}, %{{.*}} : tensor<2x3xi64>, tensor<i64> -> tensor<2x3xi64>
// CHECK: ax.gather %{{.*}}[%[[SAFE]]]
// CHECK-NOT: axl.check_indices
// FUSED-LABEL: axl.stage @embedding
// FUSED: axl.fusion
// FUSED: ax.reduce min
// FUSED: ax.reduce sum
// FUSED: -> tensor<2xi64>
// FUSED: axl.report_fault
// FUSED: axl.fusion
// FUSED-NEXT: ^bb0(%{{.*}}: tensor<2x3xi64>, %{{.*}}: tensor<8x4xf32>)
// FUSED: ax.binary floor_mod
// FUSED: ax.gather
// FUSED: axl.yield
// FUSED-NOT: axl.fusion
// FUSED: axl.yield
axl.stage @embedding(%w: tensor<8x4xf32>, %ids: tensor<2x3xi64>) {
  %0 = axl.check_indices %ids sizes [8] of tensor<4x3xi64> order 5 : tensor<2x3xi64>
  %1 = ax.gather %w[%0] axis 0 : tensor<8x4xf32>, tensor<2x3xi64> -> tensor<2x3x4xf32>
  axl.yield %1 : tensor<2x3x4xf32>
}

// Of each row of indices the last is into another dimension than the first.
// CHECK-LABEL: axl.stage @nd
// CHECK: ax.cast %{{.*}} : tensor<5x2xi32> -> tensor<5x2xi64>
// CHECK: ax.constant dense<[-3, -7]> : tensor<2xi64>
// CHECK: axl.report_fault %{{.*}} among tensor<5x2xi32> sizes [3, 7]
// CHECK: %[[SIZES:.*]] = ax.constant dense<[3, 7]> : tensor<2xi32>
// CHECK: ax.binary floor_mod %{{.*}}, %[[SIZES]] : tensor<5x2xi32>, tensor<2xi32> -> tensor<5x2xi32>
axl.stage @nd(%ids: tensor<5x2xi32>) {
  %0 = axl.check_indices %ids sizes [3, 7] of tensor<5x2xi32> order 1 : tensor<5x2xi32>
  axl.yield %0 : tensor<5x2xi32>
}

// No number of results is negative.
// CHECK-LABEL: axl.stage @count
// CHECK: %[[LEAST:.*]] = ax.constant dense<0> : tensor<i64>
// CHECK: ax.compare lt %{{.*}}, %[[LEAST]]
// CHECK: axl.report_fault %{{.*}} among tensor<i64> sizes [9] of tensor<i64> order 2 is_count
axl.stage @count(%n: tensor<i64>) {
  %0 = axl.check_indices %n sizes [9] of tensor<i64> order 2 is_count : tensor<i64>
  axl.yield %0 : tensor<i64>
}

// There is no index to go on with; none that an index can be too large for;
// there are no indices.
// CHECK-LABEL: axl.stage @stay
// CHECK: axl.check_indices %{{.*}} sizes [0]
// CHECK: axl.check_indices %{{.*}} sizes [2147483648]
// CHECK: axl.check_indices %{{.*}} sizes [3]
// CHECK-NOT: axl.report_fault
axl.stage @stay(%a: tensor<4xi64>, %b: tensor<4xi32>, %c: tensor<0xi64>) {
  %0 = axl.check_indices %a sizes [0] of tensor<4xi64> order 1 : tensor<4xi64>
  %1 = axl.check_indices %b sizes [2147483648] of tensor<4xi32> order 2 : tensor<4xi32>
  %2 = axl.check_indices %c sizes [3] of tensor<0xi64> order 3 : tensor<0xi64>
  axl.yield %0, %1, %2 : tensor<4xi64>, tensor<4xi32>, tensor<0xi64>
}
