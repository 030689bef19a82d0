// RUN: axopt-opt %s --axl-multiply-integers --split-input-file | FileCheck %s

// A zero point of the rows' numbers takes the sums of columns off, times it: where it
// is known, of numbers that were multiplied with it. Scales are multiplied with one
// after another.
// CHECK-LABEL: axl.stage @linear
// CHECK-SAME: (%[[X:.*]]: tensor<2x16x32xui8>, %[[W:.*]]: tensor<32x48xi8>, %[[SX:.*]]: tensor<f32>, %[[SW:.*]]: tensor<48xf32>)
// CHECK: %[[D:.*]] = ax.dot %[[X]], %[[W]] batch [] x [] contract [2] x [0] : tensor<2x16x32xui8>, tensor<32x48xi8> -> tensor<2x16x48xi32>
// CHECK: %[[I:.*]] = ax.cast %[[W]] : tensor<32x48xi8> -> tensor<32x48xi32>
// CHECK: %[[Z:.*]] = ax.constant dense<7>
// CHECK: %[[M:.*]] = ax.binary mul %[[I]], %[[Z]] : tensor<32x48xi32>, tensor<i32>
// CHECK: %[[S:.*]] = ax.reduce sum %[[M]] dims [0] : tensor<32x48xi32> -> tensor<48xi32>
// CHECK: %[[C:.*]] = ax.reshape %[[S]] : tensor<48xi32> -> tensor<1x1x48xi32>
// CHECK: %[[Y:.*]] = ax.binary sub %[[D]], %[[C]]
// CHECK: %[[F:.*]] = ax.cast %[[Y]] : tensor<2x16x48xi32> -> tensor<2x16x48xf32>
// CHECK: %[[A:.*]] = ax.binary mul %[[F]], %[[SX]]
// CHECK: %[[B:.*]] = ax.reshape %[[SW]] : tensor<48xf32> -> tensor<1x1x48xf32>
// CHECK: %[[R:.*]] = ax.binary mul %[[A]], %[[B]]
// CHECK: axl.yield %[[R]]
axl.stage @linear(%x: tensor<2x16x32xui8>, %w: tensor<32x48xi8>, %sx: tensor<f32>, %sw: tensor<48xf32>) {
  %z = ax.constant dense<7> : tensor<i32> -> tensor<i32>
  %0 = ax.cast %x : tensor<2x16x32xui8> -> tensor<2x16x32xi32>
  %1 = ax.binary sub %0, %z : tensor<2x16x32xi32>, tensor<i32> -> tensor<2x16x32xi32>
  %2 = ax.cast %1 : tensor<2x16x32xi32> -> tensor<2x16x32xf32>
  %3 = ax.binary mul %2, %sx : tensor<2x16x32xf32>, tensor<f32> -> tensor<2x16x32xf32>
  %4 = ax.cast %w : tensor<32x48xi8> -> tensor<32x48xf32>
  %5 = ax.binary mul %sw, %4 : tensor<48xf32>, tensor<32x48xf32> -> tensor<32x48xf32>
  %6 = ax.linear %3, %5 : tensor<2x16x32xf32>, tensor<32x48xf32> -> tensor<2x16x48xf32>
  axl.yield %6 : tensor<2x16x48xf32>
}

// -----

