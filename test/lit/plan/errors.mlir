// A plan in which one thing is changed: what is said of it.

// RUN: axopt %s --verify | FileCheck %s --check-prefix=GOOD
// GOOD: verified

// RUN: sed '/a mesh/d' %s > %t.mesh.mlir
// RUN: not axopt %t.mesh.mlir --verify 2>&1 | FileCheck %s --check-prefix=MESH
// MESH: the mesh has no axis 'micro'

// RUN: echo 'ax.plan @p version 1 {}' > %t.empty.mlir
// RUN: not axopt %t.empty.mlir --verify 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: empty.mlir:1:1: 'ax.plan' op has no ax.mesh
// EMPTY: empty.mlir:1:1: 'ax.plan' op has no ax.program

// RUN: sed '$a ax.plan @q version 1 {}' %s > %t.two.mlir
// RUN: not axopt %t.two.mlir --verify 2>&1 | FileCheck %s --check-prefix=TWO
// TWO: expected one ax.plan and nothing else

// RUN: truncate -s 70000000 %t.large.mlir
// RUN: not axopt %t.large.mlir --verify 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: rm %t.large.mlir
// LARGE: large.mlir: 70000000 bytes; plans have at most 67108864

// What no run could hold.

// RUN: sed 's/tensor<8x8xf32, #state>/tensor<?xf32>/' %s > %t.dynamic.mlir
// RUN: not axopt %t.dynamic.mlir --verify 2>&1 | FileCheck %s --check-prefix=DYNAMIC
// DYNAMIC: 'tensor<?xf32>' is no tensor of numbers with a static shape

// RUN: sed 's/tensor<8x8xf32, #state>/tensor<1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1xf32>/' %s > %t.rank.mlir
// RUN: not axopt %t.rank.mlir --verify 2>&1 | FileCheck %s --check-prefix=RANK
// RANK: has more than 64 dimensions

// RUN: sed 's/layout<\[{}, {}\]>$/layout<[{}, 9999999999999999 * 1]>/' %s > %t.factor.mlir
// RUN: not axopt %t.factor.mlir --verify 2>&1 | FileCheck %s --check-prefix=FACTOR
// FACTOR: has a size out of range

// RUN: sed 's/layout<\[{}, {}\]>$/layout<[{}, {col:(99999999)1}]>/' %s > %t.digit.mlir
// RUN: not axopt %t.digit.mlir --verify 2>&1 | FileCheck %s --check-prefix=DIGIT
// DIGIT: names a digit of axis 'col' that is out of range

// States.

// RUN: sed 's/ from "w.bin" offset 0 length 256//' %s > %t.nofile.mlir
// RUN: not axopt %t.nofile.mlir --verify 2>&1 | FileCheck %s --check-prefix=NOFILE
// NOFILE: 'ax.state' op is in no file, so zero at first, and nothing stores it

// RUN: sed 's/offset 0 length/offset -8 length/' %s > %t.offset.mlir
// RUN: not axopt %t.offset.mlir --verify 2>&1 | FileCheck %s --check-prefix=OFFSET
// OFFSET: 'ax.state' op of type {{.*}} does not have 256 bytes at offset -8

// RUN: sed 's!"w.bin"!"../w.bin"!' %s > %t.path.mlir
// RUN: not axopt %t.path.mlir --verify 2>&1 | FileCheck %s --check-prefix=PATH
// PATH: 'ax.state' op is in '../w.bin', which is no path inside the model's folder

// RUN: sed 's/layout<\[{}, {}\]>$/layout<[{micro}, {}]>/' %s > %t.time.mlir
// RUN: not axopt %t.time.mlir --verify 2>&1 | FileCheck %s --check-prefix=TIME
// TIME: 'ax.state' op is split over 'micro', but is the same for every micro-batch

// RUN: sed 's/layout<\[{}, {}\]>$/layout<[{pipe}, {}]>/' %s > %t.pipe.mlir
// RUN: not axopt %t.pipe.mlir --verify 2>&1 | FileCheck %s --check-prefix=PIPE
// PIPE: 'ax.state' op is split over 'pipe', whose ranks are other stages

