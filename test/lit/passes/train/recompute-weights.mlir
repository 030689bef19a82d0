// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-recompute-forward))' | FileCheck %s
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-recompute-forward{mode=full}))' | FileCheck %s
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-recompute-forward{mode=budget:1GiB}))' | FileCheck %s

// A weight that is in parts over data is gathered for each pass, with what
// rounds it; one that is in parts over depth is kept whole.
// CHECK: ax.load @w
// CHECK: ax.all_gather %{{.*}} over {data} because "--zero=3"
// CHECK: ax.all_gather %{{.*}} over {depth}
// CHECK: ax.reduce sum
// CHECK-NOT: ax.all_gather %{{.*}} over {depth}
// CHECK: %[[R:.*]] = ax.cast %{{.*}} {ax.action = "B", recomputed}
// CHECK: %[[G:.*]] = ax.all_gather %[[R]] over {data} because "--zero=3" {ax.action = "B", recomputed}
// CHECK-NOT: ax.all_gather
// CHECK: ax.dot %{{.*}}, %[[G]]
#d = #ax.layout<[{data}, {}]>
#z = #ax.layout<[{depth}, {}]>
#r = #ax.layout<[{}, {}]>
ax.plan @p version 3 {
  ax.mesh [data = 2, depth = 2]
  ax.state @w : tensor<8x8xf32, #d> from "w" offset 0 length 256 {trainable}
  ax.state @v : tensor<8x8xf32, #z> from "w" offset 256 length 256 {trainable}
  ax.program @main(%x: tensor<4x8xbf16, #r> {ax.name = "x"}) -> (tensor<f32, #ax.layout<[]>> {ax.name = "loss"}, tensor<4x8xbf16, #r> {ax.name = "dx"}) {
    %0 = ax.load @w : tensor<8x8xf32, #d>
    %1 = ax.cast %0 : tensor<8x8xf32, #d> -> tensor<8x8xbf16, #d>
    %2 = ax.all_gather %1 over {data} because "--zero=3" : tensor<8x8xbf16, #d> -> tensor<8x8xbf16, #r>
    %3 = ax.linear %x, %2 : tensor<4x8xbf16, #r>, tensor<8x8xbf16, #r> -> tensor<4x8xbf16, #r>
    %4 = ax.load @v : tensor<8x8xf32, #z>
    %5 = ax.cast %4 : tensor<8x8xf32, #z> -> tensor<8x8xbf16, #z>
    %6 = ax.all_gather %5 over {depth} because "depth" : tensor<8x8xbf16, #z> -> tensor<8x8xbf16, #r>
    %7 = ax.linear %3, %6 : tensor<4x8xbf16, #r>, tensor<8x8xbf16, #r> -> tensor<4x8xbf16, #r>
    %8 = ax.cast %7 : tensor<4x8xbf16, #r> -> tensor<4x8xf32, #r>
    %9 = ax.reduce sum %8 dims [0, 1] : tensor<4x8xf32, #r> -> tensor<f32, #ax.layout<[]>>
    %10 = ax.dot %7, %6 batch [] x [] contract [1] x [1] {ax.action = "B"} : tensor<4x8xbf16, #r>, tensor<8x8xbf16, #r> -> tensor<4x8xbf16, #r>
    %11 = ax.dot %10, %2 batch [] x [] contract [1] x [1] {ax.action = "B"} : tensor<4x8xbf16, #r>, tensor<8x8xbf16, #r> -> tensor<4x8xbf16, #r>
    ax.return %9, %11 : tensor<f32, #ax.layout<[]>>, tensor<4x8xbf16, #r>
  }
}
