// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=4},ax-shard))' 2>&1 | FileCheck %s
// RUN: not axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-set-mesh{tp=4},ax-shard{strict=true}))' 2>&1 | FileCheck %s --check-prefix=STRICT

// Attention whose probabilities are an output stays two products and a softmax. Its
// heads are split as those of attention are, and what does not divide is told, once.
// CHECK: warning: 'scores': 6 attention heads are not divided by 4: split 2 ways, the rest is replicated
// CHECK-NOT: warning
// CHECK: ax.linear {{.*}} -> tensor<1x16x48xf32, #ax.layout<[{}, {}, {col:(1)2}]>>
// CHECK-NOT: all_gather
// CHECK: ax.dot {{.*}} -> tensor<1x6x16x16xf32, #ax.layout<[{}, {col:(1)2}, {}, {}]>>
// CHECK: ax.dot {{.*}} -> tensor<1x6x16x8xf32, #ax.layout<[{}, {col:(1)2}, {}, {}]>>
// Products of what no layer gives have dimensions that are no heads.
// CHECK: ax.dot {{.*}} {node = "other"} : {{.*}} -> tensor<1x6x4x4xf32, #ax.layout<[{}, {}, {}, {}]>>
// STRICT: error: 'scores': 6 attention heads are not divided by 4: split 2 ways, the rest is replicated; --strict makes it an error
ax.plan @p version 1 {
  ax.state @q : tensor<48x48xf32> from "w" offset 0 length 9216
  ax.state @o : tensor<48x48xf32> from "w" offset 9216 length 9216
  ax.program @main(%x: tensor<1x16x48xf32> {ax.name = "x"}, %z: tensor<1x6x4x8xf32> {ax.name = "z"}) -> (tensor<1x16x48xf32> {ax.name = "y"}, tensor<1x6x16x16xf32> {ax.name = "p"}, tensor<1x6x4x4xf32> {ax.name = "zz"}) {
    %q = ax.load @q : tensor<48x48xf32>
    %o = ax.load @o : tensor<48x48xf32>
    %a = ax.linear %x, %q : tensor<1x16x48xf32>, tensor<48x48xf32> -> tensor<1x16x48xf32>
    %b = ax.reshape %a : tensor<1x16x48xf32> -> tensor<1x16x6x8xf32>
    %s = ax.dot %b, %b batch [0, 2] x [0, 2] contract [3] x [3] {node = "scores"} : tensor<1x16x6x8xf32>, tensor<1x16x6x8xf32> -> tensor<1x6x16x16xf32>
    %p = ax.softmax %s dim 3 : tensor<1x6x16x16xf32> -> tensor<1x6x16x16xf32>
    %c = ax.dot %p, %b batch [0, 1] x [0, 2] contract [3] x [1] {node = "context"} : tensor<1x6x16x16xf32>, tensor<1x16x6x8xf32> -> tensor<1x6x16x8xf32>
    %e = ax.transpose %c [0, 2, 1, 3] : tensor<1x6x16x8xf32> -> tensor<1x16x6x8xf32>
    %f = ax.reshape %e : tensor<1x16x6x8xf32> -> tensor<1x16x48xf32>
    %y = ax.linear %f, %o : tensor<1x16x48xf32>, tensor<48x48xf32> -> tensor<1x16x48xf32>
    %zz = ax.dot %z, %z batch [0, 1] x [0, 1] contract [3] x [3] {node = "other"} : tensor<1x6x4x8xf32>, tensor<1x6x4x8xf32> -> tensor<1x6x4x4xf32>
    ax.return %y, %p, %zz : tensor<1x16x48xf32>, tensor<1x6x16x16xf32>, tensor<1x6x4x4xf32>
  }
}