// Weights without a sign are less by 128: a zero point of 128 is none then. What
// they are multiplied with, with a sign, is more by 128.
// CHECK-LABEL: axl.stage @unsigned
// CHECK-SAME: (%[[X:.*]]: tensor<16x32xi8>, %[[W:.*]]: tensor<32x48xui8>)
// CHECK: %[[A:.*]] = ax.constant dense<128> : tensor<i32>
// CHECK: %[[B:.*]] = ax.binary add %{{.*}}, %[[A]] : tensor<16x32xi32>
// CHECK: %[[U:.*]] = ax.cast %[[B]] : tensor<16x32xi32> -> tensor<16x32xui8>
// CHECK: %[[I:.*]] = ax.cast %[[W]] : tensor<32x48xui8> -> tensor<32x48xi32>
// CHECK: %[[L:.*]] = ax.binary add %[[I]], %{{.*}}
// CHECK: %[[V:.*]] = ax.cast %[[L]] : tensor<32x48xi32> -> tensor<32x48xi8>
// CHECK: %[[D:.*]] = ax.dot %[[U]], %[[V]] batch [] x [] contract [1] x [0] : tensor<16x32xui8>, tensor<32x48xi8> -> tensor<16x48xi32>
// CHECK: ax.reduce sum %{{.*}} dims [0] : tensor<32x48xi32> -> tensor<48xi32>
// CHECK: %[[Y:.*]] = ax.binary sub %[[D]]
// CHECK: axl.yield %[[Y]]
axl.stage @unsigned(%x: tensor<16x32xi8>, %w: tensor<32x48xui8>) {
  %z = ax.constant dense<128> : tensor<i32> -> tensor<i32>
  %0 = ax.cast %x : tensor<16x32xi8> -> tensor<16x32xi32>
  %1 = ax.cast %w : tensor<32x48xui8> -> tensor<32x48xi32>
  %2 = ax.binary sub %1, %z : tensor<32x48xi32>, tensor<i32> -> tensor<32x48xi32>
  %3 = ax.dot %0, %2 batch [] x [] contract [1] x [0] : tensor<16x32xi32>, tensor<32x48xi32> -> tensor<16x48xi32>
  axl.yield %3 : tensor<16x48xi32>
}

// -----

// Zero points of each row and of each column, of a batch's products behind a
// transposition: all four terms.
// CHECK-LABEL: axl.stage @batch
// CHECK-SAME: (%[[Q:.*]]: tensor<4x16x32xi8>, %[[K:.*]]: tensor<48x4x32xi8>, %[[ZQ:.*]]: tensor<16x1xi32>, %[[ZK:.*]]: tensor<48x1x1xi32>)
// CHECK: %[[T:.*]] = ax.transpose %[[K]] [1, 0, 2] : tensor<48x4x32xi8> -> tensor<4x48x32xi8>
// CHECK: %[[U:.*]] = ax.cast %{{.*}} : tensor<4x16x32xi32> -> tensor<4x16x32xui8>
// CHECK: %[[Z:.*]] = ax.reshape %[[ZQ]] : tensor<16x1xi32> -> tensor<1x16x1xi32>
// CHECK: %[[R:.*]] = ax.binary add %[[Z]], %{{.*}}
// CHECK: %[[C:.*]] = ax.reshape %[[ZK]] : tensor<48x1x1xi32> -> tensor<1x1x48xi32>
// CHECK: %[[D:.*]] = ax.dot %[[U]], %[[T]] batch [0] x [0] contract [2] x [2] : tensor<4x16x32xui8>, tensor<4x48x32xi8> -> tensor<4x16x48xi32>
// CHECK: ax.reduce sum %{{.*}} dims [2] : tensor<4x48x32xi32> -> tensor<4x48xi32>
// CHECK: ax.reshape %{{.*}} : tensor<4x48xi32> -> tensor<4x1x48xi32>
// CHECK: ax.binary sub %[[D]]
// CHECK: ax.reduce sum %{{.*}} dims [2] : tensor<4x16x32xi32> -> tensor<4x16xi32>
// CHECK: ax.reshape %{{.*}} : tensor<4x16xi32> -> tensor<4x16x1xi32>
// CHECK: ax.binary sub
// CHECK: %[[M:.*]] = ax.binary mul %[[R]], %[[C]]
// CHECK: ax.binary mul %[[M]], %{{.*}}
// CHECK: ax.binary add
axl.stage @batch(%q: tensor<4x16x32xi8>, %k: tensor<48x4x32xi8>, %zq: tensor<16x1xi32>, %zk: tensor<48x1x1xi32>) {
  %0 = ax.cast %q : tensor<4x16x32xi8> -> tensor<4x16x32xi32>
  %1 = ax.binary sub %0, %zq : tensor<4x16x32xi32>, tensor<16x1xi32> -> tensor<4x16x32xi32>
  %2 = ax.cast %k : tensor<48x4x32xi8> -> tensor<48x4x32xi32>
  %3 = ax.binary sub %2, %zk : tensor<48x4x32xi32>, tensor<48x1x1xi32> -> tensor<48x4x32xi32>
  %4 = ax.transpose %3 [1, 0, 2] : tensor<48x4x32xi32> -> tensor<4x48x32xi32>
  %5 = ax.dot %1, %4 batch [0] x [0] contract [2] x [2] : tensor<4x16x32xi32>, tensor<4x48x32xi32> -> tensor<4x16x48xi32>
  axl.yield %5 : tensor<4x16x48xi32>
}