// RUN: sed 's/layout<\[{}, {}\]>$/layout<[{}, {}], partial sum {col}>/' %s > %t.partial.mlir
// RUN: not axopt %t.partial.mlir --verify 2>&1 | FileCheck %s --check-prefix=PARTIAL
// PARTIAL: 'ax.state' op is a partial sum: reduce it first

// Ports.

// RUN: sed 's/"z"/"x"/' %s > %t.names.mlir
// RUN: not axopt %t.names.mlir --verify 2>&1 | FileCheck %s --check-prefix=NAMES
// NAMES: 'ax.program' op has two inputs named 'x'

// Stages and transfers.

// RUN: sed 's/@f1 on 1/@f1 on 0/' %s > %t.stages.mlir
// RUN: not axopt %t.stages.mlir --verify 2>&1 | FileCheck %s --check-prefix=STAGES
// STAGES-DAG: 'ax.stage' op is a second stage on 0
// STAGES-DAG: 'ax.program' op has no stage on 1

// RUN: sed 's/%c = %%t/%c = %%s/' %s > %t.direct.mlir
// RUN: not axopt %t.direct.mlir --verify 2>&1 | FileCheck %s --check-prefix=DIRECT
// DIRECT-DAG: 'ax.stage' op on 1 takes operand 0, which stage 0 has: there is no ax.transfer from 0 to 1
// DIRECT-DAG: 'ax.transfer' op from 0 to 1: is never received: no stage takes its result

// RUN: sed 's/ax.transfer %%s/ax.transfer %x/' %s > %t.input.mlir
// RUN: not axopt %t.input.mlir --verify 2>&1 | FileCheck %s --check-prefix=INPUT
// INPUT: 'ax.transfer' op from 0 to 1: sends what no stage has made

// RUN: sed 's/from 0 to 1/from 1 to 0/' %s > %t.back.mlir
// RUN: not axopt %t.back.mlir --verify 2>&1 | FileCheck %s --check-prefix=BACK
// BACK-DAG: from 1 to 0: sends what stage 0 has made
// BACK-DAG: from 1 to 0: is used by stage 1

// RUN: sed 's/return %u/return %%t/' %s > %t.return.mlir
// RUN: not axopt %t.return.mlir --verify 2>&1 | FileCheck %s --check-prefix=RETURN
// RETURN-DAG: is used by ax.return; only a stage can receive
// RETURN-DAG: 'ax.return' op gives output 0, which is not the result of a stage

// RUN: sed 's/slots 2/slots 2000/' %s > %t.slots.mlir
// RUN: not axopt %t.slots.mlir --verify 2>&1 | FileCheck %s --check-prefix=SLOTS
// SLOTS: from 0 to 1: 2000 slots; at most 1024 make sense

// RUN: sed 's/%%t = ax.transfer/%o = ax.unary exp %x : !t -> !t %%t = ax.transfer/' %s > %t.outside.mlir
// RUN: not axopt %t.outside.mlir --verify 2>&1 | FileCheck %s --check-prefix=OUTSIDE
// OUTSIDE: 'ax.unary' op stands outside of the program's stages

// Operations.

// RUN: sed 's/%0 = .*/%9 = ax.linear %a, %w {node = "fc"} : !t, !w -> !w %0 = ax.linear %a, %w : !t, !w -> !t/' %s > %t.rule.mlir
// RUN: not axopt %t.rule.mlir --verify 2>&1 | FileCheck %s --check-prefix=RULE
// RULE: 'ax.linear' op of node 'fc' has result 0 of layout [{}, {}]; its operands give [{micro}, {}]

// RUN: sed 's/%0 = .*/%9 = ax.linear %a, %w : !t, !w -> tensor<8x9xf32> %0 = ax.linear %a, %w : !t, !w -> !t/' %s > %t.infer.mlir
// RUN: not axopt %t.infer.mlir --verify 2>&1 | FileCheck %s --check-prefix=INFER
// INFER: 'ax.linear' op inferred type(s) 'tensor<8x8xf32>' are incompatible

