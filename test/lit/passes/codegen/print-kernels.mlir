// RUN: axopt-opt %s --axl-print-kernels --split-input-file -o /dev/null | FileCheck %s
// RUN: axopt-opt %s --axl-print-kernels=target=sm_80 --split-input-file -o /dev/null | FileCheck %s --check-prefix=OLD
// RUN: not axopt-opt %s --axl-print-kernels=target=sm_75 --split-input-file 2>&1 | FileCheck %s --check-prefix=NONE

// NONE: 'sm_75' is no GPU that is known

// Threads take turns at four elements: each has its number, and goes on by that of
// all. Memory is the card's own, not just any.
// CHECK: // 250000 iterations: 977 blocks of 256 threads, 1 and 0 bytes of scratch for each
// CHECK: .target sm_90
// OLD: .target sm_80
// CHECK: .visible .entry ax_kernel_{{[0-9a-f]+}}(
// CHECK-NEXT: .param .u64 .ptr .align 64
// CHECK-NEXT: .param .u64 .ptr .align 64
// CHECK-NEXT: )
// CHECK-DAG: %ntid.x
// CHECK-DAG: %ctaid.x
// CHECK-DAG: %tid.x
// CHECK-DAG: %nctaid.x
// CHECK: ld.global.v4.b32
// CHECK: add{{(.rn)?}}.f32
// CHECK: st.global.v4.b32
// OLD: ld.global.v4.b32
axl.stage @elements(%x: tensor<1000x1000xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<1000x1000xf32>):
    %1 = ax.binary add %a, %a : tensor<1000x1000xf32>, tensor<1000x1000xf32> -> tensor<1000x1000xf32>
    axl.yield %1 : tensor<1000x1000xf32>
  } : (tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  axl.yield %0 : tensor<1000x1000xf32>
}

// -----

// A row is a warp's, which keeps it in memory of its block's: neighbours read
// neighbours, and tell each other the largest, and the sum. Nothing is called.
// CHECK: // 64 iterations: 64 blocks of 32 threads, 32 and 0 bytes of scratch for each
// CHECK-NOT: .extern
// CHECK-NOT: call
// CHECK: .reqntid 32
// CHECK: .shared .align 64 .b8 scratch[512];
// CHECK: max.NaN.f32
// CHECK: shfl.sync.bfly.b32 {{.*}}, 16, 31, -1;
// CHECK: shfl.sync.idx.b32 {{.*}}, 0, 31, -1;
// CHECK: fma.rn.f32
// CHECK: st.shared.v4.b32
// CHECK: bar.warp.sync -1;
// CHECK: ld.shared.v4.b32
// CHECK: {{div|rcp}}.rn.f32
// CHECK-NOT: call
axl.stage @softmax(%x: tensor<64x128xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<64x128xf32>):
    %1 = ax.softmax %a dim 1 : tensor<64x128xf32> -> tensor<64x128xf32>
    axl.yield %1 : tensor<64x128xf32>
  } : (tensor<64x128xf32>) -> tensor<64x128xf32>
  axl.yield %0 : tensor<64x128xf32>
}

// -----

// CHECK: // 64 iterations: 64 blocks of 32 threads, 32 and 0 bytes of scratch for each
// CHECK-NOT: .shared
// CHECK: add{{(.rn)?}}.f32
// CHECK: shfl.sync.bfly.b32
axl.stage @sum(%x: tensor<64x128xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<64x128xf32>):
    %1 = ax.reduce sum %a dims [1] : tensor<64x128xf32> -> tensor<64xf32>
    axl.yield %1 : tensor<64xf32>
  } : (tensor<64x128xf32>) -> tensor<64xf32>
  axl.yield %0 : tensor<64xf32>
}

// -----

// A row that is too long for that is a block's, whose copies lie in the card's
// memory; each warp has a part of the sums.
// CHECK: // 64 iterations: 64 blocks of 1024 threads, 1024 and 131072 bytes of scratch for each
// CHECK: .reqntid 1024
// CHECK: .shared .align 64 .b8 parts[256];
// CHECK: shfl.sync.bfly.b32
// CHECK: st.shared.b64
// CHECK: {{bar|barrier}}.sync{{.*}} 0;
// CHECK: ld.shared.b64
// CHECK: st.global.v2.b64
// CHECK: {{bar|barrier}}.sync{{.*}} 0;
axl.stage @long(%x: tensor<64x16384xf64>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<64x16384xf64>):
    %1 = ax.softmax %a dim 1 : tensor<64x16384xf64> -> tensor<64x16384xf64>
    axl.yield %1 : tensor<64x16384xf64>
  } : (tensor<64x16384xf64>) -> tensor<64x16384xf64>
  axl.yield %0 : tensor<64x16384xf64>
}

