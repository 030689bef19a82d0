// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-decompose-split))' | FileCheck %s

// What embeddings and residuals carry is split over row: a norm's mean and sum of
// squares of each half are combined, where all halves are seen. What lies between
// layers is split over col, which is one rank: it stays.
// CHECK: ax.reshape {{.*}} : tensor<4x64xf32> -> tensor<4x2x32xf32>
// CHECK: ax.reduce sum {{.*}}{ax.gathered = 1 : i64
// CHECK-NOT: ax.layer_norm
// CHECK: ax.linear
// CHECK: ax.softmax
ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 2, col = 1] in time [micro = 1]
  ax.state @w1 : tensor<64x256xf32> from "w" offset 0 length 65536
  ax.state @s : tensor<64xf32> from "w" offset 65536 length 256
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x"}) -> (tensor<4x256xf32> {ax.name = "y"}) {
    %s = ax.load @s : tensor<64xf32>
    %h = ax.layer_norm %x scale %s : tensor<64xf32> axis 1 epsilon 1.0e-5 : tensor<4x64xf32> -> tensor<4x64xf32>
    %w1 = ax.load @w1 : tensor<64x256xf32>
    %u = ax.linear %h, %w1 : tensor<4x64xf32>, tensor<64x256xf32> -> tensor<4x256xf32>
    %y = ax.softmax %u dim 1 : tensor<4x256xf32> -> tensor<4x256xf32>
    ax.return %y : tensor<4x256xf32>
  }
}
