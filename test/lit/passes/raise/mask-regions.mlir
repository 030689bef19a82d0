// RUN: axopt-opt %s -ax-normalize -cse -ax-raise-attention -ax-normalize -cse | FileCheck %s
// Masks of 30 million elements, which nobody looks at: 5000 queries of 6000 keys.

ax.plan @masks version 1 {

// A query sees 1000 keys more than its number: said by each comparison, as a
// number, as what is subtracted, by a product as old exports of Llama have it, and
// by what else is done with each element.
// CHECK-LABEL: ax.program @causal
// CHECK-NEXT: %[[R:.*]] = ax.attention %arg0, %arg1, %arg2 scale 1.000000e+00 {causal}
// CHECK-NEXT: ax.return %[[R]], %[[R]], %[[R]], %[[R]], %[[R]], %[[R]]
ax.program @causal(%q: tensor<1x2x5000x4xf32>, %k: tensor<1x2x6000x4xf32>, %v: tensor<1x2x6000x4xf32>) -> (tensor<1x2x5000x4xf32>, tensor<1x2x5000x4xf32>, tensor<1x2x5000x4xf32>, tensor<1x2x5000x4xf32>, tensor<1x2x5000x4xf32>, tensor<1x2x5000x4xf32>) {
  %row = ax.iota dim 0 : tensor<5000x1xi64>
  %column = ax.iota dim 1 : tensor<1x6000xi64>
  %more = ax.constant dense<1000> : tensor<i64> -> tensor<i64>
  %least = ax.constant dense<-1000> : tensor<i64> -> tensor<i64>
  %zero = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %low = ax.constant dense<-3.40282347E+38> : tensor<f32> -> tensor<f32>
  %last = ax.binary add %row, %more : tensor<5000x1xi64>, tensor<i64> -> tensor<5000x1xi64>
  %le = ax.compare le %column, %last : tensor<1x6000xi64>, tensor<5000x1xi64> -> tensor<5000x6000xi1>
  %gt = ax.compare gt %column, %last : tensor<1x6000xi64>, tensor<5000x1xi64> -> tensor<5000x6000xi1>
  %chosen = ax.select %gt, %low, %zero : tensor<5000x6000xi1>, tensor<f32>, tensor<f32> -> tensor<5000x6000xf32>
  %ge = ax.compare ge %last, %column : tensor<5000x1xi64>, tensor<1x6000xi64> -> tensor<5000x6000xi1>
  %hidden = ax.unary logical_not %ge : tensor<5000x6000xi1> -> tensor<5000x6000xi1>
  %swapped = ax.select %hidden, %low, %zero : tensor<5000x6000xi1>, tensor<f32>, tensor<f32> -> tensor<5000x6000xf32>
  %difference = ax.binary sub %row, %column : tensor<5000x1xi64>, tensor<1x6000xi64> -> tensor<5000x6000xi64>
  %ofDifference = ax.compare ge %difference, %least : tensor<5000x6000xi64>, tensor<i64> -> tensor<5000x6000xi1>
  %number = ax.cast %gt : tensor<5000x6000xi1> -> tensor<5000x6000xf32>
  %product = ax.binary mul %chosen, %number : tensor<5000x6000xf32>, tensor<5000x6000xf32> -> tensor<5000x6000xf32>
  %magnitude = ax.unary abs %product : tensor<5000x6000xf32> -> tensor<5000x6000xf32>
  %other = ax.binary min %chosen, %magnitude : tensor<5000x6000xf32>, tensor<5000x6000xf32> -> tensor<5000x6000xf32>
  %m0 = ax.reshape %le : tensor<5000x6000xi1> -> tensor<1x1x5000x6000xi1>
  %r0 = ax.attention %q, %k, %v mask %m0 : tensor<1x1x5000x6000xi1> scale 1.0 : tensor<1x2x5000x4xf32>, tensor<1x2x6000x4xf32>, tensor<1x2x6000x4xf32> -> tensor<1x2x5000x4xf32>
  %m1 = ax.reshape %chosen : tensor<5000x6000xf32> -> tensor<1x1x5000x6000xf32>
  %r1 = ax.attention %q, %k, %v mask %m1 : tensor<1x1x5000x6000xf32> scale 1.0 : tensor<1x2x5000x4xf32>, tensor<1x2x6000x4xf32>, tensor<1x2x6000x4xf32> -> tensor<1x2x5000x4xf32>
  %m2 = ax.reshape %swapped : tensor<5000x6000xf32> -> tensor<1x1x5000x6000xf32>
  %r2 = ax.attention %q, %k, %v mask %m2 : tensor<1x1x5000x6000xf32> scale 1.0 : tensor<1x2x5000x4xf32>, tensor<1x2x6000x4xf32>, tensor<1x2x6000x4xf32> -> tensor<1x2x5000x4xf32>
  %m3 = ax.reshape %ofDifference : tensor<5000x6000xi1> -> tensor<1x1x5000x6000xi1>
  %r3 = ax.attention %q, %k, %v mask %m3 : tensor<1x1x5000x6000xi1> scale 1.0 : tensor<1x2x5000x4xf32>, tensor<1x2x6000x4xf32>, tensor<1x2x6000x4xf32> -> tensor<1x2x5000x4xf32>
  %m4 = ax.reshape %product : tensor<5000x6000xf32> -> tensor<1x1x5000x6000xf32>
  %r4 = ax.attention %q, %k, %v mask %m4 : tensor<1x1x5000x6000xf32> scale 1.0 : tensor<1x2x5000x4xf32>, tensor<1x2x6000x4xf32>, tensor<1x2x6000x4xf32> -> tensor<1x2x5000x4xf32>
  %m5 = ax.reshape %other : tensor<5000x6000xf32> -> tensor<1x1x5000x6000xf32>
  %r5 = ax.attention %q, %k, %v mask %m5 : tensor<1x1x5000x6000xf32> scale 1.0 : tensor<1x2x5000x4xf32>, tensor<1x2x6000x4xf32>, tensor<1x2x6000x4xf32> -> tensor<1x2x5000x4xf32>
  ax.return %r0, %r1, %r2, %r3, %r4, %r5 : tensor<1x2x5000x4xf32>, tensor<1x2x5000x4xf32>, tensor<1x2x5000x4xf32>, tensor<1x2x5000x4xf32>, tensor<1x2x5000x4xf32>, tensor<1x2x5000x4xf32>
}

// One key fewer, which is a place, and none before a window; a number that is no more
// than a large score.
// CHECK-LABEL: ax.program @others
// CHECK: %[[AT:.*]] = ax.constant dense<999> : tensor<1x1x1x1xi64>
// CHECK: ax.attention %arg0, %arg1, %arg2 mask %[[AT]] : tensor<1x1x1x1xi64> scale 1.000000e+00 :
// CHECK: ax.attention %arg0, %arg1, %arg2 scale 1.000000e+00 {causal, window = 1001 : i64} :
// CHECK: ax.attention %arg0, %arg1, %arg2 mask %{{.*}} : tensor<1x1x5000x6000xf32> scale 1.000000e+00 :
// CHECK: ax.return
ax.program @others(%q: tensor<1x2x5000x4xf32>, %k: tensor<1x2x6000x4xf32>, %v: tensor<1x2x6000x4xf32>) -> (tensor<1x2x5000x4xf32>, tensor<1x2x5000x4xf32>, tensor<1x2x5000x4xf32>) {
  %row = ax.iota dim 0 : tensor<5000x1xi64>
  %column = ax.iota dim 1 : tensor<1x6000xi64>
  %more = ax.constant dense<1000> : tensor<i64> -> tensor<i64>
  %zero = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %large = ax.constant dense<-1.0e4> : tensor<f32> -> tensor<f32>
  %last = ax.binary add %row, %more : tensor<5000x1xi64>, tensor<i64> -> tensor<5000x1xi64>
  %lt = ax.compare lt %column, %last : tensor<1x6000xi64>, tensor<5000x1xi64> -> tensor<5000x6000xi1>
  %le = ax.compare le %column, %last : tensor<1x6000xi64>, tensor<5000x1xi64> -> tensor<5000x6000xi1>
  %ge = ax.compare ge %column, %row : tensor<1x6000xi64>, tensor<5000x1xi64> -> tensor<5000x6000xi1>
  %window = ax.binary logical_and %le, %ge : tensor<5000x6000xi1>, tensor<5000x6000xi1> -> tensor<5000x6000xi1>
  %added = ax.select %le, %zero, %large : tensor<5000x6000xi1>, tensor<f32>, tensor<f32> -> tensor<5000x6000xf32>
  %m0 = ax.reshape %lt : tensor<5000x6000xi1> -> tensor<1x1x5000x6000xi1>
  %r0 = ax.attention %q, %k, %v mask %m0 : tensor<1x1x5000x6000xi1> scale 1.0 : tensor<1x2x5000x4xf32>, tensor<1x2x6000x4xf32>, tensor<1x2x6000x4xf32> -> tensor<1x2x5000x4xf32>
  %m1 = ax.reshape %window : tensor<5000x6000xi1> -> tensor<1x1x5000x6000xi1>
  %r1 = ax.attention %q, %k, %v mask %m1 : tensor<1x1x5000x6000xi1> scale 1.0 : tensor<1x2x5000x4xf32>, tensor<1x2x6000x4xf32>, tensor<1x2x6000x4xf32> -> tensor<1x2x5000x4xf32>
  %m2 = ax.reshape %added : tensor<5000x6000xf32> -> tensor<1x1x5000x6000xf32>
  %r2 = ax.attention %q, %k, %v mask %m2 : tensor<1x1x5000x6000xf32> scale 1.0 : tensor<1x2x5000x4xf32>, tensor<1x2x6000x4xf32>, tensor<1x2x6000x4xf32> -> tensor<1x2x5000x4xf32>
  ax.return %r0, %r1, %r2 : tensor<1x2x5000x4xf32>, tensor<1x2x5000x4xf32>, tensor<1x2x5000x4xf32>
}

// Nothing is chosen from two zeros.
// CHECK-LABEL: ax.program @nothing
// CHECK-NEXT: %[[R:.*]] = ax.attention %arg0, %arg1, %arg2 scale 1.000000e+00 :
// CHECK-NEXT: ax.return %[[R]]
ax.program @nothing(%q: tensor<1x2x5000x4xf32>, %k: tensor<1x2x6000x4xf32>, %v: tensor<1x2x6000x4xf32>) -> (tensor<1x2x5000x4xf32>) {
  %row = ax.iota dim 0 : tensor<5000x1xi64>
  %column = ax.iota dim 1 : tensor<1x6000xi64>
  %none = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %same = ax.constant dense<-0.0> : tensor<f32> -> tensor<f32>
  %le = ax.compare le %column, %row : tensor<1x6000xi64>, tensor<5000x1xi64> -> tensor<5000x6000xi1>
  %zero = ax.select %le, %none, %same : tensor<5000x6000xi1>, tensor<f32>, tensor<f32> -> tensor<5000x6000xf32>
  %m0 = ax.reshape %zero : tensor<5000x6000xf32> -> tensor<1x1x5000x6000xf32>
  %r0 = ax.attention %q, %k, %v mask %m0 : tensor<1x1x5000x6000xf32> scale 1.0 : tensor<1x2x5000x4xf32>, tensor<1x2x6000x4xf32>, tensor<1x2x6000x4xf32> -> tensor<1x2x5000x4xf32>
  ax.return %r0 : tensor<1x2x5000x4xf32>
}

}
