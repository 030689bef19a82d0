ax.plan @p version 2 attributes {ax.data = "plan.mlir.data"} {
  ax.mesh [pipe = 1, col = 2] in time [micro = 1]
  ax.state @w : tensor<16xi64> stages [0] from "f" offset 0 length 128
  ax.state @p : tensor<16xi64> stages [0] {prepared}
  ax.program @main(%x: tensor<16x16xi64, #ax.layout<[{col}, {}]>> {ax.name = "x"})
      -> (tensor<16x16xi64, #ax.layout<[{col}, {}]>> {ax.name = "y"}) {
    %s = ax.stage @stage0 on 0 (%a = %x : tensor<16x16xi64, #ax.layout<[{col}, {}]>>)
        -> (tensor<16x16xi64, #ax.layout<[{col}, {}]>>) {
      %c = ax.constant #ax.stored<offset 0 length 2048 checksum "85f191a37ffbd0b6"> : tensor<16x16xi64> -> tensor<16x16xi64, #ax.layout<[{col}, {}]>>
      %y = ax.binary add %a, %c : tensor<16x16xi64, #ax.layout<[{col}, {}]>>, tensor<16x16xi64, #ax.layout<[{col}, {}]>> -> tensor<16x16xi64, #ax.layout<[{col}, {}]>>
      %p = ax.load @p : tensor<16xi64>
      %z = ax.binary mul %y, %p : tensor<16x16xi64, #ax.layout<[{col}, {}]>>, tensor<16xi64> -> tensor<16x16xi64, #ax.layout<[{col}, {}]>>
      ax.yield %z : tensor<16x16xi64, #ax.layout<[{col}, {}]>>
    }
    ax.schedule "forward" { stage 0: "F0" }
    ax.return %s : tensor<16x16xi64, #ax.layout<[{col}, {}]>>
  }
  ax.program @prepare() {
    ax.stage @prepare0 on 0 () attributes {ax.action = "U"} {
      %w = ax.load @w : tensor<16xi64>
      %q = ax.binary add %w, %w : tensor<16xi64>, tensor<16xi64> -> tensor<16xi64>
      ax.store @p, %q : tensor<16xi64>
      ax.yield
    }
    ax.schedule "forward" { stage 0: "U" }
    ax.return
  }
}
