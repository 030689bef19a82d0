// RUN: axopt-opt %s --split-input-file --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=2},ax-deal-weights))' | FileCheck %s

// A rank has half of the rows of q, of k and of v, and of the bias, and nothing
// is anywhere else: parts of what it makes are slices.
// CHECK-LABEL: ax.plan @rows version 5
// CHECK: ax.state @w : tensor<24x8xf32> dealt <[16, 4, 4] to 2 along 0> from "w"
// CHECK: ax.state @b : tensor<24xf32> dealt <[16, 4, 4] to 2 along 0> from "w"
// CHECK: %[[SUM:.*]] = ax.binary add
// CHECK: %[[BOTH:.*]] = ax.reshape %[[SUM]] : tensor<3x24xf32> -> tensor<3x2x12xf32>
// CHECK: %[[Q:.*]] = ax.slice %[[BOTH]] starts [0, 0, 0] steps [1, 1, 1] : tensor<3x2x12xf32> -> tensor<3x2x8xf32>
// CHECK: ax.reshape %[[Q]] : tensor<3x2x8xf32> -> tensor<3x16xf32>
// CHECK: %[[K:.*]] = ax.slice %[[BOTH]] starts [0, 0, 8] steps [1, 1, 1] : tensor<3x2x12xf32> -> tensor<3x2x2xf32>
// CHECK: ax.reshape %[[K]] : tensor<3x2x2xf32> -> tensor<3x4xf32>
// CHECK: %[[V:.*]] = ax.slice %[[BOTH]] starts [0, 0, 10]
ax.plan @rows version 1 {
  ax.state @w : tensor<24x8xf32> from "w" offset 0 length 768
  ax.state @b : tensor<24xf32> from "w" offset 768 length 96
  ax.program @main(%x: tensor<3x8xf32>) -> (tensor<3x16xf32>, tensor<3x4xf32>, tensor<3x4xf32>) {
    %w = ax.load @w : tensor<24x8xf32>
    %y = ax.linear %x, %w {transpose_w} : tensor<3x8xf32>, tensor<24x8xf32> -> tensor<3x24xf32>
    %b = ax.load @b : tensor<24xf32>
    %s = ax.binary add %y, %b : tensor<3x24xf32>, tensor<24xf32> -> tensor<3x24xf32>
    %v = ax.slice %s starts [0, 20] steps [1, 1] : tensor<3x24xf32> -> tensor<3x4xf32>
    %q = ax.slice %s starts [0, 0] steps [1, 1] : tensor<3x24xf32> -> tensor<3x16xf32>
    %k = ax.slice %s starts [0, 16] steps [1, 1] : tensor<3x24xf32> -> tensor<3x4xf32>
    ax.return %q, %k, %v : tensor<3x16xf32>, tensor<3x4xf32>, tensor<3x4xf32>
  }
}

// -----

