// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{cp=2},ax-recipe))' 2> %t | FileCheck %s
// RUN: FileCheck %s --check-prefix=TOLD --input-file=%t

// Of two sequences one is divided; of the other it is told.
// TOLD: warning: --cp=2 does not divide the sequence of 7: for its layers the ranks along context compute the same; choose one that 2 divides (--dim, --shape), or another --cp
// CHECK: ax.linear {{.*}}because "--cp=2"{{.*}}tensor<2x8x16xf32>
// CHECK-NOT: because "--cp=2"
ax.plan @p version 1 {
  ax.state @w : tensor<16x16xf32> from "w" offset 0 length 1024
  ax.program @main(%x: tensor<2x8x16xf32> {ax.name = "x"}, %y: tensor<2x7x16xf32> {ax.name = "y"}) -> (tensor<2x8x16xf32> {ax.name = "a"}, tensor<2x7x16xf32> {ax.name = "b"}) {
    %w = ax.load @w : tensor<16x16xf32>
    %a = ax.linear %x, %w : tensor<2x8x16xf32>, tensor<16x16xf32> -> tensor<2x8x16xf32>
    %b = ax.linear %y, %w : tensor<2x7x16xf32>, tensor<16x16xf32> -> tensor<2x7x16xf32>
    ax.return %a, %b : tensor<2x8x16xf32>, tensor<2x7x16xf32>
  }
}
