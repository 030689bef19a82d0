// RUN: axopt-opt %s -pass-pipeline='builtin.module(ax.plan(ax-share-collectives))' | FileCheck %s

!p = tensor<8xf32, #ax.layout<[{}], partial sum {data}>>
!max = tensor<8xf32, #ax.layout<[{}], partial max {data}>>
!h = tensor<8xbf16, #ax.layout<[{}], partial sum {data}>>
!r = tensor<8xf32, #ax.layout<[{}]>>
!hr = tensor<8xbf16, #ax.layout<[{}]>>
!big = tensor<300000xf32, #ax.layout<[{}], partial sum {data}>>
!bigr = tensor<300000xf32, #ax.layout<[{}]>>
!mid = tensor<200000xf32, #ax.layout<[{}], partial sum {data}>>
!midr = tensor<200000xf32, #ax.layout<[{}]>>
!time = tensor<8xf32, #ax.layout<[{}], partial sum {micro}>>

ax.plan @p version 1 {
ax.mesh [data = 2] in time [micro = 2]

// Where the first is, if the others are ready by then; a reduction that depends
// on another one comes after it.
// CHECK-LABEL: ax.stage @gradients
// CHECK-NEXT: %[[R:.*]]:2 = ax.all_reduce %{{.*}}, %{{.*}} over {data} because "a, and 1 more" : tensor<8xf32, #ax.layout<[{}], partial sum {data}>>, tensor<8xf32, #ax.layout<[{}], partial sum {data}>> -> tensor<8xf32, #ax.layout<[{}]>>, tensor<8xf32, #ax.layout<[{}]>>
// CHECK-NEXT: %[[X:.*]] = ax.unary exp %[[R]]#0
// CHECK-NEXT: %[[Y:.*]] = ax.binary add %[[X]], %[[R]]#1
// CHECK-NEXT: ax.to_partial
// CHECK-NEXT: ax.all_reduce
ax.program @main(%a: !p, %b: !p) -> (!r, !r) {
  %out:2 = ax.stage @gradients on 0 (%0 = %a : !p, %1 = %b : !p) -> (!r, !r) {
    %2 = ax.all_reduce %0 over {data} because "a" : !p -> !r
    %3 = ax.unary exp %2 : !r -> !r
    %4 = ax.all_reduce %1 over {data} because "b" : !p -> !r
    %5 = ax.binary add %3, %4 : !r, !r -> !r
    %6 = ax.to_partial %5 over {data} : !r -> !p
    %7 = ax.all_reduce %6 over {data} : !p -> !r
    ax.yield %5, %7 : !r, !r
  }
  ax.return %out#0, %out#1 : !r, !r
}

// Other kinds, axes and types are apart.
// CHECK-LABEL: ax.stage @apart
// CHECK-COUNT-4: ax.all_reduce %{{[a-z0-9]*}} over
// CHECK-NOT: ax.all_reduce
ax.program @kinds(%a: !p, %b: !max, %c: !h, %d: !time) -> (!r, !r, !hr, !r) {
  %out:4 = ax.stage @apart on 0 (%0 = %a : !p, %1 = %b : !max, %2 = %c : !h, %3 = %d : !time) -> (!r, !r, !hr, !r) {
    %4 = ax.all_reduce %0 over {data} : !p -> !r
    %5 = ax.all_reduce %1 over {data} : !max -> !r
    %6 = ax.all_reduce %2 over {data} : !h -> !hr
    %7 = ax.all_reduce %3 over {micro} : !time -> !r
    ax.yield %4, %5, %6, %7 : !r, !r, !hr, !r
  }
  ax.return %out#0, %out#1, %out#2, %out#3 : !r, !r, !hr, !r
}

// What is larger than a bucket is alone; what makes one too large begins the
// next one.
// CHECK-LABEL: ax.stage @full
// CHECK: %{{.*}}:2 = ax.all_reduce %[[A:.*]], %[[B:.*]] over {data}
// CHECK-NEXT: %{{.*}} = ax.all_reduce %{{.*}} over {data}
// CHECK-NEXT: %{{.*}}:2 = ax.all_reduce %{{.*}}, %{{.*}} over {data}
// CHECK-NEXT: ax.yield
ax.program @sizes(%a: !p, %b: !big, %c: !mid, %d: !mid, %e: !p) -> (!r, !bigr, !midr, !midr, !r) {
  %out:5 = ax.stage @full on 0 (%0 = %a : !p, %1 = %b : !big, %2 = %c : !mid, %3 = %d : !mid, %4 = %e : !p) -> (!r, !bigr, !midr, !midr, !r) {
    %5 = ax.all_reduce %0 over {data} : !p -> !r
    %6 = ax.all_reduce %1 over {data} : !big -> !bigr
    %7 = ax.all_reduce %2 over {data} : !mid -> !midr
    %8 = ax.all_reduce %3 over {data} : !mid -> !midr
    %9 = ax.all_reduce %4 over {data} : !p -> !r
    ax.yield %5, %6, %7, %8, %9 : !r, !bigr, !midr, !midr, !r
  }
  ax.return %out#0, %out#1, %out#2, %out#3, %out#4 : !r, !bigr, !midr, !midr, !r
}
}
