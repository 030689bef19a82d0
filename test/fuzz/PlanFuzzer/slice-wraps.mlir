ax.plan @m version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 1] in time [micro = 1]
  
  ax.program @main(%x: tensor<4xf32> {ax.name = "x"}) -> (tensor<65537xf32> {ax.name = "y"}) {
    %s = ax.stage @stage0 on 0 (%a = %x : tensor<4xf32>) -> (tensor<65537xf32>) {
      %b = ax.slice %a starts [0] steps [281474976710656] : tensor<4xf32> -> tensor<65537xf32>
 ax.yield %b : tensor<65537xf32>
    }
    ax.schedule "forward" {
      stage 0: "F0"
    }
    ax.return %s : tensor<65537xf32>
  }
}
