// RUN: axopt-opt %s --axl-compose-attention=cudnn | FileCheck %s

// cuDNN has attention of bf16, to which factors are rounded; others see f32.
// CHECK-LABEL: axl.stage @precision
// CHECK: %[[Q:.*]] = ax.cast %{{.*}} : tensor<1x4x16x8xf32> -> tensor<1x4x16x8xbf16>
// CHECK: %[[K:.*]] = ax.cast %{{.*}} : tensor<1x2x16x8xf32> -> tensor<1x2x16x8xbf16>
// CHECK: %[[Y:.*]], %{{.*}} = axl.attention %[[Q]], %[[K]], %{{.*}} {causal} : {{.*}} -> tensor<1x4x16x8xbf16>, tensor<1x4x16xf32>
// CHECK: %[[W:.*]] = ax.cast %[[Y]] : tensor<1x4x16x8xbf16> -> tensor<1x4x16x8xf32>
// CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = axl.attention_gradient {{.*}} -> tensor<1x4x16x8xbf16>, tensor<1x2x16x8xbf16>, tensor<1x2x16x8xbf16>
// CHECK-DAG: %[[A:.*]] = ax.cast %[[DQ]] : tensor<1x4x16x8xbf16> -> tensor<1x4x16x8xf32>
// CHECK-DAG: %[[B:.*]] = ax.cast %[[DK]]
// CHECK-DAG: %[[C:.*]] = ax.cast %[[DV]]
// CHECK: axl.yield %[[W]], %[[A]], %[[B]], %[[C]]
axl.stage @precision(%q: tensor<1x4x16x8xf32>, %k: tensor<1x2x16x8xf32>, %g: tensor<1x4x16x8xf32>) {
  %0 = ax.attention %q, %k, %k scale 1.000000e+00 {causal, product_type = bf16} : tensor<1x4x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32> -> tensor<1x4x16x8xf32>
  %dq, %dk, %dv = ax.attention_gradient %q, %k, %k, %0, %g scale 1.000000e+00 {causal, product_type = bf16} : tensor<1x4x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x4x16x8xf32>, tensor<1x4x16x8xf32> -> tensor<1x4x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>
  axl.yield %0, %dq, %dk, %dv : tensor<1x4x16x8xf32>, tensor<1x4x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>
}

// Of f32 or eight bits, with a cap, or heads of another size or of none, it is made
// of products.
// CHECK-LABEL: axl.stage @others
// CHECK-NOT: ax.attention
axl.stage @others(%f: tensor<1x2x16x8xf32>, %h: tensor<1x2x16x8xf16>, %o: tensor<1x2x16x12xf16>, %e: tensor<1x2x16x8xf8E4M3FN>, %n: tensor<1x2x16x0xf16>) {
  %0 = ax.attention %f, %f, %f scale 1.000000e+00 : tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32> -> tensor<1x2x16x8xf32>
  %2 = ax.attention %h, %h, %h scale 1.000000e+00 {softcap = 2.0} : tensor<1x2x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x2x16x8xf16> -> tensor<1x2x16x8xf16>
  %3 = ax.attention %o, %o, %h scale 1.000000e+00 : tensor<1x2x16x12xf16>, tensor<1x2x16x12xf16>, tensor<1x2x16x8xf16> -> tensor<1x2x16x8xf16>
  %5 = ax.attention %e, %e, %e scale 1.000000e+00 : tensor<1x2x16x8xf8E4M3FN>, tensor<1x2x16x8xf8E4M3FN>, tensor<1x2x16x8xf8E4M3FN> -> tensor<1x2x16x8xf8E4M3FN>
  %6 = ax.attention %n, %n, %h scale 1.000000e+00 : tensor<1x2x16x0xf16>, tensor<1x2x16x0xf16>, tensor<1x2x16x8xf16> -> tensor<1x2x16x8xf16>
  axl.yield %0, %2, %3, %5, %6 : tensor<1x2x16x8xf32>, tensor<1x2x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x2x16x8xf8E4M3FN>, tensor<1x2x16x8xf16>
}

