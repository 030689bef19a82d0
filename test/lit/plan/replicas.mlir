// A state on two stages: what they store has to be the same, whoever made it.

// RUN: axopt %s --verify | FileCheck %s --check-prefix=GOOD
// GOOD: verified

// RUN: sed '/%2 = /s/add/mul/' %s > %t.op.mlir
// RUN: %exit 5 axopt %t.op.mlir --verify 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: sed 's/%c = %%s/%c = %x/' %s > %t.value.mlir
// RUN: %exit 5 axopt %t.value.mlir --verify 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: 'ax.store' op stores another value of @w than stage 1, which holds it, too

!s = tensor<4xf32, #ax.layout<[{data}]>>
!f = tensor<4xf32, #ax.layout<[{}]>>
ax.plan @p version 1 {
  ax.mesh [pipe = 2, data = 2]
  ax.state @w : !f stages [0, 1]
  ax.program @main(%x: !s {ax.name = "x"}) -> (!f {ax.name = "y"}) {
    %s = ax.stage @f0 on 0 (%a = %x : !s) -> (!s) {
      %0 = ax.unary exp %a : !s -> !s
      ax.yield %0 : !s
    }
    %t = ax.transfer %s from 0 to 1 slots 2 : !s
    %y = ax.stage @f1 on 1 (%b = %t : !s) -> (!f) {
      %w1 = ax.load @w : !f
      %g1 = ax.all_gather %b over {data} because "one of two" : !s -> !f
      %1 = ax.binary add %g1, %w1 {node = "last"} : !f, !f -> !f
      ax.store @w, %1 : !f
      ax.yield %1 : !f
    }
    // The same, but when it is done.
    ax.stage @u0 on 0 (%c = %s : !s) -> () attributes {ax.action = "U"} {
      %g2 = ax.all_gather %c over {data} start : !s -> !f
      %w2 = ax.load @w : !f
      %h2 = ax.wait %g2 : !f
      %2 = ax.binary add %h2, %w2 : !f, !f -> !f
      ax.store @w, %2 : !f
      ax.yield
    }
    ax.schedule "1f1b" { stage 0: "F0 U", stage 1: "F0" }
    ax.return %y : !f
  }
}