// -----

// A convolution: what is around an image stands for 0, too. One scale of each
// channel.
// CHECK-LABEL: axl.stage @conv
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x8x8xui8>, %[[W:.*]]: tensor<16x3x3x3xi8>, %[[SX:.*]]: tensor<f32>, %[[SW:.*]]: tensor<16x1x1x1xf32>)
// CHECK: %[[Z:.*]] = ax.cast %{{.*}} : tensor<i32> -> tensor<ui8>
// CHECK: %[[P:.*]] = ax.pad %[[X]] value %[[Z]] : tensor<ui8> low [0, 0, 1, 0] high [0, 0, 1, 2] : tensor<2x3x8x8xui8> -> tensor<2x3x10x10xui8>
// CHECK: %[[D:.*]] = ax.conv %[[P]], %[[W]] strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<2x3x10x10xui8>, tensor<16x3x3x3xi8> -> tensor<2x16x8x8xi32>
// CHECK: %[[S:.*]] = ax.reduce sum %{{.*}} dims [1, 2, 3] : tensor<16x3x3x3xi32> -> tensor<16xi32>
// CHECK: %[[C:.*]] = ax.reshape %[[S]] : tensor<16xi32> -> tensor<1x16x1x1xi32>
// CHECK: %[[Y:.*]] = ax.binary sub %[[D]], %[[C]]
// CHECK: %[[F:.*]] = ax.cast %[[Y]] : tensor<2x16x8x8xi32> -> tensor<2x16x8x8xf32>
// CHECK: %[[A:.*]] = ax.binary mul %[[F]], %[[SX]]
// CHECK: %[[B:.*]] = ax.reshape %[[SW]] : tensor<16x1x1x1xf32> -> tensor<1x16x1x1xf32>
// CHECK: ax.binary mul %[[A]], %[[B]]
axl.stage @conv(%x: tensor<2x3x8x8xui8>, %w: tensor<16x3x3x3xi8>, %sx: tensor<f32>, %sw: tensor<16x1x1x1xf32>) {
  %z = ax.constant dense<7> : tensor<i32> -> tensor<i32>
  %0 = ax.cast %x : tensor<2x3x8x8xui8> -> tensor<2x3x8x8xi32>
  %1 = ax.binary sub %0, %z : tensor<2x3x8x8xi32>, tensor<i32> -> tensor<2x3x8x8xi32>
  %2 = ax.cast %1 : tensor<2x3x8x8xi32> -> tensor<2x3x8x8xf32>
  %3 = ax.binary mul %2, %sx : tensor<2x3x8x8xf32>, tensor<f32> -> tensor<2x3x8x8xf32>
  %4 = ax.cast %w : tensor<16x3x3x3xi8> -> tensor<16x3x3x3xf32>
  %5 = ax.binary mul %4, %sw : tensor<16x3x3x3xf32>, tensor<16x1x1x1xf32> -> tensor<16x3x3x3xf32>
  %6 = ax.conv %3, %5 strides [1, 1] pads [1, 0, 1, 2] dilations [1, 1] : tensor<2x3x8x8xf32>, tensor<16x3x3x3xf32> -> tensor<2x16x8x8xf32>
  axl.yield %6 : tensor<2x16x8x8xf32>
}

// -----

