// Stages that wait for each other: what is said of plans that never end.

// The first stage sends to both others; the last one has room for two values,
// of which it takes the first when the second stage has had both.
// RUN: axopt %s --verify | FileCheck %s --check-prefix=GOOD
// GOOD: verified

// With one slot it depends on which of its two values the first stage sends
// first; a group sends each when it can.
// RUN: sed 's/slots 2 {node = "skip"}/slots 1 {node = "skip"}/' %s > %t.slots.mlir
// RUN: %exit 5 axopt %t.slots.mlir --verify 2>&1 | FileCheck %s --check-prefix=AHEAD
// AHEAD: 'ax.schedule' op never ends where ranks receive ahead: stage 0 at F1 waits for a free one of the 1 slots of stage 2; stage 1 at F1 waits for micro-batch 1 of stage 0; stage 2 at F0 waits for micro-batch 0 of stage 1{{$}}

// With one slot for what the second stage sends back, too, it waits as well.
// RUN: sed 's/slots 2 {/slots 1 {/' %s > %t.three.mlir
// RUN: %exit 5 axopt %t.three.mlir --verify 2>&1 | FileCheck %s --check-prefix=THREE
// THREE: 'ax.schedule' op never ends: stage 0 (ranks 0, 1), before B0, waits to send 'skip' of micro-batch 1 to stage 2 (ranks 4, 5); stage 2 (ranks 4, 5), before F0, waits to receive 'late' of micro-batch 0 from stage 1 (ranks 2, 3); stage 1 (ranks 2, 3), before B0, waits to send 'back' of micro-batch 1 to stage 0 (ranks 0, 1){{$}}

// The second stage sends back before it takes what the first one sends before
// it takes that: in a group, both do at once.
// RUN: sed 's/stage 0: "F0 F1 B0 B1"/stage 0: "F0 B0 F1 B1"/' %s > %t.mine.mlir
// RUN: axopt %t.mine.mlir --verify | FileCheck %s --check-prefix=GOOD

// The first stage takes what comes of what it has not sent.
// RUN: sed 's/stage 0: "F0 F1 B0 B1"/stage 0: "F0 B0 B1 F1"/' %s > %t.circle.mlir
// RUN: %exit 5 axopt %t.circle.mlir --verify 2>&1 | FileCheck %s --check-prefix=CIRCLE
// RUN: %exit 5 axopt %t.circle.mlir --compile -o %t.axc 2>&1 | FileCheck %s --check-prefix=CIRCLE
// RUN: %exit 5 axrun %t.circle.mlir --random-inputs 1 2>&1 | FileCheck %s --check-prefix=CIRCLE
// CIRCLE: 'ax.schedule' op never ends: stage 0 (ranks 0, 1), before B1, waits to receive 'back' of micro-batch 1 from stage 1 (ranks 2, 3); stage 1 (ranks 2, 3), before F1, waits to receive 'forth' of micro-batch 1 from stage 0 (ranks 0, 1){{$}}

!x = tensor<4xf32, #ax.layout<[{micro}]>>
ax.plan @p version 1 {
  ax.mesh [pipe = 3, col = 2] in time [micro = 2]
  ax.program @main(%x: !x {ax.name = "x"}) -> (!x {ax.name = "y"}, !x {ax.name = "z"}) {
    %a = ax.stage @forward0 on 0 (%v = %x : !x) -> (!x) {
      %0 = ax.unary neg %v : !x -> !x
      ax.yield %0 : !x
    }
    %ta = ax.transfer %a from 0 to 1 slots 1 {node = "forth"} : !x
    %tc = ax.transfer %a from 0 to 2 slots 2 {node = "skip"} : !x
    %b:2 = ax.stage @forward1 on 1 (%v = %ta : !x) -> (!x, !x) attributes {ax.slots = 2 : i64} {
      %0 = ax.unary exp %v : !x -> !x
      ax.yield %0, %0 : !x, !x
    }
    %tb = ax.transfer %b#1 from 1 to 0 slots 2 {node = "back"} : !x
    %z = ax.stage @backward0 on 0 (%v = %tb : !x) -> (!x) attributes {ax.action = "B"} {
      ax.yield %v : !x
    }
    %g = ax.stage @backward1 on 1 (%v = %b#0 : !x) -> (!x) attributes {ax.action = "B"} {
      %0 = ax.unary neg %v : !x -> !x
      ax.yield %0 : !x
    }
    %tg = ax.transfer %g from 1 to 2 slots 1 {node = "late"} : !x
    %y = ax.stage @forward2 on 2 (%v = %tc : !x, %w = %tg : !x) -> (!x) {
      %0 = ax.binary add %v, %w : !x, !x -> !x
      ax.yield %0 : !x
    }
    ax.schedule "mine" {
      stage 0: "F0 F1 B0 B1",
      stage 1: "F0 F1 B0 B1",
      stage 2: "F0 F1"
    }
    ax.return %y, %z : !x, !x
  }
}
