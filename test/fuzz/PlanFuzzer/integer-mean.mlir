ax.plan @m version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 1] in time [micro = 1]
  
  ax.program @main(%x: tensor<1x1x4xi32> {ax.name = "x"}) -> (tensor<1x1x6xi32> {ax.name = "y"}) {
    %s = ax.stage @stage0 on 0 (%a = %x : tensor<1x1x4xi32>) -> (tensor<1x1x6xi32>) {
      %b = ax.pool avg %a kernel [1] strides [1] pads [2, 0] dilations [1] ceil_extra [0] : tensor<1x1x4xi32> -> tensor<1x1x6xi32>
 ax.yield %b : tensor<1x1x6xi32>
    }
    ax.schedule "forward" {
      stage 0: "F0"
    }
    ax.return %s : tensor<1x1x6xi32>
  }
}
