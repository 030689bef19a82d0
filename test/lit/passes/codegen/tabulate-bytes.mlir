// RUN: axopt-opt %s --axl-tabulate-bytes --split-input-file | FileCheck %s

// Of 256 bytes each is worked out once; what is only on the way to the last result is
// gone, and parameters are one number in any shape.
// CHECK-LABEL: axl.stage @silu
// CHECK: %[[B:.*]] = ax.constant dense<"0x000102{{.*}}FDFEFF"> : tensor<256xui8> -> tensor<256xui8>
// CHECK: %[[W:.*]] = ax.cast %[[B]] : tensor<256xui8> -> tensor<256xf32>
// CHECK: %[[S:.*]] = ax.reshape %arg1 : tensor<1x1xf32> -> tensor<1xf32>
// CHECK: %[[X:.*]] = ax.binary mul %[[W]], %[[S]] : tensor<256xf32>, tensor<1xf32>
// CHECK: %[[G:.*]] = ax.unary sigmoid %[[X]]
// CHECK: %[[Q:.*]] = ax.cast %[[G]] : tensor<256xf32> -> tensor<256xui8>
// CHECK: %[[V:.*]] = ax.cast %[[Q]]
// CHECK: %[[P:.*]] = ax.binary mul %[[X]], %[[V]]
// CHECK: %[[T:.*]] = ax.cast %[[P]] : tensor<256xf32> -> tensor<256xi8>
// CHECK: %[[Y:.*]] = axl.look_up %arg0 in %[[T]] : tensor<8x1000xui8>, tensor<256xi8> -> tensor<8x1000xi8>
// CHECK-NOT: 8x1000xf32
// CHECK: axl.yield %[[Y]]
axl.stage @silu(%q: tensor<8x1000xui8>, %s: tensor<1x1xf32>) {
  %0 = ax.cast %q : tensor<8x1000xui8> -> tensor<8x1000xf32>
  %1 = ax.binary mul %0, %s : tensor<8x1000xf32>, tensor<1x1xf32> -> tensor<8x1000xf32>
  %2 = ax.unary sigmoid %1 : tensor<8x1000xf32> -> tensor<8x1000xf32>
  %3 = ax.cast %2 : tensor<8x1000xf32> -> tensor<8x1000xui8>
  %4 = ax.cast %3 : tensor<8x1000xui8> -> tensor<8x1000xf32>
  %5 = ax.binary mul %1, %4 : tensor<8x1000xf32>, tensor<8x1000xf32> -> tensor<8x1000xf32>
  %6 = ax.cast %5 : tensor<8x1000xf32> -> tensor<8x1000xi8>
  axl.yield %6 : tensor<8x1000xi8>
}

// -----

// What is made of another operand may come before it.
// CHECK-LABEL: axl.stage @shrink
// CHECK: %[[Y:.*]] = axl.look_up %arg0 in
// CHECK-NOT: 8000xf32
// CHECK: axl.yield %[[Y]]
axl.stage @shrink(%q: tensor<8000xui8>) {
  %0 = ax.cast %q : tensor<8000xui8> -> tensor<8000xf32>
  %1 = ax.unary tanh %0 : tensor<8000xf32> -> tensor<8000xf32>
  %2 = ax.unary erf %1 : tensor<8000xf32> -> tensor<8000xf32>
  %3 = ax.binary mul %2, %1 : tensor<8000xf32>, tensor<8000xf32> -> tensor<8000xf32>
  %4 = ax.binary mul %3, %0 : tensor<8000xf32>, tensor<8000xf32> -> tensor<8000xf32>
  %5 = ax.cast %4 : tensor<8000xf32> -> tensor<8000xui8>
  axl.yield %5 : tensor<8000xui8>
}

// -----

// What was on the way has a table of its own where it is wanted, too.
// CHECK-LABEL: axl.stage @both
// CHECK: %[[A:.*]] = axl.look_up %arg0 in
// CHECK: %[[B:.*]] = axl.look_up %arg0 in
// CHECK: axl.yield %[[A]], %[[B]]
axl.stage @both(%q: tensor<8000xi8>) {
  %0 = ax.cast %q : tensor<8000xi8> -> tensor<8000xf32>
  %1 = ax.unary erf %0 : tensor<8000xf32> -> tensor<8000xf32>
  %2 = ax.unary tanh %1 : tensor<8000xf32> -> tensor<8000xf32>
  %3 = ax.cast %2 : tensor<8000xf32> -> tensor<8000xi8>
  %4 = ax.cast %3 : tensor<8000xi8> -> tensor<8000xf32>
  %5 = ax.unary exp %4 : tensor<8000xf32> -> tensor<8000xf32>
  %6 = ax.cast %5 : tensor<8000xf32> -> tensor<8000xui8>
  axl.yield %3, %6 : tensor<8000xi8>, tensor<8000xui8>
}

// -----

// Few operations, few elements, scales of channels, two origins, and results that are
// no bytes.
// CHECK-LABEL: axl.stage @others
// CHECK-NOT: axl.look_up
axl.stage @others(%q: tensor<8x1000xui8>, %p: tensor<8x1000xui8>, %few: tensor<1000xui8>, %s: tensor<8x1xf32>, %t: tensor<f32>) {
  %0 = ax.cast %q : tensor<8x1000xui8> -> tensor<8x1000xf32>
  %1 = ax.binary mul %0, %t : tensor<8x1000xf32>, tensor<f32> -> tensor<8x1000xf32>
  %2 = ax.cast %1 : tensor<8x1000xf32> -> tensor<8x1000xui8>
  %3 = ax.unary gelu %0 : tensor<8x1000xf32> -> tensor<8x1000xf32>
  %4 = ax.unary tanh %3 : tensor<8x1000xf32> -> tensor<8x1000xf32>
  %5 = ax.binary mul %4, %s : tensor<8x1000xf32>, tensor<8x1xf32> -> tensor<8x1000xf32>
  %6 = ax.cast %5 : tensor<8x1000xf32> -> tensor<8x1000xui8>
  %7 = ax.cast %p : tensor<8x1000xui8> -> tensor<8x1000xf32>
  %8 = ax.binary mul %4, %7 : tensor<8x1000xf32>, tensor<8x1000xf32> -> tensor<8x1000xf32>
  %9 = ax.cast %8 : tensor<8x1000xf32> -> tensor<8x1000xui8>
  %10 = ax.cast %few : tensor<1000xui8> -> tensor<1000xf32>
  %11 = ax.unary tanh %10 : tensor<1000xf32> -> tensor<1000xf32>
  %12 = ax.unary erf %11 : tensor<1000xf32> -> tensor<1000xf32>
  %13 = ax.cast %12 : tensor<1000xf32> -> tensor<1000xui8>
  axl.yield %2, %4, %6, %9, %13 : tensor<8x1000xui8>, tensor<8x1000xf32>, tensor<8x1000xui8>, tensor<8x1000xui8>, tensor<1000xui8>
}
