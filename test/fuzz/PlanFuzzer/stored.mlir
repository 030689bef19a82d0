ax.plan @p version 2 attributes {ax.data = "plan.mlir.data"} {
  ax.mesh [pipe = 1, col = 2] in time [micro = 1]
  ax.program @main(%x: tensor<16x16xi64, #ax.layout<[{col}, {}]>> {ax.name = "x"})
      -> (tensor<16x16xi64, #ax.layout<[{col}, {}]>> {ax.name = "y"}) {
    %s = ax.stage @stage0 on 0 (%a = %x : tensor<16x16xi64, #ax.layout<[{col}, {}]>>)
        -> (tensor<16x16xi64, #ax.layout<[{col}, {}]>>) {
      %c = ax.constant #ax.stored<offset 0 length 2048 checksum "85f191a37ffbd0b6"> : tensor<16x16xi64> -> tensor<16x16xi64, #ax.layout<[{col}, {}]>>
      %y = ax.binary add %a, %c : tensor<16x16xi64, #ax.layout<[{col}, {}]>>, tensor<16x16xi64, #ax.layout<[{col}, {}]>> -> tensor<16x16xi64, #ax.layout<[{col}, {}]>>
      ax.yield %y : tensor<16x16xi64, #ax.layout<[{col}, {}]>>
    }
    ax.schedule "forward" { stage 0: "F0" }
    ax.return %s : tensor<16x16xi64, #ax.layout<[{col}, {}]>>
  }
}
