// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate,ax.plan(ax-recompute-forward{mode=full}))' | FileCheck %s
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax-differentiate,ax.plan(ax-recompute-forward{mode=layer0.*}))' | FileCheck %s

// What is compared is done again, but not what was decided by it: neither by
// the model nor which number is the largest, which the gradient goes by.

// CHECK: ax.reduce max
// CHECK-NEXT: ax.compare eq %{{[0-9]+}}, %{{[0-9]+}} : tensor<256x256xf32>
// CHECK: ax.linear {{.*}}ax.action = "B", recomputed
// CHECK-NEXT: ax.unary gelu {{.*}}ax.action = "B", recomputed
// CHECK-NOT: ax.compare {{.*}}recomputed
// CHECK-NOT: ax.unary floor {{.*}}recomputed
// CHECK-NOT: ax.top_k {{.*}}recomputed
ax.plan @p version 1 {
  ax.state @w0 : tensor<64x256xf32> from "w" offset 0 length 65536 {trainable}
  ax.state @w1 : tensor<256x256xf32> from "w" offset 0 length 262144 {trainable}
  ax.state @w2 : tensor<256x256xf32> from "w" offset 0 length 262144 {trainable}
  ax.state @w3 : tensor<256x16xf32> from "w" offset 0 length 16384 {trainable}
  ax.program @main(%x: tensor<256x64xf32> {ax.name = "x"}) -> (tensor<f32> {ax.name = "loss"}) {
    %w0 = ax.load @w0 : tensor<64x256xf32>
    %w1 = ax.load @w1 : tensor<256x256xf32>
    %w2 = ax.load @w2 : tensor<256x256xf32>
    %w3 = ax.load @w3 : tensor<256x16xf32>
    %zero = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
    %h = ax.linear %x, %w0 : tensor<256x64xf32>, tensor<64x256xf32> -> tensor<256x256xf32> loc("layer0.up")
    %g = ax.unary gelu %h : tensor<256x256xf32> -> tensor<256x256xf32> loc("layer0.gelu")
    %is = ax.compare gt %g, %zero : tensor<256x256xf32>, tensor<f32> -> tensor<256x256xi1> loc("layer0.greater")
    %s = ax.select %is, %g, %zero : tensor<256x256xi1>, tensor<256x256xf32>, tensor<f32> -> tensor<256x256xf32> loc("layer0.where")
    %f = ax.unary floor %g : tensor<256x256xf32> -> tensor<256x256xf32> loc("layer0.floor")
    %m = ax.binary mul %s, %f : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32> loc("layer0.mul")
    %values, %indices = ax.top_k %g k 256 dim 1 : tensor<256x256xf32> -> tensor<256x256xf32>, tensor<256x256xi64> loc("layer0.sort")
    %sorted = ax.binary mul %values, %m : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32> loc("layer0.mul")
    %y = ax.linear %sorted, %w1 : tensor<256x256xf32>, tensor<256x256xf32> -> tensor<256x256xf32>
    %best = ax.reduce max %y dims [0] keep_dims : tensor<256x256xf32> -> tensor<1x256xf32>
    %z = ax.linear %best, %w2 : tensor<1x256xf32>, tensor<256x256xf32> -> tensor<1x256xf32>
    %o = ax.linear %z, %w3 : tensor<1x256xf32>, tensor<256x16xf32> -> tensor<1x16xf32>
    %loss = ax.reduce sum %o dims [0, 1] : tensor<1x16xf32> -> tensor<f32>
    ax.return %loss : tensor<f32>
  }
}
