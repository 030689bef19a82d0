// One example of every operation, which docs/reference/dialect.md shows: what is
// printed is read, and printed alike.
// RUN: axopt-opt %s -o %t.mlir && axopt-opt %t.mlir -o %t.again && cmp %t.mlir %t.again
// RUN: FileCheck %s --input-file=%t.mlir

// CHECK: ax.iota dim 1
%x = ax.iota dim 1 : tensor<4x8xf32>
%i = ax.constant dense<[3, 0, -1]> : tensor<3xi64> -> tensor<3xi64>
%stored = ax.constant #ax.stored<offset 64 length 2048 checksum "8c1d3f0a52b7e964"> : tensor<256xi64> -> tensor<256xi64>
%w = ax.constant dense<0.5> : tensor<16x8xf32> -> tensor<16x8xf32>
%scale = ax.constant dense<1.0> : tensor<8xf32> -> tensor<8xf32>
%zero = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>

// Elements.
// CHECK: ax.unary gelu
%u = ax.unary gelu %x : tensor<4x8xf32> -> tensor<4x8xf32>
%s = ax.binary add %x, %scale : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
%c = ax.compare lt %x, %u : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xi1>
%choice = ax.select %c, %x, %u : tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
%half = ax.cast %x : tensor<4x8xf32> -> tensor<4x8xf16>
%count = ax.at_most %i limit 5 : tensor<3xi64> -> tensor<3xi64>
%seed = ax.constant dense<7> : tensor<i64> -> tensor<i64>
%step = ax.constant dense<0> : tensor<i64> -> tensor<i64>
%dropped = ax.dropout %x seed %seed step %step rate 1.000000e-01 id 3 : tensor<4x8xf32>, tensor<i64>, tensor<i64> -> tensor<4x8xf32>
%random = ax.uniform seed %seed step %step id 4 : tensor<i64>, tensor<i64> -> tensor<4x8xf32>

// Contractions. The weight is [out, in]; Raise makes a linear of a dot.
// CHECK: ax.dot
%d = ax.dot %x, %w batch [] x [] contract [1] x [1] : tensor<4x8xf32>, tensor<16x8xf32> -> tensor<4x16xf32>
%l = ax.linear %x, %w {transpose_w} : tensor<4x8xf32>, tensor<16x8xf32> -> tensor<4x16xf32>
%q = ax.constant dense<0.1> : tensor<2x4x5x8xf32> -> tensor<2x4x5x8xf32>
%kv = ax.constant dense<0.1> : tensor<2x2x5x8xf32> -> tensor<2x2x5x8xf32>
%a = ax.attention %q, %kv, %kv scale 0.35355339059327379 {causal} : tensor<2x4x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32> -> tensor<2x4x5x8xf32>
%dq, %dk, %dv = ax.attention_gradient %q, %kv, %kv, %a, %q scale 0.35355339059327379 {causal} : tensor<2x4x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x4x5x8xf32>, tensor<2x4x5x8xf32> -> tensor<2x4x5x8xf32>, tensor<2x2x5x8xf32>, tensor<2x2x5x8xf32>
%image = ax.constant dense<1.0> : tensor<1x4x6x6xf32> -> tensor<1x4x6x6xf32>
%kernel = ax.constant dense<1.0> : tensor<8x4x3x3xf32> -> tensor<8x4x3x3xf32>
%conv = ax.conv %image, %kernel strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] : tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32> -> tensor<1x8x6x6xf32>
%kernel2 = ax.constant dense<1.0> : tensor<4x8x2x2xf32> -> tensor<4x8x2x2xf32>
%up = ax.conv_transpose %image, %kernel2 strides [2, 2] pads [0, 0, 0, 0] dilations [1, 1] output_pads [0, 0] : tensor<1x4x6x6xf32>, tensor<4x8x2x2xf32> -> tensor<1x8x12x12xf32>
%dw = ax.conv_weight_gradient %image, %conv kernel [3, 3] strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] : tensor<1x4x6x6xf32>, tensor<1x8x6x6xf32> -> tensor<8x4x3x3xf32>
%pooled = ax.pool max %image kernel [2, 2] strides [2, 2] pads [0, 0, 0, 0] dilations [1, 1] ceil_extra [0, 0] : tensor<1x4x6x6xf32> -> tensor<1x4x3x3xf32>
%dx = ax.max_pool_gradient %image, %pooled kernel [2, 2] strides [2, 2] pads [0, 0, 0, 0] dilations [1, 1] ceil_extra [0, 0] : tensor<1x4x6x6xf32>, tensor<1x4x3x3xf32> -> tensor<1x4x6x6xf32>