// Integers in blocks of rows, with scales that lie one behind the other, and zero
// points that are known; what is cut are heads.
// CHECK-LABEL: ax.plan @blocks version 5
// CHECK: ax.state @w : tensor<12x2x4xi8> dealt <[8, 4] to 2 along 0> from
// CHECK: ax.state @scales : tensor<24xf32> dealt <[16, 8] to 2 along 0> from
// CHECK: ax.constant dense<{{\[}}[0], [1], [2], [3], [8], [9], [4], [5], [6], [7], [10], [11]]> : tensor<12x1xi8>
// CHECK: ax.reshape {{.*}} : tensor<3x6x2xf32> -> tensor<3x2x3x2xf32>
// CHECK: ax.slice {{.*}} starts [0, 0, 0, 0] {{.*}} -> tensor<3x2x2x2xf32>
// CHECK: ax.reshape {{.*}} -> tensor<3x4x2xf32>
// CHECK: ax.slice {{.*}} starts [0, 0, 2, 0] {{.*}} -> tensor<3x2x1x2xf32>
ax.plan @blocks version 1 {
  ax.state @w : tensor<12x2x4xi8> from "w" offset 0 length 96
  ax.state @scales : tensor<24xf32> from "w" offset 96 length 96
  ax.program @main(%x: tensor<3x8xf32>) -> (tensor<3x4x2xf32>, tensor<3x2x2xf32>) {
    %w = ax.load @w : tensor<12x2x4xi8>
    %z = ax.constant dense<[[0], [1], [2], [3], [4], [5], [6], [7], [8], [9], [10], [11]]> : tensor<12x1xi8> -> tensor<12x1xi8>
    %z1 = ax.reshape %z : tensor<12x1xi8> -> tensor<12x1x1xi8>
    %wz = ax.binary sub %w, %z1 : tensor<12x2x4xi8>, tensor<12x1x1xi8> -> tensor<12x2x4xi8>
    %f = ax.cast %wz : tensor<12x2x4xi8> -> tensor<12x2x4xf32>
    %s = ax.load @scales : tensor<24xf32>
    %s1 = ax.reshape %s : tensor<24xf32> -> tensor<12x2x1xf32>
    %d = ax.binary mul %f, %s1 : tensor<12x2x4xf32>, tensor<12x2x1xf32> -> tensor<12x2x4xf32>
    %m = ax.reshape %d : tensor<12x2x4xf32> -> tensor<12x8xf32>
    %y = ax.linear %x, %m {transpose_w} : tensor<3x8xf32>, tensor<12x8xf32> -> tensor<3x12xf32>
    %h = ax.reshape %y : tensor<3x12xf32> -> tensor<3x6x2xf32>
    %q = ax.slice %h starts [0, 0, 0] steps [1, 1, 1] : tensor<3x6x2xf32> -> tensor<3x4x2xf32>
    %k = ax.slice %h starts [0, 4, 0] steps [1, 1, 1] : tensor<3x6x2xf32> -> tensor<3x2x2xf32>
    ax.return %q, %k : tensor<3x4x2xf32>, tensor<3x2x2xf32>
  }
}

// -----

// Equal parts are two factors of one dimension already.
// CHECK-LABEL: ax.plan @equal version 1
// CHECK-NOT: dealt
ax.plan @equal version 1 {
  ax.state @w : tensor<8x24xf32> from "w" offset 0 length 768
  ax.program @main(%x: tensor<3x8xf32>) -> (tensor<3x12xf32>, tensor<3x12xf32>) {
    %w = ax.load @w : tensor<8x24xf32>
    %y = ax.linear %x, %w : tensor<3x8xf32>, tensor<8x24xf32> -> tensor<3x24xf32>
    %a = ax.slice %y starts [0, 0] steps [1, 1] : tensor<3x24xf32> -> tensor<3x12xf32>
    %b = ax.slice %y starts [0, 12] steps [1, 1] : tensor<3x24xf32> -> tensor<3x12xf32>
    ax.return %a, %b : tensor<3x12xf32>, tensor<3x12xf32>
  }
}

// -----

// Some of it is read whole, too.
// CHECK-LABEL: ax.plan @whole version 1
// CHECK-NOT: dealt
ax.plan @whole version 1 {
  ax.state @w : tensor<8x24xf32> from "w" offset 0 length 768
  ax.program @main(%x: tensor<3x8xf32>) -> (tensor<3x16xf32>, tensor<3x8xf32>, tensor<3x24xf32>) {
    %w = ax.load @w : tensor<8x24xf32>
    %y = ax.linear %x, %w : tensor<3x8xf32>, tensor<8x24xf32> -> tensor<3x24xf32>
    %a = ax.slice %y starts [0, 0] steps [1, 1] : tensor<3x24xf32> -> tensor<3x16xf32>
    %b = ax.slice %y starts [0, 16] steps [1, 1] : tensor<3x24xf32> -> tensor<3x8xf32>
    ax.return %a, %b, %y : tensor<3x16xf32>, tensor<3x8xf32>, tensor<3x24xf32>
  }
}

// -----

