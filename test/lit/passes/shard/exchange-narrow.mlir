// RUN: axopt-opt %s -pass-pipeline='builtin.module(ax.plan(ax-exchange-narrow))' | FileCheck %s

ax.plan @p version 1 {
ax.mesh [row = 2, col = 2]

// As DequantizeLinear has it; the channels' scales are whole along what is moved.
// CHECK-LABEL: ax.program @quantised
// CHECK: %[[G:.*]] = ax.all_gather %arg0 over {col} because "a" {stage = 1 : i64} : tensor<8x4xui8, #ax.layout<[{col}, {}]>> -> tensor<8x4xui8, #ax.layout<[{}, {}]>>
// CHECK: %[[C:.*]] = ax.cast %[[G]] {node = "q", stage = 1 : i64} : tensor<8x4xui8, #ax.layout<[{}, {}]>> -> tensor<8x4xi32, #ax.layout<[{}, {}]>>
// CHECK: %[[S:.*]] = ax.binary sub %[[C]], %{{.*}} -> tensor<8x4xi32, #ax.layout<[{}, {}]>>
// CHECK: %[[F:.*]] = ax.cast %[[S]]
// CHECK: %[[Y:.*]] = ax.binary mul %[[F]], %{{.*}}
// CHECK-NOT: ax.all_gather
// CHECK: ax.return %[[Y]]
ax.program @quantised(%q: tensor<8x4xui8, #ax.layout<[{col}, {}]>>) -> tensor<8x4xf32, #ax.layout<[{}, {}]>> {
  %s = ax.constant dense<2.0> : tensor<1x4xf32> -> tensor<1x4xf32, #ax.layout<[{}, {}]>>
  %z = ax.constant dense<7> : tensor<i32> -> tensor<i32, #ax.layout<[]>>
  %0 = ax.cast %q {node = "q", stage = 0} : tensor<8x4xui8, #ax.layout<[{col}, {}]>> -> tensor<8x4xi32, #ax.layout<[{col}, {}]>>
  %1 = ax.binary sub %0, %z {stage = 0} : tensor<8x4xi32, #ax.layout<[{col}, {}]>>, tensor<i32, #ax.layout<[]>> -> tensor<8x4xi32, #ax.layout<[{col}, {}]>>
  %2 = ax.cast %1 {stage = 0} : tensor<8x4xi32, #ax.layout<[{col}, {}]>> -> tensor<8x4xf32, #ax.layout<[{col}, {}]>>
  %3 = ax.binary mul %2, %s {stage = 0} : tensor<8x4xf32, #ax.layout<[{col}, {}]>>, tensor<1x4xf32, #ax.layout<[{}, {}]>> -> tensor<8x4xf32, #ax.layout<[{col}, {}]>>
  %4 = ax.all_gather %3 over {col} because "a" {stage = 1} : tensor<8x4xf32, #ax.layout<[{col}, {}]>> -> tensor<8x4xf32, #ax.layout<[{}, {}]>>
  ax.return %4 : tensor<8x4xf32, #ax.layout<[{}, {}]>>
}

// What goes on being read where it is, is made there, too; squares read one thing.
// CHECK-LABEL: ax.program @both
// CHECK: %[[W:.*]] = ax.cast %arg0 : tensor<8xi8, #ax.layout<[{col}]>> -> tensor<8xf32, #ax.layout<[{col}]>>
// CHECK: %[[T:.*]] = ax.all_to_all %arg1 over {row}
// CHECK: %[[X:.*]] = ax.cast %[[T]]
// CHECK: ax.binary mul %[[X]], %[[X]]
// CHECK: %[[G:.*]] = ax.all_gather %arg0 over {col}
// CHECK: %[[V:.*]] = ax.cast %[[G]]
// CHECK: ax.return %[[W]], %[[V]]
ax.program @both(%q: tensor<8xi8, #ax.layout<[{col}]>>, %x: tensor<4x4xbf16, #ax.layout<[{row}, {}]>>) -> (tensor<8xf32, #ax.layout<[{col}]>>, tensor<8xf32, #ax.layout<[{}]>>, tensor<4x4xf32, #ax.layout<[{}, {row}]>>) {
  %0 = ax.cast %q : tensor<8xi8, #ax.layout<[{col}]>> -> tensor<8xf32, #ax.layout<[{col}]>>
  %2 = ax.cast %x : tensor<4x4xbf16, #ax.layout<[{row}, {}]>> -> tensor<4x4xf32, #ax.layout<[{row}, {}]>>
  %3 = ax.binary mul %2, %2 : tensor<4x4xf32, #ax.layout<[{row}, {}]>>, tensor<4x4xf32, #ax.layout<[{row}, {}]>> -> tensor<4x4xf32, #ax.layout<[{row}, {}]>>
  %4 = ax.all_to_all %3 over {row} : tensor<4x4xf32, #ax.layout<[{row}, {}]>> -> tensor<4x4xf32, #ax.layout<[{}, {row}]>>
  %1 = ax.all_gather %0 over {col} : tensor<8xf32, #ax.layout<[{col}]>> -> tensor<8xf32, #ax.layout<[{}]>>
  ax.return %0, %1, %4 : tensor<8xf32, #ax.layout<[{col}]>>, tensor<8xf32, #ax.layout<[{}]>>, tensor<4x4xf32, #ax.layout<[{}, {row}]>>
}

// Scales that are split as what is gathered, or belong to another stage; a sum of two;
// what is expensive; what gets narrower.
// CHECK-LABEL: ax.program @stays
// CHECK-NOT: ax.all_gather %arg0
// CHECK: ax.return
ax.program @stays(%q: tensor<8xi8, #ax.layout<[{col}]>>, %s: tensor<8xf32, #ax.layout<[{col}]>>, %t: tensor<1xf32, #ax.layout<[{}]>>) -> (tensor<8xf32, #ax.layout<[{}]>>, tensor<8xf32, #ax.layout<[{}]>>, tensor<8xf32, #ax.layout<[{}]>>, tensor<8xbf16, #ax.layout<[{}]>>) {
  %0 = ax.cast %q : tensor<8xi8, #ax.layout<[{col}]>> -> tensor<8xf32, #ax.layout<[{col}]>>
  %1 = ax.binary mul %0, %s : tensor<8xf32, #ax.layout<[{col}]>>, tensor<8xf32, #ax.layout<[{col}]>> -> tensor<8xf32, #ax.layout<[{col}]>>
  %2 = ax.all_gather %1 over {col} : tensor<8xf32, #ax.layout<[{col}]>> -> tensor<8xf32, #ax.layout<[{}]>>
  %u = ax.unary neg %t {stage = 0} : tensor<1xf32, #ax.layout<[{}]>> -> tensor<1xf32, #ax.layout<[{}]>>
  %3 = ax.binary mul %0, %u {stage = 1} : tensor<8xf32, #ax.layout<[{col}]>>, tensor<1xf32, #ax.layout<[{}]>> -> tensor<8xf32, #ax.layout<[{col}]>>
  %4 = ax.all_gather %3 over {col} {stage = 1} : tensor<8xf32, #ax.layout<[{col}]>> -> tensor<8xf32, #ax.layout<[{}]>>
  %5 = ax.unary exp %0 : tensor<8xf32, #ax.layout<[{col}]>> -> tensor<8xf32, #ax.layout<[{col}]>>
  %6 = ax.all_gather %5 over {col} : tensor<8xf32, #ax.layout<[{col}]>> -> tensor<8xf32, #ax.layout<[{}]>>
  %7 = ax.cast %s : tensor<8xf32, #ax.layout<[{col}]>> -> tensor<8xbf16, #ax.layout<[{col}]>>
  %8 = ax.all_gather %7 over {col} : tensor<8xbf16, #ax.layout<[{col}]>> -> tensor<8xbf16, #ax.layout<[{}]>>
  ax.return %2, %4, %6, %8 : tensor<8xf32, #ax.layout<[{}]>>, tensor<8xf32, #ax.layout<[{}]>>, tensor<8xf32, #ax.layout<[{}]>>, tensor<8xbf16, #ax.layout<[{}]>>
}

// What attention and its gradient round, and nobody else reads, is rounded first.
// CHECK-LABEL: ax.program @attention
// CHECK: %[[K:.*]] = ax.cast %arg1 {stage = 0 : i64} : tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {col}, {}]>> -> tensor<1x2x8x8xbf16, #ax.layout<[{}, {}, {col}, {}]>>
// CHECK: %[[G:.*]] = ax.all_gather %[[K]] over {col} {stage = 0 : i64} : {{.*}} -> tensor<1x2x8x8xbf16, #ax.layout<[{}, {}, {}, {}]>>
// CHECK: %[[W:.*]] = ax.cast %[[G]] {stage = 0 : i64} : {{.*}} -> tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {}, {}]>>
// CHECK: %[[V:.*]] = ax.all_gather %arg2 over {col} : tensor<1x2x8x8xf32
// CHECK: ax.attention %arg0, %[[W]], %[[V]]
// CHECK: ax.attention_gradient %arg0, %[[W]], %[[V]]
ax.program @attention(%q: tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {col}, {}]>>, %k: tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {col}, {}]>>, %v: tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {col}, {}]>>) -> (tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {col}, {}]>>, tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {}, {}]>>) {
  %0 = ax.all_gather %k over {col} {stage = 0} : tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {col}, {}]>> -> tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {}, {}]>>
  %1 = ax.all_gather %v over {col} : tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {col}, {}]>> -> tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {}, {}]>>
  %2 = ax.attention %q, %0, %1 scale 1.0 {product_type = bf16} : tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {col}, {}]>>, tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {}, {}]>>, tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {}, {}]>> -> tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {col}, {}]>>
  %dq, %dk, %dv = ax.attention_gradient %q, %0, %1, %2, %q scale 1.0 {product_type = bf16} : tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {col}, {}]>>, tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {}, {}]>>, tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {}, {}]>>, tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {col}, {}]>>, tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {col}, {}]>> -> tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {col}, {}]>>, tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {}, {}], partial sum {col}>>, tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {}, {}], partial sum {col}>>
  ax.return %dq, %1 : tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {col}, {}]>>, tensor<1x2x8x8xf32, #ax.layout<[{}, {}, {}, {}]>>
}
}
