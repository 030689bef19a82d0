ax.plan @m version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 1] in time [micro = 1]
  ax.state @w : tensor<4x4xf64> stages [0] from "w.bin" offset 0 length 128
  ax.program @main(%x: tensor<1x4xf32> {ax.name = "x"}) -> (tensor<1x4xf32> {ax.name = "y"}) {
    %s = ax.stage @stage0 on 0 (%a = %x : tensor<1x4xf32>) -> (tensor<1x4xf32>) {
      %w = ax.load @w : tensor<4x4xf64>
 %b = ax.linear %a, %w : tensor<1x4xf32>, tensor<4x4xf64> -> tensor<1x4xf32>
 ax.yield %b : tensor<1x4xf32>
    }
    ax.schedule "forward" {
      stage 0: "F0"
    }
    ax.return %s : tensor<1x4xf32>
  }
}
