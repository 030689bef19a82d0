// RUN: axopt %s --verify | FileCheck %s
// RUN: sed 's/^      ax.store @p, %q : .*//' %s > %t.unmade.mlir
// RUN: not axopt %t.unmade.mlir --verify 2>&1 | FileCheck %s --check-prefix=UNMADE
// RUN: sed 's/ax.store @p, %q/ax.store @w, %q/' %s > %t.weight.mlir
// RUN: not axopt %t.weight.mlir --verify 2>&1 | FileCheck %s --check-prefix=WEIGHT
// RUN: sed 's/ax.yield %y/ax.store @p, %l : tensor<4xf32> ax.yield %y/' %s > %t.main.mlir
// RUN: not axopt %t.main.mlir --verify 2>&1 | FileCheck %s --check-prefix=MAIN
// RUN: sed 's/ax.yield %y/ax.store @w, %l : tensor<4xf32> ax.yield %y/' %s > %t.changes.mlir
// RUN: not axopt %t.changes.mlir --verify 2>&1 | FileCheck %s --check-prefix=CHANGES
// RUN: sed 's/%v = ax.load @w/%v = ax.load @p/' %s > %t.early.mlir
// RUN: not axopt %t.early.mlir --verify 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: sed 's/ax.program @prepare() {/ax.program @prepare(%i: tensor<4xf32>) {/' %s > %t.input.mlir
// RUN: not axopt %t.input.mlir --verify 2>&1 | FileCheck %s --check-prefix=INPUT
// RUN: sed 's/version 2/version 1/' %s > %t.version.mlir
// RUN: not axopt %t.version.mlir --verify 2>&1 | FileCheck %s --check-prefix=VERSION
// RUN: sed 's/{prepared}/from "f" offset 0 length 16 {prepared}/' %s > %t.file.mlir
// RUN: not axopt %t.file.mlir --verify 2>&1 | FileCheck %s --check-prefix=FILE
// RUN: sed 's/{prepared}/{prepared, trainable}/' %s > %t.trained.mlir
// RUN: not axopt %t.trained.mlir --verify 2>&1 | FileCheck %s --check-prefix=TRAINED
// RUN: sed 's/ {prepared}//' %s > %t.plain.mlir
// RUN: not axopt %t.plain.mlir --verify 2>&1 | FileCheck %s --check-prefix=WEIGHT

// CHECK: verified
// UNMADE: 'ax.state' op is prepared, but @prepare does not store it
// WEIGHT: 'ax.store' op stores @{{[wp]}}, which is not prepared
// MAIN: 'ax.store' op stores @p, which only @prepare does
// CHANGES: 'ax.store' op stores @w, of which others are prepared once, which would be of the old one
// EARLY: 'ax.load' op loads @p, which is still to be prepared
// INPUT: 'ax.program' op is run when the plan is loaded: it takes and gives nothing
// VERSION: 'ax.state' op is prepared, which version 1 does not know
// FILE: 'ax.state' op is prepared, but has a file
// TRAINED: 'ax.state' op is prepared, but is trained
ax.plan @p version 2 {
  ax.mesh [pipe = 1] in time [micro = 1]
  ax.state @w : tensor<4xf32> stages [0] from "f" offset 0 length 16
  ax.state @p : tensor<4xf32> stages [0] {prepared}
  ax.program @main(%a: tensor<4xf32> {ax.name = "x"}) -> (tensor<4xf32> {ax.name = "y"}) {
    %s = ax.stage @stage0 on 0 (%x = %a : tensor<4xf32>) -> (tensor<4xf32>) {
      %l = ax.load @p : tensor<4xf32>
      %y = ax.binary add %x, %l : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
      ax.yield %y : tensor<4xf32>
    }
    ax.schedule "forward" { stage 0: "F0" }
    ax.return %s : tensor<4xf32>
  }
  ax.program @prepare() {
    ax.stage @prepare0 on 0 () attributes {ax.action = "U"} {
      %v = ax.load @w : tensor<4xf32>
      %q = ax.unary exp %v : tensor<4xf32> -> tensor<4xf32>
      ax.store @p, %q : tensor<4xf32>
      ax.yield
    }
    ax.schedule "forward" { stage 0: "U" }
    ax.return
  }
}
