// RUN: axopt-opt %s -ax-normalize -ax-raise-dropout -ax-normalize | FileCheck %s

// As exporters write stochastic depth: a mask for each sample, divided by the
// part that is kept.
// CHECK-LABEL: ax.program @main
// CHECK-DAG: %[[ONES:.*]] = ax.constant dense<1.0{{.*}}> : tensor<4x1xf32>
// CHECK-DAG: %[[S:.*]] = ax.load @seed
// CHECK: %[[D:.*]] = ax.dropout %[[ONES]] seed %[[S]] step %[[S]] rate 0.1999{{[0-9]*}} id 3
// CHECK: %[[Y:.*]] = ax.binary mul %arg0, %[[D]]
// CHECK: ax.return %[[Y]]
ax.plan @model version 1 {
ax.state @seed : tensor<i64>
ax.program @main(%x: tensor<4x8xf32> {ax.name = "x"}) -> (tensor<4x8xf32> {ax.name = "y"}) {
  %s = ax.load @seed : tensor<i64>
  %p = ax.constant dense<8.0e-01> : tensor<f32> -> tensor<f32>
  %u = ax.uniform seed %s step %s id 3 : tensor<i64>, tensor<i64> -> tensor<4x1xf32>
  %k = ax.compare lt %u, %p : tensor<4x1xf32>, tensor<f32> -> tensor<4x1xi1>
  %m = ax.cast %k : tensor<4x1xi1> -> tensor<4x1xf32>
  %d = ax.binary div %m, %p : tensor<4x1xf32>, tensor<f32> -> tensor<4x1xf32>
  %y = ax.binary mul %x, %d : tensor<4x8xf32>, tensor<4x1xf32> -> tensor<4x8xf32>
  ax.return %y : tensor<4x8xf32>
}

// In f16, where 0.8 is another number.
// CHECK-LABEL: ax.program @half
// CHECK: ax.dropout {{.*}} rate 0.2001953125 id 1 : tensor<4x1xf16>
ax.program @half(%x: tensor<4x8xf16> {ax.name = "x"}) -> (tensor<4x8xf16> {ax.name = "y"}) {
  %s = ax.load @seed : tensor<i64>
  %p = ax.constant dense<8.0e-01> : tensor<f16> -> tensor<f16>
  %w = ax.uniform seed %s step %s id 1 : tensor<i64>, tensor<i64> -> tensor<4x1xf32>
  %u = ax.cast %w : tensor<4x1xf32> -> tensor<4x1xf16>
  %k = ax.compare lt %u, %p : tensor<4x1xf16>, tensor<f16> -> tensor<4x1xi1>
  %m = ax.cast %k : tensor<4x1xi1> -> tensor<4x1xf16>
  %d = ax.binary div %m, %p : tensor<4x1xf16>, tensor<f16> -> tensor<4x1xf16>
  %y = ax.binary mul %x, %d : tensor<4x8xf16>, tensor<4x1xf16> -> tensor<4x8xf16>
  ax.return %y : tensor<4x8xf16>
}

// Not divided by what is kept: no dropout. Nor when the mask is used again:
// it would be another one.
// CHECK-LABEL: ax.program @others
// CHECK-NOT: ax.dropout
// CHECK: ax.return
ax.program @others(%x: tensor<4x1xf32> {ax.name = "x"}) -> (tensor<4x1xf32> {ax.name = "y"}, tensor<4x1xf32> {ax.name = "z"}, tensor<4x1xf32> {ax.name = "m"}) {
  %s = ax.load @seed : tensor<i64>
  %p = ax.constant dense<8.0e-01> : tensor<f32> -> tensor<f32>
  %q = ax.constant dense<5.0e-01> : tensor<f32> -> tensor<f32>
  %u = ax.uniform seed %s step %s id 0 : tensor<i64>, tensor<i64> -> tensor<4x1xf32>
  %k = ax.compare lt %u, %p : tensor<4x1xf32>, tensor<f32> -> tensor<4x1xi1>
  %m = ax.cast %k : tensor<4x1xi1> -> tensor<4x1xf32>
  %d = ax.binary div %m, %q : tensor<4x1xf32>, tensor<f32> -> tensor<4x1xf32>
  %y = ax.binary mul %x, %d : tensor<4x1xf32>, tensor<4x1xf32> -> tensor<4x1xf32>
  %v = ax.uniform seed %s step %s id 1 : tensor<i64>, tensor<i64> -> tensor<4x1xf32>
  %l = ax.compare lt %v, %p : tensor<4x1xf32>, tensor<f32> -> tensor<4x1xi1>
  %n = ax.cast %l : tensor<4x1xi1> -> tensor<4x1xf32>
  %e = ax.binary div %n, %p : tensor<4x1xf32>, tensor<f32> -> tensor<4x1xf32>
  %z = ax.binary mul %x, %e : tensor<4x1xf32>, tensor<4x1xf32> -> tensor<4x1xf32>
  ax.return %y, %z, %n : tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>
}

// The other side of the number, and the product divided.
// CHECK-LABEL: ax.program @above
// CHECK: %[[D:.*]] = ax.dropout {{.*}} rate 0.2{{[0-9]*}} id 0
// CHECK: %[[Y:.*]] = ax.binary mul %arg0, %[[D]]
// CHECK: ax.return %[[Y]]
ax.program @above(%x: tensor<4x8xf32> {ax.name = "x"}) -> (tensor<4x8xf32> {ax.name = "y"}) {
  %s = ax.load @seed : tensor<i64>
  %p = ax.constant dense<8.0e-01> : tensor<f32> -> tensor<f32>
  %q = ax.constant dense<2.0e-01> : tensor<f32> -> tensor<f32>
  %u = ax.uniform seed %s step %s id 0 : tensor<i64>, tensor<i64> -> tensor<4x1xf32>
  %k = ax.compare ge %u, %q : tensor<4x1xf32>, tensor<f32> -> tensor<4x1xi1>
  %m = ax.cast %k : tensor<4x1xi1> -> tensor<4x1xf32>
  %z = ax.binary mul %x, %m : tensor<4x8xf32>, tensor<4x1xf32> -> tensor<4x8xf32>
  %y = ax.binary div %z, %p : tensor<4x8xf32>, tensor<f32> -> tensor<4x8xf32>
  ax.return %y : tensor<4x8xf32>
}

// Operands in the other order, a choice, and the branch divided.
// CHECK-LABEL: ax.program @chosen
// CHECK: %[[D:.*]] = ax.dropout {{.*}} rate 0.1999{{[0-9]*}} id 0
// CHECK: %[[Y:.*]] = ax.binary mul %arg0, %[[D]]
// CHECK: ax.return %[[Y]]
ax.program @chosen(%x: tensor<4x8xf32> {ax.name = "x"}) -> (tensor<4x8xf32> {ax.name = "y"}) {
  %s = ax.load @seed : tensor<i64>
  %p = ax.constant dense<8.0e-01> : tensor<f32> -> tensor<f32>
  %q = ax.constant dense<2.0e-01> : tensor<f32> -> tensor<f32>
  %u = ax.uniform seed %s step %s id 0 : tensor<i64>, tensor<i64> -> tensor<4x1xf32>
  %one = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
  %zero = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
  %k = ax.compare gt %p, %u : tensor<f32>, tensor<4x1xf32> -> tensor<4x1xi1>
  %m = ax.select %k, %one, %zero : tensor<4x1xi1>, tensor<f32>, tensor<f32> -> tensor<4x1xf32>
  %z = ax.binary div %x, %p : tensor<4x8xf32>, tensor<f32> -> tensor<4x8xf32>
  %y = ax.binary mul %z, %m : tensor<4x8xf32>, tensor<4x1xf32> -> tensor<4x8xf32>
  ax.return %y : tensor<4x8xf32>
}

// The integer part of the sum.
// CHECK-LABEL: ax.program @floor
// CHECK: %[[D:.*]] = ax.dropout {{.*}} rate 0.1999{{[0-9]*}} id 0
// CHECK: %[[Y:.*]] = ax.binary mul %arg0, %[[D]]
// CHECK: ax.return %[[Y]]
ax.program @floor(%x: tensor<4x8xf32> {ax.name = "x"}) -> (tensor<4x8xf32> {ax.name = "y"}) {
  %s = ax.load @seed : tensor<i64>
  %p = ax.constant dense<8.0e-01> : tensor<f32> -> tensor<f32>
  %q = ax.constant dense<2.0e-01> : tensor<f32> -> tensor<f32>
  %u = ax.uniform seed %s step %s id 0 : tensor<i64>, tensor<i64> -> tensor<4x1xf32>
  %k = ax.binary add %p, %u : tensor<f32>, tensor<4x1xf32> -> tensor<4x1xf32>
  %m = ax.unary floor %k : tensor<4x1xf32> -> tensor<4x1xf32>
  %z = ax.binary div %x, %p : tensor<4x8xf32>, tensor<f32> -> tensor<4x8xf32>
  %y = ax.binary mul %z, %m : tensor<4x8xf32>, tensor<4x1xf32> -> tensor<4x8xf32>
  ax.return %y : tensor<4x8xf32>
}

// A rate that rounds to 1 is none.
// CHECK-LABEL: ax.program @never
// CHECK-NOT: ax.dropout
// CHECK: ax.return
ax.program @never(%x: tensor<4x8xf32> {ax.name = "x"}) -> (tensor<4x8xf32> {ax.name = "y"}) {
  %s = ax.load @seed : tensor<i64>
  %p = ax.constant dense<8.0e-01> : tensor<f32> -> tensor<f32>
  %q = ax.constant dense<2.0e-01> : tensor<f32> -> tensor<f32>
  %u = ax.uniform seed %s step %s id 0 : tensor<i64>, tensor<i64> -> tensor<4x1xf32>
  %t = ax.constant dense<1.0e-20> : tensor<f32> -> tensor<f32>
  %k = ax.compare lt %u, %t : tensor<4x1xf32>, tensor<f32> -> tensor<4x1xi1>
  %m = ax.cast %k : tensor<4x1xi1> -> tensor<4x1xf32>
  %d = ax.binary div %m, %t : tensor<4x1xf32>, tensor<f32> -> tensor<4x1xf32>
  %y = ax.binary mul %x, %d : tensor<4x8xf32>, tensor<4x1xf32> -> tensor<4x8xf32>
  ax.return %y : tensor<4x8xf32>
}

// Evaluation drops nothing.
// CHECK-LABEL: ax.program @eval
// CHECK-NEXT: ax.return %arg0
ax.program @eval(%x: tensor<4x8xf32> {ax.name = "x"}) -> (tensor<4x8xf32> {ax.name = "y"}) {
  %s = ax.load @seed : tensor<i64>
  %p = ax.constant dense<8.0e-01> : tensor<f32> -> tensor<f32>
  %u = ax.uniform seed %s step %s id 3 : tensor<i64>, tensor<i64> -> tensor<4x1xf32>
  %k = ax.compare lt %u, %p : tensor<4x1xf32>, tensor<f32> -> tensor<4x1xi1>
  %m = ax.cast %k : tensor<4x1xi1> -> tensor<4x1xf32>
  %d = ax.binary div %m, %p : tensor<4x1xf32>, tensor<f32> -> tensor<4x1xf32>
  %y = ax.binary mul %x, %d : tensor<4x8xf32>, tensor<4x1xf32> -> tensor<4x8xf32>
  ax.return %y : tensor<4x8xf32>
}
}
