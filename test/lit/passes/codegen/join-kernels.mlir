// RUN: axopt-opt %s --axl-fuse=gpu=true --axl-join-kernels --split-input-file | FileCheck %s
// RUN: axopt-opt %s --axl-fuse --split-input-file | FileCheck %s --check-prefix=CPU

// What does the same of other operands becomes one kernel, which stands where the
// last of them did. Operands that are the same are one.
// CHECK-LABEL: axl.stage @updates
// CHECK-SAME: %[[A:.*]]: tensor<768xf32>, %[[B:.*]]: tensor<768xf32>, %[[C:.*]]: tensor<768xf32>, %[[S:.*]]: tensor<f32>
// CHECK: ax.dot
// CHECK-NEXT: %[[R:.*]]:3 = axl.fusion(%[[A]], %[[S]], %[[B]], %[[C]])
// CHECK-COUNT-3: ax.binary mul
// CHECK-NOT: axl.fusion
// CHECK: axl.yield %[[R]]#0, %[[R]]#1, %[[R]]#2
// CPU-LABEL: axl.stage @updates
// CPU-COUNT-3: axl.fusion
axl.stage @updates(%a: tensor<768xf32>, %b: tensor<768xf32>, %c: tensor<768xf32>, %s: tensor<f32>, %x: tensor<64x64xf32>) {
  %0 = ax.binary mul %a, %s : tensor<768xf32>, tensor<f32> -> tensor<768xf32>
  %1 = ax.binary mul %b, %s : tensor<768xf32>, tensor<f32> -> tensor<768xf32>
  %2 = ax.dot %x, %x batch [] x [] contract [1] x [0] : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %3 = ax.binary mul %c, %s : tensor<768xf32>, tensor<f32> -> tensor<768xf32>
  axl.yield %0, %1, %3, %2 : tensor<768xf32>, tensor<768xf32>, tensor<768xf32>, tensor<64x64xf32>
}

// -----

// A kernel whose result is needed before the next one is not waited for; a view
// of one waits, too.
// CHECK-LABEL: axl.stage @needed
// CHECK: %[[F:.*]] = axl.fusion(%{{.*}})
// CHECK: ax.dot %[[F]]
// CHECK: %[[R:.*]]:2 = axl.fusion
// CHECK-NOT: axl.fusion
// CHECK: %[[V:.*]] = ax.reshape %[[R]]#0 : tensor<64x64xf32> -> tensor<4096xf32>
// CHECK: axl.yield %{{.*}}, %[[V]], %[[R]]#1
axl.stage @needed(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %c: tensor<64x64xf32>, %x: tensor<64x64xf32>) {
  %0 = ax.unary neg %a : tensor<64x64xf32> -> tensor<64x64xf32>
  %1 = ax.dot %0, %x batch [] x [] contract [1] x [0] : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %2 = ax.unary neg %b : tensor<64x64xf32> -> tensor<64x64xf32>
  %v = ax.reshape %2 : tensor<64x64xf32> -> tensor<4096xf32>
  %3 = ax.unary neg %c : tensor<64x64xf32> -> tensor<64x64xf32>
  axl.yield %1, %v, %3 : tensor<64x64xf32>, tensor<4096xf32>, tensor<64x64xf32>
}

// -----

// Not what is large, or other operations, or of other sizes.
// CHECK-LABEL: axl.stage @apart
// CHECK-COUNT-5: axl.fusion
axl.stage @apart(%a: tensor<1024x1024xf32>, %b: tensor<1024x1024xf32>, %c: tensor<768xf32>, %d: tensor<768xf32>, %e: tensor<512xf32>) {
  %0 = ax.unary neg %a : tensor<1024x1024xf32> -> tensor<1024x1024xf32>
  %1 = ax.unary neg %b : tensor<1024x1024xf32> -> tensor<1024x1024xf32>
  %2 = ax.unary neg %c : tensor<768xf32> -> tensor<768xf32>
  %3 = ax.unary abs %d : tensor<768xf32> -> tensor<768xf32>
  %4 = ax.unary neg %e : tensor<512xf32> -> tensor<512xf32>
  axl.yield %0, %1, %2, %3, %4 : tensor<1024x1024xf32>, tensor<1024x1024xf32>, tensor<768xf32>, tensor<768xf32>, tensor<512xf32>
}

// -----

