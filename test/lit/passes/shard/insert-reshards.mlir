// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-insert-reshards))' | FileCheck %s --implicit-check-not=ax.pins --implicit-check-not=ax.sharding
// RUN: sed '/ax.load @w1/s/\[{}, {col}\]/[{}, {}]/' %s | axopt-opt --pass-pipeline='builtin.module(ax.plan(ax-insert-reshards))' | FileCheck %s --check-prefix=WHOLE

// Types, and the one collective that is needed. Nothing else of the steps before
// is left.
// CHECK: ax.state @w1 : tensor<64x256xf32, #ax.layout<[{}, {col}]>>
// CHECK: ax.program @main(%arg0: tensor<4x64xf32, #ax.layout<[{data}, {}]>> {ax.name = "x"}) -> (tensor<4x64xf32, #ax.layout<[{data, col}, {}]>>
// CHECK: %[[P:.*]] = ax.linear {{.*}} -> tensor<4x64xf32, #ax.layout<[{data}, {}], partial sum {col}>>
// CHECK-NEXT: %[[S:.*]] = ax.reduce_scatter %[[P]] over {col} because "k of ax.linear is split (--tp=2)"
// CHECK-NEXT: ax.return %[[S]]

// Somebody wants the first weight stored whole: each rank takes its columns.
// WHOLE: ax.state @w1 : tensor<64x256xf32, #ax.layout<[{}, {}]>>
// WHOLE: %[[W:.*]] = ax.load @w1
// WHOLE-NEXT: ax.all_slice %[[W]] over {col}
ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 2, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.state @w1 : tensor<64x256xf32> from "w" offset 0 length 65536
  ax.state @w2 : tensor<256x64xf32> from "w" offset 65536 length 65536
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x", ax.pins = [#ax.pin<[{data}, ?] open because "the batch is split">], ax.sharding = #ax.sharding<() -> ([{data}, {}])>}) -> (tensor<4x64xf32> {ax.name = "y"}) {
    %w1 = ax.load @w1 {ax.sharding = #ax.sharding<() -> ([{}, {col}])>} : tensor<64x256xf32>
    %u = ax.linear %x, %w1 {ax.pins = [#ax.factor_pin<operand 1 dim 1 = {col} any_place because "--tp=2" asks "256 output features">], ax.sharding = #ax.sharding<([{data}, {}], [{}, {col}]) -> ([{data}, {col}]) because {data} "the batch is split", {col} "--tp=2">} : tensor<4x64xf32>, tensor<64x256xf32> -> tensor<4x256xf32>
    %w2 = ax.load @w2 {ax.sharding = #ax.sharding<() -> ([{col}, {}])>} : tensor<256x64xf32>
    %d = ax.linear %u, %w2 {ax.pins = [#ax.factor_pin<operand 0 dim 1 = {col} any_place because "--tp=2" asks "256 input features">], ax.sharding = #ax.sharding<([{data}, {col}], [{col}, {}]) -> ([{data}, {}] partial sum {col}) because {data} "the batch is split", {col} "--tp=2">} : tensor<4x256xf32>, tensor<256x64xf32> -> tensor<4x64xf32>
    ax.return %d : tensor<4x64xf32>
  }
}
