// RUN: axopt-opt %s -pass-pipeline='builtin.module(ax.plan(ax-sum-partials))' | FileCheck %s

!row = tensor<f32, #ax.layout<[], partial sum {row}>>
!col = tensor<f32, #ax.layout<[], partial sum {col}>>
!both = tensor<f32, #ax.layout<[], partial sum {col, row}>>
!whole = tensor<f32, #ax.layout<[]>>

ax.plan @p version 1 {
ax.mesh [row = 2, col = 2]

// The terms of a norm, in turn over other axes: one reduction for each set. What
// is not reduced between is added at once.
// CHECK-LABEL: ax.program @norm
// CHECK-NEXT: %[[B:.*]] = ax.binary add %arg1, %arg3
// CHECK-NEXT: %[[A:.*]] = ax.binary add %arg0, %arg2
// CHECK-NEXT: %[[RA:.*]] = ax.all_reduce %[[A]] over {row} because "a"
// CHECK-NEXT: %[[RB:.*]] = ax.all_reduce %[[B]] over {col, row} because "b"
// CHECK-NEXT: %[[S:.*]] = ax.binary add %[[RA]], %[[RB]]
// CHECK-NEXT: %[[T:.*]] = ax.binary add %[[S]], %arg4
// CHECK-NEXT: ax.return %[[T]]
ax.program @norm(%a: !row, %b: !both, %c: !row, %d: !both, %e: !whole) -> !whole {
  %0 = ax.all_reduce %a over {row} because "a" : !row -> !whole
  %1 = ax.all_reduce %b over {col, row} because "b" : !both -> !whole
  %2 = ax.binary add %0, %1 : !whole, !whole -> !whole
  %3 = ax.to_partial %2 over {row} : !whole -> !row
  %4 = ax.binary add %3, %c : !row, !row -> !row
  %5 = ax.all_reduce %4 over {row} because "c" : !row -> !whole
  %6 = ax.all_reduce %d over {col, row} because "d" : !both -> !whole
  %7 = ax.binary add %5, %6 : !whole, !whole -> !whole
  %8 = ax.binary add %7, %e : !whole, !whole -> !whole
  ax.return %8 : !whole
}

// Of a sum that stays partial.
// CHECK-LABEL: ax.program @partial
// CHECK-NEXT: %[[A:.*]] = ax.binary add %arg0, %arg1
// CHECK-NEXT: %[[R:.*]] = ax.all_reduce %[[A]] over {col}
// CHECK-NEXT: %[[P:.*]] = ax.to_partial %arg2 over {row}
// CHECK-NEXT: %[[S:.*]] = ax.binary add %[[R]], %[[P]]
// CHECK-NEXT: ax.unary neg %[[S]]
ax.program @partial(%a: !both, %b: !both, %c: !whole) -> !row {
  %0 = ax.all_reduce %a over {col} : !both -> !row
  %1 = ax.all_reduce %b over {col} : !both -> !row
  %2 = ax.binary add %0, %1 : !row, !row -> !row
  %3 = ax.to_partial %c over {row} : !whole -> !row
  %4 = ax.binary add %2, %3 : !row, !row -> !row
  %5 = ax.unary neg %4 : !row -> !row
  ax.return %5 : !row
}

// What others want reduced is reduced for them; a maximum is no sum; and what
// belongs to another stage stays there.
// CHECK-LABEL: ax.program @apart
// CHECK-COUNT-5: ax.all_reduce
// CHECK-NOT: ax.all_reduce
ax.program @apart(%a: !row, %b: !row, %c: !row,
                  %d: tensor<f32, #ax.layout<[], partial max {row}>>)
    -> (!whole, !whole) {
  %0 = ax.all_reduce %a over {row} : !row -> !whole
  %1 = ax.all_reduce %b over {row} : !row -> !whole
  %2 = ax.binary add %0, %1 : !whole, !whole -> !whole
  %3 = ax.all_reduce %d over {row} : tensor<f32, #ax.layout<[], partial max {row}>> -> !whole
  %4 = ax.binary add %2, %3 : !whole, !whole -> !whole
  %5 = ax.all_reduce %c over {row} {stage = 1} : !row -> !whole
  %6 = ax.all_reduce %d over {row} {stage = 1} : tensor<f32, #ax.layout<[], partial max {row}>> -> !whole
  %7 = ax.binary add %5, %6 {stage = 1} : !whole, !whole -> !whole
  %8 = ax.binary add %4, %7 : !whole, !whole -> !whole
  ax.return %1, %8 : !whole, !whole
}
}
