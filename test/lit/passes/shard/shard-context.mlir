// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{cp=2},ax-recipe))' > %t && FileCheck %s --check-prefix=PINS --input-file=%t
// RUN: axopt-opt %t --pass-pipeline='builtin.module(ax.plan(ax-propagate,ax-insert-reshards))' | FileCheck %s
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{cp=2 dp=2 tp=2},ax-recipe{sequence-parallel}))' | FileCheck %s --check-prefix=BOTH
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{cp=3},ax-shard))' 2>&1 | FileCheck %s --check-prefix=THREE
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{cp=3},ax-shard{strict}))' 2>&1 | FileCheck %s --check-prefix=STRICT

// Layers, sums and norms have the tokens split, also where somebody else
// splits them further. A mesh has the axis where it is more than one.
// PINS: ax.mesh [pipe = 1, data = 1, context = 2, depth = 1, row = 1, col = 1] in time [micro = 1]
// PINS: ax.rms_norm {{.*}}because "--cp=2"
// PINS: ax.linear {{.*}}because "--cp=2"
// PINS: ax.binary add {{.*}}because "--cp=2"

// Each rank has its own queries, causal or not, and all keys and values.
// CHECK: ax.state @wqkv : tensor<16x48xf32, #ax.layout<[{}, {}]>>
// CHECK: ax.program @main(%{{.*}}: tensor<2x8x16xf32, #ax.layout<[{}, {context}, {}]>>
// CHECK-NOT: over
// CHECK: ax.all_gather {{.*}} over {context} {{.*}} -> tensor<2x2x8x8xf32, #ax.layout<[{}, {}, {}, {}]>>
// CHECK-NOT: over
// CHECK: ax.all_gather {{.*}} over {context} {{.*}} -> tensor<2x2x8x8xf32, #ax.layout<[{}, {}, {}, {}]>>
// CHECK-NOT: over
// CHECK: ax.attention {{.*}} {causal} : tensor<2x2x8x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, {{.*}} -> tensor<2x2x8x8xf32, #ax.layout<[{}, {}, {context}, {}]>>
// CHECK-NOT: over
// CHECK: ax.return %{{.*}} : tensor<2x8x16xf32, #ax.layout<[{}, {context}, {}]>>

// What tensor-parallel pairs leave is split over both.
// BOTH: ax.mesh [pipe = 1, data = 2, context = 2, depth = 1, row = 1, col = 2] in time [micro = 1]
// BOTH: ax.rms_norm {{.*}}#ax.pin<[?, {context, col}, ?] weak because "--sequence-parallel">

// THREE: warning: --cp=3 does not divide the sequence of 8: the ranks along context compute the same
// STRICT: error: --cp=3 does not divide the sequence of 8: the ranks along context compute the same
ax.plan @p version 1 {
  ax.state @wqkv : tensor<16x48xf32> from "w" offset 0 length 3072
  ax.state @wo : tensor<16x16xf32> from "w" offset 3072 length 1024
  ax.state @scale : tensor<16xf32> from "w" offset 4096 length 64
  ax.program @main(%x: tensor<2x8x16xf32> {ax.name = "x"}) -> (tensor<2x8x16xf32> {ax.name = "y"}) {
    %scale = ax.load @scale : tensor<16xf32>
    %n = ax.rms_norm %x scale %scale : tensor<16xf32> axis 2 epsilon 1.000000e-05 : tensor<2x8x16xf32> -> tensor<2x8x16xf32>
    %wqkv = ax.load @wqkv : tensor<16x48xf32>
    %u = ax.linear %n, %wqkv : tensor<2x8x16xf32>, tensor<16x48xf32> -> tensor<2x8x48xf32>
    %h = ax.reshape %u : tensor<2x8x48xf32> -> tensor<2x8x3x2x8xf32>
    %t = ax.transpose %h [2, 0, 3, 1, 4] : tensor<2x8x3x2x8xf32> -> tensor<3x2x2x8x8xf32>
    %q1 = ax.slice %t starts [0, 0, 0, 0, 0] steps [1, 1, 1, 1, 1] : tensor<3x2x2x8x8xf32> -> tensor<1x2x2x8x8xf32>
    %k1 = ax.slice %t starts [1, 0, 0, 0, 0] steps [1, 1, 1, 1, 1] : tensor<3x2x2x8x8xf32> -> tensor<1x2x2x8x8xf32>
    %v1 = ax.slice %t starts [2, 0, 0, 0, 0] steps [1, 1, 1, 1, 1] : tensor<3x2x2x8x8xf32> -> tensor<1x2x2x8x8xf32>
    %q = ax.reshape %q1 : tensor<1x2x2x8x8xf32> -> tensor<2x2x8x8xf32>
    %k = ax.reshape %k1 : tensor<1x2x2x8x8xf32> -> tensor<2x2x8x8xf32>
    %v = ax.reshape %v1 : tensor<1x2x2x8x8xf32> -> tensor<2x2x8x8xf32>
    %a = ax.attention %q, %k, %v scale 0.35355339059327379 {causal} : tensor<2x2x8x8xf32>, tensor<2x2x8x8xf32>, tensor<2x2x8x8xf32> -> tensor<2x2x8x8xf32>
    %at = ax.transpose %a [0, 2, 1, 3] : tensor<2x2x8x8xf32> -> tensor<2x8x2x8xf32>
    %am = ax.reshape %at : tensor<2x8x2x8xf32> -> tensor<2x8x16xf32>
    %wo = ax.load @wo : tensor<16x16xf32>
    %o = ax.linear %am, %wo : tensor<2x8x16xf32>, tensor<16x16xf32> -> tensor<2x8x16xf32>
    %y = ax.binary add %o, %x : tensor<2x8x16xf32>, tensor<2x8x16xf32> -> tensor<2x8x16xf32>
    ax.return %y : tensor<2x8x16xf32>
  }
}