// CHECK-LABEL: axl.stage @narrow
// CHECK: %[[Y:.*]] = ax.attention %{{.*}} : tensor<1x2x4x8xf16>
// CHECK: axl.yield %[[Y]]
axl.stage @narrow(%s: tensor<1x2x4x8xf16>, %h: tensor<1x2x16x8xf16>) {
  %0 = ax.attention %s, %h, %h scale 1.000000e+00 : tensor<1x2x4x8xf16>, tensor<1x2x16x8xf16>, tensor<1x2x16x8xf16> -> tensor<1x2x4x8xf16>
  axl.yield %0 : tensor<1x2x4x8xf16>
}

// The gradient of what the stage computes is given the sums of its softmax.
// CHECK-LABEL: axl.stage @sums
// CHECK: %[[Y:.*]], %[[S:.*]] = axl.attention %[[Q:.*]], %[[K:.*]], %[[K]] scale 1.000000e+00 {causal} : {{.*}} -> tensor<1x4x16x8xf16>, tensor<1x4x16xf32>
// CHECK: axl.attention_gradient %[[Q]], %[[K]], %[[K]], %[[Y]], %{{.*}} sums %[[S]] scale 1.000000e+00 {causal}
// Of another scale, or of what comes from elsewhere, it is not.
// CHECK: ax.attention_gradient {{.*}} scale 2.000000e+00
// CHECK: ax.attention_gradient %{{.*}}, %{{.*}}, %{{.*}}, %[[G:[a-z0-9]*]], %[[G]]
// Nor of another product type, nor what cuDNN does not do.
// CHECK: ax.attention_gradient {{.*}}product_type = bf16
// CHECK: ax.attention_gradient {{.*}} mask
// CHECK-NOT: attention_gradient
axl.stage @sums(%q: tensor<1x4x16x8xf16>, %k: tensor<1x2x16x8xf16>, %g: tensor<1x4x16x8xf16>, %m: tensor<1x1x1x16xi1>) {
  %0 = ax.attention %q, %k, %k scale 1.000000e+00 {causal} : tensor<1x4x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x2x16x8xf16> -> tensor<1x4x16x8xf16>
  %a:3 = ax.attention_gradient %q, %k, %k, %0, %g scale 1.000000e+00 {causal} : tensor<1x4x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x4x16x8xf16>, tensor<1x4x16x8xf16> -> tensor<1x4x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x2x16x8xf16>
  %b:3 = ax.attention_gradient %q, %k, %k, %0, %g scale 2.000000e+00 {causal} : tensor<1x4x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x4x16x8xf16>, tensor<1x4x16x8xf16> -> tensor<1x4x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x2x16x8xf16>
  %c:3 = ax.attention_gradient %q, %k, %k, %g, %g scale 1.000000e+00 {causal} : tensor<1x4x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x4x16x8xf16>, tensor<1x4x16x8xf16> -> tensor<1x4x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x2x16x8xf16>
  %d:3 = ax.attention_gradient %q, %k, %k, %0, %g scale 1.000000e+00 {causal, product_type = bf16} : tensor<1x4x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x4x16x8xf16>, tensor<1x4x16x8xf16> -> tensor<1x4x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x2x16x8xf16>
  %e:3 = ax.attention_gradient %q, %k, %k, %0, %g scale 1.000000e+00 {causal, softcap = 2.0} : tensor<1x4x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x4x16x8xf16>, tensor<1x4x16x8xf16> -> tensor<1x4x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x2x16x8xf16>
  %f:3 = ax.attention_gradient %q, %k, %k, %0, %g mask %m : tensor<1x1x1x16xi1> scale 1.000000e+00 {causal} : tensor<1x4x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x4x16x8xf16>, tensor<1x4x16x8xf16> -> tensor<1x4x16x8xf16>, tensor<1x2x16x8xf16>, tensor<1x2x16x8xf16>
  axl.yield %a#0, %b#0, %c#0, %d#0, %e#0, %f#0 : tensor<1x4x16x8xf16>, tensor<1x4x16x8xf16>, tensor<1x4x16x8xf16>, tensor<1x4x16x8xf16>, tensor<1x4x16x8xf16>, tensor<1x4x16x8xf16>
}