// -----

// Of f32 nothing is kept: the largest and the sum come from one read of a row that
// begins anywhere, in 16 bytes at a time, and the result from another one.
// CHECK: // 333 iterations: 333 blocks of 1024 threads, 1024 and 0 bytes of scratch for each
// CHECK: ld.global.b32
// CHECK-COUNT-4: ld.global.v4.b32
// CHECK: ex2.approx.ftz.f32
// CHECK: ld.global.b32
// CHECK: st.global.b32
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK-NOT: ex2
// CHECK-COUNT-2: st.global.v4.b32
axl.stage @again(%x: tensor<333x50257xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<333x50257xf32>):
    %1 = ax.softmax %a dim 1 {log} : tensor<333x50257xf32> -> tensor<333x50257xf32>
    axl.yield %1 : tensor<333x50257xf32>
  } : (tensor<333x50257xf32>) -> tensor<333x50257xf32>
  axl.yield %0 : tensor<333x50257xf32>
}

// -----

// Neighbours sum neighbouring columns, 8 of them four each, and each warp of a
// block a part of these. A thread reads four rows before it adds them, and no more.
// CHECK: // 192 iterations: 24 blocks of 512 threads, 64 and 0 bytes of scratch for each
// CHECK: .shared .align 64 .b8 parts[2048];
// CHECK-COUNT-4: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK: add{{(.rn)?}}.f32
// CHECK: shfl.sync.bfly.b32 {{.*}}, 16, 31, -1;
// CHECK: shfl.sync.bfly.b32 {{.*}}, 8, 31, -1;
// CHECK-NOT: ld.global
// CHECK: {{bar|barrier}}.sync{{.*}} 0;
// CHECK: st.global.v4.b32
axl.stage @columns(%x: tensor<4096x768xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<4096x768xf32>):
    %1 = ax.reduce sum %a dims [0] : tensor<4096x768xf32> -> tensor<768xf32>
    axl.yield %1 : tensor<768xf32>
  } : (tensor<4096x768xf32>) -> tensor<768xf32>
  axl.yield %0 : tensor<768xf32>
}

// -----

// Philox is as on processors: its first multiplier.
// CHECK: // 1024 iterations:
// CHECK: {{3528531795|-766435501}}
axl.stage @dropout(%x: tensor<4096xf32>, %seed: tensor<i64>, %step: tensor<i64>) {
  %0 = axl.fusion(%x, %seed, %step) {
  ^bb0(%a: tensor<4096xf32>, %s: tensor<i64>, %t: tensor<i64>):
    %i = ax.iota dim 0 : tensor<4096xi64>
    %p = ax.constant dense<0.5> : tensor<f32> -> tensor<f32>
    %z = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
    %u = axl.random %i seed %s step %t id 3 : tensor<4096xi64>, tensor<i64>, tensor<i64> -> tensor<4096xf32>
    %c = ax.compare lt %u, %p : tensor<4096xf32>, tensor<f32> -> tensor<4096xi1>
    %1 = ax.select %c, %a, %z : tensor<4096xi1>, tensor<4096xf32>, tensor<f32> -> tensor<4096xf32>
    axl.yield %1 : tensor<4096xf32>
  } : (tensor<4096xf32>, tensor<i64>, tensor<i64>) -> tensor<4096xf32>
  axl.yield %0 : tensor<4096xf32>
}

// -----

// One instruction rounds two.
// CHECK: // 1024 iterations:
// CHECK: ld.global.v4.b32
// CHECK: cvt.rn.bf16x2.f32
// CHECK: st.global.v2.b32
// OLD: cvt.rn.bf16x2.f32
axl.stage @narrow(%x: tensor<4096xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<4096xf32>):
    %1 = ax.cast %a : tensor<4096xf32> -> tensor<4096xbf16>
    axl.yield %1 : tensor<4096xbf16>
  } : (tensor<4096xf32>) -> tensor<4096xbf16>
  axl.yield %0 : tensor<4096xbf16>
}

