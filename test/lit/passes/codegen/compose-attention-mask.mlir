// RUN: axopt-opt %s --axl-compose-attention=cudnn | FileCheck %s
// RUN: axopt-opt %s --axl-compose-attention=cudnn --axl-merge-equal | FileCheck %s --check-prefix=MERGED

// A mask becomes what is added to scores, in bf16, as it only hides keys; a query
// that attends to nothing has 0 added, and gives 0.
// CHECK-LABEL: axl.stage @hides
// CHECK: %[[N:.*]] = ax.select %arg1, %{{.*}}, %{{.*}} : {{.*}} -> tensor<1x1x16x16xf32>
// CHECK: %[[L:.*]] = ax.reduce max %[[N]] {{.*}} -> tensor<1x1x16x1xf32>
// CHECK: %[[E:.*]] = ax.compare eq %[[L]]
// CHECK: %[[S:.*]] = ax.binary sub %[[N]], %[[L]]
// CHECK: ax.constant dense<-1.07374182E+9>
// CHECK: %[[M:.*]] = ax.binary max %[[S]]
// CHECK: %[[A:.*]] = ax.select %[[E]], %{{.*}}, %[[M]]
// CHECK: %[[B:.*]] = ax.cast %[[A]] : tensor<1x1x16x16xf32> -> tensor<1x1x16x16xbf16>
// CHECK: %[[Y:.*]] = ax.attention %arg0, %arg0, %arg0 mask %[[B]] : tensor<1x1x16x16xbf16> scale
// CHECK: %[[Z:.*]] = ax.constant dense<0.000000e+00> : tensor<bf16>
// CHECK: %[[F:.*]] = ax.select %[[E]], %[[Z]], %[[Y]]
// CHECK: axl.yield %[[F]]
axl.stage @hides(%q: tensor<1x2x16x8xbf16>, %m: tensor<1x1x16x16xi1>) {
  %0 = ax.attention %q, %q, %q mask %m : tensor<1x1x16x16xi1> scale 1.000000e+00 {empty_rows_zero} : tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16> -> tensor<1x2x16x8xbf16>
  axl.yield %0 : tensor<1x2x16x8xbf16>
}

// What is added by more than hiding stays f32, whatever the factors are rounded
// to; f16 has no number that hides. Without `empty_rows_zero` there is NaN.
// CHECK-LABEL: axl.stage @adds
// CHECK-NOT: -> tensor<1x1x1x16xbf16>
// CHECK: ax.attention %{{.*}} mask %{{.*}} : tensor<1x1x1x16xf32> {{.*}} -> tensor<1x2x16x8xbf16>
// CHECK: ax.constant dense<0x7FC0> : tensor<bf16>
// CHECK: ax.attention %{{.*}} mask %{{.*}} : tensor<1x1x1x16xf32> {{.*}} -> tensor<1x2x16x8xf16>
axl.stage @adds(%q: tensor<1x2x16x8xf32>, %m: tensor<1x1x1x16xf32>, %h: tensor<1x2x16x8xf16>, %n: tensor<1x1x1x16xi1>) {
  %0 = ax.attention %q, %q, %q mask %m : tensor<1x1x1x16xf32> scale 1.000000e+00 {product_type = bf16} : tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32> -> tensor<1x2x16x8xf32>
  %1 = ax.attention %h, %h, %h mask %n : tensor<1x1x1x16xi1> scale 1.000000e+00 : tensor<1x2x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x2x16x8xf16> -> tensor<1x2x16x8xf16>
  axl.yield %0, %1 : tensor<1x2x16x8xf32>, tensor<1x2x16x8xf16>
}

// Of a constant it is known whether each query has a key; causality may hide it.
// CHECK-LABEL: axl.stage @constant
// CHECK-NOT: ax.reduce
// CHECK: ax.attention %{{.*}} mask
// CHECK-NOT: ax.select {{.*}}bf16
// CHECK: ax.reduce max
// CHECK: ax.attention %{{.*}} mask {{.*}}causal
// CHECK: ax.select
axl.stage @constant(%q: tensor<1x2x4x8xbf16>) {
  %m = ax.constant dense<[[[[false, true, false, true]]]]> : tensor<1x1x1x4xi1> -> tensor<1x1x1x4xi1>
  %0 = ax.attention %q, %q, %q mask %m : tensor<1x1x1x4xi1> scale 1.000000e+00 : tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16> -> tensor<1x2x4x8xbf16>
  %1 = ax.attention %q, %q, %q mask %m : tensor<1x1x1x4xi1> scale 1.000000e+00 {causal} : tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16> -> tensor<1x2x4x8xbf16>
  axl.yield %0, %1 : tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>
}