// Nor are they all of it, or its parts for 2 ranks.
// CHECK-LABEL: ax.plan @some version 1
// CHECK-NOT: dealt
ax.plan @some version 1 {
  ax.state @w : tensor<8x24xf32> from "w" offset 0 length 768
  ax.state @u : tensor<8x24xf32> from "w" offset 0 length 768
  ax.program @main(%x: tensor<3x8xf32>) -> (tensor<3x16xf32>, tensor<3x4xf32>, tensor<3x17xf32>, tensor<3x7xf32>) {
    %w = ax.load @w : tensor<8x24xf32>
    %y = ax.linear %x, %w : tensor<3x8xf32>, tensor<8x24xf32> -> tensor<3x24xf32>
    %a = ax.slice %y starts [0, 0] steps [1, 1] : tensor<3x24xf32> -> tensor<3x16xf32>
    %b = ax.slice %y starts [0, 20] steps [1, 1] : tensor<3x24xf32> -> tensor<3x4xf32>
    %u = ax.load @u : tensor<8x24xf32>
    %z = ax.linear %x, %u : tensor<3x8xf32>, tensor<8x24xf32> -> tensor<3x24xf32>
    %c = ax.slice %z starts [0, 0] steps [1, 1] : tensor<3x24xf32> -> tensor<3x17xf32>
    %d = ax.slice %z starts [0, 17] steps [1, 1] : tensor<3x24xf32> -> tensor<3x7xf32>
    ax.return %a, %b, %c, %d : tensor<3x16xf32>, tensor<3x4xf32>, tensor<3x17xf32>, tensor<3x7xf32>
  }
}

// -----

// A weight of two layers has one order: both have these parts, or it stays.
// CHECK-LABEL: ax.plan @shared version 5
// CHECK: ax.state @both : tensor<8x24xf32> dealt <[16, 8] to 2 along 1> from
// CHECK: ax.state @one : tensor<8x24xf32> from
// CHECK: ax.state @bias : tensor<24xf32> from
ax.plan @shared version 1 {
  ax.state @both : tensor<8x24xf32> from "w" offset 0 length 768
  ax.state @one : tensor<8x24xf32> from "w" offset 768 length 768
  ax.state @bias : tensor<24xf32> from "w" offset 1536 length 96
  ax.program @main(%x: tensor<3x8xf32>) -> (tensor<3x16xf32>, tensor<3x8xf32>, tensor<3x24xf32>) {
    %w = ax.load @both : tensor<8x24xf32>
    %y = ax.linear %x, %w : tensor<3x8xf32>, tensor<8x24xf32> -> tensor<3x24xf32>
    %a = ax.slice %y starts [0, 0] steps [1, 1] : tensor<3x24xf32> -> tensor<3x16xf32>
    %b = ax.slice %y starts [0, 16] steps [1, 1] : tensor<3x24xf32> -> tensor<3x8xf32>
    %again = ax.linear %b, %w : tensor<3x8xf32>, tensor<8x24xf32> -> tensor<3x24xf32>
    %c = ax.slice %again starts [0, 0] steps [1, 1] : tensor<3x24xf32> -> tensor<3x16xf32>
    %d = ax.slice %again starts [0, 16] steps [1, 1] : tensor<3x24xf32> -> tensor<3x8xf32>
    %u = ax.load @one : tensor<8x24xf32>
    %z = ax.linear %d, %u : tensor<3x8xf32>, tensor<8x24xf32> -> tensor<3x24xf32>
    %bias = ax.load @bias : tensor<24xf32>
    %zb = ax.binary add %z, %bias : tensor<3x24xf32>, tensor<24xf32> -> tensor<3x24xf32>
    %e = ax.slice %zb starts [0, 0] steps [1, 1] : tensor<3x24xf32> -> tensor<3x16xf32>
    %f = ax.slice %zb starts [0, 16] steps [1, 1] : tensor<3x24xf32> -> tensor<3x8xf32>
    %ac = ax.binary add %a, %c : tensor<3x16xf32>, tensor<3x16xf32> -> tensor<3x16xf32>
    %ace = ax.binary add %ac, %e : tensor<3x16xf32>, tensor<3x16xf32> -> tensor<3x16xf32>
    %other = ax.linear %f, %u : tensor<3x8xf32>, tensor<8x24xf32> -> tensor<3x24xf32>
    ax.return %ace, %f, %other : tensor<3x16xf32>, tensor<3x8xf32>, tensor<3x24xf32>
  }
}

// -----

