ax.plan @m version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 1] in time [micro = 1]
  
  ax.program @main(%x: tensor<1x1x1xf32> {ax.name = "x"}) -> (tensor<1x1x1xf32> {ax.name = "y"}) {
    %s = ax.stage @stage0 on 0 (%a = %x : tensor<1x1x1xf32>) -> (tensor<1x1x1xf32>) {
      %b = ax.pool max %a kernel [1099511627776] strides [1] pads [1099511627775, 0] dilations [1] ceil_extra [0] : tensor<1x1x1xf32> -> tensor<1x1x1xf32>
 ax.yield %b : tensor<1x1x1xf32>
    }
    ax.schedule "forward" {
      stage 0: "F0"
    }
    ax.return %s : tensor<1x1x1xf32>
  }
}