// -----

// What lies along another dimension goes through memory of a block.
// CHECK: // 384 iterations: 384 blocks of 256 threads, 256 and 0 bytes of scratch for each
// CHECK: .shared .align 64 .b8 scratch[4224];
// CHECK: ld.global.b32
// CHECK: st.shared.b32
// CHECK: {{bar|barrier}}.sync{{.*}} 0;
// CHECK: ld.shared.b32
// CHECK: st.global.v4.b32
// CHECK: {{bar|barrier}}.sync{{.*}} 0;
axl.stage @transpose(%x: tensor<512x768xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<512x768xf32>):
    %1 = ax.transpose %a [1, 0] : tensor<512x768xf32> -> tensor<768x512xf32>
    axl.yield %1 : tensor<768x512xf32>
  } : (tensor<512x768xf32>) -> tensor<768x512xf32>
  axl.yield %0 : tensor<768x512xf32>
}

// -----

// Cards that round to eight bits do so; the version of PTX is that which says it.
// CHECK: .version 8.1
// CHECK: cvt.rn.satfinite.e4m3x2.f32
// OLD: .version 8.0
// OLD-NOT: e4m3x2
axl.stage @eightBits(%x: tensor<1024xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<1024xf32>):
    %1 = ax.cast %a : tensor<1024xf32> -> tensor<1024xf8E4M3FN>
    axl.yield %1 : tensor<1024xf8E4M3FN>
  } : (tensor<1024xf32>) -> tensor<1024xf8E4M3FN>
  axl.yield %0 : tensor<1024xf8E4M3FN>
}

// -----

// What is made of an exponential is so by the units for it, without divisions.
// CHECK: .entry
// CHECK-NOT: div
// CHECK: ex2.approx.ftz.f32
// CHECK-NOT: div
// CHECK: rcp.approx.ftz.f32
// CHECK-NOT: {{ex2|rcp|div}}
axl.stage @silu(%x: tensor<333xf32>) {
  %0 = axl.fusion(%x) {
  ^bb0(%a: tensor<333xf32>):
    %1 = ax.unary silu %a : tensor<333xf32> -> tensor<333xf32>
    axl.yield %1 : tensor<333xf32>
  } : (tensor<333xf32>) -> tensor<333xf32>
  axl.yield %0 : tensor<333xf32>
}

// -----

// Two sums of the same columns are made in one loop, by threads that have eight of
// bf16 each, whatever else they read once of each column.
// CHECK: .shared .align 64 .b8 parts[16384];
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK: $L__BB0_3:
// CHECK-COUNT-8: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK: bra $L__BB0_3;
// CHECK-NOT: ld.global.v
axl.stage @twoSums(%x: tensor<512x64x256xbf16>, %y: tensor<512x64x256xbf16>, %m: tensor<256xf32>) {
  %0:2 = axl.fusion(%x, %y, %m) {
  ^bb0(%a: tensor<512x64x256xbf16>, %b: tensor<512x64x256xbf16>, %c: tensor<256xf32>):
    %1 = ax.cast %a : tensor<512x64x256xbf16> -> tensor<512x64x256xf32>
    %2 = ax.cast %b : tensor<512x64x256xbf16> -> tensor<512x64x256xf32>
    %3 = ax.reduce sum %1 dims [0] : tensor<512x64x256xf32> -> tensor<64x256xf32>
    %4 = ax.binary sub %2, %c : tensor<512x64x256xf32>, tensor<256xf32> -> tensor<512x64x256xf32>
    %5 = ax.binary mul %1, %4 : tensor<512x64x256xf32>, tensor<512x64x256xf32> -> tensor<512x64x256xf32>
    %6 = ax.reduce sum %5 dims [0] : tensor<512x64x256xf32> -> tensor<64x256xf32>
    axl.yield %3, %6 : tensor<64x256xf32>, tensor<64x256xf32>
  } : (tensor<512x64x256xbf16>, tensor<512x64x256xbf16>, tensor<256xf32>) -> (tensor<64x256xf32>, tensor<64x256xf32>)
  axl.yield %0#0, %0#1 : tensor<64x256xf32>, tensor<64x256xf32>
}
