// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax-add-loss{loss=mse(y,t) scaled})' 2>&1 | FileCheck %s

// CHECK: the model has a weight 'optimizer.loss_scale', and training keeps a state of that name
ax.plan @p version 1 {
  ax.state @optimizer.loss_scale : tensor<4xf32> from "w" offset 0 length 16
  ax.program @main(%x: tensor<4xf32> {ax.name = "x"}) -> (tensor<4xf32> {ax.name = "y"}) {
    ax.return %x : tensor<4xf32>
  }
}