// Eight are one kernel's at most.
// CHECK-LABEL: axl.stage @many
// CHECK: %{{.*}}:8 = axl.fusion
// CHECK: %{{.*}} = axl.fusion
// CHECK-NOT: axl.fusion
axl.stage @many(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>, %d: tensor<8xf32>, %e: tensor<8xf32>, %f: tensor<8xf32>, %g: tensor<8xf32>, %h: tensor<8xf32>, %i: tensor<8xf32>) {
  %0 = ax.unary neg %a : tensor<8xf32> -> tensor<8xf32>
  %1 = ax.unary neg %b : tensor<8xf32> -> tensor<8xf32>
  %2 = ax.unary neg %c : tensor<8xf32> -> tensor<8xf32>
  %3 = ax.unary neg %d : tensor<8xf32> -> tensor<8xf32>
  %4 = ax.unary neg %e : tensor<8xf32> -> tensor<8xf32>
  %5 = ax.unary neg %f : tensor<8xf32> -> tensor<8xf32>
  %6 = ax.unary neg %g : tensor<8xf32> -> tensor<8xf32>
  %7 = ax.unary neg %h : tensor<8xf32> -> tensor<8xf32>
  %8 = ax.unary neg %i : tensor<8xf32> -> tensor<8xf32>
  axl.yield %0, %1, %2, %3, %4, %5, %6, %7, %8 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// Some numbers that are made of inputs alone are made where the first is needed.
// CHECK-LABEL: axl.stage @numbers
// CHECK-SAME: %[[S:.*]]: tensor<9xf32>, %[[T:.*]]: tensor<9xf32>
// CHECK-NEXT: %[[R:.*]]:2 = axl.fusion(%[[S]], %[[T]])
// CHECK: ax.reshape %[[R]]#0
// CHECK: ax.linear
// CHECK: ax.reshape %[[R]]#1
// CHECK: ax.linear
// CHECK-NOT: axl.fusion
// CHECK: axl.yield
axl.stage @numbers(%s: tensor<9xf32>, %t: tensor<9xf32>, %x: tensor<64x9xf32>) {
  %0 = ax.unary neg %s : tensor<9xf32> -> tensor<9xf32>
  %1 = ax.reshape %0 : tensor<9xf32> -> tensor<9x1xf32>
  %2 = ax.linear %x, %1 : tensor<64x9xf32>, tensor<9x1xf32> -> tensor<64x1xf32>
  %3 = ax.unary neg %t : tensor<9xf32> -> tensor<9xf32>
  %4 = ax.reshape %3 : tensor<9xf32> -> tensor<1x9xf32>
  %5 = ax.linear %2, %4 : tensor<64x1xf32>, tensor<1x9xf32> -> tensor<64x9xf32>
  axl.yield %5 : tensor<64x9xf32>
}

// -----

// What is read by those that were joined may be, when these stand behind both.
// CHECK-LABEL: axl.stage @read
// CHECK: %[[C:.*]]:2 = axl.fusion
// CHECK-COUNT-2: ax.concat
// CHECK: axl.fusion(%[[C]]#0, %[[C]]#1)
// CHECK-COUNT-2: ax.reduce max
// CHECK-NOT: axl.fusion
// CHECK: axl.yield
axl.stage @read(%s: tensor<9xf32>, %t: tensor<9xf32>, %x: tensor<64x64xf32>) {
  %0 = ax.concat %s, %s dim 0 : tensor<9xf32>, tensor<9xf32> -> tensor<18xf32>
  %1 = ax.reduce max %0 dims [0] : tensor<18xf32> -> tensor<f32>
  %2 = ax.dot %x, %x batch [] x [] contract [1] x [0] : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %3 = ax.concat %t, %t dim 0 : tensor<9xf32>, tensor<9xf32> -> tensor<18xf32>
  %4 = ax.reduce max %3 dims [0] : tensor<18xf32> -> tensor<f32>
  axl.yield %0, %1, %2, %3, %4 : tensor<18xf32>, tensor<f32>, tensor<64x64xf32>, tensor<18xf32>, tensor<f32>
}

// -----

// What is done in the first step alone is not done with others.
// CHECK-LABEL: axl.stage @once
// CHECK: axl.fusion(%{{.*}}, %{{.*}}) attributes {axl.once}
// CHECK: axl.fusion(%{{.*}}, %{{.*}}) {
// CHECK-NOT: axl.fusion
axl.stage @once(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %c: tensor<64x64xf32>, %d: tensor<64x64xf32>, %x: tensor<64x64xf32>) {
  %0 = axl.fusion(%a) attributes {axl.once} {
  ^bb0(%p: tensor<64x64xf32>):
    %6 = ax.unary neg %p : tensor<64x64xf32> -> tensor<64x64xf32>
    axl.yield %6 : tensor<64x64xf32>
  } : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = axl.fusion(%b) {
  ^bb0(%p: tensor<64x64xf32>):
    %6 = ax.unary neg %p : tensor<64x64xf32> -> tensor<64x64xf32>
    axl.yield %6 : tensor<64x64xf32>
  } : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = axl.fusion(%c) attributes {axl.once} {
  ^bb0(%p: tensor<64x64xf32>):
    %6 = ax.unary neg %p : tensor<64x64xf32> -> tensor<64x64xf32>
    axl.yield %6 : tensor<64x64xf32>
  } : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %3 = axl.fusion(%d) {
  ^bb0(%p: tensor<64x64xf32>):
    %6 = ax.unary neg %p : tensor<64x64xf32> -> tensor<64x64xf32>
    axl.yield %6 : tensor<64x64xf32>
  } : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %4 = ax.linear %x, %0 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  %5 = ax.linear %4, %2 : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
  axl.yield %1, %3, %5 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// Results that are copies of states remain that.
// CHECK-LABEL: axl.stage @copies
// CHECK: %[[U:.*]]:4 = axl.fusion(%{{.*}}) attributes {axl.copies = array<i64: -1, 0, -1, 1>} {
// CHECK: axl.yield %[[U]]#0, %[[U]]#2
axl.stage @copies(%a: tensor<64xf32>, %b: tensor<64xf32>) {
  %0:2 = axl.fusion(%a) attributes {axl.copies = array<i64: -1, 0>} {
  ^bb0(%p: tensor<64xf32>):
    %6 = ax.unary neg %p : tensor<64xf32> -> tensor<64xf32>
    %7 = ax.cast %6 : tensor<64xf32> -> tensor<64xbf16>
    axl.yield %6, %7 : tensor<64xf32>, tensor<64xbf16>
  } : (tensor<64xf32>) -> (tensor<64xf32>, tensor<64xbf16>)
  %1:2 = axl.fusion(%b) attributes {axl.copies = array<i64: -1, 1>} {
  ^bb0(%p: tensor<64xf32>):
    %6 = ax.unary neg %p : tensor<64xf32> -> tensor<64xf32>
    %7 = ax.cast %6 : tensor<64xf32> -> tensor<64xbf16>
    axl.yield %6, %7 : tensor<64xf32>, tensor<64xbf16>
  } : (tensor<64xf32>) -> (tensor<64xf32>, tensor<64xbf16>)
  axl.yield %0#0, %1#0 : tensor<64xf32>, tensor<64xf32>
}

// -----

// Numbers of arguments alone come to the first kernel, but not a new copy of a
// state, whose old one is read in between.
// CHECK-LABEL: axl.stage @early
// CHECK: axl.fusion(%{{.*}}, %{{.*}})
// CHECK: ax.linear
// CHECK: ax.linear
// CHECK: axl.fusion(%{{.*}}) attributes {axl.copies = array<i64: -1, 0>} {
// CHECK: axl.fusion(%{{.*}}) attributes {axl.copies = array<i64: -1, 1>} {
axl.stage @early(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>, %d: tensor<4xf32>, %x: tensor<4x4xf32>) {
  %0 = axl.fusion(%a) {
  ^bb0(%p: tensor<4xf32>):
    %9 = ax.unary exp %p : tensor<4xf32> -> tensor<4xf32>
    axl.yield %9 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  %v0 = ax.reshape %0 : tensor<4xf32> -> tensor<4x1xf32>
  %1 = ax.linear %x, %v0 : tensor<4x4xf32>, tensor<4x1xf32> -> tensor<4x1xf32>
  %2 = axl.fusion(%b) {
  ^bb0(%p: tensor<4xf32>):
    %9 = ax.unary exp %p : tensor<4xf32> -> tensor<4xf32>
    axl.yield %9 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  %v2 = ax.reshape %2 : tensor<4xf32> -> tensor<4x1xf32>
  %3 = ax.linear %x, %v2 : tensor<4x4xf32>, tensor<4x1xf32> -> tensor<4x1xf32>
  %4:2 = axl.fusion(%c) attributes {axl.copies = array<i64: -1, 0>} {
  ^bb0(%p: tensor<4xf32>):
    %9 = ax.unary neg %p : tensor<4xf32> -> tensor<4xf32>
    %10 = ax.cast %9 : tensor<4xf32> -> tensor<4xbf16>
    axl.yield %9, %10 : tensor<4xf32>, tensor<4xbf16>
  } : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xbf16>)
  %v4 = ax.reshape %4#0 : tensor<4xf32> -> tensor<4x1xf32>
  %5 = ax.linear %x, %v4 : tensor<4x4xf32>, tensor<4x1xf32> -> tensor<4x1xf32>
  %6:2 = axl.fusion(%d) attributes {axl.copies = array<i64: -1, 1>} {
  ^bb0(%p: tensor<4xf32>):
    %9 = ax.unary neg %p : tensor<4xf32> -> tensor<4xf32>
    %10 = ax.cast %9 : tensor<4xf32> -> tensor<4xbf16>
    axl.yield %9, %10 : tensor<4xf32>, tensor<4xbf16>
  } : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xbf16>)
  axl.yield %1, %3, %5, %4#0, %6#0 : tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4xf32>, tensor<4xf32>
}
