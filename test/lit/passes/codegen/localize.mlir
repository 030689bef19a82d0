// RUN: axopt-opt %s --axl-localize | FileCheck %s

// The sum of a product whose hidden dimension is split unevenly: the padding of
// the input is masked, that of the weight is zero. What nobody reads goes.
// CHECK: ax.state @w
// CHECK: axl.program @main {
// CHECK-NEXT: axl.stage @forward0(%[[X:.*]]: tensor<4x4xf32>) loads(@w = %[[W:.*]]: tensor<4x5xf32>) direct(0) attributes {axl.frozen = array<i64: 1>} {
// CHECK: %[[I:.*]] = axl.axis_index {col} : tensor<i64>
// CHECK: %[[VALID:.*]] = ax.compare lt
// CHECK: %[[MASKED:.*]] = ax.select %[[VALID]], %[[X]]
// CHECK: %[[P:.*]] = ax.linear %[[MASKED]], %[[W]] : tensor<4x4xf32>, tensor<4x5xf32> -> tensor<4x5xf32>
// CHECK: %[[R:.*]] = axl.all_reduce sum %[[P]] over {col} because "k of fc is split" : tensor<4x5xf32> -> tensor<4x5xf32>
// CHECK-NOT: ax.unary
// CHECK: axl.yield %[[R]] : tensor<4x5xf32>
ax.plan @p version 1 {
  ax.mesh [col = 2]
  ax.state @w : tensor<7x5xf32, #ax.layout<[{col}, {}]>> stages [0]
  ax.program @main(%x: tensor<4x7xf32, #ax.layout<[{}, {col}]>>) -> tensor<4x5xf32> {
    %s = ax.stage @forward0 on 0 (%a = %x : tensor<4x7xf32, #ax.layout<[{}, {col}]>>) -> (tensor<4x5xf32>) {
      %w = ax.load @w : tensor<7x5xf32, #ax.layout<[{col}, {}]>>
      %p = ax.linear %a, %w : tensor<4x7xf32, #ax.layout<[{}, {col}]>>, tensor<7x5xf32, #ax.layout<[{col}, {}]>> -> tensor<4x5xf32, #ax.layout<[{}, {}], partial sum {col}>>
      %r = ax.all_reduce %p over {col} because "k of fc is split" : tensor<4x5xf32, #ax.layout<[{}, {}], partial sum {col}>> -> tensor<4x5xf32>
      %unread = ax.unary neg %r : tensor<4x5xf32> -> tensor<4x5xf32>
      ax.yield %r : tensor<4x5xf32>
    }
    ax.schedule "once" { stage 0: "F0" }
    ax.return %s : tensor<4x5xf32>
  }
}

// Query heads of one head of keys are split: each rank has an addend of its
// gradient, in f32, and all of a head's own, which is bf16 at once.
// CHECK-LABEL: ax.plan @group
// CHECK: axl.stage @backwards
// CHECK: ax.cast %{{.*}} : tensor<1x2x3x8xbf16> -> tensor<1x2x3x8xf32>
// CHECK: %dq, %dk, %dv = ax.attention_gradient {{.*}} : tensor<1x2x3x8xf32>, tensor<1x1x5x8xf32>, {{.*}} -> tensor<1x2x3x8xf32>, tensor<1x1x5x8xf32>, tensor<1x1x5x8xf32>
// CHECK: %[[DQ:.*]] = ax.cast %dq : tensor<1x2x3x8xf32> -> tensor<1x2x3x8xbf16>
// CHECK: %[[SUM:.*]] = axl.all_reduce sum %dk over {col} : tensor<1x1x5x8xf32>
// CHECK: %[[DK:.*]] = ax.cast %[[SUM]] : tensor<1x1x5x8xf32> -> tensor<1x1x5x8xbf16>
// CHECK: axl.yield %[[DQ]], %[[DK]]
ax.plan @group version 1 {
  ax.mesh [col = 2]
  ax.program @main(%q: tensor<1x4x3x8xbf16, #ax.layout<[{}, {col}, {}, {}]>>, %k: tensor<1x1x5x8xbf16>) -> (tensor<1x4x3x8xbf16, #ax.layout<[{}, {col}, {}, {}]>>, tensor<1x1x5x8xbf16>) {
    %s:2 = ax.stage @backwards on 0 (%a = %q : tensor<1x4x3x8xbf16, #ax.layout<[{}, {col}, {}, {}]>>, %b = %k : tensor<1x1x5x8xbf16>) -> (tensor<1x4x3x8xbf16, #ax.layout<[{}, {col}, {}, {}]>>, tensor<1x1x5x8xbf16>) {
      %dq, %dk, %dv = ax.attention_gradient %a, %b, %b, %a, %a scale 1.000000e+00 : tensor<1x4x3x8xbf16, #ax.layout<[{}, {col}, {}, {}]>>, tensor<1x1x5x8xbf16>, tensor<1x1x5x8xbf16>, tensor<1x4x3x8xbf16, #ax.layout<[{}, {col}, {}, {}]>>, tensor<1x4x3x8xbf16, #ax.layout<[{}, {col}, {}, {}]>> -> tensor<1x4x3x8xbf16, #ax.layout<[{}, {col}, {}, {}]>>, tensor<1x1x5x8xbf16, #ax.layout<[{}, {}, {}, {}], partial sum {col}>>, tensor<1x1x5x8xbf16, #ax.layout<[{}, {}, {}, {}], partial sum {col}>>
      %r = ax.all_reduce %dk over {col} : tensor<1x1x5x8xbf16, #ax.layout<[{}, {}, {}, {}], partial sum {col}>> -> tensor<1x1x5x8xbf16>
      ax.yield %dq, %r : tensor<1x4x3x8xbf16, #ax.layout<[{}, {col}, {}, {}]>>, tensor<1x1x5x8xbf16>
    }
    ax.schedule "once" { stage 0: "F0" }
    ax.return %s#0, %s#1 : tensor<1x4x3x8xbf16, #ax.layout<[{}, {col}, {}, {}]>>, tensor<1x1x5x8xbf16>
  }
}