// Of larger heads the card decides, and of gradients also whether those of values
// are as large.
// RUN: axopt-opt %s --axl-compose-attention='cudnn largest-head=256' | FileCheck %s --check-prefix=FORWARDS
// RUN: axopt-opt %s --axl-compose-attention='cudnn largest-head=256 largest-gradient-head=256' | FileCheck %s --check-prefix=LARGE
// CHECK-LABEL: axl.stage @large
// CHECK-NOT: attention
// FORWARDS-LABEL: axl.stage @large
// FORWARDS: ax.attention %{{.*}} : tensor<1x2x16x256xf16>
// FORWARDS: ax.attention %{{.*}} -> tensor<1x2x16x64xf16>
// FORWARDS-NOT: attention
// LARGE-LABEL: axl.stage @large
// LARGE: axl.attention %{{.*}} : tensor<1x2x16x256xf16>
// LARGE: ax.attention %{{.*}} -> tensor<1x2x16x64xf16>
// LARGE: axl.attention_gradient
// LARGE-NOT: attention
axl.stage @large(%q: tensor<1x2x16x256xf16>, %v: tensor<1x2x16x64xf16>, %w: tensor<1x2x16x264xf16>) {
  %0 = ax.attention %q, %q, %q scale 1.000000e+00 : tensor<1x2x16x256xf16>, tensor<1x2x16x256xf16>, tensor<1x2x16x256xf16> -> tensor<1x2x16x256xf16>
  %1 = ax.attention %q, %q, %v scale 1.000000e+00 : tensor<1x2x16x256xf16>, tensor<1x2x16x256xf16>, tensor<1x2x16x64xf16> -> tensor<1x2x16x64xf16>
  %2 = ax.attention %w, %w, %v scale 1.000000e+00 : tensor<1x2x16x264xf16>, tensor<1x2x16x264xf16>, tensor<1x2x16x64xf16> -> tensor<1x2x16x64xf16>
  %a:3 = ax.attention_gradient %q, %q, %q, %0, %q scale 1.000000e+00 : tensor<1x2x16x256xf16>, tensor<1x2x16x256xf16>, tensor<1x2x16x256xf16>, tensor<1x2x16x256xf16>, tensor<1x2x16x256xf16> -> tensor<1x2x16x256xf16>, tensor<1x2x16x256xf16>, tensor<1x2x16x256xf16>
  %b:3 = ax.attention_gradient %q, %q, %v, %1, %v scale 1.000000e+00 : tensor<1x2x16x256xf16>, tensor<1x2x16x256xf16>, tensor<1x2x16x64xf16>, tensor<1x2x16x64xf16>, tensor<1x2x16x64xf16> -> tensor<1x2x16x256xf16>, tensor<1x2x16x256xf16>, tensor<1x2x16x64xf16>
  axl.yield %2, %a#0, %b#0 : tensor<1x2x16x64xf16>, tensor<1x2x16x256xf16>, tensor<1x2x16x256xf16>
}

// A gradient with a mask that is the same for all keys is made of products.
// CHECK-LABEL: axl.stage @of_no_keys
// CHECK-NOT: attention_gradient
// CHECK: axl.yield
axl.stage @of_no_keys(%q: tensor<2x4x16x8xbf16>, %k: tensor<2x4x16x8xbf16>, %m: tensor<2x4x1x1xf32>, %g: tensor<2x4x16x8xbf16>) {
  %d:3 = ax.attention_gradient %q, %k, %k, %q, %g mask %m : tensor<2x4x1x1xf32> scale 0.5 {product_type = bf16} : tensor<2x4x16x8xbf16>, tensor<2x4x16x8xbf16>, tensor<2x4x16x8xbf16>, tensor<2x4x16x8xbf16>, tensor<2x4x16x8xbf16> -> tensor<2x4x16x8xbf16>, tensor<2x4x16x8xbf16>, tensor<2x4x16x8xbf16>
  axl.yield %d#0, %d#1, %d#2 : tensor<2x4x16x8xbf16>, tensor<2x4x16x8xbf16>, tensor<2x4x16x8xbf16>
}
