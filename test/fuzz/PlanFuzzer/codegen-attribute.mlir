
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
      %h = ax.linear %a, %w1 {ax.result_permutation = array<i64: 7, 9>, node = "fc1"} : tensor<8x8xf32, #ax.layout<[{data, micro}, {}]>>, tensor<8x16xf32, #ax.layout<[{}, {col}]>> -> tensor<8x16xf32, #ax.layout<[{data, micro}, {col}]>>
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
