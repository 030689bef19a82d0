// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-recipe{sequence-parallel}))' > %t && FileCheck %s --check-prefix=PINS --input-file=%t
// RUN: axopt-opt %t --pass-pipeline='builtin.module(ax.plan(ax-propagate,ax-insert-reshards))' | FileCheck %s

// What lies between the pairs is asked to be split along the sequence, weakly;
// not so what updates a weight of three dimensions, whose last is that of the
// residual.
// PINS: ax.rms_norm {{.*}}#ax.pin<[?, {col}, ?] weak because "--sequence-parallel">
// PINS: ax.binary add {{.*}}#ax.pin<[?, {col}, ?] weak because "--sequence-parallel">
// PINS: ax.binary sub
// PINS-NOT: --sequence-parallel

// So gate and up, in one weight, are split as the layer after them wants it,
// also by what the backward pass makes of them: had the sequence come there
// first, the halves of w1 would be exchanged.
// CHECK: ax.state @w1 : tensor<16x64xf32, #ax.layout<[{}, 2 * 32{col}]>>
// CHECK: ax.state @w2 : tensor<32x16xf32, #ax.layout<[{col}, {}]>>
// CHECK: ax.rms_norm {{.*}} -> tensor<2x8x16xf32, #ax.layout<[{}, {col}, {}]>>
// CHECK: ax.all_gather {{.*}} over {col}
// CHECK-NOT: over
// CHECK: ax.reduce_scatter {{.*}} over {col}
// CHECK-NOT: over
// CHECK: ax.all_gather {{.*}} over {col}
// CHECK-NOT: over
ax.plan @p version 1 {
  ax.state @w1 : tensor<16x64xf32> from "w" offset 0 length 4096
  ax.state @w2 : tensor<32x16xf32> from "w" offset 4096 length 2048
  ax.state @scale : tensor<16xf32> from "w" offset 6144 length 64
  ax.state @table : tensor<4x8x16xf32> from "w" offset 6208 length 2048 {trainable}
  ax.program @main(%x: tensor<2x8x16xf32> {ax.name = "x"}) -> (tensor<2x8x16xf32> {ax.name = "y"}, tensor<2x8x32xf32> {ax.name = "g"}) {
    %scale = ax.load @scale : tensor<16xf32>
    %n = ax.rms_norm %x scale %scale : tensor<16xf32> axis 2 epsilon 1.000000e-05 : tensor<2x8x16xf32> -> tensor<2x8x16xf32>
    %w1 = ax.load @w1 : tensor<16x64xf32>
    %u = ax.linear %n, %w1 : tensor<2x8x16xf32>, tensor<16x64xf32> -> tensor<2x8x64xf32>
    %a = ax.slice %u starts [0, 0, 0] steps [1, 1, 1] : tensor<2x8x64xf32> -> tensor<2x8x32xf32>
    %b = ax.slice %u starts [0, 0, 32] steps [1, 1, 1] : tensor<2x8x64xf32> -> tensor<2x8x32xf32>
    %s = ax.unary silu %a : tensor<2x8x32xf32> -> tensor<2x8x32xf32>
    %p = ax.binary mul %s, %b : tensor<2x8x32xf32>, tensor<2x8x32xf32> -> tensor<2x8x32xf32>
    %w2 = ax.load @w2 : tensor<32x16xf32>
    %d = ax.linear %p, %w2 : tensor<2x8x32xf32>, tensor<32x16xf32> -> tensor<2x8x16xf32>
    %y = ax.binary add %d, %x : tensor<2x8x16xf32>, tensor<2x8x16xf32> -> tensor<2x8x16xf32>
    %dp = ax.dot %y, %w2 batch [] x [] contract [2] x [1] {ax.action = "B"} : tensor<2x8x16xf32>, tensor<32x16xf32> -> tensor<2x8x32xf32>
    %g = ax.binary mul %dp, %b {ax.action = "B"} : tensor<2x8x32xf32>, tensor<2x8x32xf32> -> tensor<2x8x32xf32>
    %t = ax.load @table : tensor<4x8x16xf32>
    %new = ax.binary sub %t, %t {ax.action = "U"} : tensor<4x8x16xf32>, tensor<4x8x16xf32> -> tensor<4x8x16xf32>
    ax.store @table, %new {ax.action = "U"} : tensor<4x8x16xf32>
    ax.return %y, %g : tensor<2x8x16xf32>, tensor<2x8x32xf32>
  }
}