// Plans of before, where these were no operations of their own. One message, with
// the operation's name.
// RUN: sed 's/%0 = .*/%0 = ax.linear %a, %a {activation = #ax<unary_kind relu>} : !t, !t -> !t/' %s > %t.activation.mlir
// RUN: not axopt %t.activation.mlir --verify 2>&1 | FileCheck %s --check-prefix=ACTIVATION
// ACTIVATION: activation.mlir:{{[0-9]+}}:{{[0-9]+}}: 'ax.linear' op has an activation, as plans had before they were ax.unary operations: make the plan again
// ACTIVATION-NOT: infer
// RUN: sed 's/%0 = .*/%0 = ax.linear %a, %a residual %a : !t : !t, !t -> !t/' %s > %t.residual.mlir
// RUN: not axopt %t.residual.mlir --verify 2>&1 | FileCheck %s --check-prefix=RESIDUAL
// RESIDUAL: residual.mlir:{{[0-9]+}}:{{[0-9]+}}: custom op 'ax.linear' has a residual, as plans had before they were ax.binary operations: make the plan again

// RUN: sed 's/%0 = .*/%g = ax.all_gather %a over {micro} : !t -> !w %0 = ax.all_slice %g over {micro} : !w -> !t/' %s > %t.gather.mlir
// RUN: not axopt %t.gather.mlir --verify 2>&1 | FileCheck %s --check-prefix=GATHER
// GATHER: 'ax.all_gather' op exchanges over 'micro', which is in time: micro-batches are not there at once

// RUN: sed 's/%0 = .*/%g = ax.all_slice %a over {pipe} : !t -> tensor<8x8xf32, #ax.layout<[{micro}, {pipe}]>> %0 = ax.all_gather %g over {pipe} : tensor<8x8xf32, #ax.layout<[{micro}, {pipe}]>> -> !t/' %s > %t.spread.mlir
// RUN: not axopt %t.spread.mlir --verify 2>&1 | FileCheck %s --check-prefix=SPREAD
// SPREAD: 'ax.all_slice' op has a result spread over 'pipe'; values go between stages by ax.transfer only

// RUN: sed 's/%0 = .*/%i = axl.axis_index {col} : tensor<i64> %0 = ax.linear %a, %w : !t, !w -> !t/' %s > %t.index.mlir
// RUN: not axopt %t.index.mlir --verify 2>&1 | FileCheck %s --check-prefix=INDEX
// INDEX: there is no operation 'axl.axis_index'

// RUN: sed 's/%0 = .*/%0 = ax.linear %a, %w {ax.action = ""} : !t, !w -> !t/' %s > %t.mark.mlir
// RUN: not axopt %t.mark.mlir --verify 2>&1 | FileCheck %s --check-prefix=MARK
// MARK: 'ax.linear' op {{.*}}has attribute 'ax.action' = "", which it cannot have

// What a plan says of inputs and outputs.

// RUN: sed 's/version 1 {/version 1 attributes {ax.unbatched = ["z"]} {/' %s > %t.batched.mlir
// RUN: axopt %t.batched.mlir --verify

// RUN: sed 's/version 1 {/version 1 attributes {ax.unbatched = ["z", "nosuch"]} {/' %s > %t.unbatched.mlir
// RUN: not axopt %t.unbatched.mlir --verify 2>&1 | FileCheck %s --check-prefix=UNBATCHED
// UNBATCHED: 'ax.plan' op has no input 'nosuch', which 'ax.unbatched' names

// RUN: sed 's/version 1 {/version 1 attributes {ax.machine = "sm_90"} {/' %s > %t.machine.mlir
// RUN: axopt %t.machine.mlir --verify

// RUN: sed 's/version 1 {/version 1 attributes {ax.machine = "sm_91"} {/' %s > %t.nomachine.mlir
// RUN: not axopt %t.nomachine.mlir --verify 2>&1 | FileCheck %s --check-prefix=NOMACHINE
// NOMACHINE: 'ax.plan' op has attribute 'ax.machine' = "sm_91", and known are sm_80, sm_90, sm_100

