// RUN: axopt-opt %s --axl-compose-attention | FileCheck %s

// Two query heads share a head of keys and values, which are not copied for it.
// CHECK-LABEL: axl.stage @causal
// CHECK: %[[G:.*]] = ax.reshape %{{.*}} : tensor<2x4x3x8xf32> -> tensor<2x2x2x3x8xf32>
// CHECK: %[[Q:.*]] = ax.binary mul %[[G]], %{{.*}}
// CHECK: %[[S:.*]] = ax.dot %[[Q]], %{{.*}} batch [0, 1] x [0, 1] contract [4] x [3] : tensor<2x2x2x3x8xf32>, tensor<2x2x5x8xf32> -> tensor<2x2x2x3x5xf32>
// CHECK: ax.compare le
// CHECK: %[[M:.*]] = ax.select %{{.*}}, %[[S]], %{{.*}}
// CHECK: %[[P:.*]] = ax.softmax %[[M]]
// CHECK: %[[D:.*]] = ax.dot %[[P]], %{{.*}} batch [0, 1] x [0, 1] contract [4] x [2] : tensor<2x2x2x3x5xf32>, tensor<2x2x5x6xf32> -> tensor<2x2x2x3x6xf32>
// CHECK: ax.reshape %[[D]] : tensor<2x2x2x3x6xf32> -> tensor<2x4x3x6xf32>
// CHECK-NOT: ax.attention
axl.stage @causal(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>) {
  %0 = ax.attention %q, %k, %v scale 5.000000e-01 {causal} : tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32> -> tensor<2x4x3x6xf32>
  axl.yield %0 : tensor<2x4x3x6xf32>
}

// A row that may not attend to anything gives zeros.
// CHECK-LABEL: axl.stage @masked
// CHECK: ax.reduce max
// CHECK: ax.softmax
// CHECK: ax.select
axl.stage @masked(%q: tensor<1x1x3x8xf32>, %k: tensor<1x1x5x8xf32>, %v: tensor<1x1x5x8xf32>, %m: tensor<1x1x3x5xi1>) {
  %0 = ax.attention %q, %k, %v mask %m : tensor<1x1x3x5xi1> scale 1.000000e+00 {empty_rows_zero} : tensor<1x1x3x8xf32>, tensor<1x1x5x8xf32>, tensor<1x1x5x8xf32> -> tensor<1x1x3x8xf32>
  axl.yield %0 : tensor<1x1x3x8xf32>
}

// The gradients of v, q and k, of the scores computed again.
// CHECK-LABEL: axl.stage @backwards
// CHECK: %[[P:.*]] = ax.softmax
// CHECK: %[[DP:.*]] = ax.dot %{{.*}}, %{{.*}} batch [0, 1] x [0, 1] contract [4] x [3] : tensor<2x2x2x3x6xf32>, tensor<2x2x5x6xf32>
// CHECK: %[[DS:.*]] = ax.binary mul %[[P]], %{{.*}}
// CHECK: %[[DV:.*]] = ax.dot %[[P]], %{{.*}} batch [0, 1] x [0, 1] contract [2, 3] x [2, 3]
// CHECK: %[[DQ:.*]] = ax.dot %[[DS]], %{{.*}} batch [0, 1] x [0, 1] contract [4] x [2]
// CHECK: %[[DK:.*]] = ax.dot %[[DS]], %{{.*}} batch [0, 1] x [0, 1] contract [2, 3] x [2, 3]
// CHECK: axl.yield %{{.*}}, %[[DK]], %[[DV]]
axl.stage @backwards(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x2x5x6xf32>, %y: tensor<2x4x3x6xf32>, %dy: tensor<2x4x3x6xf32>) {
  %dq, %dk, %dv = ax.attention_gradient %q, %k, %v, %y, %dy scale 5.000000e-01 {causal} : tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>, tensor<2x4x3x6xf32>, tensor<2x4x3x6xf32> -> tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>
  axl.yield %dq, %dk, %dv : tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x6xf32>
}