// Of 3 heads 2 ranks have no equal shares; what is no layer stays.
// CHECK-LABEL: ax.plan @heads version 1
// CHECK-NOT: dealt
ax.plan @heads version 1 {
  ax.state @w : tensor<8x20xf32> from "w" offset 0 length 640
  ax.program @main(%x: tensor<1x8xf32>, %other: tensor<3x24xf32>) -> (tensor<1x3x1x4xf32>, tensor<3x16xf32>, tensor<3x8xf32>) {
    %w = ax.load @w : tensor<8x20xf32>
    %y = ax.linear %x, %w : tensor<1x8xf32>, tensor<8x20xf32> -> tensor<1x20xf32>
    %q0 = ax.slice %y starts [0, 0] steps [1, 1] : tensor<1x20xf32> -> tensor<1x12xf32>
    %k0 = ax.slice %y starts [0, 12] steps [1, 1] : tensor<1x20xf32> -> tensor<1x4xf32>
    %v0 = ax.slice %y starts [0, 16] steps [1, 1] : tensor<1x20xf32> -> tensor<1x4xf32>
    %q = ax.reshape %q0 : tensor<1x12xf32> -> tensor<1x3x1x4xf32>
    %k = ax.reshape %k0 : tensor<1x4xf32> -> tensor<1x1x1x4xf32>
    %v = ax.reshape %v0 : tensor<1x4xf32> -> tensor<1x1x1x4xf32>
    %a = ax.attention %q, %k, %v scale 0.5 : tensor<1x3x1x4xf32>, tensor<1x1x1x4xf32>, tensor<1x1x1x4xf32> -> tensor<1x3x1x4xf32>
    %b = ax.slice %other starts [0, 0] steps [1, 1] : tensor<3x24xf32> -> tensor<3x16xf32>
    %c = ax.slice %other starts [0, 16] steps [1, 1] : tensor<3x24xf32> -> tensor<3x8xf32>
    ax.return %a, %b, %c : tensor<1x3x1x4xf32>, tensor<3x16xf32>, tensor<3x8xf32>
  }
}

// -----

// One head of keys and one of values all ranks take, both at once.
// CHECK-LABEL: ax.plan @taken version 5
// CHECK: ax.state @w : tensor<8x24xf32> dealt <[16, 4, 4] to 2 along 1> from
// CHECK: %[[BOTH:.*]] = ax.reshape {{.*}} : tensor<1x24xf32> -> tensor<1x2x12xf32>
// CHECK-NOT: ax.gathered
// CHECK: %[[TAKEN:.*]] = ax.slice %[[BOTH]] starts [0, 0, 8] steps [1, 1, 1] : tensor<1x2x12xf32> -> tensor<1x2x4xf32>
// CHECK: ax.slice %[[TAKEN]] starts [0, 0, 0] steps [1, 1, 1] {ax.gathered = 1 : i64} : tensor<1x2x4xf32> -> tensor<1x2x2xf32>
// CHECK: ax.slice %[[TAKEN]] starts [0, 0, 2] steps [1, 1, 1] {ax.gathered = 1 : i64}
ax.plan @taken version 1 {
  ax.state @w : tensor<8x24xf32> from "w" offset 0 length 768
  ax.program @main(%x: tensor<1x8xf32>) -> tensor<1x4x1x4xf32> {
    %w = ax.load @w : tensor<8x24xf32>
    %y = ax.linear %x, %w : tensor<1x8xf32>, tensor<8x24xf32> -> tensor<1x24xf32>
    %q0 = ax.slice %y starts [0, 0] steps [1, 1] : tensor<1x24xf32> -> tensor<1x16xf32>
    %k0 = ax.slice %y starts [0, 16] steps [1, 1] : tensor<1x24xf32> -> tensor<1x4xf32>
    %v0 = ax.slice %y starts [0, 20] steps [1, 1] : tensor<1x24xf32> -> tensor<1x4xf32>
    %q = ax.reshape %q0 : tensor<1x16xf32> -> tensor<1x4x1x4xf32>
    %k = ax.reshape %k0 : tensor<1x4xf32> -> tensor<1x1x1x4xf32>
    %v = ax.reshape %v0 : tensor<1x4xf32> -> tensor<1x1x1x4xf32>
    %a = ax.attention %q, %k, %v scale 0.5 : tensor<1x4x1x4xf32>, tensor<1x1x1x4xf32>, tensor<1x1x1x4xf32> -> tensor<1x4x1x4xf32>
    ax.return %a : tensor<1x4x1x4xf32>
  }
}