// RUN: sed 's/version 1 {/version 1 attributes {ax.machine = 90} {/' %s > %t.notext.mlir
// RUN: not axopt %t.notext.mlir --verify 2>&1 | FileCheck %s --check-prefix=NOTEXT
// NOTEXT: has attribute 'ax.machine' = 90 : i64, which it cannot have

// RUN: sed 's/{ax.name = "y"}/{ax.name = "y", ax.samples = 1}/' %s > %t.samples.mlir
// RUN: axopt %t.samples.mlir --quiet -o %t.again.mlir
// RUN: FileCheck %s --check-prefix=SAMPLES --input-file=%t.again.mlir
// SAMPLES: -> (tensor<{{.*}}> {ax.name = "y", ax.samples = 1 : i64})

// RUN: sed 's/-> (!t {ax.name = "y"}) {/-> (!t {ax.name = "y"}) attributes {ax.schedule_steps = 3} {/' %s > %t.steps.mlir
// RUN: axopt %t.steps.mlir --verify
// RUN: sed 's/schedule_steps = 3/schedule_steps = 0/' %t.steps.mlir > %t.nosteps.mlir
// RUN: not axopt %t.nosteps.mlir --verify 2>&1 | FileCheck %s --check-prefix=NOSTEPS
// NOSTEPS: 'ax.program' op has attribute 'ax.schedule_steps' = 0 : i64, which it cannot have

// RUN: sed 's/schedule_steps = 3/optimizer = "sgd"/' %t.steps.mlir > %t.optimizer.mlir
// RUN: axopt %t.optimizer.mlir --verify
// RUN: sed 's/schedule_steps = 3/optimizer = "\\FF"/' %t.steps.mlir > %t.nooptimizer.mlir
// RUN: not axopt %t.nooptimizer.mlir --verify 2>&1 | FileCheck %s --check-prefix=NOOPTIMIZER
// NOOPTIMIZER: 'ax.program' op has attribute 'ax.optimizer' = "\FF", which it cannot have

// Schedules.

// RUN: sed '/ax.schedule/d' %s > %t.none.mlir
// RUN: not axopt %t.none.mlir --verify 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: 'ax.program' op needs exactly one ax.schedule

// RUN: sed 's/1: "F0 F1"/1: "F0 X1"/' %s > %t.action.mlir
// RUN: not axopt %t.action.mlir --verify 2>&1 | FileCheck %s --check-prefix=ACTION
// ACTION: 'ax.schedule' op of stage 1: 'X1' is no action; F0 is the forward of micro-batch 0

// RUN: sed 's/1: "F0 F1"/1: "F0 F7"/' %s > %t.number.mlir
// RUN: not axopt %t.number.mlir --verify 2>&1 | FileCheck %s --check-prefix=NUMBER
// NUMBER: of stage 1: there is no micro-batch 7 of 2

// RUN: sed 's/1: "F0 F1"/1: "F1 F0"/' %s > %t.order.mlir
// RUN: not axopt %t.order.mlir --verify 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: of stage 1: takes micro-batches in another order than stage 0, so it would read slots that hold others

#state = #ax.layout<[{}, {}]>
!w = tensor<8x8xf32, #state>
!t = tensor<8x8xf32, #ax.layout<[{micro}, {}]>>
ax.plan @p version 1 {
  ax.mesh [pipe = 2, col = 2] in time [micro = 2] // a mesh
  ax.state @w : !w stages [0] from "w.bin" offset 0 length 256
  ax.program @main(%x: !t {ax.name = "x"}, %z: !t {ax.name = "z"}) -> (!t {ax.name = "y"}) {
    %s = ax.stage @f0 on 0 (%a = %x : !t) -> (!t) {
      %w = ax.load @w : !w
      %0 = ax.linear %a, %w : !t, !w -> !t
      ax.yield %0 : !t
    }
    %t = ax.transfer %s from 0 to 1 slots 2 : !t
    %u = ax.stage @f1 on 1 (%c = %t : !t) -> (!t) {
      %1 = ax.unary exp %c : !t -> !t
      ax.yield %1 : !t
    }
    ax.schedule "forward" { stage 0: "F0 F1", stage 1: "F0 F1" }
    ax.return %u : !t
  }
}
