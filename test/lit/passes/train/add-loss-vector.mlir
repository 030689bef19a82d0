// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax-add-loss{loss=cross_entropy(logits,labels)})' | FileCheck %s

// One sample of no batch: its label is a single number.
// CHECK: ax.program @main(%{{.*}}: tensor<16xf32> {ax.name = "x"}, %{{.*}}: tensor<i64> {ax.labels = {classes = 16 : i64, ignore_index = -100 : i64, shift = 0 : i64}, ax.name = "labels"})
// CHECK-SAME: tensor<f32> {ax.name = "loss_sum", ax.role = #ax.role<loss_sum>}
ax.plan @p version 1 {
  ax.program @main(%x: tensor<16xf32> {ax.name = "x"}) -> (tensor<16xf32> {ax.name = "logits"}) {
    ax.return %x : tensor<16xf32>
  }
}
