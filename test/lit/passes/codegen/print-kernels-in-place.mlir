// RUN: axopt-opt %s --axl-print-kernels -o /dev/null | FileCheck %s

// A thread whose elements are of a row that stays, by either condition, goes
// on to its next ones, and reads of the cache nothing at all.
// CHECK: // 524288 iterations
// CHECK: ld.global.b8
// CHECK: bra
// CHECK: ld.global.b8
// CHECK: bra
// CHECK-NOT: bra
// CHECK: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32
// CHECK-NOT: st.global
// CHECK: ret;
axl.stage @append(%old: tensor<1x8x4096x64xf32>, %new: tensor<1x8x1x64xf32>, %isOld: tensor<1x1x4096x1xi1>, %isNew: tensor<1x1x4096x1xi1>) {
  %0 = axl.fusion(%old, %new, %isOld, %isNew) in_place [0] {
  ^bb0(%a: tensor<1x8x4096x64xf32>, %b: tensor<1x8x1x64xf32>, %c: tensor<1x1x4096x1xi1>, %d: tensor<1x1x4096x1xi1>):
    %1 = ax.select %d, %b, %a : tensor<1x1x4096x1xi1>, tensor<1x8x1x64xf32>, tensor<1x8x4096x64xf32> -> tensor<1x8x4096x64xf32>
    %2 = ax.select %c, %a, %1 : tensor<1x1x4096x1xi1>, tensor<1x8x4096x64xf32>, tensor<1x8x4096x64xf32> -> tensor<1x8x4096x64xf32>
    axl.yield %2 : tensor<1x8x4096x64xf32>
  } : (tensor<1x8x4096x64xf32>, tensor<1x8x1x64xf32>, tensor<1x1x4096x1xi1>, tensor<1x1x4096x1xi1>) -> tensor<1x8x4096x64xf32>
  axl.yield %0 : tensor<1x8x4096x64xf32>
}
