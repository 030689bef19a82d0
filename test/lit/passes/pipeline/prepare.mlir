// RUN: axopt-opt %s --split-input-file --ax-prepare --ax-schedule | FileCheck %s

// What is made of weights alone moves, with what it is made of; views stay.

// CHECK-LABEL: ax.plan @weights version 2
// CHECK: ax.state @w : tensor<8x4xf32
// CHECK: ax.state @w.prepared : tensor<4x8xf32, #ax.layout<[{}, {col}]>> stages [0] {prepared}
// CHECK: ax.program @main
// CHECK-NOT: ax.transpose
// CHECK-NOT: ax.load @w :
// CHECK: %[[P:.*]] = ax.load @w.prepared
// CHECK: %[[R:.*]] = ax.reshape %[[P]]
// CHECK: ax.binary add %{{.*}}, %[[R]]
// CHECK: ax.program @prepare() {
// CHECK: ax.stage @prepare0 on 0 () attributes {ax.action = "U"} {
// CHECK: %[[W:.*]] = ax.load @w :
// CHECK: %[[S:.*]] = ax.binary mul %[[W]], %[[W]]
// CHECK: %[[T:.*]] = ax.transpose %[[S]]
// CHECK: ax.store @w.prepared, %[[T]]
// CHECK: ax.schedule "forward" {
// CHECK-NEXT: stage 0: "U"
ax.plan @weights version 1 {
  ax.mesh [pipe = 1, col = 2] in time [micro = 1]
  ax.state @w : tensor<8x4xf32, #ax.layout<[{col}, {}]>> stages [0] from "f" offset 0 length 128
  ax.program @main(%x: tensor<1x4x8xf32, #ax.layout<[{}, {}, {col}]>> {ax.name = "x"})
      -> (tensor<1x4x8xf32, #ax.layout<[{}, {}, {col}]>> {ax.name = "y"}) {
    %s = ax.stage @stage0 on 0 (%a = %x : tensor<1x4x8xf32, #ax.layout<[{}, {}, {col}]>>)
        -> (tensor<1x4x8xf32, #ax.layout<[{}, {}, {col}]>>) {
      %w = ax.load @w : tensor<8x4xf32, #ax.layout<[{col}, {}]>>
      %q = ax.binary mul %w, %w : tensor<8x4xf32, #ax.layout<[{col}, {}]>>, tensor<8x4xf32, #ax.layout<[{col}, {}]>> -> tensor<8x4xf32, #ax.layout<[{col}, {}]>>
      %t = ax.transpose %q [1, 0] : tensor<8x4xf32, #ax.layout<[{col}, {}]>> -> tensor<4x8xf32, #ax.layout<[{}, {col}]>>
      %r = ax.reshape %t : tensor<4x8xf32, #ax.layout<[{}, {col}]>> -> tensor<1x4x8xf32, #ax.layout<[{}, {}, {col}]>>
      %y = ax.binary add %a, %r : tensor<1x4x8xf32, #ax.layout<[{}, {}, {col}]>>, tensor<1x4x8xf32, #ax.layout<[{}, {}, {col}]>> -> tensor<1x4x8xf32, #ax.layout<[{}, {}, {col}]>>
      ax.yield %y : tensor<1x4x8xf32, #ax.layout<[{}, {}, {col}]>>
    }
    ax.return %s : tensor<1x4x8xf32, #ax.layout<[{}, {}, {col}]>>
  }
}

// -----

// Numbers of 8 bits become f32 once, but not where only rows are looked up, or all
// are multiplied with one row; and not f64, which would be eight times as large:
// they stay as they are then.

// CHECK-LABEL: ax.plan @quantized version 2
// CHECK: ax.state @w.prepared : tensor<1024x1024xf32> stages [0] {prepared}
// CHECK-NOT: {prepared}
// CHECK: ax.program @main
// CHECK: ax.load @w.prepared : tensor<1024x1024xf32>
// CHECK: ax.load @v : tensor<1024x1024xi8>
// CHECK-NEXT: ax.cast
// CHECK: %[[E:.*]] = ax.load @e : tensor<1024x1024xi8>
// CHECK: ax.cast %[[E]]
// CHECK: ax.gather
// CHECK: %[[R:.*]] = ax.load @r : tensor<1024x1024xi8>
// CHECK: ax.cast %[[R]]
// CHECK: ax.linear
ax.plan @quantized version 1 {
  ax.mesh [pipe = 1] in time [micro = 1]
  ax.state @w : tensor<1024x1024xi8> stages [0] from "f" offset 0 length 1048576
  ax.state @v : tensor<1024x1024xi8> stages [0] from "f" offset 0 length 1048576
  ax.state @e : tensor<1024x1024xi8> stages [0] from "f" offset 0 length 1048576
  ax.state @r : tensor<1024x1024xi8> stages [0] from "f" offset 0 length 1048576
  ax.program @main(%x: tensor<2x1024xf32>, %z: tensor<2x1024xf64>, %i: tensor<3xi64>, %u: tensor<1x1x1024xf32>)
      -> (tensor<2x1024xf32>, tensor<2x1024xf64>, tensor<3x1024xf32>, tensor<1x1x1024xf32>) {
    %s:4 = ax.stage @stage0 on 0 (%a = %x : tensor<2x1024xf32>, %b = %z : tensor<2x1024xf64>, %c = %i : tensor<3xi64>, %o = %u : tensor<1x1x1024xf32>)
        -> (tensor<2x1024xf32>, tensor<2x1024xf64>, tensor<3x1024xf32>, tensor<1x1x1024xf32>) {
      %w = ax.load @w : tensor<1024x1024xi8>
      %f = ax.cast %w : tensor<1024x1024xi8> -> tensor<1024x1024xf32>
      %y = ax.linear %a, %f : tensor<2x1024xf32>, tensor<1024x1024xf32> -> tensor<2x1024xf32>
      %v = ax.load @v : tensor<1024x1024xi8>
      %n = ax.cast %v : tensor<1024x1024xi8> -> tensor<1024x1024xi32>
      %d = ax.cast %n : tensor<1024x1024xi32> -> tensor<1024x1024xf64>
      %p = ax.linear %b, %d : tensor<2x1024xf64>, tensor<1024x1024xf64> -> tensor<2x1024xf64>
      %e = ax.load @e : tensor<1024x1024xi8>
      %t = ax.cast %e : tensor<1024x1024xi8> -> tensor<1024x1024xf32>
      %g = ax.gather %t[%c] axis 0 : tensor<1024x1024xf32>, tensor<3xi64> -> tensor<3x1024xf32>
      %r = ax.load @r : tensor<1024x1024xi8>
      %h = ax.cast %r : tensor<1024x1024xi8> -> tensor<1024x1024xf32>
      %m = ax.linear %o, %h : tensor<1x1x1024xf32>, tensor<1024x1024xf32> -> tensor<1x1x1024xf32>
      ax.yield %y, %p, %g, %m : tensor<2x1024xf32>, tensor<2x1024xf64>, tensor<3x1024xf32>, tensor<1x1x1024xf32>
    }
    ax.return %s#0, %s#1, %s#2, %s#3 : tensor<2x1024xf32>, tensor<2x1024xf64>, tensor<3x1024xf32>, tensor<1x1x1024xf32>
  }
}

// -----

// Nothing of weights that train.

// CHECK-LABEL: ax.plan @trains version 1
// CHECK-NOT: prepare
ax.plan @trains version 1 {
  ax.mesh [pipe = 1] in time [micro = 1]
  ax.state @w : tensor<4xf32> stages [0] from "f" offset 0 length 16
  ax.program @main() -> (tensor<4xf32>) {
    %s = ax.stage @stage0 on 0 () -> (tensor<4xf32>) {
      %w = ax.load @w : tensor<4xf32>
      %y = ax.unary exp %w : tensor<4xf32> -> tensor<4xf32>
      ax.store @w, %y : tensor<4xf32>
      ax.yield %y : tensor<4xf32>
    }
    ax.return %s : tensor<4xf32>
  }
}

// -----

// Weights that are spread for the sake of memory stay so, however small.

// CHECK-LABEL: ax.plan @spread version 1
// CHECK-NOT: prepare
ax.plan @spread version 1 {
  ax.mesh [pipe = 1, depth = 2] in time [micro = 1]
  ax.state @w : tensor<8xf32, #ax.layout<[{depth}]>> stages [0] from "f" offset 0 length 32
  ax.program @main(%x: tensor<8xf32>) -> (tensor<8xf32>) {
    %s = ax.stage @stage0 on 0 (%a = %x : tensor<8xf32>) -> (tensor<8xf32>) {
      %w = ax.load @w : tensor<8xf32, #ax.layout<[{depth}]>>
      %g = ax.all_gather %w over {depth} : tensor<8xf32, #ax.layout<[{depth}]>> -> tensor<8xf32>
      %y = ax.binary add %a, %g : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
      ax.yield %y : tensor<8xf32>
    }
    ax.return %s : tensor<8xf32>
  }
}

// -----

// How many results a weight has is told by the run, and the run fails of too many.

// CHECK-LABEL: ax.plan @counted version 2
// CHECK: ax.program @main
// CHECK: %[[P:.*]] = ax.load @w.prepared : tensor<1xi64>
// CHECK: ax.at_most %[[P]] limit 5
// CHECK: ax.program @prepare() {
// CHECK-NOT: ax.at_most
// CHECK: ax.store @w.prepared
// CHECK-NOT: ax.at_most
ax.plan @counted version 1 {
  ax.mesh [pipe = 1] in time [micro = 1]
  ax.state @w : tensor<64xi64> stages [0] from "f" offset 0 length 512
  ax.program @main(%x: tensor<1xi64>) -> (tensor<1xi64>) {
    %s = ax.stage @stage0 on 0 (%a = %x : tensor<1xi64>) -> (tensor<1xi64>) {
      %w = ax.load @w : tensor<64xi64>
      %n = ax.reduce sum %w dims [0] keep_dims : tensor<64xi64> -> tensor<1xi64>
      %c = ax.at_most %n limit 5 : tensor<1xi64> -> tensor<1xi64>
      %y = ax.binary add %a, %c : tensor<1xi64>, tensor<1xi64> -> tensor<1xi64>
      ax.yield %y : tensor<1xi64>
    }
    ax.return %s : tensor<1xi64>
  }
}

// -----

// A weight that two layers share is prepared once for both, and for all programs.

// CHECK-LABEL: ax.plan @shared version 2
// CHECK: ax.state @w.prepared : tensor<4x8xf32>
// CHECK-NOT: ax.state
// CHECK: ax.program @main
// CHECK-COUNT-2: ax.load @w.prepared
// CHECK: ax.program @evaluate
// CHECK: ax.load @w.prepared
// CHECK: ax.program @prepare() {
// CHECK: ax.load @w :
// CHECK-NEXT: ax.transpose
// CHECK-NEXT: ax.store @w.prepared
// CHECK-NEXT: ax.yield
ax.plan @shared version 1 {
  ax.mesh [pipe = 1] in time [micro = 1]
  ax.state @w : tensor<8x4xf32> stages [0] from "f" offset 0 length 128
  ax.program @main(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
    %s = ax.stage @stage0 on 0 (%a = %x : tensor<4x8xf32>) -> (tensor<4x8xf32>) {
      %w = ax.load @w : tensor<8x4xf32>
      %t = ax.transpose %w [1, 0] {node = "first"} : tensor<8x4xf32> -> tensor<4x8xf32>
      %y = ax.binary add %a, %t : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
      %v = ax.load @w : tensor<8x4xf32>
      %u = ax.transpose %v [1, 0] {node = "second"} : tensor<8x4xf32> -> tensor<4x8xf32>
      %z = ax.binary mul %y, %u : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
      ax.yield %z : tensor<4x8xf32>
    }
    ax.return %s : tensor<4x8xf32>
  }
  ax.program @evaluate(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>) {
    %s = ax.stage @stage0 on 0 (%a = %x : tensor<4x8xf32>) -> (tensor<4x8xf32>) {
      %w = ax.load @w : tensor<8x4xf32>
      %t = ax.transpose %w [1, 0] : tensor<8x4xf32> -> tensor<4x8xf32>
      %y = ax.binary add %a, %t : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
      ax.yield %y : tensor<4x8xf32>
    }
    ax.return %s : tensor<4x8xf32>
  }
}

// -----

// In a plan that trains, what is made of states that stay is prepared, and nothing
// that is made of one that changes, or takes more memory.

// CHECK-LABEL: ax.plan @training version 2
// CHECK: ax.state @frozen.prepared : tensor<4xbf16>
// CHECK-NOT: prepared :
// CHECK: ax.program @main
// CHECK: ax.load @frozen.prepared
// CHECK: ax.load @trained
// CHECK-COUNT-3: ax.cast
// CHECK: ax.program @prepare() {
// CHECK: ax.load @frozen :
// CHECK-NEXT: ax.cast
// CHECK-NEXT: ax.store @frozen.prepared
// CHECK-NEXT: ax.yield
ax.plan @training version 1 {
  ax.mesh [pipe = 1] in time [micro = 1]
  ax.state @frozen : tensor<4xf32> stages [0] from "f" offset 0 length 16
  ax.state @bytes : tensor<4xi8> stages [0] from "f" offset 32 length 4
  ax.state @trained : tensor<4xf32> stages [0] from "f" offset 16 length 16 {trainable}
  ax.program @main(%x: tensor<4xbf16>) -> (tensor<4xbf16>) {
    %s = ax.stage @stage0 on 0 (%a = %x : tensor<4xbf16>) -> (tensor<4xbf16>) {
      %w = ax.load @frozen : tensor<4xf32>
      %t = ax.cast %w : tensor<4xf32> -> tensor<4xbf16>
      %y = ax.binary add %a, %t : tensor<4xbf16>, tensor<4xbf16> -> tensor<4xbf16>
      %v = ax.load @trained : tensor<4xf32>
      %u = ax.cast %v : tensor<4xf32> -> tensor<4xbf16>
      %z = ax.binary mul %y, %u : tensor<4xbf16>, tensor<4xbf16> -> tensor<4xbf16>
      %i = ax.load @bytes : tensor<4xi8>
      %j = ax.cast %i : tensor<4xi8> -> tensor<4xbf16>
      %k = ax.binary mul %z, %j : tensor<4xbf16>, tensor<4xbf16> -> tensor<4xbf16>
      %n = ax.cast %k : tensor<4xbf16> -> tensor<4xf32>
      ax.store @trained, %n : tensor<4xf32>
      ax.yield %z : tensor<4xbf16>
    }
    ax.return %s : tensor<4xbf16>
  }
}

// -----

// A table that takes many instructions for each element is prepared up to 8 MiB,
// one that is added up alone is not.

// CHECK-LABEL: ax.plan @costly version 2
// CHECK: ax.state @w.prepared : tensor<1024x1024xf32> stages [0] {prepared}
// CHECK-NOT: {prepared}
// CHECK: ax.program @main
// CHECK-NOT: ax.unary sin
// CHECK: ax.binary sub
// CHECK: ax.program @prepare() {
// CHECK: ax.unary sin
ax.plan @costly version 1 {
  ax.mesh [pipe = 1] in time [micro = 1]
  ax.state @w : tensor<1024xf32> stages [0] from "f" offset 0 length 4096
  ax.state @v : tensor<1024xf32> stages [0] from "f" offset 0 length 4096
  ax.program @main(%x: tensor<1024x1024xf32>) -> (tensor<1024x1024xf32>, tensor<1024x1024xf32>) {
    %s:2 = ax.stage @stage0 on 0 (%a = %x : tensor<1024x1024xf32>)
        -> (tensor<1024x1024xf32>, tensor<1024x1024xf32>) {
      %w = ax.load @w : tensor<1024xf32>
      %v = ax.load @v : tensor<1024xf32>
      %r = ax.reshape %v : tensor<1024xf32> -> tensor<1024x1xf32>
      %t = ax.binary add %w, %r : tensor<1024xf32>, tensor<1024x1xf32> -> tensor<1024x1024xf32>
      %f = ax.unary sin %t : tensor<1024x1024xf32> -> tensor<1024x1024xf32>
      %y = ax.binary mul %a, %f : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
      %u = ax.binary sub %r, %w : tensor<1024x1xf32>, tensor<1024xf32> -> tensor<1024x1024xf32>
      %z = ax.binary mul %a, %u : tensor<1024x1024xf32>, tensor<1024x1024xf32> -> tensor<1024x1024xf32>
      ax.yield %y, %z : tensor<1024x1024xf32>, tensor<1024x1024xf32>
    }
    ax.return %s#0, %s#1 : tensor<1024x1024xf32>, tensor<1024x1024xf32>
  }
}

// -----

// Weights of products of integers stay integers, for a device that has these; not
// where a scale differs along what is summed over, which none has.

// CHECK-LABEL: ax.plan @integers version 2
// CHECK: ax.state @s.prepared : tensor<1024x1024xf32> stages [0] {prepared}
// CHECK-NOT: {prepared}
// CHECK: ax.program @main
// CHECK: ax.load @w : tensor<1024x1024xi8>
ax.plan @integers version 1 {
  ax.mesh [pipe = 1] in time [micro = 1]
  ax.state @w : tensor<1024x1024xi8> stages [0] from "f" offset 0 length 1048576
  ax.state @v : tensor<1024x1024xi8> stages [0] from "f" offset 0 length 1048576
  ax.state @s : tensor<1024x1xf32> stages [0] from "f" offset 0 length 4096
  ax.program @main(%x: tensor<2x1024xi8>) -> (tensor<2x1024xf32>, tensor<2x1024xf32>) {
    %s:2 = ax.stage @stage0 on 0 (%a = %x : tensor<2x1024xi8>)
        -> (tensor<2x1024xf32>, tensor<2x1024xf32>) {
      %f = ax.cast %a : tensor<2x1024xi8> -> tensor<2x1024xf32>
      %w = ax.load @w : tensor<1024x1024xi8>
      %g = ax.cast %w : tensor<1024x1024xi8> -> tensor<1024x1024xf32>
      %y = ax.linear %f, %g : tensor<2x1024xf32>, tensor<1024x1024xf32> -> tensor<2x1024xf32>
      %v = ax.load @v : tensor<1024x1024xi8>
      %h = ax.cast %v : tensor<1024x1024xi8> -> tensor<1024x1024xf32>
      %k = ax.load @s : tensor<1024x1xf32>
      %m = ax.binary mul %h, %k : tensor<1024x1024xf32>, tensor<1024x1xf32> -> tensor<1024x1024xf32>
      %z = ax.linear %f, %m : tensor<2x1024xf32>, tensor<1024x1024xf32> -> tensor<2x1024xf32>
      ax.yield %y, %z : tensor<2x1024xf32>, tensor<2x1024xf32>
    }
    ax.return %s#0, %s#1 : tensor<2x1024xf32>, tensor<2x1024xf32>
  }
}

// -----

// A weight that is quantised in the model is prepared as the integers that products
// multiply, and not as what these are widened to.

// CHECK-LABEL: ax.plan @quantises version 2
// CHECK: ax.state @w.prepared : tensor<64x64xi8> stages [0] {prepared}
// CHECK-NOT: {prepared}
// CHECK: ax.program @main
// CHECK: %[[W:.*]] = ax.load @w.prepared : tensor<64x64xi8>
// CHECK: %[[F:.*]] = ax.cast %[[W]] : tensor<64x64xi8> -> tensor<64x64xf32>
// CHECK: %[[D:.*]] = ax.binary mul %[[F]]
// CHECK: ax.linear %{{.*}}, %[[D]]
// CHECK: ax.program @prepare
ax.plan @quantises version 1 {
  ax.mesh [pipe = 1] in time [micro = 1]
  ax.state @w : tensor<64x64xf32> stages [0] from "f" offset 0 length 16384
  ax.program @main(%x: tensor<8x64xui8> {ax.name = "x"}) -> (tensor<8x64xf32> {ax.name = "y"}) {
    %s = ax.stage @stage0 on 0 (%a = %x : tensor<8x64xui8>) -> (tensor<8x64xf32>) {
      %0 = ax.constant dense<0.5> : tensor<f32> -> tensor<f32>
      %w = ax.load @w : tensor<64x64xf32>
      %1 = ax.binary div %w, %0 : tensor<64x64xf32>, tensor<f32> -> tensor<64x64xf32>
      %2 = ax.unary round %1 : tensor<64x64xf32> -> tensor<64x64xf32>
      %3 = ax.cast %2 : tensor<64x64xf32> -> tensor<64x64xi8>
      %4 = ax.cast %3 : tensor<64x64xi8> -> tensor<64x64xf32>
      %5 = ax.binary mul %4, %0 : tensor<64x64xf32>, tensor<f32> -> tensor<64x64xf32>
      %6 = ax.cast %a : tensor<8x64xui8> -> tensor<8x64xf32>
      %7 = ax.binary mul %6, %0 : tensor<8x64xf32>, tensor<f32> -> tensor<8x64xf32>
      %y = ax.linear %7, %5 : tensor<8x64xf32>, tensor<64x64xf32> -> tensor<8x64xf32>
      ax.yield %y : tensor<8x64xf32>
    }
    ax.return %s : tensor<8x64xf32>
  }
}