// Without a zero point padding is of zeros, which are 128 where there was a sign.
// A zero point of weights that is not the middle is multiplied with the sums of what
// windows see. Groups of several channels and filters stay then.
// CHECK-LABEL: axl.stage @padding
// CHECK: ax.constant dense<-128> : tensor<i32> -> tensor<i32>
// CHECK: %[[Z:.*]] = ax.constant dense<128> : tensor<i32> -> tensor<i32>
// CHECK: %[[V:.*]] = ax.cast %[[Z]] : tensor<i32> -> tensor<ui8>
// CHECK: ax.pad %{{.*}} value %[[V]]
// CHECK: ax.conv %{{.*}} pads [0, 0, 0, 0] dilations [1, 1] {groups = 4 : i64} : tensor<1x4x7x7xui8>, tensor<4x1x3x3xi8> -> tensor<1x4x5x5xi32>
// CHECK: ax.cast {{.*}} -> tensor<1x4x5x5xf64>
// CHECK: %[[D:.*]] = ax.conv %[[P:.*]], %{{.*}} {groups = 4 : i64} : tensor<1x4x7x7xui8>, tensor<4x1x3x3xi8> -> tensor<1x4x5x5xi32>
// CHECK: %[[O:.*]] = ax.constant dense<1> : tensor<4x1x3x3xi8>
// CHECK: %[[S:.*]] = ax.conv %[[P]], %[[O]] {{.*}} {groups = 4 : i64} : tensor<1x4x7x7xui8>, tensor<4x1x3x3xi8> -> tensor<1x4x5x5xi32>
// CHECK: %[[K:.*]] = ax.binary mul %{{.*}}, %{{.*}} : tensor<i32>, tensor<i32> -> tensor<i32>
// CHECK: %[[L:.*]] = ax.binary sub %[[S]], %[[K]]
// CHECK: %[[M:.*]] = ax.binary mul %[[L]], %{{.*}} : tensor<1x4x5x5xi32>, tensor<i32>
// CHECK: %[[Y:.*]] = ax.binary sub %[[D]], %[[M]]
// CHECK: ax.reduce sum
// CHECK: ax.cast {{.*}} -> tensor<1x4x5x5xf64>
// CHECK: ax.conv {{.*}} -> tensor<1x4x5x5xf64>
axl.stage @padding(%x: tensor<1x4x5x5xi8>, %w: tensor<4x1x3x3xui8>, %v: tensor<4x2x3x3xui8>) {
  %z = ax.constant dense<128> : tensor<i32> -> tensor<i32>
  %n = ax.constant dense<127> : tensor<i32> -> tensor<i32>
  %0 = ax.cast %x : tensor<1x4x5x5xi8> -> tensor<1x4x5x5xf64>
  %1 = ax.cast %w : tensor<4x1x3x3xui8> -> tensor<4x1x3x3xi32>
  %2 = ax.binary sub %1, %z : tensor<4x1x3x3xi32>, tensor<i32> -> tensor<4x1x3x3xi32>
  %3 = ax.cast %2 : tensor<4x1x3x3xi32> -> tensor<4x1x3x3xf64>
  %4 = ax.conv %0, %3 strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] {groups = 4 : i64} : tensor<1x4x5x5xf64>, tensor<4x1x3x3xf64> -> tensor<1x4x5x5xf64>
  %5 = ax.binary sub %1, %n : tensor<4x1x3x3xi32>, tensor<i32> -> tensor<4x1x3x3xi32>
  %6 = ax.cast %5 : tensor<4x1x3x3xi32> -> tensor<4x1x3x3xf64>
  %7 = ax.conv %0, %6 strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] {groups = 4 : i64} : tensor<1x4x5x5xf64>, tensor<4x1x3x3xf64> -> tensor<1x4x5x5xf64>
  %8 = ax.cast %v : tensor<4x2x3x3xui8> -> tensor<4x2x3x3xi32>
  %9 = ax.binary sub %8, %n : tensor<4x2x3x3xi32>, tensor<i32> -> tensor<4x2x3x3xi32>
  %10 = ax.cast %9 : tensor<4x2x3x3xi32> -> tensor<4x2x3x3xf64>
  %11 = ax.conv %0, %10 strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] {groups = 2 : i64} : tensor<1x4x5x5xf64>, tensor<4x2x3x3xf64> -> tensor<1x4x5x5xf64>
  axl.yield %4, %7, %11 : tensor<1x4x5x5xf64>, tensor<1x4x5x5xf64>, tensor<1x4x5x5xf64>
}

// -----

