// RUN: axopt-opt %s --axl-compose-attention='cudnn lift-masked' | FileCheck %s
// RUN: axopt-opt %s --axl-compose-attention=cudnn | FileCheck %s --check-prefix=PLAIN

// cuDNN scores keys 192 to 255 with 0: all is 1024 above what it would be.
// PLAIN-NOT: 1.024000e+03
// CHECK-LABEL: axl.stage @shared
// CHECK: %{{.*}}, %[[SUMS:.*]] = axl.attention
// CHECK: %[[MASK:.*]] = ax.binary add %{{.*}}, %{{.*}} : tensor<1x1x1x192xf32>, tensor<f32>
// CHECK: %[[LIFTED:.*]] = ax.binary add %[[SUMS]], %{{.*}} : tensor<2x4x16xf32>, tensor<f32>
// CHECK: axl.attention_gradient {{.*}}%[[MASK]]{{.*}}%[[LIFTED]]
axl.stage @shared(%q: tensor<2x4x16x8xbf16>, %k: tensor<2x4x192x8xbf16>, %m: tensor<1x1x1x192xf32>, %g: tensor<2x4x16x8xbf16>) {
  %y = ax.attention %q, %k, %k mask %m : tensor<1x1x1x192xf32> scale 0.5 {product_type = bf16} : tensor<2x4x16x8xbf16>, tensor<2x4x192x8xbf16>, tensor<2x4x192x8xbf16> -> tensor<2x4x16x8xbf16>
  %d:3 = ax.attention_gradient %q, %k, %k, %y, %g mask %m : tensor<1x1x1x192xf32> scale 0.5 {product_type = bf16} : tensor<2x4x16x8xbf16>, tensor<2x4x192x8xbf16>, tensor<2x4x192x8xbf16>, tensor<2x4x16x8xbf16>, tensor<2x4x16x8xbf16> -> tensor<2x4x16x8xbf16>, tensor<2x4x192x8xbf16>, tensor<2x4x192x8xbf16>
  axl.yield %y, %d#0, %d#1, %d#2 : tensor<2x4x16x8xbf16>, tensor<2x4x16x8xbf16>, tensor<2x4x192x8xbf16>, tensor<2x4x192x8xbf16>
}

// Sums that are computed again have the mask, too.
// CHECK-LABEL: axl.stage @apart
// CHECK: %[[MASK:.*]] = ax.binary add {{.*}} : tensor<1x1x1x64xf32>, tensor<f32>
// CHECK: ax.attention_gradient {{.*}} mask %[[MASK]]
axl.stage @apart(%q: tensor<2x4x16x8xbf16>, %k: tensor<2x4x64x8xbf16>, %m: tensor<1x1x1x64xf32>, %g: tensor<2x4x16x8xbf16>) {
  %d:3 = ax.attention_gradient %q, %k, %k, %q, %g mask %m : tensor<1x1x1x64xf32> scale 0.5 {product_type = bf16} : tensor<2x4x16x8xbf16>, tensor<2x4x64x8xbf16>, tensor<2x4x64x8xbf16>, tensor<2x4x16x8xbf16>, tensor<2x4x16x8xbf16> -> tensor<2x4x16x8xbf16>, tensor<2x4x64x8xbf16>, tensor<2x4x64x8xbf16>
  axl.yield %d#0, %d#1, %d#2 : tensor<2x4x16x8xbf16>, tensor<2x4x64x8xbf16>, tensor<2x4x64x8xbf16>
}

// A block of keys is whole, or there is no mask.
// CHECK-LABEL: axl.stage @whole
// CHECK-NOT: 1.024000e+03
axl.stage @whole(%q: tensor<2x4x16x8xbf16>, %k: tensor<2x4x128x8xbf16>, %s: tensor<2x4x64x8xbf16>, %m: tensor<1x1x1x128xf32>, %g: tensor<2x4x16x8xbf16>) {
  %d:3 = ax.attention_gradient %q, %k, %k, %q, %g mask %m : tensor<1x1x1x128xf32> scale 0.5 {product_type = bf16} : tensor<2x4x16x8xbf16>, tensor<2x4x128x8xbf16>, tensor<2x4x128x8xbf16>, tensor<2x4x16x8xbf16>, tensor<2x4x16x8xbf16> -> tensor<2x4x16x8xbf16>, tensor<2x4x128x8xbf16>, tensor<2x4x128x8xbf16>
  %e:3 = ax.attention_gradient %q, %s, %s, %q, %g scale 0.5 {product_type = bf16} : tensor<2x4x16x8xbf16>, tensor<2x4x64x8xbf16>, tensor<2x4x64x8xbf16>, tensor<2x4x16x8xbf16>, tensor<2x4x16x8xbf16> -> tensor<2x4x16x8xbf16>, tensor<2x4x64x8xbf16>, tensor<2x4x64x8xbf16>
  axl.yield %d#0, %e#0 : tensor<2x4x16x8xbf16>, tensor<2x4x16x8xbf16>
}
