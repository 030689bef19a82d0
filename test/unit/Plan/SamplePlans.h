//===- SamplePlans.h - Small plans, written by hand -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_TEST_UNIT_PLAN_SAMPLEPLANS_H
#define AX_TEST_UNIT_PLAN_SAMPLEPLANS_H

namespace ax::plan {

/// Column-parallel, then row-parallel Linear; a bias after the reduction.
inline const char *mlpPlan = R"(
ax.plan @mlp version 1 {
  ax.mesh [pipe = 1, data = 2, depth = 1, row = 1, col = 2] in time [micro = 2]
  ax.state @w1 : tensor<8x16xf32, #ax.layout<[{}, {col}]>> stages [0] from "w.bin" offset 0 length 512
  ax.state @w2 : tensor<16x8xf32, #ax.layout<[{col}, {}]>> stages [0] from "w.bin" offset 512 length 512
  ax.state @b2 : tensor<8xf32, #ax.layout<[{}]>> stages [0] from "w.bin" offset 1024 length 32
  ax.program @main(%x: tensor<8x8xf32, #ax.layout<[{data, micro}, {}]>> {ax.name = "x"})
      -> (tensor<8x8xf32, #ax.layout<[{data, micro}, {}]>> {ax.name = "y"}) {
    %s = ax.stage @forward0 on 0 (%a = %x : tensor<8x8xf32, #ax.layout<[{data, micro}, {}]>>)
        -> (tensor<8x8xf32, #ax.layout<[{data, micro}, {}]>>) {
      %w1 = ax.load @w1 : tensor<8x16xf32, #ax.layout<[{}, {col}]>>
      %h = ax.linear %a, %w1 {node = "fc1"} : tensor<8x8xf32, #ax.layout<[{data, micro}, {}]>>, tensor<8x16xf32, #ax.layout<[{}, {col}]>> -> tensor<8x16xf32, #ax.layout<[{data, micro}, {col}]>>
      %g = ax.unary gelu %h : tensor<8x16xf32, #ax.layout<[{data, micro}, {col}]>> -> tensor<8x16xf32, #ax.layout<[{data, micro}, {col}]>>
      %w2 = ax.load @w2 : tensor<16x8xf32, #ax.layout<[{col}, {}]>>
      %p = ax.linear %g, %w2 {node = "fc2"} : tensor<8x16xf32, #ax.layout<[{data, micro}, {col}]>>, tensor<16x8xf32, #ax.layout<[{col}, {}]>> -> tensor<8x8xf32, #ax.layout<[{data, micro}, {}], partial sum {col}>>
      %r = ax.all_reduce %p over {col} because "k of fc2 is split" : tensor<8x8xf32, #ax.layout<[{data, micro}, {}], partial sum {col}>> -> tensor<8x8xf32, #ax.layout<[{data, micro}, {}]>>
      %b2 = ax.load @b2 : tensor<8xf32, #ax.layout<[{}]>>
      %y = ax.binary add %r, %b2 : tensor<8x8xf32, #ax.layout<[{data, micro}, {}]>>, tensor<8xf32, #ax.layout<[{}]>> -> tensor<8x8xf32, #ax.layout<[{data, micro}, {}]>>
      ax.yield %y : tensor<8x8xf32, #ax.layout<[{data, micro}, {}]>>
    }
    ax.schedule "forward" { stage 0: "F0 F1" }
    ax.return %s : tensor<8x8xf32, #ax.layout<[{data, micro}, {}]>>
  }
}
)";

/// Two stages; the sequence is split between the pairs; 7 features over 2
/// ranks, so that some are padding.
inline const char *pipelinePlan = R"(
ax.plan @pipeline version 1 {
  ax.mesh [pipe = 2, data = 1, depth = 1, row = 1, col = 2] in time [micro = 2]
  ax.state @w1 : tensor<6x7xf32, #ax.layout<[{}, {col}]>> stages [0] from "w.bin" offset 0 length 168
  ax.state @w2 : tensor<7x6xf32, #ax.layout<[{col}, {}]>> stages [0] from "w.bin" offset 168 length 168
  ax.state @w3 : tensor<6x4xf32, #ax.layout<[{}, {col}]>> stages [1] from "w.bin" offset 336 length 96
  ax.program @main(%x: tensor<2x4x6xf32, #ax.layout<[{micro}, {col}, {}]>> {ax.name = "x"})
      -> (tensor<2x4x4xf32, #ax.layout<[{micro}, {}, {}]>> {ax.name = "y"}) {
    %s:2 = ax.stage @forward0 on 0 (%a = %x : tensor<2x4x6xf32, #ax.layout<[{micro}, {col}, {}]>>)
        -> (tensor<2x4x6xf32, #ax.layout<[{micro}, {col}, {}]>>, tensor<2x4x6xf32, #ax.layout<[{micro}, {}, {}], partial sum {col}>>) {
      %w1 = ax.load @w1 : tensor<6x7xf32, #ax.layout<[{}, {col}]>>
      %g = ax.all_gather %a over {col} because "rows of fc1" : tensor<2x4x6xf32, #ax.layout<[{micro}, {col}, {}]>> -> tensor<2x4x6xf32, #ax.layout<[{micro}, {}, {}]>>
      %h = ax.linear %g, %w1 {node = "fc1"} : tensor<2x4x6xf32, #ax.layout<[{micro}, {}, {}]>>, tensor<6x7xf32, #ax.layout<[{}, {col}]>> -> tensor<2x4x7xf32, #ax.layout<[{micro}, {}, {col}]>>
      %w2 = ax.load @w2 : tensor<7x6xf32, #ax.layout<[{col}, {}]>>
      %p = ax.linear %h, %w2 {node = "fc2"} : tensor<2x4x7xf32, #ax.layout<[{micro}, {}, {col}]>>, tensor<7x6xf32, #ax.layout<[{col}, {}]>> -> tensor<2x4x6xf32, #ax.layout<[{micro}, {}, {}], partial sum {col}>>
      %r = ax.reduce_scatter %p over {col} because "k of fc2 is split" : tensor<2x4x6xf32, #ax.layout<[{micro}, {}, {}], partial sum {col}>> -> tensor<2x4x6xf32, #ax.layout<[{micro}, {col}, {}]>>
      %y = ax.binary add %r, %a : tensor<2x4x6xf32, #ax.layout<[{micro}, {col}, {}]>>, tensor<2x4x6xf32, #ax.layout<[{micro}, {col}, {}]>> -> tensor<2x4x6xf32, #ax.layout<[{micro}, {col}, {}]>>
      ax.yield %y, %p : tensor<2x4x6xf32, #ax.layout<[{micro}, {col}, {}]>>, tensor<2x4x6xf32, #ax.layout<[{micro}, {}, {}], partial sum {col}>>
    }
    %t = ax.transfer %s#0 from 0 to 1 slots 2 : tensor<2x4x6xf32, #ax.layout<[{micro}, {col}, {}]>>
    %u = ax.transfer %s#1 from 0 to 1 slots 1 : tensor<2x4x6xf32, #ax.layout<[{micro}, {}, {}], partial sum {col}>>
    %z = ax.stage @forward1 on 1 (%c = %t : tensor<2x4x6xf32, #ax.layout<[{micro}, {col}, {}]>>, %d = %u : tensor<2x4x6xf32, #ax.layout<[{micro}, {}, {}], partial sum {col}>>)
        -> (tensor<2x4x4xf32, #ax.layout<[{micro}, {}, {}]>>) {
      %m = ax.all_to_all %c over {col} because "norm" : tensor<2x4x6xf32, #ax.layout<[{micro}, {col}, {}]>> -> tensor<2x4x6xf32, #ax.layout<[{micro}, {}, {col}]>>
      %v = ax.reduce_scatter %d over {col} because "k of fc2 is split" : tensor<2x4x6xf32, #ax.layout<[{micro}, {}, {}], partial sum {col}>> -> tensor<2x4x6xf32, #ax.layout<[{micro}, {}, {col}]>>
      %e = ax.binary add %m, %v : tensor<2x4x6xf32, #ax.layout<[{micro}, {}, {col}]>>, tensor<2x4x6xf32, #ax.layout<[{micro}, {}, {col}]>> -> tensor<2x4x6xf32, #ax.layout<[{micro}, {}, {col}]>>
      %q = ax.reduce max %e dims [2] keep_dims : tensor<2x4x6xf32, #ax.layout<[{micro}, {}, {col}]>> -> tensor<2x4x1xf32, #ax.layout<[{micro}, {}, {}], partial max {col}>>
      %k = ax.all_reduce %q over {col} because "maximum of a split row" : tensor<2x4x1xf32, #ax.layout<[{micro}, {}, {}], partial max {col}>> -> tensor<2x4x1xf32, #ax.layout<[{micro}, {}, {}]>>
      %n = ax.binary sub %e, %k : tensor<2x4x6xf32, #ax.layout<[{micro}, {}, {col}]>>, tensor<2x4x1xf32, #ax.layout<[{micro}, {}, {}]>> -> tensor<2x4x6xf32, #ax.layout<[{micro}, {}, {col}]>>
      %o = ax.all_gather %n over {col} because "rows of head" : tensor<2x4x6xf32, #ax.layout<[{micro}, {}, {col}]>> -> tensor<2x4x6xf32, #ax.layout<[{micro}, {}, {}]>>
      %w3 = ax.load @w3 : tensor<6x4xf32, #ax.layout<[{}, {col}]>>
      %l = ax.linear %o, %w3 {node = "head"} : tensor<2x4x6xf32, #ax.layout<[{micro}, {}, {}]>>, tensor<6x4xf32, #ax.layout<[{}, {col}]>> -> tensor<2x4x4xf32, #ax.layout<[{micro}, {}, {col}]>>
      %f = ax.all_gather %l over {col} because "output" : tensor<2x4x4xf32, #ax.layout<[{micro}, {}, {col}]>> -> tensor<2x4x4xf32, #ax.layout<[{micro}, {}, {}]>>
      ax.yield %f : tensor<2x4x4xf32, #ax.layout<[{micro}, {}, {}]>>
    }
    ax.schedule "forward" { stage 0: "F0 F1", stage 1: "F0 F1" }
    ax.return %z : tensor<2x4x4xf32, #ax.layout<[{micro}, {}, {}]>>
  }
}
)";

} // namespace ax::plan

#endif // AX_TEST_UNIT_PLAN_SAMPLEPLANS_H