// Constants that a zero point was taken off are less by what i8 does not reach; those
// that reach further stay, and those of larger numbers.
// CHECK-LABEL: axl.stage @folded
// CHECK: %[[W:.*]] = ax.constant dense<{{\[\[\[\[}}-100{{\]\]\]}}, {{\[\[\[}}127{{\]\]\]\]}}> : tensor<2x1x1x1xi8>
// CHECK: %[[Z:.*]] = ax.constant dense<-23> : tensor<i32>
// CHECK: %[[D:.*]] = ax.conv %arg0, %[[W]] {{.*}} -> tensor<1x2x5x5xi32>
// CHECK: %[[O:.*]] = ax.constant dense<1> : tensor<1x1x1x1xi8>
// CHECK: %[[S:.*]] = ax.conv %arg0, %[[O]]
// CHECK: %[[M:.*]] = ax.binary mul %[[S]], %[[Z]]
// CHECK: ax.binary sub %[[D]], %[[M]]
// CHECK: ax.conv {{.*}} -> tensor<1x2x5x5xf32>
// CHECK: ax.conv {{.*}} -> tensor<1x2x5x5xf32>
axl.stage @folded(%x: tensor<1x1x5x5xui8>) {
  %0 = ax.cast %x : tensor<1x1x5x5xui8> -> tensor<1x1x5x5xf32>
  %w = ax.constant dense<[[[[-77.0]]], [[[150.0]]]]> : tensor<2x1x1x1xf32> -> tensor<2x1x1x1xf32>
  %1 = ax.conv %0, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x1x5x5xf32>, tensor<2x1x1x1xf32> -> tensor<1x2x5x5xf32>
  %v = ax.constant dense<[[[[-107.0]]], [[[150.0]]]]> : tensor<2x1x1x1xf32> -> tensor<2x1x1x1xf32>
  %2 = ax.conv %0, %v strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x1x5x5xf32>, tensor<2x1x1x1xf32> -> tensor<1x2x5x5xf32>
  %u = ax.constant dense<[[[[1000000.0]]], [[[1000099.0]]]]> : tensor<2x1x1x1xf32> -> tensor<2x1x1x1xf32>
  %3 = ax.conv %0, %u strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x1x5x5xf32>, tensor<2x1x1x1xf32> -> tensor<1x2x5x5xf32>
  axl.yield %1, %2, %3 : tensor<1x2x5x5xf32>, tensor<1x2x5x5xf32>, tensor<1x2x5x5xf32>
}

// -----

// What is summed over may be in any order. Folded constants have eight bits, too.
// CHECK-LABEL: axl.stage @orders
// CHECK: %[[C:.*]] = ax.constant dense<{{.*}}> : tensor<3x8x2xi8> -> tensor<3x8x2xi8>
// CHECK: %[[D:.*]] = ax.dot %{{.*}}, %[[C]] batch [] x [] contract [2, 1] x [1, 0] : tensor<4x3x8xui8>, tensor<3x8x2xi8> -> tensor<4x2xi32>
// CHECK: ax.reduce sum %{{.*}} dims [0, 1] : tensor<3x8x2xi32> -> tensor<2xi32>
axl.stage @orders(%x: tensor<4x3x8xui8>) {
  %z = ax.constant dense<7> : tensor<i32> -> tensor<i32>
  %w = ax.constant dense<"0x00004040000080BF0000FE420000803F0000FEC20000803F000080400000A040000000410000803F00000000000000000000803F000000400000404000008040000040400000803F0000803F0000803F0000803F0000803F0000803F0000803F00004040000080BF000000C30000803F0000FE420000803F000080400000A040000000410000803F00000000000000000000803F000000400000404000008040000040400000803F0000803F0000803F0000803F0000803F0000803F0000803F"> : tensor<3x8x2xf32> -> tensor<3x8x2xf32>
  %0 = ax.cast %x : tensor<4x3x8xui8> -> tensor<4x3x8xi32>
  %1 = ax.binary sub %0, %z : tensor<4x3x8xi32>, tensor<i32> -> tensor<4x3x8xi32>
  %2 = ax.cast %1 : tensor<4x3x8xi32> -> tensor<4x3x8xf32>
  %3 = ax.dot %2, %w batch [] x [] contract [2, 1] x [1, 0] : tensor<4x3x8xf32>, tensor<3x8x2xf32> -> tensor<4x2xf32>
  axl.yield %3 : tensor<4x2xf32>
}

// -----