// States that no program changes are the same in each step: of what one prepares,
// to others; in that one everything is done once as it is. What one list stores
// alone belongs to its program.
// CHECK-LABEL: ax.plan @states
// CHECK: axl.program @prepare
// CHECK-NOT: axl.frozen
// CHECK: axl.program @step attributes {axl.owned = [@changed]}
// CHECK: axl.stage @s({{.*}}) loads(@changed = %{{.*}}, @weight = %{{.*}}, @made = %{{.*}}) {{.*}}axl.frozen = array<i64: 2, 3>
// CHECK: axl.program @predict
// CHECK: axl.stage @p({{.*}}) loads(@made = %{{.*}}, @changed = %{{.*}}) {{.*}}axl.frozen = array<i64: 1>
ax.plan @states version 2 {
  ax.mesh []
  ax.state @weight : tensor<5xf32> stages [0] from "w.bin" offset 0 length 20
  ax.state @made : tensor<5xf32> stages [0] {prepared}
  ax.state @changed : tensor<5xf32> stages [0] from "w.bin" offset 20 length 20
  ax.program @prepare() {
    ax.stage @m on 0 () attributes {ax.action = "U"} {
      %w = ax.load @weight : tensor<5xf32>
      %m = ax.unary neg %w : tensor<5xf32> -> tensor<5xf32>
      ax.store @made, %m : tensor<5xf32>
      ax.yield
    }
    ax.schedule "once" { stage 0: "F0" }
    ax.return
  }
  ax.program @step(%x: tensor<5xf32>) -> tensor<5xf32> {
    %s = ax.stage @s on 0 (%a = %x : tensor<5xf32>) -> (tensor<5xf32>) {
      %c = ax.load @changed : tensor<5xf32>
      %w = ax.load @weight : tensor<5xf32>
      %m = ax.load @made : tensor<5xf32>
      %0 = ax.binary add %c, %a : tensor<5xf32>, tensor<5xf32> -> tensor<5xf32>
      %1 = ax.binary mul %0, %w : tensor<5xf32>, tensor<5xf32> -> tensor<5xf32>
      %2 = ax.binary mul %1, %m : tensor<5xf32>, tensor<5xf32> -> tensor<5xf32>
      ax.store @changed, %2 : tensor<5xf32>
      ax.yield %2 : tensor<5xf32>
    }
    ax.schedule "once" { stage 0: "F0" }
    ax.return %s : tensor<5xf32>
  }
  ax.program @predict(%x: tensor<5xf32>) -> tensor<5xf32> {
    %s = ax.stage @p on 0 (%a = %x : tensor<5xf32>) -> (tensor<5xf32>) {
      %m = ax.load @made : tensor<5xf32>
      %c = ax.load @changed : tensor<5xf32>
      %0 = ax.binary add %c, %m : tensor<5xf32>, tensor<5xf32> -> tensor<5xf32>
      %1 = ax.binary mul %0, %a : tensor<5xf32>, tensor<5xf32> -> tensor<5xf32>
      ax.yield %1 : tensor<5xf32>
    }
    ax.schedule "once" { stage 0: "F0" }
    ax.return %s : tensor<5xf32>
  }
}