// A causal mask of more keys than queries is added; one query sees all keys. Of
// fewer keys the first queries see none.
// CHECK-LABEL: axl.stage @unequal
// CHECK-NOT: causal
// CHECK-NOT: ax.reduce
// CHECK: ax.attention %{{.*}} mask %{{.*}} : tensor<1x1x4x16xbf16> scale 1.000000e+00 : tensor<1x2x4x8xbf16>
// CHECK: ax.attention %arg2, %arg1, %arg1 scale 1.000000e+00 :
// CHECK: ax.reduce max
// CHECK: %[[Y:.*]] = ax.attention %{{.*}} mask %{{.*}} : tensor<1x1x16x4xbf16> scale 1.000000e+00 :
// CHECK: ax.select %{{.*}}, %{{.*}}, %[[Y]]
axl.stage @unequal(%s: tensor<1x2x4x8xbf16>, %h: tensor<1x2x16x8xbf16>, %o: tensor<1x2x1x8xbf16>) {
  %0 = ax.attention %s, %h, %h scale 1.000000e+00 {causal} : tensor<1x2x4x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16> -> tensor<1x2x4x8xbf16>
  %1 = ax.attention %o, %h, %h scale 1.000000e+00 {causal} : tensor<1x2x1x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16> -> tensor<1x2x1x8xbf16>
  %2 = ax.attention %h, %s, %s scale 1.000000e+00 {causal} : tensor<1x2x16x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16> -> tensor<1x2x16x8xbf16>
  axl.yield %0, %1, %2 : tensor<1x2x4x8xbf16>, tensor<1x2x1x8xbf16>, tensor<1x2x16x8xbf16>
}

// Layers, and their gradients, that read one mask add one tensor. What queries
// give that attend to nothing has no gradient. Gradients are given the sums.
// CHECK-LABEL: axl.stage @layers
// CHECK: %[[B:.*]] = ax.cast %{{.*}} -> tensor<1x1x1x16xbf16>
// CHECK: %[[Y:.*]], %[[S:.*]] = axl.attention %arg0, %arg0, %arg0 mask %[[B]] : tensor<1x1x1x16xbf16> scale
// CHECK: axl.attention_gradient %arg0, {{.*}} mask %[[B]] : tensor<1x1x1x16xbf16> sums %[[S]] scale
// MERGED-LABEL: axl.stage @layers
// MERGED-COUNT-1: ax.reduce max
// MERGED: %[[B:.*]] = ax.cast %{{.*}} -> tensor<1x1x1x16xbf16>
// MERGED: %[[Y:.*]], %[[S:.*]] = axl.attention %arg0, %arg0, %arg0 mask %[[B]] : tensor<1x1x1x16xbf16> scale
// MERGED: %[[F:.*]] = ax.select %[[E:.*]], %{{.*}}, %[[Y]]
// MERGED: %[[T:.*]], %[[U:.*]] = axl.attention %[[F]], %[[F]], %[[F]] mask %[[B]]
// MERGED: ax.select %[[E]], %{{.*}}, %[[T]]
// MERGED: %[[G:.*]] = ax.select %[[E]], %{{.*}}, %arg1
// MERGED: axl.attention_gradient {{.*}}, %[[G]] mask %[[B]] : tensor<1x1x1x16xbf16> sums %[[U]] scale
// MERGED: axl.attention_gradient %arg0, %arg0, %arg0, %[[F]], {{.*}} mask %[[B]] : tensor<1x1x1x16xbf16> sums %[[S]] scale
// MERGED-NOT: ax.reduce
axl.stage @layers(%q: tensor<1x2x16x8xbf16>, %g: tensor<1x2x16x8xbf16>, %m: tensor<1x1x1x16xi1>) {
  %0 = ax.attention %q, %q, %q mask %m : tensor<1x1x1x16xi1> scale 1.000000e+00 {empty_rows_zero} : tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16> -> tensor<1x2x16x8xbf16>
  %1 = ax.attention %0, %0, %0 mask %m : tensor<1x1x1x16xi1> scale 1.000000e+00 {empty_rows_zero} : tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16> -> tensor<1x2x16x8xbf16>
  %a:3 = ax.attention_gradient %0, %0, %0, %1, %g mask %m : tensor<1x1x1x16xi1> scale 1.000000e+00 {empty_rows_zero} : tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16> -> tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>
  %b:3 = ax.attention_gradient %q, %q, %q, %0, %a#0 mask %m : tensor<1x1x1x16xi1> scale 1.000000e+00 {empty_rows_zero} : tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16> -> tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>
  axl.yield %1, %a#1, %a#2, %b#0, %b#1, %b#2 : tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>
}

