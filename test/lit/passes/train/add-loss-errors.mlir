// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax-add-loss{loss=mse(y,t)})' 2>&1 | FileCheck %s
// RUN: sed 's/version 1 {/& ax.state @optimizer.loss_scale : tensor<4xf32> from "w" offset 0 length 16/; s/"loss_sum"/"z"/' %s > %t.mlir
// RUN: not axopt-opt %t.mlir --pass-pipeline='builtin.module(ax-add-loss{loss=mse(y,t) scaled})' 2>&1 | FileCheck %s --check-prefix=NAME

// NAME: the model has a weight 'optimizer.loss_scale', and training keeps a state of that name
// CHECK: error: {{.*}}the program has a result 'loss_sum' already
ax.plan @p version 1 {
  ax.program @main(%x: tensor<4xf32> {ax.name = "x"}) -> (tensor<4xf32> {ax.name = "y"}, tensor<4xf32> {ax.name = "loss_sum"}) {
    ax.return %x, %x : tensor<4xf32>, tensor<4xf32>
  }
}
