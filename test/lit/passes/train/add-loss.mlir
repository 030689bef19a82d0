// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax-add-loss{loss=cross_entropy(logits,labels,shift=1)})' | FileCheck %s
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax-add-loss{loss=cross_entropy(logits,labels) scaled})' | FileCheck %s --check-prefix=SCALED

// 2^16 over the number of labels, 16; the evaluation needs none.
// SCALED: ax.plan @p version 3
// SCALED: ax.state @optimizer.loss_scale : tensor<i64>
// SCALED: ax.program @main
// SCALED-SAME: tensor<f32> {ax.name = "scaled_loss_sum", ax.role = #ax.role<scaled_loss_sum>}) attributes {ax.loss_shift = 4 : i64}
// SCALED: %[[E:.*]] = ax.load @optimizer.loss_scale
// SCALED: %[[FIRST:.*]] = ax.constant {stage = 3 : i64} dense<12>
// SCALED: ax.binary add %[[E]], %[[FIRST]] {stage = 3 : i64}
// SCALED: ax.binary pow
// SCALED: ax.program @eval
// SCALED-NOT: scaled
// SCALED: ax.plan @other

// The logits stay whole: no gather, no slice, and every reduction over the
// classes can be split. The maximum has no gradient. All is in the stage of the
// output.
// CHECK: ax.program @main(%{{.*}}: tensor<2x8x16xf32> {ax.name = "x"}, %[[LABELS:.*]]: tensor<2x8xi64> {ax.labels = {classes = 16 : i64, ignore_index = -100 : i64, shift = 1 : i64}, ax.name = "labels"})
// CHECK-SAME: -> (tensor<2x8x16xf32> {ax.name = "y"}, tensor<f32> {ax.name = "loss_sum", ax.role = #ax.role<loss_sum>}, tensor<f32> {ax.name = "loss_count", ax.role = #ax.role<loss_count>})
ax.plan @p version 1 {
  ax.program @main(%x: tensor<2x8x16xf32> {ax.name = "x"}) -> (tensor<2x8x16xf32> {ax.name = "y"}) {
    // CHECK: %[[Y:.*]] = ax.unary neg
    %y = ax.unary neg %x {stage = 3 : i64} : tensor<2x8x16xf32> -> tensor<2x8x16xf32>
    // CHECK: ax.slice %[[LABELS]] starts [0, 1]
    // CHECK: ax.pad {{.*}} low [0, 0] high [0, 1] {stage = 3 : i64}
    // CHECK: %[[MAX:.*]] = ax.reduce max %[[Y]] dims [2] keep_dims {ax.no_gradient, stage = 3 : i64}
    // CHECK: ax.binary sub %[[Y]], %[[MAX]] {stage = 3 : i64}
    // CHECK: ax.unary exp
    // CHECK: ax.reduce sum {{.*}} dims [2]
    // CHECK: ax.iota dim 2 {stage = 3 : i64} : tensor<1x1x16xi64>
    // CHECK: ax.compare eq
    // CHECK: ax.select {{.*}} %[[Y]]
    // CHECK-NOT: ax.gather
    // CHECK: ax.return %[[Y]]
    ax.return %y : tensor<2x8x16xf32>
  }

  // Evaluation gives sums for each sample, and nothing else.
  // CHECK: ax.program @eval
  // CHECK-SAME: -> (tensor<2xf32> {ax.name = "loss_sum", ax.role = #ax.role<loss_sum>, ax.samples = 0 : i64}, tensor<2xf32> {ax.name = "loss_count", ax.role = #ax.role<loss_count>, ax.samples = 0 : i64}, tensor<2xf32> {ax.name = "correct", ax.role = #ax.role<correct>, ax.samples = 0 : i64})
  ax.program @eval(%x: tensor<2x8x16xf32> {ax.name = "x"}) -> (tensor<2x8x16xf32> {ax.name = "y", ax.samples = 0}) {
    // CHECK: %[[MAX:.*]] = ax.reduce max
    // CHECK: %[[BEST:.*]] = ax.compare eq %{{.*}}, %[[MAX]]
    // CHECK: %[[INDEX:.*]] = ax.select %[[BEST]]
    // CHECK: ax.reduce min %[[INDEX]] dims [2]
    // CHECK: ax.reduce sum {{.*}} dims [1, 2]
    ax.return %x : tensor<2x8x16xf32>
  }
}

// Of samples in another dimension, and of a batch as a whole.
// CHECK: ax.plan @other
// CHECK: -> (tensor<8xf32> {ax.name = "loss_sum", ax.role = #ax.role<loss_sum>, ax.samples = 0 : i64}, tensor<8xf32> {ax.name = "loss_count", ax.role = #ax.role<loss_count>, ax.samples = 0 : i64},
// CHECK: ax.reduce sum {{.*}} dims [0, 2]
ax.plan @other version 1 {
  ax.program @eval(%x: tensor<8x2x16xf32> {ax.name = "x"}) -> (tensor<2x8x16xf32> {ax.name = "y", ax.samples = 1}) {
    %y = ax.transpose %x [1, 0, 2] : tensor<8x2x16xf32> -> tensor<2x8x16xf32>
    ax.return %y : tensor<2x8x16xf32>
  }
}

// CHECK: ax.plan @whole
// CHECK: -> (tensor<f32> {ax.name = "loss_sum", ax.role = #ax.role<loss_sum>}, tensor<f32> {ax.name = "loss_count", ax.role = #ax.role<loss_count>},
// CHECK: ax.reduce sum {{.*}} dims [0, 1, 2]
ax.plan @whole version 1 {
  ax.program @eval(%x: tensor<2x8x16xf32> {ax.name = "x"}) -> (tensor<2x8x16xf32> {ax.name = "y"}) {
    ax.return %x : tensor<2x8x16xf32>
  }
}

// What a model calls its own outputs is its own affair.
// CHECK: ax.plan @named version 3
// CHECK: -> (tensor<4x3x2xf32> {ax.name = "logits"}, tensor<f32> {ax.name = "loss_sum"}, tensor<f32> {ax.name = "loss_sum", ax.role = #ax.role<loss_sum>},
ax.plan @named version 1 {
  ax.program @main(%x: tensor<4x3x2xf32> {ax.name = "x"}, %z: tensor<f32> {ax.name = "z"}) -> (tensor<4x3x2xf32> {ax.name = "logits"}, tensor<f32> {ax.name = "loss_sum"}) {
    ax.return %x, %z : tensor<4x3x2xf32>, tensor<f32>
  }
}