// -----

// Two numbers in a byte, along the dimension that is dealt: bytes go whole.
// CHECK-LABEL: ax.plan @bytes version 5
// CHECK: ax.state @w : tensor<8x12xui8> dealt <[8, 2, 2] to 2 along 1> from
// CHECK: ax.state @s : tensor<24xf32> dealt <[16, 4, 4] to 2 along 0> from
ax.plan @bytes version 1 {
  ax.state @w : tensor<8x12xui8> from "w" offset 0 length 96
  ax.state @s : tensor<24xf32> from "w" offset 96 length 96
  ax.program @main(%x: tensor<3x8xf32>) -> (tensor<3x16xf32>, tensor<3x4xf32>, tensor<3x4xf32>) {
    %w = ax.load @w : tensor<8x12xui8>
    %shifts = ax.constant dense<[0, 4]> : tensor<2xui8> -> tensor<2xui8>
    %mask = ax.constant dense<15> : tensor<ui8> -> tensor<ui8>
    %b = ax.reshape %w : tensor<8x12xui8> -> tensor<8x12x1xui8>
    %h = ax.binary shr %b, %shifts : tensor<8x12x1xui8>, tensor<2xui8> -> tensor<8x12x2xui8>
    %n = ax.binary bit_and %h, %mask : tensor<8x12x2xui8>, tensor<ui8> -> tensor<8x12x2xui8>
    %u = ax.reshape %n : tensor<8x12x2xui8> -> tensor<8x24xui8>
    %f = ax.cast %u : tensor<8x24xui8> -> tensor<8x24xf32>
    %s = ax.load @s : tensor<24xf32>
    %m = ax.binary mul %f, %s : tensor<8x24xf32>, tensor<24xf32> -> tensor<8x24xf32>
    %y = ax.linear %x, %m : tensor<3x8xf32>, tensor<8x24xf32> -> tensor<3x24xf32>
    %q = ax.slice %y starts [0, 0] steps [1, 1] : tensor<3x24xf32> -> tensor<3x16xf32>
    %k = ax.slice %y starts [0, 16] steps [1, 1] : tensor<3x24xf32> -> tensor<3x4xf32>
    %v = ax.slice %y starts [0, 20] steps [1, 1] : tensor<3x24xf32> -> tensor<3x4xf32>
    ax.return %q, %k, %v : tensor<3x16xf32>, tensor<3x4xf32>, tensor<3x4xf32>
  }
}

// -----

// Parts of three numbers would cut bytes.
// CHECK-LABEL: ax.plan @cut version 1
// CHECK-NOT: dealt
ax.plan @cut version 1 {
  ax.state @w : tensor<8x9xui8> from "w" offset 0 length 72
  ax.program @main(%x: tensor<3x8xf32>) -> (tensor<3x6xf32>, tensor<3x12xf32>) {
    %w = ax.load @w : tensor<8x9xui8>
    %shifts = ax.constant dense<[0, 4]> : tensor<2xui8> -> tensor<2xui8>
    %mask = ax.constant dense<15> : tensor<ui8> -> tensor<ui8>
    %b = ax.reshape %w : tensor<8x9xui8> -> tensor<8x9x1xui8>
    %h = ax.binary shr %b, %shifts : tensor<8x9x1xui8>, tensor<2xui8> -> tensor<8x9x2xui8>
    %n = ax.binary bit_and %h, %mask : tensor<8x9x2xui8>, tensor<ui8> -> tensor<8x9x2xui8>
    %u = ax.reshape %n : tensor<8x9x2xui8> -> tensor<8x18xui8>
    %f = ax.cast %u : tensor<8x18xui8> -> tensor<8x18xf32>
    %y = ax.linear %x, %f : tensor<3x8xf32>, tensor<8x18xf32> -> tensor<3x18xf32>
    %q = ax.slice %y starts [0, 0] steps [1, 1] : tensor<3x18xf32> -> tensor<3x6xf32>
    %k = ax.slice %y starts [0, 6] steps [1, 1] : tensor<3x18xf32> -> tensor<3x12xf32>
    ax.return %q, %k : tensor<3x6xf32>, tensor<3x12xf32>
  }
}