// Reductions along dimensions.
// CHECK: ax.reduce sum
%sum = ax.reduce sum %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>
%boxes = ax.constant dense<1.0> : tensor<1x6x4xf32> -> tensor<1x6x4xf32>
%scores = ax.constant dense<0.9> : tensor<1x3x6xf32> -> tensor<1x3x6xf32>
%taken = ax.non_max_suppression %boxes, %scores limit 2 iou_threshold 5.000000e-01 {score_threshold = 1.000000e-01 : f64} : tensor<1x6x4xf32>, tensor<1x3x6xf32> -> tensor<1x3x2xi64>
%best = ax.arg_reduce %x dim 1 : tensor<4x8xf32> -> tensor<4x1xi64>
%running = ax.cumulative sum %x dim 1 : tensor<4x8xf32> -> tensor<4x8xf32>
%top, %places = ax.top_k %x k 2 dim 1 : tensor<4x8xf32> -> tensor<4x2xf32>, tensor<4x2xi64>
%p = ax.softmax %x dim 1 : tensor<4x8xf32> -> tensor<4x8xf32>
%fake = ax.fake_quantize %x : tensor<4x8xf32> -> tensor<4x8xf32>
%normed = ax.layer_norm %x scale %scale : tensor<8xf32> axis 1 epsilon 1.000000e-05 : tensor<4x8xf32> -> tensor<4x8xf32>
%rms = ax.rms_norm %x scale %scale : tensor<8xf32> axis 1 epsilon 1.000000e-05 : tensor<4x8xf32> -> tensor<4x8xf32>

