// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-mark-candidates))' | FileCheck %s
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-mark-candidates{trainable=mask,b* frozen=b.*}))' | FileCheck %s --check-prefix=FLAGS
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-mark-candidates{trainable=none}))' | FileCheck %s --check-prefix=NONE

// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-select-trainable))' 2>&1 | FileCheck %s --check-prefix=DECIDED

// What may be trained is known before layers are: what the file declares, what
// nothing is known of, a row of zeros, which may be a bias; a table that looks
// like a mask, where a layer takes it, and no mask that is added. Flags decide;
// who names nothing is told when states are selected.
// CHECK: ax.state @declared {{.*}}ax.may_be_trained
// CHECK-NEXT: ax.state @b.buffer
// CHECK-NOT: ax.may_be_trained
// CHECK-NEXT: ax.state @mask
// CHECK-NOT: ax.may_be_trained
// CHECK: ax.state @table {{.*}}ax.may_be_trained
// CHECK-NEXT: ax.state @bias {{.*}}ax.may_be_trained
// CHECK-NEXT: ax.state @scale {{.*}}ax.may_be_trained
// CHECK-NEXT: ax.state @places : tensor<4xi32> from "w" offset 0 length 16{{$}}
// FLAGS: ax.state @declared : tensor<4xf32> from "w" offset 0 length 16 {ax.weight_kind = "parameter"}
// FLAGS-NEXT: ax.state @b.buffer : tensor<4xf32> from "w" offset 0 length 16 {ax.weight_kind = "buffer"}
// FLAGS-NEXT: ax.state @mask {{.*}}ax.may_be_trained
// FLAGS-NEXT: ax.state @table : tensor<4x4xf32> from "w" offset 0 length 64 {ax.weight_kind = "mask"}
// FLAGS-NEXT: ax.state @bias {{.*}}ax.may_be_trained
// NONE-NOT: ax.may_be_trained

// What Import has asked for its value, and trains, is told.
// DECIDED: warning: 'table' is trained, but a part of the plan goes by its value in the model
// DECIDED-NOT: is trained, but
ax.plan @p version 1 attributes {ax.folded = {mask = "0", table = "0"}} {
  ax.state @declared : tensor<4xf32> from "w" offset 0 length 16 {ax.weight_kind = "parameter"}
  ax.state @b.buffer : tensor<4xf32> from "w" offset 0 length 16 {ax.weight_kind = "buffer"}
  ax.state @mask : tensor<4xf32> from "w" offset 0 length 16 {ax.weight_kind = "mask"}
  ax.state @table : tensor<4x4xf32> from "w" offset 0 length 64 {ax.weight_kind = "mask"}
  ax.state @bias : tensor<1x4xf32> from "w" offset 0 length 16 {ax.weight_kind = "zero_row"}
  ax.state @scale : tensor<4xf32> from "w" offset 0 length 16
  ax.state @places : tensor<4xi32> from "w" offset 0 length 16
  ax.program @main(%i: tensor<4xi64>) -> tensor<4x4xf32> {
    %table = ax.load @table : tensor<4x4xf32>
    %a = ax.gather %table[%i] axis 0 : tensor<4x4xf32>, tensor<4xi64> -> tensor<4x4xf32>
    %mask = ax.load @mask : tensor<4xf32>
    %b = ax.binary add %a, %mask : tensor<4x4xf32>, tensor<4xf32> -> tensor<4x4xf32>
    ax.return %b : tensor<4x4xf32>
  }
}
