// RUN: axopt-opt %s -ax-normalize -cse -ax-raise-attention -ax-normalize -cse | FileCheck %s

ax.plan @masks version 1 {

// Padding and a triangle that the model stores, as newer exports have them: what is
// not padding is left.
// CHECK-LABEL: ax.program @conditions
// CHECK: %[[K:.*]] = ax.reshape %arg3 : tensor<2x4xi1> -> tensor<2x1x1x4xi1>
// CHECK-NEXT: ax.attention %arg0, %arg1, %arg2 mask %[[K]] : tensor<2x1x1x4xi1> scale 1.000000e+00 {causal, empty_rows_zero}
ax.program @conditions(%q: tensor<2x2x3x4xf32>, %k: tensor<2x2x4x4xf32>, %v: tensor<2x2x4x4xf32>, %padding: tensor<2x4xi1>) -> (tensor<2x2x3x4xf32>) {
  %seen = ax.constant dense<[[true, true, false, false], [true, true, true, false], [true, true, true, true]]> : tensor<3x4xi1> -> tensor<3x4xi1>
  %0 = ax.reshape %padding : tensor<2x4xi1> -> tensor<2x1x4xi1>
  %1 = ax.binary logical_and %0, %seen : tensor<2x1x4xi1>, tensor<3x4xi1> -> tensor<2x3x4xi1>
  %m = ax.reshape %1 : tensor<2x3x4xi1> -> tensor<2x1x3x4xi1>
  %r = ax.attention %q, %k, %v mask %m : tensor<2x1x3x4xi1> scale 1.0 {empty_rows_zero} : tensor<2x2x3x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32> -> tensor<2x2x3x4xf32>
  ax.return %r : tensor<2x2x3x4xf32>
}

// The lowest number is not infinity: a query that sees no key attends to all alike.
// Layers share what is found.
// CHECK-LABEL: ax.program @numbers
// CHECK: %[[K:.*]] = ax.reshape %arg3 : tensor<2x4xi1> -> tensor<2x1x1x4xi1>
// CHECK-NEXT: ax.attention %arg0, %arg1, %arg2 mask %[[K]] : tensor<2x1x1x4xi1> scale 1.000000e+00 {causal, empty_rows_mean}
// CHECK-NEXT: ax.attention %arg0, %arg1, %arg2 mask %[[K]] : tensor<2x1x1x4xi1> scale 2.000000e+00 {causal, empty_rows_mean}
// CHECK-NEXT: ax.return
ax.program @numbers(%q: tensor<2x2x4x4xf32>, %k: tensor<2x2x4x4xf32>, %v: tensor<2x2x4x4xf32>, %padding: tensor<2x4xi1>) -> (tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>) {
  %row = ax.iota dim 0 : tensor<4x1xi64>
  %column = ax.iota dim 1 : tensor<1x4xi64>
  %seen = ax.compare le %column, %row : tensor<1x4xi64>, tensor<4x1xi64> -> tensor<4x4xi1>
  %zero = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %low = ax.constant dense<-3.40282347E+38> : tensor<f32> -> tensor<f32>
  %0 = ax.reshape %padding : tensor<2x4xi1> -> tensor<2x1x4xi1>
  %1 = ax.binary logical_and %0, %seen : tensor<2x1x4xi1>, tensor<4x4xi1> -> tensor<2x4x4xi1>
  %2 = ax.select %1, %zero, %low : tensor<2x4x4xi1>, tensor<f32>, tensor<f32> -> tensor<2x4x4xf32>
  %m = ax.reshape %2 : tensor<2x4x4xf32> -> tensor<2x1x4x4xf32>
  %r = ax.attention %q, %k, %v mask %m : tensor<2x1x4x4xf32> scale 1.0 {empty_rows_zero} : tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32> -> tensor<2x2x4x4xf32>
  %s = ax.attention %q, %k, %v mask %m : tensor<2x1x4x4xf32> scale 2.0 : tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32> -> tensor<2x2x4x4xf32>
  ax.return %r, %s : tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>
}

// What an older export of Llama asks: whether padding and what is hidden are 0
// together. Behind the diagonal it has the same number for both answers.
// CHECK-LABEL: ax.program @compared
// CHECK: %[[N:.*]] = ax.cast %arg3
// CHECK: %[[P:.*]] = ax.compare eq %[[N]]
// CHECK: ax.unary logical_not %[[P]] : tensor<2x4xi1>
// CHECK: ax.attention %arg0, %arg1, %arg2 mask %{{.*}} : tensor<2x1x1x4xi1> scale 1.000000e+00 {causal, empty_rows_mean}
ax.program @compared(%q: tensor<2x2x4x4xf32>, %k: tensor<2x2x4x4xf32>, %v: tensor<2x2x4x4xf32>, %padding: tensor<2x4xi64>) -> (tensor<2x2x4x4xf32>) {
  %causal = ax.constant dense<[[[[0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, 0.0, -3.40282347E+38], [0.0, 0.0, 0.0, 0.0]]]]> : tensor<1x1x4x4xf32> -> tensor<1x1x4x4xf32>
  %zero = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %low = ax.constant dense<-3.40282347E+38> : tensor<f32> -> tensor<f32>
  %0 = ax.cast %padding : tensor<2x4xi64> -> tensor<2x4xf32>
  %1 = ax.reshape %0 : tensor<2x4xf32> -> tensor<2x1x1x4xf32>
  %2 = ax.binary add %1, %causal : tensor<2x1x1x4xf32>, tensor<1x1x4x4xf32> -> tensor<2x1x4x4xf32>
  %3 = ax.compare eq %2, %zero : tensor<2x1x4x4xf32>, tensor<f32> -> tensor<2x1x4x4xi1>
  %m = ax.select %3, %low, %causal : tensor<2x1x4x4xi1>, tensor<f32>, tensor<1x1x4x4xf32> -> tensor<2x1x4x4xf32>
  %r = ax.attention %q, %k, %v mask %m : tensor<2x1x4x4xf32> scale 1.0 : tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32> -> tensor<2x2x4x4xf32>
  ax.return %r : tensor<2x2x4x4xf32>
}

// Infinity twice is infinity, and a query that sees no key gives NaN as before. Of
// ranges of this size nobody looks at elements; the padding is that of each head.
// CHECK-LABEL: ax.program @infinity
// CHECK: ax.attention %arg0, %arg1, %arg2 mask %{{.*}} : tensor<1x2x1x700xi1> scale 1.000000e+00 {causal} :
ax.program @infinity(%q: tensor<1x2x600x4xf32>, %k: tensor<1x2x700x4xf32>, %v: tensor<1x2x700x4xf32>, %hidden: tensor<2x1x700xi1>) -> (tensor<1x2x600x4xf32>) {
  %row = ax.iota dim 0 : tensor<600x1xi64>
  %column = ax.iota dim 1 : tensor<1x700xi64>
  %difference = ax.binary sub %column, %row : tensor<1x700xi64>, tensor<600x1xi64> -> tensor<600x700xi64>
  %more = ax.constant dense<100> : tensor<i64> -> tensor<i64>
  %later = ax.compare gt %difference, %more : tensor<600x700xi64>, tensor<i64> -> tensor<600x700xi1>
  %zero = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %none = ax.constant dense<0xFF800000> : tensor<f32> -> tensor<f32>
  %0 = ax.select %hidden, %none, %zero : tensor<2x1x700xi1>, tensor<f32>, tensor<f32> -> tensor<2x1x700xf32>
  %1 = ax.select %later, %none, %zero : tensor<600x700xi1>, tensor<f32>, tensor<f32> -> tensor<600x700xf32>
  %2 = ax.binary add %0, %1 : tensor<2x1x700xf32>, tensor<600x700xf32> -> tensor<2x600x700xf32>
  %m = ax.reshape %2 : tensor<2x600x700xf32> -> tensor<1x2x600x700xf32>
  %r = ax.attention %q, %k, %v mask %m : tensor<1x2x600x700xf32> scale 1.0 : tensor<1x2x600x4xf32>, tensor<1x2x700x4xf32>, tensor<1x2x700x4xf32> -> tensor<1x2x600x4xf32>
  ax.return %r : tensor<1x2x600x4xf32>
}

// Where infinity hides what is later, any numbers may be added to keys: the lowest,
// twice, as GPT-2 has its own triangle beside that of the library, or what an input
// has.
// CHECK-LABEL: ax.program @added
// CHECK: %[[L:.*]] = ax.select %arg3, %{{.*}}, %{{.*}} : {{.*}} -> tensor<2x1x1x4xf32>
// CHECK: ax.attention %arg0, %arg1, %arg2 mask %[[L]] : tensor<2x1x1x4xf32> scale 1.000000e+00 {causal} :
// CHECK: ax.attention %arg0, %arg1, %arg2 mask %arg4 : tensor<2x1x1x4xf32> scale 1.000000e+00 {causal} :
ax.program @added(%q: tensor<2x2x4x4xf32>, %k: tensor<2x2x4x4xf32>, %v: tensor<2x2x4x4xf32>, %padding: tensor<2x1x1x4xi1>, %numbers: tensor<2x1x1x4xf32>) -> (tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>) {
  %row = ax.iota dim 0 : tensor<4x1xi64>
  %column = ax.iota dim 1 : tensor<1x4xi64>
  %seen = ax.compare le %column, %row : tensor<1x4xi64>, tensor<4x1xi64> -> tensor<4x4xi1>
  %zero = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %low = ax.constant dense<-3.40282347E+38> : tensor<f32> -> tensor<f32>
  %none = ax.constant dense<0xFF800000> : tensor<f32> -> tensor<f32>
  %both = ax.binary logical_and %padding, %seen : tensor<2x1x1x4xi1>, tensor<4x4xi1> -> tensor<2x1x4x4xi1>
  %0 = ax.select %both, %zero, %low : tensor<2x1x4x4xi1>, tensor<f32>, tensor<f32> -> tensor<2x1x4x4xf32>
  %1 = ax.select %seen, %zero, %low : tensor<4x4xi1>, tensor<f32>, tensor<f32> -> tensor<4x4xf32>
  %twice = ax.binary add %0, %1 : tensor<2x1x4x4xf32>, tensor<4x4xf32> -> tensor<2x1x4x4xf32>
  %r = ax.attention %q, %k, %v mask %twice : tensor<2x1x4x4xf32> scale 1.0 : tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32> -> tensor<2x2x4x4xf32>
  %2 = ax.select %seen, %numbers, %none : tensor<4x4xi1>, tensor<2x1x1x4xf32>, tensor<f32> -> tensor<2x1x4x4xf32>
  %s = ax.attention %q, %k, %v mask %2 : tensor<2x1x4x4xf32> scale 1.0 : tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32> -> tensor<2x2x4x4xf32>
  ax.return %r, %s : tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>
}

// Not these: the lowest number twice, which is infinity where both hide; a number
// beside which large scores still tell; what an input has for each query; keys hidden by
// another number than what is later.
// CHECK-LABEL: ax.program @others
// CHECK-COUNT-4: ax.attention %arg0, %arg1, %arg2 mask %{{.*}} : tensor<2x1x4x4x{{f32|i1}}> scale 1.000000e+00 :
// CHECK-NOT: ax.attention
ax.program @others(%q: tensor<2x2x4x4xf32>, %k: tensor<2x2x4x4xf32>, %v: tensor<2x2x4x4xf32>, %padding: tensor<2x1x1x4xi1>, %each: tensor<2x1x4x4xi1>) -> (tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>) {
  %row = ax.iota dim 0 : tensor<4x1xi64>
  %column = ax.iota dim 1 : tensor<1x4xi64>
  %seen = ax.compare le %column, %row : tensor<1x4xi64>, tensor<4x1xi64> -> tensor<4x4xi1>
  %zero = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %low = ax.constant dense<-3.40282347E+38> : tensor<f32> -> tensor<f32>
  %other = ax.constant dense<-1.0E+38> : tensor<f32> -> tensor<f32>
  %large = ax.constant dense<-1.0E+9> : tensor<f32> -> tensor<f32>
  %ofKeys = ax.select %padding, %zero, %low : tensor<2x1x1x4xi1>, tensor<f32>, tensor<f32> -> tensor<2x1x1x4xf32>
  %ofPlaces = ax.select %seen, %zero, %low : tensor<4x4xi1>, tensor<f32>, tensor<f32> -> tensor<4x4xf32>
  %twice = ax.binary add %ofKeys, %ofPlaces : tensor<2x1x1x4xf32>, tensor<4x4xf32> -> tensor<2x1x4x4xf32>
  %r0 = ax.attention %q, %k, %v mask %twice : tensor<2x1x4x4xf32> scale 1.0 : tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32> -> tensor<2x2x4x4xf32>
  %both = ax.binary logical_and %padding, %seen : tensor<2x1x1x4xi1>, tensor<4x4xi1> -> tensor<2x1x4x4xi1>
  %some = ax.select %both, %zero, %large : tensor<2x1x4x4xi1>, tensor<f32>, tensor<f32> -> tensor<2x1x4x4xf32>
  %r1 = ax.attention %q, %k, %v mask %some : tensor<2x1x4x4xf32> scale 1.0 : tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32> -> tensor<2x2x4x4xf32>
  %given = ax.binary logical_and %each, %seen : tensor<2x1x4x4xi1>, tensor<4x4xi1> -> tensor<2x1x4x4xi1>
  %r3 = ax.attention %q, %k, %v mask %given : tensor<2x1x4x4xi1> scale 1.0 : tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32> -> tensor<2x2x4x4xf32>
  %unlike = ax.select %padding, %zero, %other : tensor<2x1x1x4xi1>, tensor<f32>, tensor<f32> -> tensor<2x1x1x4xf32>
  %mixed = ax.select %seen, %unlike, %low : tensor<4x4xi1>, tensor<2x1x1x4xf32>, tensor<f32> -> tensor<2x1x4x4xf32>
  %r4 = ax.attention %q, %k, %v mask %mixed : tensor<2x1x4x4xf32> scale 1.0 : tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32> -> tensor<2x2x4x4xf32>
  ax.return %r0, %r1, %r3, %r4 : tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>
}

// Beside causality that hides by infinity, the lowest number is no infinity.
// CHECK-LABEL: ax.program @causal
// CHECK: ax.attention %arg0, %arg1, %arg2 mask %{{.*}} : tensor<2x1x4x4xf32> scale 1.000000e+00 {causal} :
ax.program @causal(%q: tensor<2x2x4x4xf32>, %k: tensor<2x2x4x4xf32>, %v: tensor<2x2x4x4xf32>, %padding: tensor<2x1x1x4xi1>) -> (tensor<2x2x4x4xf32>) {
  %row = ax.iota dim 0 : tensor<4x1xi64>
  %column = ax.iota dim 1 : tensor<1x4xi64>
  %seen = ax.compare le %column, %row : tensor<1x4xi64>, tensor<4x1xi64> -> tensor<4x4xi1>
  %zero = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %low = ax.constant dense<-3.40282347E+38> : tensor<f32> -> tensor<f32>
  %both = ax.binary logical_and %padding, %seen : tensor<2x1x1x4xi1>, tensor<4x4xi1> -> tensor<2x1x4x4xi1>
  %m = ax.select %both, %zero, %low : tensor<2x1x4x4xi1>, tensor<f32>, tensor<f32> -> tensor<2x1x4x4xf32>
  %r = ax.attention %q, %k, %v mask %m : tensor<2x1x4x4xf32> scale 1.0 {causal} : tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4x4xf32> -> tensor<2x2x4x4xf32>
  ax.return %r : tensor<2x2x4x4xf32>
}

// Of a window keys are hidden that are too far back, too: as newer exports have it, with
// padding; as they have it alone; and of a window that no query reaches the end of.
// CHECK-LABEL: ax.program @windows
// CHECK: ax.attention %arg0, %arg1, %arg2 mask %{{.*}} : tensor<2x1x1x6xi1> scale 1.000000e+00 {causal, empty_rows_mean, window = 2 : i64} :
// CHECK: ax.attention %arg0, %arg1, %arg2 scale 1.000000e+00 {causal, window = 2 : i64} :
// CHECK: ax.attention %arg0, %arg1, %arg2 scale 1.000000e+00 {causal} :
ax.program @windows(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %padding: tensor<2x1x1x6xi1>) -> (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) {
  %row = ax.iota dim 0 : tensor<6x1xi64>
  %column = ax.iota dim 1 : tensor<1x6xi64>
  %two = ax.constant dense<2> : tensor<i64> -> tensor<i64>
  %six = ax.constant dense<6> : tensor<i64> -> tensor<i64>
  %zero = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %low = ax.constant dense<-3.40282347E+38> : tensor<f32> -> tensor<f32>
  %causal = ax.compare le %column, %row : tensor<1x6xi64>, tensor<6x1xi64> -> tensor<6x6xi1>
  %before = ax.binary sub %row, %two : tensor<6x1xi64>, tensor<i64> -> tensor<6x1xi64>
  %near = ax.compare gt %column, %before : tensor<1x6xi64>, tensor<6x1xi64> -> tensor<6x6xi1>
  %band = ax.binary logical_and %causal, %near : tensor<6x6xi1>, tensor<6x6xi1> -> tensor<6x6xi1>
  %seen = ax.binary logical_and %padding, %band : tensor<2x1x1x6xi1>, tensor<6x6xi1> -> tensor<2x1x6x6xi1>
  %m0 = ax.select %seen, %zero, %low : tensor<2x1x6x6xi1>, tensor<f32>, tensor<f32> -> tensor<2x1x6x6xf32>
  %r0 = ax.attention %q, %k, %v mask %m0 : tensor<2x1x6x6xf32> scale 1.0 : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32> -> tensor<2x2x6x4xf32>
  %m1 = ax.reshape %band : tensor<6x6xi1> -> tensor<1x1x6x6xi1>
  %r1 = ax.attention %q, %k, %v mask %m1 : tensor<1x1x6x6xi1> scale 1.0 : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32> -> tensor<2x2x6x4xf32>
  %start = ax.binary sub %row, %six : tensor<6x1xi64>, tensor<i64> -> tensor<6x1xi64>
  %all = ax.compare gt %column, %start : tensor<1x6xi64>, tensor<6x1xi64> -> tensor<6x6xi1>
  %both = ax.binary logical_and %causal, %all : tensor<6x6xi1>, tensor<6x6xi1> -> tensor<6x6xi1>
  %m2 = ax.reshape %both : tensor<6x6xi1> -> tensor<1x1x6x6xi1>
  %r2 = ax.attention %q, %k, %v mask %m2 : tensor<1x1x6x6xi1> scale 1.0 : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32> -> tensor<2x2x6x4xf32>
  ax.return %r0, %r1, %r2 : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>
}

// To both sides: a window that ends one key behind each query, of three; with padding
// each key has a place; without the window's begin, the place is all.
// CHECK-LABEL: ax.program @sides
// CHECK-DAG: %[[NEVER:.*]] = ax.constant dense<-12> : tensor<i64>
// CHECK-DAG: %[[ONE:.*]] = ax.constant dense<1> : tensor<1x1x1x1xi64>
// CHECK: ax.attention %arg0, %arg1, %arg2 mask %[[ONE]] : tensor<1x1x1x1xi64> scale 1.000000e+00 {window = 3 : i64} :
// CHECK: %[[P:.*]] = ax.select %arg3, %{{.*}}, %[[NEVER]] : {{.*}} -> tensor<2x1x1x6xi64>
// CHECK: ax.attention %arg0, %arg1, %arg2 mask %[[P]] : tensor<2x1x1x6xi64> scale 1.000000e+00 {empty_rows_zero, window = 3 : i64} :
// CHECK: ax.attention %arg0, %arg1, %arg2 mask %{{.*}} : tensor<1x1x1x1xi64> scale 1.000000e+00 :
ax.program @sides(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %padding: tensor<2x1x1x6xi1>) -> (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) {
  %row = ax.iota dim 0 : tensor<6x1xi64>
  %column = ax.iota dim 1 : tensor<1x6xi64>
  %one = ax.constant dense<1> : tensor<i64> -> tensor<i64>
  %next = ax.binary add %row, %one : tensor<6x1xi64>, tensor<i64> -> tensor<6x1xi64>
  %last = ax.binary sub %row, %one : tensor<6x1xi64>, tensor<i64> -> tensor<6x1xi64>
  %not.later = ax.compare le %column, %next : tensor<1x6xi64>, tensor<6x1xi64> -> tensor<6x6xi1>
  %not.before = ax.compare ge %column, %last : tensor<1x6xi64>, tensor<6x1xi64> -> tensor<6x6xi1>
  %band = ax.binary logical_and %not.later, %not.before : tensor<6x6xi1>, tensor<6x6xi1> -> tensor<6x6xi1>
  %m0 = ax.reshape %band : tensor<6x6xi1> -> tensor<1x1x6x6xi1>
  %r0 = ax.attention %q, %k, %v mask %m0 : tensor<1x1x6x6xi1> scale 1.0 : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32> -> tensor<2x2x6x4xf32>
  %m1 = ax.binary logical_and %padding, %band : tensor<2x1x1x6xi1>, tensor<6x6xi1> -> tensor<2x1x6x6xi1>
  %r1 = ax.attention %q, %k, %v mask %m1 : tensor<2x1x6x6xi1> scale 1.0 {empty_rows_zero} : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32> -> tensor<2x2x6x4xf32>
  %m2 = ax.reshape %not.later : tensor<6x6xi1> -> tensor<1x1x6x6xi1>
  %r2 = ax.attention %q, %k, %v mask %m2 : tensor<1x1x6x6xi1> scale 1.0 : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32> -> tensor<2x2x6x4xf32>
  ax.return %r0, %r1, %r2 : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>
}

// Beside its own causality attention needs no end of a window; one that hides less than
// that is none. Without an end it stays a mask, and so do bands of other numbers.
// CHECK-LABEL: ax.program @ends
// CHECK: ax.attention %arg0, %arg1, %arg2 scale 1.000000e+00 {causal, window = 3 : i64} :
// CHECK: ax.attention %arg0, %arg1, %arg2 mask %{{.*}} : tensor<1x1x6x6xi1> scale 1.000000e+00 :
// CHECK: ax.attention %arg0, %arg1, %arg2 mask %{{.*}} : tensor<1x1x6x6xf32> scale 1.000000e+00 :
ax.program @ends(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>) -> (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) {
  %row = ax.iota dim 0 : tensor<6x1xi64>
  %column = ax.iota dim 1 : tensor<1x6xi64>
  %three = ax.constant dense<3> : tensor<i64> -> tensor<i64>
  %before = ax.binary sub %row, %three : tensor<6x1xi64>, tensor<i64> -> tensor<6x1xi64>
  %near = ax.compare gt %column, %before : tensor<1x6xi64>, tensor<6x1xi64> -> tensor<6x6xi1>
  %m0 = ax.reshape %near : tensor<6x6xi1> -> tensor<1x1x6x6xi1>
  %r0 = ax.attention %q, %k, %v mask %m0 : tensor<1x1x6x6xi1> scale 1.0 {causal} : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32> -> tensor<2x2x6x4xf32>
  %r1 = ax.attention %q, %k, %v mask %m0 : tensor<1x1x6x6xi1> scale 1.0 : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32> -> tensor<2x2x6x4xf32>
  %causal = ax.compare le %column, %row : tensor<1x6xi64>, tensor<6x1xi64> -> tensor<6x6xi1>
  %zero = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %some = ax.constant dense<-2.0> : tensor<f32> -> tensor<f32>
  %none = ax.constant dense<0xFF800000> : tensor<f32> -> tensor<f32>
  %less = ax.select %near, %zero, %some : tensor<6x6xi1>, tensor<f32>, tensor<f32> -> tensor<6x6xf32>
  %added = ax.select %causal, %less, %none : tensor<6x6xi1>, tensor<6x6xf32>, tensor<f32> -> tensor<6x6xf32>
  %m2 = ax.reshape %added : tensor<6x6xf32> -> tensor<1x1x6x6xf32>
  %r2 = ax.attention %q, %k, %v mask %m2 : tensor<1x1x6x6xf32> scale 1.0 : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32> -> tensor<2x2x6x4xf32>
  ax.return %r0, %r1, %r2 : tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>
}
}