// Of causal attention whose queries are split, a rank has the place of its first; the
// gradient, too. Of keys that are hidden no query is behind the place. Beside
// another mask it has all of it written out, with its window; else a window counts from
// places.
// CHECK-LABEL: ax.plan @context
// CHECK: axl.stage @forwards
// CHECK: %[[AT:.*]] = axl.axis_index {context}
// CHECK: %[[FIRST:.*]] = ax.binary mul %[[AT]], %{{.*}} : tensor<i64>, tensor<i64>
// CHECK: %[[ONE:.*]] = ax.reshape %[[FIRST]] : tensor<i64> -> tensor<1x1x1x1xi64>
// CHECK: %[[MASK:.*]] = ax.binary add %[[ONE]], %{{.*}} : tensor<1x1x1x1xi64>, tensor<i64>
// CHECK: %[[A:.*]] = ax.attention %{{.*}} mask %[[MASK]] : tensor<1x1x1x1xi64> scale 1.000000e+00 : tensor<1x2x3x8xf32>
// CHECK: ax.attention_gradient %{{.*}}, %[[A]], %{{.*}} mask %{{.*}} : tensor<1x1x1x1xi64> scale 1.000000e+00 :
// CHECK: %[[PLACE:.*]] = ax.binary add %{{.*}} : tensor<1x1x1x1xi64>, tensor<i64>
// CHECK: %[[NEVER:.*]] = ax.constant dense<-13> : tensor<i64>
// CHECK: %[[PLACES:.*]] = ax.select %[[KEYS:.*]], %[[PLACE]], %[[NEVER]] : tensor<1x1x1x7xi1>, tensor<1x1x1x1xi64>, tensor<i64> -> tensor<1x1x1x7xi64>
// CHECK: ax.attention %{{.*}} mask %[[PLACES]] : tensor<1x1x1x7xi64> scale 2.000000e+00 {empty_rows_mean} :
// CHECK: %[[ADDED:.*]] = ax.cast %[[KEYS]] : tensor<1x1x1x7xi1> -> tensor<1x1x1x7xf32>
// CHECK: %[[BOTH:.*]] = ax.select %{{.*}}, %[[ADDED]], %{{.*}} -> tensor<1x1x3x7xf32>
// CHECK: ax.attention %{{.*}} mask %[[BOTH]] : tensor<1x1x3x7xf32> scale 3.000000e+00 :
// CHECK: ax.attention %{{.*}} mask %{{.*}} : tensor<1x1x1x1xi64> scale 4.000000e+00 {window = 2 : i64} :
// CHECK: %[[IS:.*]] = ax.compare gt %{{.*}} : tensor<1x1x1x7xi64>, tensor<1x1x3x1xi64>
// CHECK: %[[IN:.*]] = ax.binary logical_and %{{.*}}, %[[IS]]
// CHECK: %[[W:.*]] = ax.select %[[IN]]
// CHECK: ax.attention %{{.*}} mask %[[W]] : tensor<1x1x3x7xf32> scale 5.000000e+00 :
ax.plan @context version 1 {
  ax.mesh [context = 2]
  ax.program @main(%q: tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, %k: tensor<1x2x7x8xf32>, %m: tensor<1x1x1x7xi1>) -> (tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>) {
    %s:5 = ax.stage @forwards on 0 (%a = %q : tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, %b = %k : tensor<1x2x7x8xf32>, %c = %m : tensor<1x1x1x7xi1>) -> (tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>) {
      %0 = ax.attention %a, %b, %b scale 1.000000e+00 {causal} : tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32> -> tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>
      %dq, %dk, %dv = ax.attention_gradient %a, %b, %b, %0, %a scale 1.000000e+00 {causal} : tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32>, tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>> -> tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x7x8xf32, #ax.layout<[{}, {}, {}, {}], partial sum {context}>>, tensor<1x2x7x8xf32, #ax.layout<[{}, {}, {}, {}], partial sum {context}>>
      %1 = ax.attention %a, %b, %b mask %c : tensor<1x1x1x7xi1> scale 2.000000e+00 {causal, empty_rows_mean} : tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32> -> tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>
      %added = ax.cast %c : tensor<1x1x1x7xi1> -> tensor<1x1x1x7xf32>
      %2 = ax.attention %a, %b, %b mask %added : tensor<1x1x1x7xf32> scale 3.000000e+00 {causal} : tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32> -> tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>
      %3 = ax.attention %a, %b, %b scale 4.000000e+00 {causal, window = 2 : i64} : tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32> -> tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>
      %4 = ax.attention %a, %b, %b mask %added : tensor<1x1x1x7xf32> scale 5.000000e+00 {causal, window = 2 : i64} : tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x7x8xf32>, tensor<1x2x7x8xf32> -> tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>
      ax.yield %dq, %1, %2, %3, %4 : tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>
    }
    ax.schedule "once" { stage 0: "F0" }
    ax.return %s#0, %s#1, %s#2, %s#3, %s#4 : tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>, tensor<1x2x6x8xf32, #ax.layout<[{}, {}, {context}, {}]>>
  }
}