// A gradient of what another stage computed is given no sums, nor is one of
// another mask; causal ones of other numbers of keys are masks, too.
// CHECK-LABEL: axl.stage @sums
// MERGED-LABEL: axl.stage @sums
// CHECK: ax.reduce max
// CHECK: %[[M:.*]] = ax.select %{{.*}} -> tensor<1x1x16x4xf32>
// CHECK: %[[B:.*]] = ax.cast %[[M]] : tensor<1x1x16x4xf32> -> tensor<1x1x16x4xbf16>
// CHECK: %{{.*}}, %[[S:.*]] = axl.attention {{.*}} mask %[[B]] : tensor<1x1x16x4xbf16> scale
// CHECK-NOT: ax.reduce
// CHECK: axl.attention_gradient {{.*}} mask %[[B]] : tensor<1x1x16x4xbf16> sums %[[S]] scale 1.000000e+00 :
// CHECK: ax.attention_gradient {{.*}} mask %{{.*}} : tensor<1x1x16x4xbf16> scale 1.000000e+00 :
// CHECK: ax.attention_gradient {{.*}} mask %{{.*}} : tensor<1x1x16x4xbf16> scale 1.000000e+00 :
axl.stage @sums(%q: tensor<1x2x16x8xbf16>, %k: tensor<1x2x4x8xbf16>, %g: tensor<1x2x16x8xbf16>, %m: tensor<1x1x16x4xi1>) {
  %0 = ax.attention %q, %k, %k scale 1.000000e+00 {causal} : tensor<1x2x16x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16> -> tensor<1x2x16x8xbf16>
  %a:3 = ax.attention_gradient %q, %k, %k, %0, %g scale 1.000000e+00 {causal} : tensor<1x2x16x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16> -> tensor<1x2x16x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>
  %b:3 = ax.attention_gradient %q, %k, %k, %g, %g mask %m : tensor<1x1x16x4xi1> scale 1.000000e+00 : tensor<1x2x16x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16> -> tensor<1x2x16x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>
  %c:3 = ax.attention_gradient %q, %k, %k, %0, %g mask %m : tensor<1x1x16x4xi1> scale 1.000000e+00 {causal} : tensor<1x2x16x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16> -> tensor<1x2x16x8xbf16>, tensor<1x2x4x8xbf16>, tensor<1x2x4x8xbf16>
  axl.yield %a#0, %b#0, %c#0 : tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>
}

// Beside causality with as many keys as queries a window is cuDNN's own, also in the
// gradient; whether each query sees a key of a mask depends on it. One of other numbers
// of keys, or from places, is written into the mask.
// CHECK-LABEL: axl.stage @windows
// CHECK: %[[D:.*]] = ax.compare gt
// CHECK: ax.binary logical_and %{{.*}}, %[[D]]
// CHECK: ax.reduce max
// CHECK: %[[Y:.*]], %[[S:.*]] = axl.attention %arg0, %arg0, %arg0 mask %[[B:.*]] : tensor<1x1x16x16xbf16> scale 1.000000e+00 {causal, empty_rows_zero, window = 4 : i64} :
// CHECK: axl.attention_gradient {{.*}} mask %[[B]] : tensor<1x1x16x16xbf16> sums %[[S]] scale 1.000000e+00 {causal, empty_rows_zero, window = 4 : i64} :
// CHECK: ax.attention %arg0, %arg1, %arg1 mask %{{.*}} : tensor<1x1x16x32xbf16> scale 1.000000e+00 :
// CHECK: ax.compare le
// CHECK: ax.compare gt
// CHECK: ax.attention %arg0, %arg0, %arg0 mask %{{.*}} : tensor<1x1x16x16xbf16> scale 1.000000e+00 :
axl.stage @windows(%q: tensor<1x2x16x8xbf16>, %k: tensor<1x2x32x8xbf16>, %m: tensor<1x1x1x16xi1>, %p: tensor<1x1x1x1xi64>) {
  %0 = ax.attention %q, %q, %q mask %m : tensor<1x1x1x16xi1> scale 1.000000e+00 {causal, window = 4 : i64, empty_rows_zero} : tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16> -> tensor<1x2x16x8xbf16>
  %a:3 = ax.attention_gradient %q, %q, %q, %0, %q mask %m : tensor<1x1x1x16xi1> scale 1.000000e+00 {causal, window = 4 : i64, empty_rows_zero} : tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16> -> tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>
  %1 = ax.attention %q, %k, %k scale 1.000000e+00 {causal, window = 4 : i64} : tensor<1x2x16x8xbf16>, tensor<1x2x32x8xbf16>, tensor<1x2x32x8xbf16> -> tensor<1x2x16x8xbf16>
  %2 = ax.attention %q, %q, %q mask %p : tensor<1x1x1x1xi64> scale 1.000000e+00 {window = 4 : i64} : tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16> -> tensor<1x2x16x8xbf16>
  axl.yield %0, %a#0, %1, %2 : tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>
}
