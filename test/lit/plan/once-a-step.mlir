// What is done once a step sees no single micro-batch, and what is done for each
// sees no sum of all.

// RUN: axopt %s --verify | FileCheck %s --check-prefix=GOOD
// GOOD: verified

// An update takes a slice of the program's input.
// RUN: sed 's/%d = %f : !p/%d = %x : !x/; s/%e = ax.all_reduce %d/%r = ax.reduce sum %d dims [0] : !x -> !p %e = ax.all_reduce %r/' %s > %t.input.mlir
// RUN: %exit 5 axopt %t.input.mlir --verify 2>&1 | FileCheck %s --check-prefix=INPUT
// INPUT: 'ax.stage' op takes operand 0 of layout [{micro}], which is not that of all micro-batches together, but is done once a step

// What stage 0 adds up is no addend for stage 1.
// RUN: sed 's/^    \/\/ U0/    ax.stage @u0 on 0 (%c = %%s : !p) -> () attributes {ax.action = "U"} { ax.yield }/; s/0: "F0 F1"/0: "F0 F1 U"/' %s > %t.sent.mlir
// RUN: %exit 5 axopt %t.sent.mlir --verify 2>&1 | FileCheck %s --check-prefix=SENT
// SENT: 'ax.transfer' op from 0 to 1: sends for each micro-batch what is added up for an update

!x = tensor<4xf32, #ax.layout<[{micro}]>>
!p = tensor<f32, #ax.layout<[], partial sum {micro}>>
!f = tensor<f32, #ax.layout<[]>>
ax.plan @p version 1 {
  ax.mesh [pipe = 2] in time [micro = 2]
  ax.program @main(%x: !x {ax.name = "x"}) -> (!f {ax.name = "y"}) {
    %s = ax.stage @f0 on 0 (%a = %x : !x) -> (!p) {
      %0 = ax.reduce sum %a dims [0] : !x -> !p
      ax.yield %0 : !p
    }
    %t = ax.transfer %s from 0 to 1 slots 2 : !p
    %f = ax.stage @f1 on 1 (%b = %t : !p) -> (!p) {
      ax.yield %b : !p
    }
    // U0
    %u = ax.stage @u1 on 1 (%d = %f : !p) -> (!f) attributes {ax.action = "U"} {
      %e = ax.all_reduce %d over {micro} : !p -> !f
      ax.yield %e : !f
    }
    ax.schedule "1f1b" { stage 0: "F0 F1", stage 1: "F0 F1 U" }
    ax.return %u : !f
  }
}