// What is summed over has one zero point only, a difference is of what was
// widened, and sums of f32 are in the range of i32: zero points, too, have eight
// bits, and terms are not too many. Nor are they few. Otherwise products stay.
// CHECK-LABEL: axl.stage @others
// CHECK-NOT: i8> -> tensor<16x48xi32>
// CHECK: axl.yield
axl.stage @others(%x: tensor<16x32xi8>, %w: tensor<32x48xi8>, %z: tensor<32xi32>, %n: tensor<i32>, %l: tensor<16x40000xi8>, %m: tensor<40000x48xi8>, %p: tensor<16x20000xui8>, %q: tensor<20000x48xui8>) {
  %0 = ax.cast %x : tensor<16x32xi8> -> tensor<16x32xi32>
  %1 = ax.cast %w : tensor<32x48xi8> -> tensor<32x48xi32>
  %2 = ax.binary sub %0, %z : tensor<16x32xi32>, tensor<32xi32> -> tensor<16x32xi32>
  %3 = ax.dot %2, %1 batch [] x [] contract [1] x [0] : tensor<16x32xi32>, tensor<32x48xi32> -> tensor<16x48xi32>
  %4 = ax.binary sub %n, %0 : tensor<i32>, tensor<16x32xi32> -> tensor<16x32xi32>
  %5 = ax.dot %4, %1 batch [] x [] contract [1] x [0] : tensor<16x32xi32>, tensor<32x48xi32> -> tensor<16x48xi32>
  %6 = ax.cast %l : tensor<16x40000xi8> -> tensor<16x40000xf32>
  %7 = ax.cast %m : tensor<40000x48xi8> -> tensor<40000x48xf32>
  %8 = ax.dot %6, %7 batch [] x [] contract [1] x [0] : tensor<16x40000xf32>, tensor<40000x48xf32> -> tensor<16x48xf32>
  %9 = ax.binary sub %0, %n : tensor<16x32xi32>, tensor<i32> -> tensor<16x32xi32>
  %10 = ax.cast %9 : tensor<16x32xi32> -> tensor<16x32xf32>
  %11 = ax.cast %w : tensor<32x48xi8> -> tensor<32x48xf32>
  %12 = ax.linear %10, %11 : tensor<16x32xf32>, tensor<32x48xf32> -> tensor<16x48xf32>
  %13 = ax.slice %x starts [0, 0] steps [1, 1] : tensor<16x32xi8> -> tensor<16x8xi8>
  %14 = ax.cast %13 : tensor<16x8xi8> -> tensor<16x8xf32>
  %15 = ax.slice %w starts [0, 0] steps [1, 1] : tensor<32x48xi8> -> tensor<8x48xi8>
  %16 = ax.cast %15 : tensor<8x48xi8> -> tensor<8x48xf32>
  %17 = ax.linear %14, %16 : tensor<16x8xf32>, tensor<8x48xf32> -> tensor<16x48xf32>
  %o = ax.constant dense<-128> : tensor<i32> -> tensor<i32>
  %18 = ax.cast %p : tensor<16x20000xui8> -> tensor<16x20000xi32>
  %19 = ax.binary sub %18, %o : tensor<16x20000xi32>, tensor<i32> -> tensor<16x20000xi32>
  %20 = ax.cast %19 : tensor<16x20000xi32> -> tensor<16x20000xf32>
  %21 = ax.cast %q : tensor<20000x48xui8> -> tensor<20000x48xi32>
  %22 = ax.binary sub %21, %o : tensor<20000x48xi32>, tensor<i32> -> tensor<20000x48xi32>
  %23 = ax.cast %22 : tensor<20000x48xi32> -> tensor<20000x48xf32>
  %24 = ax.linear %20, %23 : tensor<16x20000xf32>, tensor<20000x48xf32> -> tensor<16x48xf32>
  axl.yield %3, %5, %8, %12, %17, %24 : tensor<16x48xi32>, tensor<16x48xi32>, tensor<16x48xf32>, tensor<16x48xf32>, tensor<16x48xf32>, tensor<16x48xf32>
}

// -----

// Weights that train change from step to step.
ax.plan @trains version 1 {
  ax.mesh [] in time [micro = 1]
  ax.state @t : tensor<4xf32> {trainable}
  axl.program @main {
    // CHECK-LABEL: axl.stage @stays
    // CHECK: ax.linear {{.*}} -> tensor<16x48xf32>
    axl.stage @stays(%x: tensor<16x32xi8>, %w: tensor<32x48xi8>) {
      %0 = ax.cast %x : tensor<16x32xi8> -> tensor<16x32xf32>
      %1 = ax.cast %w : tensor<32x48xi8> -> tensor<32x48xf32>
      %2 = ax.linear %0, %1 : tensor<16x32xf32>, tensor<32x48xf32> -> tensor<16x48xf32>
      axl.yield %2 : tensor<16x48xf32>
    }
  }
}

