// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-overlap{overlaps-collectives=true}))' | FileCheck %s
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-overlap))' | FileCheck %s --check-prefix=LATE
// RUN: sed 's/version 1 {/version 1 attributes {ax.machine = "sm_90"} {/' %s > %t.gpu.mlir
// RUN: axopt-opt %t.gpu.mlir --pass-pipeline='builtin.module(ax.plan(ax-overlap))' | FileCheck %s --check-prefix=GPU

// The gradient's reduction starts when it is there, while the next contraction
// computes, and is waited for before its use; the last one has nothing to hide
// behind.
// CHECK-LABEL: @reduces
// CHECK: %[[A:.*]] = ax.linear %{{.*}}, %{{.*}} :
// CHECK-NEXT: %[[S:.*]] = ax.all_reduce %[[A]] over {data} start :
// CHECK-NEXT: %[[B:.*]] = ax.linear
// CHECK-NEXT: %[[R:.*]] = ax.all_reduce %[[B]] over {data} :
// CHECK-NEXT: %[[W:.*]] = ax.wait %[[S]] hides 8192 : tensor<16x16xf32, #ax.layout<[{}, {}]>>
// CHECK-NEXT: ax.binary add %[[W]], %[[R]]

// A gather starts as early as it takes: behind the large product, not behind
// both.
// CHECK-LABEL: @gathers
// CHECK: ax.linear
// CHECK-NEXT: %[[S:.*]] = ax.all_gather %{{.*}} over {data} start :
// CHECK-NEXT: ax.linear
// CHECK-NEXT: %[[W:.*]] = ax.wait %[[S]] hides
// CHECK-NEXT: ax.linear %{{.*}}, %[[W]]

// And right before its use, where nothing would move in the meantime.
// LATE-LABEL: @gathers
// LATE: ax.linear
// LATE-NEXT: ax.linear
// LATE-NEXT: %[[G:.*]] = ax.all_gather %{{.*}} over {data} :
// LATE-NEXT: ax.linear %{{.*}}, %[[G]]

// On a GPU streams exchange meanwhile.
// GPU-LABEL: @reduces
// GPU: ax.all_reduce %{{.*}} over {data} start :
// GPU: ax.wait

// What nobody sends is left.
// CHECK-LABEL: @slices
// CHECK: ax.linear
// CHECK-NEXT: ax.all_slice
// CHECK-NOT: ax.wait

// A product waits for what its residual waits for, and hides nothing of that.
// CHECK-LABEL: @epilogue
// CHECK: ax.all_reduce %{{.*}} over {data} :
// CHECK-NEXT: %[[L:.*]] = ax.linear
// CHECK-NEXT: ax.binary add %[[L]]
// CHECK-NOT: ax.wait

// Two of those are on their way whose operand, a whole gradient, is larger than
// their result, which the update wants.
// CHECK-LABEL: @scatters
// CHECK: %[[A:.*]] = ax.reduce_scatter %{{.*}} over {data} start :
// CHECK: %[[B:.*]] = ax.reduce_scatter %{{.*}} over {data} start :
// CHECK-NEXT: ax.linear
// CHECK-NEXT: %[[WA:.*]] = ax.wait %[[A]] hides 16384
// CHECK-NEXT: %[[C:.*]] = ax.reduce_scatter %{{.*}} over {data} start :
// CHECK-NEXT: ax.linear
// CHECK-NEXT: %[[WB:.*]] = ax.wait %[[B]] hides 16384
// CHECK-NEXT: %[[D:.*]] = ax.reduce_scatter %{{.*}} over {data} :
// CHECK-NEXT: ax.binary add %[[WA]], %[[WB]]
// CHECK-NEXT: %[[WC:.*]] = ax.wait %[[C]] hides 8192
// CHECK-NEXT: ax.binary add %[[WC]], %[[D]]