// Narrow floats are multiplied, and what lies between is f32.
// CHECK-LABEL: axl.stage @narrow
// CHECK: ax.dot %{{.*}} : tensor<1x1x1x3x8xbf16>, tensor<1x1x5x8xbf16> -> tensor<1x1x1x3x5xf32>
// CHECK: %[[P:.*]] = ax.softmax %{{.*}} : tensor<1x1x1x3x5xf32>
// CHECK: ax.cast %[[P]] : tensor<1x1x1x3x5xf32> -> tensor<1x1x1x3x5xbf16>
axl.stage @narrow(%q: tensor<1x1x3x8xbf16>, %k: tensor<1x1x5x8xbf16>) {
  %0 = ax.attention %q, %k, %k scale 1.000000e+00 : tensor<1x1x3x8xbf16>, tensor<1x1x5x8xbf16>, tensor<1x1x5x8xbf16> -> tensor<1x1x3x8xbf16>
  axl.yield %0 : tensor<1x1x3x8xbf16>
}

// So does what --precision says of the gradient, whose operands are f32.
// CHECK-LABEL: axl.stage @precision
// CHECK: ax.dot %{{.*}} : tensor<1x1x1x3x8xbf16>, tensor<1x1x5x8xbf16> -> tensor<1x1x1x3x5xf32>
// CHECK: %[[P:.*]] = ax.softmax %{{.*}} : tensor<1x1x1x3x5xf32>
// CHECK: %[[DS:.*]] = ax.binary mul %[[P]]
// CHECK: ax.cast %[[DS]] : tensor<1x1x1x3x5xf32> -> tensor<1x1x1x3x5xbf16>
// CHECK: axl.yield {{.*}} : tensor<1x1x3x8xf32>
axl.stage @precision(%q: tensor<1x1x3x8xf32>, %k: tensor<1x1x5x8xf32>) {
  %dq, %dk, %dv = ax.attention_gradient %q, %k, %k, %q, %q scale 1.000000e+00 {product_type = bf16} : tensor<1x1x3x8xf32>, tensor<1x1x5x8xf32>, tensor<1x1x5x8xf32>, tensor<1x1x3x8xf32>, tensor<1x1x3x8xf32> -> tensor<1x1x3x8xf32>, tensor<1x1x5x8xf32>, tensor<1x1x5x8xf32>
  axl.yield %dq : tensor<1x1x3x8xf32>
}

// Of the attention itself, too.
// CHECK-LABEL: axl.stage @precision_forwards
// CHECK: ax.dot %{{.*}} : tensor<1x1x1x3x8xbf16>, tensor<1x1x5x8xbf16> -> tensor<1x1x1x3x5xf32>
// CHECK: ax.dot %{{.*}} : tensor<1x1x1x3x5xbf16>, tensor<1x1x5x8xbf16> -> tensor<1x1x1x3x8xf32>
// CHECK: axl.yield {{.*}} : tensor<1x1x3x8xf32>
axl.stage @precision_forwards(%q: tensor<1x1x3x8xf32>, %k: tensor<1x1x5x8xf32>) {
  %0 = ax.attention %q, %k, %k scale 1.000000e+00 {product_type = bf16} : tensor<1x1x3x8xf32>, tensor<1x1x5x8xf32>, tensor<1x1x5x8xf32> -> tensor<1x1x3x8xf32>
  axl.yield %0 : tensor<1x1x3x8xf32>
}

// A window is another comparison of places.
// CHECK-LABEL: axl.stage @window
// CHECK: %[[LE:.*]] = ax.compare le
// CHECK: %[[GT:.*]] = ax.compare gt
// CHECK: ax.binary logical_and %[[LE]], %[[GT]]
// CHECK: ax.softmax
// CHECK-NOT: ax.attention
axl.stage @window(%q: tensor<1x1x3x8xf32>, %k: tensor<1x1x5x8xf32>) {
  %0 = ax.attention %q, %k, %k scale 1.000000e+00 {causal, window = 2 : i64} : tensor<1x1x3x8xf32>, tensor<1x1x5x8xf32>, tensor<1x1x5x8xf32> -> tensor<1x1x3x8xf32>
  axl.yield %0 : tensor<1x1x3x8xf32>
}