// -----

// What a file writes as a convolution of f64 is not rounded to it, and a zero point
// that is worked out is multiplied with what is summed up once.
// CHECK-LABEL: axl.stage @wide
// CHECK: %[[Z:.*]] = ax.cast %arg2 : tensor<ui8> -> tensor<i32>
// CHECK: %[[D:.*]] = ax.conv {{.*}} -> tensor<2x16x6x6xi32>
// CHECK: %[[I:.*]] = ax.cast %arg1 : tensor<16x3x3x3xi8> -> tensor<16x3x3x3xi32>
// CHECK: %[[S:.*]] = ax.reduce sum %[[I]] dims [1, 2, 3]
// CHECK: %[[C:.*]] = ax.reshape %[[S]] : tensor<16xi32> -> tensor<1x16x1x1xi32>
// CHECK: %[[M:.*]] = ax.binary mul %[[C]], %[[Z]]
// CHECK: %[[Y:.*]] = ax.binary sub %[[D]], %[[M]]
// CHECK-NOT: f64
// CHECK: axl.yield %[[Y]]
axl.stage @wide(%x: tensor<2x3x8x8xui8>, %w: tensor<16x3x3x3xi8>, %zero: tensor<ui8>) {
  %z = ax.cast %zero : tensor<ui8> -> tensor<i32>
  %0 = ax.cast %x : tensor<2x3x8x8xui8> -> tensor<2x3x8x8xi32>
  %1 = ax.binary sub %0, %z : tensor<2x3x8x8xi32>, tensor<i32> -> tensor<2x3x8x8xi32>
  %2 = ax.cast %1 : tensor<2x3x8x8xi32> -> tensor<2x3x8x8xf64>
  %3 = ax.cast %w : tensor<16x3x3x3xi8> -> tensor<16x3x3x3xf64>
  %4 = ax.conv %2, %3 strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<2x3x8x8xf64>, tensor<16x3x3x3xf64> -> tensor<2x16x6x6xf64>
  %5 = ax.cast %4 : tensor<2x16x6x6xf64> -> tensor<2x16x6x6xi32>
  axl.yield %5 : tensor<2x16x6x6xi32>
}

// -----

// On a GPU factors of both have signs, and convolutions stay.
// RUN: axopt-opt %s --axl-multiply-integers=gpu=true --split-input-file | FileCheck %s --check-prefix=GPU
// GPU-LABEL: axl.stage @linear
// GPU-SAME: (%[[X:.*]]: tensor<2x16x32xui8>, %[[W:.*]]: tensor<32x48xi8>
// GPU: %[[I:.*]] = ax.cast %[[X]] : tensor<2x16x32xui8> -> tensor<2x16x32xi32>
// GPU: %[[M:.*]] = ax.constant dense<-128> : tensor<i32>
// GPU: %[[L:.*]] = ax.binary add %[[I]], %[[M]]
// GPU: %[[S:.*]] = ax.cast %[[L]] : tensor<2x16x32xi32> -> tensor<2x16x32xi8>
// GPU: ax.dot %[[S]], %[[W]] {{.*}} : tensor<2x16x32xi8>, tensor<32x48xi8> -> tensor<2x16x48xi32>
// GPU: ax.constant dense<-121> : tensor<i32>
// GPU-LABEL: axl.stage @unsigned
// GPU-SAME: (%[[X:.*]]: tensor<16x32xi8>
// GPU: ax.dot %[[X]], %{{.*}} : tensor<16x32xi8>, tensor<32x48xi8> -> tensor<16x48xi32>
// GPU-NOT: ax.conv {{.*}}i8

