// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax-add-loss{loss=mse(y,t)})' 2>&1 | FileCheck %s

// CHECK: error: {{.*}}the program has a result 'loss_sum' already
ax.plan @p version 1 {
  ax.program @main(%x: tensor<4xf32> {ax.name = "x"}) -> (tensor<4xf32> {ax.name = "y"}, tensor<4xf32> {ax.name = "loss_sum"}) {
    ax.return %x, %x : tensor<4xf32>, tensor<4xf32>
  }
}
