// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-outline-stages,ax-schedule))' | FileCheck %s

// CHECK: ax.schedule "forward" {
// CHECK-NEXT: stage 0: "F0 F1 F2",
// CHECK-NEXT: stage 1: "F0 F1 F2"
// CHECK-NEXT: }
ax.plan @p version 1 {
  ax.mesh [pipe = 2] in time [micro = 3]
  ax.program @main(%x: tensor<6xf32, #ax.layout<[{micro}]>>) -> tensor<6xf32, #ax.layout<[{micro}]>> {
    %0 = ax.unary exp %x {stage = 0} : tensor<6xf32, #ax.layout<[{micro}]>> -> tensor<6xf32, #ax.layout<[{micro}]>>
    %1 = ax.unary exp %0 {stage = 1} : tensor<6xf32, #ax.layout<[{micro}]>> -> tensor<6xf32, #ax.layout<[{micro}]>>
    ax.return %1 : tensor<6xf32, #ax.layout<[{micro}]>>
  }
}
