// RUN: axopt %s --verify | FileCheck %s
// RUN: sed 's/^      ax.store @k, %c : .*/      ax.store @n, %n : tensor<5xf32, #ax.layout<[{col}]>>/' %s > %t.twice.mlir
// RUN: not axopt %t.twice.mlir --verify 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: sed 's/ax.mesh \[col = 2\]/ax.mesh [col = 2] in time [micro = 2]/' %s > %t.micro.mlir
// RUN: not axopt %t.micro.mlir --verify 2>&1 | FileCheck %s --check-prefix=MICRO
// RUN: sed 's/ax.store @n, %m/ax.store @lost, %m/' %s > %t.lost.mlir
// RUN: not axopt %t.lost.mlir --verify 2>&1 | FileCheck %s --check-prefix=LOST
// RUN: sed 's/ax.store @n, %m : .*/ax.store @n, %w : tensor<5xf32>/' %s > %t.layout.mlir
// RUN: not axopt %t.layout.mlir --verify 2>&1 | FileCheck %s --check-prefix=LAYOUT
// RUN: sed 's/^  ax.state @k : tensor<i64> .*/  ax.state @k : tensor<i64> stages [0] from "" offset 8 length 8/' %s > %t.file.mlir
// RUN: not axopt %t.file.mlir --verify 2>&1 | FileCheck %s --check-prefix=FILE
// RUN: sed 's/"y"/"loss"/' %s > %t.loss.mlir
// RUN: not axopt %t.loss.mlir --verify 2>&1 | FileCheck %s --check-prefix=LOSS
// RUN: sed 's/ax.mesh \[col = 2\]/ax.mesh [pipe = 2, col = 2]/; s/@k : tensor<i64> stages \[0\]/@k : tensor<i64> stages [0, 1]/; s/F0" }/F0", stage 1: "F0" }/; s/^    ax.schedule/    ax.stage @g on 1 () { %l = ax.load @k : tensor<i64> ax.yield } ax.schedule/' %s > %t.other.mlir
// RUN: not axopt %t.other.mlir --verify 2>&1 | FileCheck %s --check-prefix=OTHER

// CHECK: verified
// LOSS-DAG: 'ax.program' op gives 'loss' as 'tensor<5xf32, #ax.layout<[{col}]>>'; axrun takes a scalar of f32
// LOSS-DAG: 'ax.program' op trains, but no output has the role 'gradient_norm'
// OTHER: 'ax.state' op @{{.*}} is held by stages [0, 1], but stored by [0] only: the others would go on with the old value
// TWICE: 'ax.store' op stores @n a second time in one step
// MICRO: 'ax.store' op stores @n once a step, but its stage runs for each of 2 micro-batches
// LOST: 'ax.store' op there is no state @lost
// LAYOUT: 'ax.store' op stores 'tensor<5xf32>', the state @n is 'tensor<5xf32, #ax.layout<[{col}]>>'
// FILE: 'ax.state' op has an offset or a length, but no file
ax.plan @p version 1 {
  ax.mesh [col = 2]
  ax.state @n : tensor<5xf32, #ax.layout<[{col}]>> stages [0]
  ax.state @k : tensor<i64> stages [0]
  ax.program @main(%a: tensor<5xf32> {ax.name = "x"}) -> (tensor<5xf32, #ax.layout<[{col}]>> {ax.name = "y"}) {
    %s = ax.stage @f on 0 (%w = %a : tensor<5xf32>) -> (tensor<5xf32, #ax.layout<[{col}]>>) {
      %n = ax.load @n : tensor<5xf32, #ax.layout<[{col}]>>
      %k = ax.load @k : tensor<i64>
      %c = ax.binary add %k, %k : tensor<i64>, tensor<i64> -> tensor<i64>
      %p = ax.all_slice %w over {col} : tensor<5xf32> -> tensor<5xf32, #ax.layout<[{col}]>>
      %m = ax.binary add %n, %p : tensor<5xf32, #ax.layout<[{col}]>>, tensor<5xf32, #ax.layout<[{col}]>> -> tensor<5xf32, #ax.layout<[{col}]>>
      ax.store @n, %m : tensor<5xf32, #ax.layout<[{col}]>>
      ax.store @k, %c : tensor<i64>
      ax.yield %m : tensor<5xf32, #ax.layout<[{col}]>>
    }
    ax.schedule "forward" { stage 0: "F0" }
    ax.return %s : tensor<5xf32, #ax.layout<[{col}]>>
  }
}