// Products in i32 are multiplied so, whatever their sizes are, and others that would
// not grow much: of 100 terms, but not of 20. A row alone stays.
// GPU-LABEL: axl.stage @sizes
// GPU: ax.dot %{{.*}} : tensor<4x20xi8>, tensor<20x8xi8> -> tensor<4x8xi32>
// GPU: ax.linear %{{.*}} : tensor<4x20xf32>, tensor<20x8xf32> -> tensor<4x8xf32>
// GPU: ax.dot %{{.*}} : tensor<4x100xi8>, tensor<100x32xi8> -> tensor<4x32xi32>
// GPU: ax.linear %{{.*}} : tensor<1x100xf32>, tensor<100x32xf32> -> tensor<1x32xf32>
axl.stage @sizes(%x: tensor<4x20xui8>, %w: tensor<20x8xi8>, %y: tensor<4x100xi8>, %v: tensor<100x32xi8>) {
  %0 = ax.cast %x : tensor<4x20xui8> -> tensor<4x20xi32>
  %1 = ax.cast %w : tensor<20x8xi8> -> tensor<20x8xi32>
  %2 = ax.dot %0, %1 batch [] x [] contract [1] x [0] : tensor<4x20xi32>, tensor<20x8xi32> -> tensor<4x8xi32>
  %3 = ax.cast %x : tensor<4x20xui8> -> tensor<4x20xf32>
  %4 = ax.cast %w : tensor<20x8xi8> -> tensor<20x8xf32>
  %5 = ax.linear %3, %4 : tensor<4x20xf32>, tensor<20x8xf32> -> tensor<4x8xf32>
  %6 = ax.cast %y : tensor<4x100xi8> -> tensor<4x100xf32>
  %7 = ax.cast %v : tensor<100x32xi8> -> tensor<100x32xf32>
  %8 = ax.linear %6, %7 : tensor<4x100xf32>, tensor<100x32xf32> -> tensor<4x32xf32>
  %9 = ax.slice %6 starts [0, 0] steps [1, 1] : tensor<4x100xf32> -> tensor<1x100xf32>
  %10 = ax.linear %9, %7 : tensor<1x100xf32>, tensor<100x32xf32> -> tensor<1x32xf32>
  axl.yield %2, %5, %8, %10 : tensor<4x8xi32>, tensor<4x8xf32>, tensor<4x32xf32>, tensor<1x32xf32>
}

// -----

// Without rows or columns, and where i32 may have no room for a sum, they stay. Zero
// points of columns may be those of numbers without a sign.
// GPU-LABEL: axl.stage @limits
// GPU: ax.dot %{{.*}} : tensor<32xi32>, tensor<32x48xi32> -> tensor<48xi32>
// GPU: ax.dot %{{.*}} : tensor<4x131072xi32>, tensor<131072x48xi32> -> tensor<4x48xi32>
// GPU: ax.dot %{{.*}} : tensor<4x32xi8>, tensor<32x2xi8> -> tensor<4x2xi32>
axl.stage @limits(%x: tensor<32xi8>, %w: tensor<32x48xi8>, %y: tensor<4x131072xi8>, %v: tensor<131072x48xi8>, %z: tensor<4x32xui8>, %u: tensor<32x2xui8>) {
  %0 = ax.cast %x : tensor<32xi8> -> tensor<32xi32>
  %1 = ax.cast %w : tensor<32x48xi8> -> tensor<32x48xi32>
  %2 = ax.dot %0, %1 batch [] x [] contract [0] x [0] : tensor<32xi32>, tensor<32x48xi32> -> tensor<48xi32>
  %3 = ax.cast %y : tensor<4x131072xi8> -> tensor<4x131072xi32>
  %4 = ax.cast %v : tensor<131072x48xi8> -> tensor<131072x48xi32>
  %5 = ax.dot %3, %4 batch [] x [] contract [1] x [0] : tensor<4x131072xi32>, tensor<131072x48xi32> -> tensor<4x48xi32>
  %6 = ax.cast %z : tensor<4x32xui8> -> tensor<4x32xi32>
  %7 = ax.cast %u : tensor<32x2xui8> -> tensor<32x2xi32>
  %8 = ax.constant dense<[100, 200]> : tensor<2xi32> -> tensor<2xi32>
  %9 = ax.binary sub %7, %8 : tensor<32x2xi32>, tensor<2xi32> -> tensor<32x2xi32>
  %10 = ax.dot %6, %9 batch [] x [] contract [1] x [0] : tensor<4x32xi32>, tensor<32x2xi32> -> tensor<4x2xi32>
  axl.yield %2, %5, %10 : tensor<48xi32>, tensor<4x48xi32>, tensor<4x2xi32>
}
