// One example of every operation, which docs/reference/local.md shows: what is
// printed is read, and printed alike.
// RUN: axopt-opt %s -o %t.mlir && axopt-opt %t.mlir -o %t.again && cmp %t.mlir %t.again
// RUN: FileCheck %s --input-file=%t.mlir

// What two ranks do of a product whose sum is split, and of another one that is
// added up over micro-batches.
// CHECK: axl.program @main
// CHECK: axl.stage @forward0(%{{.*}}: tensor<4x4xf32>) loads(@w = %{{.*}}: tensor<4x8xf32>) adds(1 = %{{.*}}: tensor<8xf32>) stores(@step)
ax.plan @p version 1 {
  ax.mesh [col = 2] in time [micro = 2]
  ax.state @w : tensor<8x8xf32, #ax.layout<[{col}, {}]>> stages [0]
  ax.state @step : tensor<i64> stages [0]
  axl.program @main {
    axl.stage @forward0(%x: tensor<4x4xf32>) loads(@w = %w: tensor<4x8xf32>) adds(1 = %sum: tensor<8xf32>) stores(@step) {
      %0 = ax.linear %x, %w : tensor<4x4xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
      %1 = axl.all_reduce sum %0 over {col} because "k of fc is split" start : tensor<4x8xf32> -> tensor<4x8xf32>
      %2 = axl.await %1 source %0 : tensor<4x8xf32>, tensor<4x8xf32>
      %3 = axl.reduce_scatter sum %0 dims [1] over {col} : tensor<4x8xf32> -> tensor<4x4xf32>
      %4 = axl.all_gather %3 dims [1] over {col} : tensor<4x4xf32> -> tensor<4x8xf32>
      %5 = axl.all_to_all %3 gather 1 scatter 0 over {col} : tensor<4x4xf32> -> tensor<2x8xf32>
      %6 = axl.permute %5 sources [1, 0] over {col} : tensor<2x8xf32> -> tensor<2x8xf32>
      %7 = axl.axis_index {col} : tensor<i64>
      %8 = axl.check_indices %7 sizes [2] of tensor<i64> order 3 : tensor<i64>
      %16 = ax.constant dense<[0, 7]> : tensor<2xi64> -> tensor<2xi64>
      axl.report_fault %16 among tensor<i64> sizes [2] of tensor<i64> order 3 : tensor<2xi64>
      %40 = ax.constant dense<7> : tensor<256xui8> -> tensor<256xui8>
      %41 = ax.constant dense<[0, -1]> : tensor<2xi8> -> tensor<2xi8>
      %42 = axl.look_up %41 in %40 : tensor<2xi8>, tensor<256xui8> -> tensor<2xui8>
      %43 = ax.constant dense<0.5> : tensor<2x4x8xf32> -> tensor<2x4x8xf32>
      %44 = ax.constant dense<[0, 1, 1, 0]> : tensor<4xi64> -> tensor<4xi64>
      %45 = axl.grouped_matmul %x, %43[%44] : tensor<4x4xf32>, tensor<2x4x8xf32>, tensor<4xi64> -> tensor<4x8xf32>
      %46 = axl.grouped_weight_gradient %x, %45[%44] transpose_w : tensor<4x4xf32>, tensor<4x8xf32>, tensor<4xi64> -> tensor<2x8x4xf32>
      %47 = ax.constant dense<0.5> : tensor<4x32xf32> -> tensor<4x32xf32>
      %48 = ax.constant dense<7> : tensor<3x16xui8> -> tensor<3x16xui8>
      %49 = ax.constant dense<2.0> : tensor<3x2xf32> -> tensor<3x2xf32>
      %50 = ax.constant dense<1> : tensor<3x2xui8> -> tensor<3x2xui8>
      %51 = axl.block_matmul %47, %48 scales %49 bits 4 : tensor<4x32xf32>, tensor<3x16xui8>, tensor<3x2xf32> -> tensor<4x3xf32>
      %52 = axl.block_matmul %47, %48 scales %49 zeros %50 : tensor<3x2xui8> bits 4 : tensor<4x32xf32>, tensor<3x16xui8>, tensor<3x2xf32> -> tensor<4x3xf32>
      %9 = axl.random %8 seed %7 step %7 id 4 : tensor<i64>, tensor<i64>, tensor<i64> -> tensor<f32>
      %13 = axl.library(%x, %w) {
      ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x8xf32>):
        %14 = ax.linear %a, %b : tensor<4x4xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
        %15 = ax.transpose %14 [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
        axl.yield %15 : tensor<8x4xf32>
      } : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<8x4xf32>
      %21:2 = axl.library(%x, %w) {
      ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x8xf32>):
        %22 = ax.linear %a, %b : tensor<4x4xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
        %23 = ax.unary gelu_tanh %22 : tensor<4x8xf32> -> tensor<4x8xf32>
        axl.yield %23, %22 : tensor<4x8xf32>, tensor<4x8xf32>
      } : (tensor<4x4xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
      %24 = axl.library(%x, %w, %21#1) {
      ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x8xf32>, %c: tensor<4x8xf32>):
        %25 = ax.linear %a, %b : tensor<4x4xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
        %26 = axl.unary_gradient gelu_tanh %25 at %c : tensor<4x8xf32>
        axl.yield %26 : tensor<4x8xf32>
      } : (tensor<4x4xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %27 = axl.library(%x, %w, %24) {
      ^bb0(%a: tensor<4x4xf32>, %b: tensor<4x8xf32>, %c: tensor<4x8xf32>):
        %28 = ax.linear %a, %b : tensor<4x4xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
        %29 = axl.accumulate %28 to %c over {micro} : tensor<4x8xf32>
        axl.yield %29 : tensor<4x8xf32>
      } : (tensor<4x4xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
      %10:2 = axl.fusion(%2, %sum) in_place [-1, 1] {
      ^bb0(%a: tensor<4x8xf32>, %b: tensor<8xf32>):
        %11 = ax.unary relu %a : tensor<4x8xf32> -> tensor<4x8xf32>
        %12 = ax.unary neg %b : tensor<8xf32> -> tensor<8xf32>
        axl.yield %11, %12 : tensor<4x8xf32>, tensor<8xf32>
      } : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>)
      axl.yield %10#0, %10#1, %8 : tensor<4x8xf32>, tensor<8xf32>, tensor<i64>
    }
    axl.stage @forward1(%q: tensor<1x2x4x8xf16>, %g: tensor<1x2x4x8xf16>, %m: tensor<1x1x1x4xf32>) {
      %0, %1 = axl.attention %q, %q, %q mask %m : tensor<1x1x1x4xf32> scale 5.000000e-01 {causal} : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>, tensor<1x2x4xf32>
      %2, %3, %4 = axl.attention_gradient %q, %q, %q, %0, %g mask %m : tensor<1x1x1x4xf32> sums %1 scale 5.000000e-01 {causal} : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4xf32> -> tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>
      axl.yield %2, %3, %4 : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>
    }
  }
}
