// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-propagate))' | FileCheck %s
// RUN: sed 's/{col} any_place because "--tp=2" asks "256 output features"/{} user because "mine"/' %s | axopt-opt --pass-pipeline='builtin.module(ax.plan(ax-propagate))' | FileCheck %s --check-prefix=MINE
// RUN: sed 's/{col} any_place because "--tp=2" asks "256 output/{depth} any_place because "--tp=2" asks "256 output/' %s | axopt-opt --pass-pipeline='builtin.module(ax.plan(ax-propagate))' | FileCheck %s --check-prefix=ONE

// In which layouts everything is given and taken, and why. The first layer's
// columns are the second one's rows; types have no layouts yet.
// CHECK: ax.sharding = #ax.sharding<() -> ([{data}, {}])>
// CHECK: ax.load @w1 {ax.sharding = #ax.sharding<() -> ([{}, {col}])>} : tensor<64x256xf32>
// CHECK: ax.linear {{.*}}ax.sharding = #ax.sharding<([{data}, {}], [{}, {col}]) -> ([{data}, {col}]) because {data} "the batch is split", {col} "--tp=2">
// CHECK: ax.load @w2 {ax.sharding = #ax.sharding<() -> ([{col}, {}])>}
// CHECK: ax.linear {{.*}}ax.sharding = #ax.sharding<([{data}, {col}], [{col}, {}]) -> ([{data}, {}] partial sum {col}) because {data} "the batch is split", {col} "--tp=2">

// An axis of size 1 has no place to be looked for: the layer is whole.
// ONE: ax.load @w1 {ax.sharding = #ax.sharding<() -> ([{}, {}])>}

// A pin that somebody wrote in between.
// MINE: ax.load @w1 {ax.sharding = #ax.sharding<() -> ([{}, {}])>}
// MINE: ax.linear {{.*}}-> ([{data}, {}]) because {data} "the batch is split">
ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 2, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.state @w1 : tensor<64x256xf32> from "w" offset 0 length 65536
  ax.state @w2 : tensor<256x64xf32> from "w" offset 65536 length 65536
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x", ax.pins = [#ax.pin<[{data}, ?] open because "the batch is split">]}) -> (tensor<4x64xf32> {ax.name = "y"}) {
    %w1 = ax.load @w1 : tensor<64x256xf32>
    %u = ax.linear %x, %w1 {ax.pins = [#ax.factor_pin<operand 1 dim 1 = {col} any_place because "--tp=2" asks "256 output features">]} : tensor<4x64xf32>, tensor<64x256xf32> -> tensor<4x256xf32>
    %w2 = ax.load @w2 : tensor<256x64xf32>
    %d = ax.linear %u, %w2 {ax.pins = [#ax.factor_pin<operand 0 dim 1 = {col} any_place because "--tp=2" asks "256 input features">]} : tensor<4x256xf32>, tensor<256x64xf32> -> tensor<4x64xf32>
    ax.return %d : tensor<4x64xf32>
  }
}
