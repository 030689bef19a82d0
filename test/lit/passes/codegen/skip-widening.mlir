// RUN: axopt-opt %s --axl-skip-widening | FileCheck %s

// Wider and as narrow again is what it was; narrower and as wide again is not.
// CHECK: axl.stage @widened(%[[X:.*]]: tensor<4xbf16>, %[[Y:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[N:.*]] = ax.unary neg %[[X]]
// CHECK-NEXT: %[[B:.*]] = ax.cast %[[Y]]
// CHECK-NEXT: %[[W:.*]] = ax.cast %[[B]]
// CHECK-NEXT: axl.yield %[[N]], %[[W]]
axl.stage @widened(%x: tensor<4xbf16>, %y: tensor<4xf32>) {
  %0 = ax.cast %x : tensor<4xbf16> -> tensor<4xf32>
  %1 = ax.cast %0 : tensor<4xf32> -> tensor<4xbf16>
  %2 = ax.unary neg %1 : tensor<4xbf16> -> tensor<4xbf16>
  %3 = ax.cast %y : tensor<4xf32> -> tensor<4xbf16>
  %4 = ax.cast %3 : tensor<4xbf16> -> tensor<4xf32>
  axl.yield %2, %4 : tensor<4xbf16>, tensor<4xf32>
}

// f16 has numbers that bf16 has not.
// CHECK: axl.stage @other(%[[X:.*]]: tensor<4xf16>)
// CHECK-NEXT: %[[B:.*]] = ax.cast %[[X]]
// CHECK-NEXT: %[[H:.*]] = ax.cast %[[B]]
// CHECK-NEXT: axl.yield %[[H]]
axl.stage @other(%x: tensor<4xf16>) {
  %0 = ax.cast %x : tensor<4xf16> -> tensor<4xbf16>
  %1 = ax.cast %0 : tensor<4xbf16> -> tensor<4xf16>
  axl.yield %1 : tensor<4xf16>
}

// What is narrow is moved, for who wants it wide as well.
// CHECK: axl.stage @moved(%[[X:.*]]: tensor<2x3xbf16>, %[[Y:.*]]: tensor<1x2xbf16>)
// CHECK-NEXT: %[[T:.*]] = ax.transpose %[[X]] [1, 0] : tensor<2x3xbf16> -> tensor<3x2xbf16>
// CHECK-NEXT: %[[W:.*]] = ax.cast %[[T]] : tensor<3x2xbf16> -> tensor<3x2xf32>
// CHECK-NEXT: %[[C:.*]] = ax.concat %[[T]], %[[Y]] dim 0 : tensor<3x2xbf16>, tensor<1x2xbf16> -> tensor<4x2xbf16>
// CHECK-NEXT: axl.yield %[[C]], %[[W]]
axl.stage @moved(%x: tensor<2x3xbf16>, %y: tensor<1x2xbf16>) {
  %0 = ax.cast %x : tensor<2x3xbf16> -> tensor<2x3xf32>
  %1 = ax.cast %y : tensor<1x2xbf16> -> tensor<1x2xf32>
  %2 = ax.transpose %0 [1, 0] : tensor<2x3xf32> -> tensor<3x2xf32>
  %3 = ax.concat %2, %1 dim 0 : tensor<3x2xf32>, tensor<1x2xf32> -> tensor<4x2xf32>
  %4 = ax.cast %3 : tensor<4x2xf32> -> tensor<4x2xbf16>
  axl.yield %4, %2 : tensor<4x2xbf16>, tensor<3x2xf32>
}

// Not all of it was bf16.
// CHECK: axl.stage @joined
// CHECK: %[[C:.*]] = ax.concat %{{.*}} -> tensor<8xf32>
// CHECK-NEXT: %[[N:.*]] = ax.cast %[[C]]
// CHECK-NEXT: axl.yield %[[N]]
axl.stage @joined(%x: tensor<4xbf16>, %y: tensor<4xf32>) {
  %0 = ax.cast %x : tensor<4xbf16> -> tensor<4xf32>
  %1 = ax.concat %0, %y dim 0 : tensor<4xf32>, tensor<4xf32> -> tensor<8xf32>
  %2 = ax.cast %1 : tensor<8xf32> -> tensor<8xbf16>
  axl.yield %2 : tensor<8xbf16>
}
