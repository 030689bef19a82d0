// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-user-pins{shard=w1=replicate,x=replicate}))' | FileCheck %s

// What flags ask for stands behind what the recipe did, and is stronger.
// CHECK: ax.pins = [#ax.pin<[{data}, ?] open because "the batch is split">, #ax.pin<[{}, {}] user because "--shard=x=replicate">]
// CHECK: ax.load @w1 {ax.pins = [#ax.pin<[{}, {}] user because "--shard=w1=replicate">]}
// CHECK: ax.linear {{.*}}{ax.pins = [#ax.factor_pin<operand 1 dim 1 = {col} any_place because "--tp=2" asks "256 output features">]}
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