// Shapes.
// CHECK: ax.reshape
%r = ax.reshape %x : tensor<4x8xf32> -> tensor<2x2x8xf32>
%t = ax.transpose %x [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
%b = ax.broadcast %scale : tensor<8xf32> -> tensor<4x8xf32>
%cut = ax.slice %x starts [1, 0] steps [1, 2] : tensor<4x8xf32> -> tensor<2x4xf32>
%part = ax.dynamic_slice %x[%seed, %step] : tensor<4x8xf32>, tensor<i64>, tensor<i64> -> tensor<2x8xf32>
%joined = ax.concat %x, %u dim 0 : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
%padded = ax.pad %x value %zero : tensor<f32> low [0, 1] high [0, 1] : tensor<4x8xf32> -> tensor<4x10xf32>
%rows = ax.gather %x[%i] axis 0 : tensor<4x8xf32>, tensor<3xi64> -> tensor<3x8xf32>
%elements = ax.gather_elements %x[%places] axis 1 : tensor<4x8xf32>, tensor<4x2xi64> -> tensor<4x2xf32>
%at = ax.constant dense<[[0, 1], [2, 3]]> : tensor<2x2xi64> -> tensor<2x2xi64>
%points = ax.gather_nd %x[%at] batch_dims 0 : tensor<4x8xf32>, tensor<2x2xi64> -> tensor<2xf32>
%set = ax.scatter_elements set %x[%places], %top axis 1 : tensor<4x8xf32>, tensor<4x2xi64>, tensor<4x2xf32> -> tensor<4x8xf32>
%added = ax.scatter_nd add %x[%at], %points : tensor<4x8xf32>, tensor<2x2xi64>, tensor<2xf32> -> tensor<4x8xf32>
%dtable = ax.gather_gradient %rows[%i] axis 0 size 4 : tensor<3x8xf32>, tensor<3xi64> -> tensor<4x8xf32>

// A plan with its parts: two stages of four ranks each.
// CHECK: ax.plan @example
ax.plan @example version 1 {
  ax.mesh [pipe = 2, data = 2, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.state @w : tensor<16x8xf32, #ax.layout<[{col}, {}]>> stages [0]
  ax.state @v : tensor<16x16xf32, #ax.layout<[{}, {col}]>> stages [0]
  ax.program @main(%in: tensor<4x8xf32, #ax.layout<[{data}, {}]>> {ax.name = "x"}) -> (tensor<4x16xf32, #ax.layout<[{data}, {}]>> {ax.name = "y"}) {
    %h = ax.stage @stage0 on 0 (%arg = %in : tensor<4x8xf32, #ax.layout<[{data}, {}]>>) -> (tensor<4x16xf32, #ax.layout<[{data}, {}]>>) {
      %0 = ax.load @w : tensor<16x8xf32, #ax.layout<[{col}, {}]>>
      %1 = ax.linear %arg, %0 {transpose_w} : tensor<4x8xf32, #ax.layout<[{data}, {}]>>, tensor<16x8xf32, #ax.layout<[{col}, {}]>> -> tensor<4x16xf32, #ax.layout<[{data}, {col}]>>
      %2 = ax.load @v : tensor<16x16xf32, #ax.layout<[{}, {col}]>>
      %3 = ax.linear %1, %2 {transpose_w} : tensor<4x16xf32, #ax.layout<[{data}, {col}]>>, tensor<16x16xf32, #ax.layout<[{}, {col}]>> -> tensor<4x16xf32, #ax.layout<[{data}, {}], partial sum {col}>>
      %4 = ax.all_reduce %3 over {col} because "k of fc2 is split" start : tensor<4x16xf32, #ax.layout<[{data}, {}], partial sum {col}>> -> tensor<4x16xf32, #ax.layout<[{data}, {}]>>
      %5 = ax.wait %4 hides 4096 : tensor<4x16xf32, #ax.layout<[{data}, {}]>>
      %6 = ax.all_slice %5 over {col} : tensor<4x16xf32, #ax.layout<[{data}, {}]>> -> tensor<4x16xf32, #ax.layout<[{data}, {col}]>>
      %7 = ax.all_gather %6 over {col} : tensor<4x16xf32, #ax.layout<[{data}, {col}]>> -> tensor<4x16xf32, #ax.layout<[{data}, {}]>>
      %8 = ax.to_partial %7 over {col} : tensor<4x16xf32, #ax.layout<[{data}, {}]>> -> tensor<4x16xf32, #ax.layout<[{data}, {}], partial sum {col}>>
      %9 = ax.reduce_scatter %8 over {col} : tensor<4x16xf32, #ax.layout<[{data}, {}], partial sum {col}>> -> tensor<4x16xf32, #ax.layout<[{data}, {col}]>>
      %10 = ax.all_to_all %9 over {col} : tensor<4x16xf32, #ax.layout<[{data}, {col}]>> -> tensor<4x16xf32, #ax.layout<[{data, col}, {}]>>
      %11 = ax.collective_permute %10 over {data, col} : tensor<4x16xf32, #ax.layout<[{data, col}, {}]>> -> tensor<4x16xf32, #ax.layout<[{col, data}, {}]>>
      ax.store @v, %2 : tensor<16x16xf32, #ax.layout<[{}, {col}]>>
      ax.yield %7 : tensor<4x16xf32, #ax.layout<[{data}, {}]>>
    }
    %sent = ax.transfer %h from 0 to 1 slots 2 : tensor<4x16xf32, #ax.layout<[{data}, {}]>>
    %y = ax.stage @stage1 on 1 (%arg = %sent : tensor<4x16xf32, #ax.layout<[{data}, {}]>>) -> (tensor<4x16xf32, #ax.layout<[{data}, {}]>>) {
      %0 = ax.unary relu %arg : tensor<4x16xf32, #ax.layout<[{data}, {}]>> -> tensor<4x16xf32, #ax.layout<[{data}, {}]>>
      ax.yield %0 : tensor<4x16xf32, #ax.layout<[{data}, {}]>>
    }
    ax.schedule "forward" {
      stage 0: "F0",
      stage 1: "F0"
    }
    ax.return %y : tensor<4x16xf32, #ax.layout<[{data}, {}]>>
  }
}