// What the same pass goes on with is waited for there.
// CHECK-LABEL: @activations
// CHECK: %[[A:.*]] = ax.reduce_scatter %{{.*}} over {data} start :
// CHECK: %[[B:.*]] = ax.reduce_scatter %{{.*}} over {data} start :
// CHECK: %[[C:.*]] = ax.reduce_scatter %{{.*}} over {data} start :
// CHECK: %[[D:.*]] = ax.reduce_scatter %{{.*}} over {data} :
// CHECK-NEXT: ax.wait %[[A]] hides 24576
#p = #ax.layout<[{}, {}], partial sum {data}>
#r = #ax.layout<[{}, {}]>
#d = #ax.layout<[{data}, {}]>
ax.plan @p version 1 {
  ax.mesh [data = 2]
  ax.program @main(%x: tensor<16x16xf32, #p>, %y: tensor<16x16xf32, #r>, %w: tensor<512x512xf32, #d>, %z: tensor<4096x512xf32, #r>, %v: tensor<512x512xf32, #r>) {
    %0 = ax.stage @reduces on 0 (%a = %x : tensor<16x16xf32, #p>, %b = %y : tensor<16x16xf32, #r>) -> (tensor<16x16xf32, #r>) {
      %1 = ax.linear %a, %b : tensor<16x16xf32, #p>, tensor<16x16xf32, #r> -> tensor<16x16xf32, #p>
      %2 = ax.linear %1, %b : tensor<16x16xf32, #p>, tensor<16x16xf32, #r> -> tensor<16x16xf32, #p>
      %3 = ax.all_reduce %1 over {data} : tensor<16x16xf32, #p> -> tensor<16x16xf32, #r>
      %4 = ax.all_reduce %2 over {data} : tensor<16x16xf32, #p> -> tensor<16x16xf32, #r>
      %5 = ax.binary add %3, %4 : tensor<16x16xf32, #r>, tensor<16x16xf32, #r> -> tensor<16x16xf32, #r>
      ax.yield %5 : tensor<16x16xf32, #r>
    }
    %1 = ax.stage @gathers on 0 (%a = %z : tensor<4096x512xf32, #r>, %b = %v : tensor<512x512xf32, #r>, %c = %w : tensor<512x512xf32, #d>) -> (tensor<4096x512xf32, #r>) {
      %2 = ax.linear %a, %b : tensor<4096x512xf32, #r>, tensor<512x512xf32, #r> -> tensor<4096x512xf32, #r>
      %3 = ax.linear %2, %b : tensor<4096x512xf32, #r>, tensor<512x512xf32, #r> -> tensor<4096x512xf32, #r>
      %4 = ax.all_gather %c over {data} : tensor<512x512xf32, #d> -> tensor<512x512xf32, #r>
      %5 = ax.linear %3, %4 : tensor<4096x512xf32, #r>, tensor<512x512xf32, #r> -> tensor<4096x512xf32, #r>
      ax.yield %5 : tensor<4096x512xf32, #r>
    }
    %2 = ax.stage @slices on 0 (%a = %v : tensor<512x512xf32, #r>) -> (tensor<512x512xf32, #d>) {
      %3 = ax.linear %a, %a : tensor<512x512xf32, #r>, tensor<512x512xf32, #r> -> tensor<512x512xf32, #r>
      %4 = ax.all_slice %3 over {data} : tensor<512x512xf32, #r> -> tensor<512x512xf32, #d>
      ax.yield %4 : tensor<512x512xf32, #d>
    }
    %3 = ax.stage @epilogue on 0 (%a = %x : tensor<16x16xf32, #p>, %b = %y : tensor<16x16xf32, #r>) -> (tensor<16x16xf32, #r>) {
      %4 = ax.all_reduce %a over {data} : tensor<16x16xf32, #p> -> tensor<16x16xf32, #r>
      %5 = ax.linear %b, %b : tensor<16x16xf32, #r>, tensor<16x16xf32, #r> -> tensor<16x16xf32, #r>
      %6 = ax.binary add %5, %4 : tensor<16x16xf32, #r>, tensor<16x16xf32, #r> -> tensor<16x16xf32, #r>
      ax.yield %6 : tensor<16x16xf32, #r>
    }
    %4 = ax.stage @scatters on 0 (%a = %x : tensor<16x16xf32, #p>, %b = %y : tensor<16x16xf32, #r>) -> (tensor<16x16xf32, #d>) {
      %5 = ax.linear %a, %b : tensor<16x16xf32, #p>, tensor<16x16xf32, #r> -> tensor<16x16xf32, #p>
      %6 = ax.reduce_scatter %5 over {data} : tensor<16x16xf32, #p> -> tensor<16x16xf32, #d>
      %7 = ax.linear %5, %b : tensor<16x16xf32, #p>, tensor<16x16xf32, #r> -> tensor<16x16xf32, #p>
      %8 = ax.reduce_scatter %7 over {data} : tensor<16x16xf32, #p> -> tensor<16x16xf32, #d>
      %9 = ax.linear %7, %b : tensor<16x16xf32, #p>, tensor<16x16xf32, #r> -> tensor<16x16xf32, #p>
      %10 = ax.reduce_scatter %9 over {data} : tensor<16x16xf32, #p> -> tensor<16x16xf32, #d>
      %11 = ax.linear %9, %b : tensor<16x16xf32, #p>, tensor<16x16xf32, #r> -> tensor<16x16xf32, #p>
      %12 = ax.reduce_scatter %11 over {data} : tensor<16x16xf32, #p> -> tensor<16x16xf32, #d>
      %13 = ax.binary add %6, %8 {ax.action = "U"} : tensor<16x16xf32, #d>, tensor<16x16xf32, #d> -> tensor<16x16xf32, #d>
      %14 = ax.binary add %10, %12 {ax.action = "U"} : tensor<16x16xf32, #d>, tensor<16x16xf32, #d> -> tensor<16x16xf32, #d>
      %15 = ax.binary add %13, %14 {ax.action = "U"} : tensor<16x16xf32, #d>, tensor<16x16xf32, #d> -> tensor<16x16xf32, #d>
      ax.yield %15 : tensor<16x16xf32, #d>
    }
    %5 = ax.stage @activations on 0 (%a = %x : tensor<16x16xf32, #p>, %b = %y : tensor<16x16xf32, #r>) -> (tensor<16x16xf32, #d>) {
      %5 = ax.linear %a, %b : tensor<16x16xf32, #p>, tensor<16x16xf32, #r> -> tensor<16x16xf32, #p>
      %6 = ax.reduce_scatter %5 over {data} : tensor<16x16xf32, #p> -> tensor<16x16xf32, #d>
      %7 = ax.linear %5, %b : tensor<16x16xf32, #p>, tensor<16x16xf32, #r> -> tensor<16x16xf32, #p>
      %8 = ax.reduce_scatter %7 over {data} : tensor<16x16xf32, #p> -> tensor<16x16xf32, #d>
      %9 = ax.linear %7, %b : tensor<16x16xf32, #p>, tensor<16x16xf32, #r> -> tensor<16x16xf32, #p>
      %10 = ax.reduce_scatter %9 over {data} : tensor<16x16xf32, #p> -> tensor<16x16xf32, #d>
      %11 = ax.linear %9, %b : tensor<16x16xf32, #p>, tensor<16x16xf32, #r> -> tensor<16x16xf32, #p>
      %12 = ax.reduce_scatter %11 over {data} : tensor<16x16xf32, #p> -> tensor<16x16xf32, #d>
      %13 = ax.binary add %6, %8 : tensor<16x16xf32, #d>, tensor<16x16xf32, #d> -> tensor<16x16xf32, #d>
      %14 = ax.binary add %10, %12 : tensor<16x16xf32, #d>, tensor<16x16xf32, #d> -> tensor<16x16xf32, #d>
      %15 = ax.binary add %13, %14 : tensor<16x16xf32, #d>, tensor<16x16xf32, #d> -> tensor<16x16xf32, #d>
      ax.yield %15 : tensor<16x16xf32, #d>
    }
    ax.return
  }
}
