// RUN: axopt-opt %s --axl-split-scans | FileCheck %s

// CHECK-LABEL: axl.stage @twice
// CHECK: %[[OWN:.*]] = ax.cumulative sum %{{.*}} dim 2 : tensor<8x1024x64xf32> -> tensor<8x1024x64xf32>
// CHECK: %[[SUMS:.*]] = ax.reduce sum %{{.*}} dims [2] : tensor<8x1024x64xf32> -> tensor<8x1024xf32>
// CHECK: ax.cumulative sum %{{.*}} dim 2 {exclusive} : tensor<8x16x64xf32> -> tensor<8x16x64xf32>
// CHECK: ax.reduce sum %{{.*}} dims [2] : tensor<8x16x64xf32> -> tensor<8x16xf32>
// CHECK: ax.cumulative sum %{{.*}} dim 1 {exclusive} : tensor<8x16xf32> -> tensor<8x16xf32>
// CHECK: ax.binary add %{{.*}} : tensor<8x16x64xf32>, tensor<8x16x1xf32> -> tensor<8x16x64xf32>
// CHECK: ax.binary add %[[OWN]], %{{.*}} : tensor<8x1024x64xf32>, tensor<8x1024x1xf32> -> tensor<8x1024x64xf32>
axl.stage @twice(%x: tensor<8x65536xf32>) {
  %0 = ax.cumulative sum %x dim 1 : tensor<8x65536xf32> -> tensor<8x65536xf32>
  axl.yield %0 : tensor<8x65536xf32>
}

// Of columns, backwards, without the element itself; bf16 is rounded in the end.
// CHECK-LABEL: axl.stage @columns
// CHECK: ax.cast %{{.*}} -> tensor<512x24xf32>
// CHECK: ax.cumulative sum %{{.*}} dim 1 {exclusive, reverse} : tensor<8x64x24xf32> -> tensor<8x64x24xf32>
// CHECK: ax.cumulative sum %{{.*}} dim 0 {exclusive, reverse} : tensor<8x24xf32> -> tensor<8x24xf32>
// CHECK: ax.cast %{{.*}} : tensor<512x24xf32> -> tensor<512x24xbf16>
axl.stage @columns(%x: tensor<512x24xbf16>) {
  %0 = ax.cumulative sum %x dim 0 {exclusive, reverse} : tensor<512x24xbf16> -> tensor<512x24xbf16>
  axl.yield %0 : tensor<512x24xbf16>
}

// What is worked out for an element is so for both that read it.
// CHECK-LABEL: axl.stage @counted
// CHECK-COUNT-2: ax.cast
// CHECK-NOT: ax.cast
axl.stage @counted(%x: tensor<4x512xi1>) {
  %i = ax.cast %x : tensor<4x512xi1> -> tensor<4x512xi64>
  %0 = ax.cumulative sum %i dim 1 : tensor<4x512xi64> -> tensor<4x512xi64>
  axl.yield %0 : tensor<4x512xi64>
}

// Behind what nothing divides zeros are added up.
// CHECK-LABEL: axl.stage @prime
// CHECK: ax.pad %{{.*}} low [0] high [21]
// CHECK: ax.cumulative sum %{{.*}} dim 1 : tensor<8x64xi64> -> tensor<8x64xi64>
// CHECK: ax.slice %{{.*}} : tensor<512xi64> -> tensor<491xi64>
axl.stage @prime(%x: tensor<491xi64>) {
  %0 = ax.cumulative sum %x dim 0 : tensor<491xi64> -> tensor<491xi64>
  axl.yield %0 : tensor<491xi64>
}

// What several operands are made of is made once more, too.
// CHECK-LABEL: axl.stage @powers
// CHECK-COUNT-6: ax.binary mul
// CHECK-NOT: ax.binary mul
axl.stage @powers(%x: tensor<512xf32>) {
  %a = ax.binary mul %x, %x : tensor<512xf32>, tensor<512xf32> -> tensor<512xf32>
  %b = ax.binary mul %a, %a : tensor<512xf32>, tensor<512xf32> -> tensor<512xf32>
  %c = ax.binary mul %b, %a : tensor<512xf32>, tensor<512xf32> -> tensor<512xf32>
  %0 = ax.cumulative sum %c dim 0 : tensor<512xf32> -> tensor<512xf32>
  axl.yield %0 : tensor<512xf32>
}

// Short rows, many rows, products that nothing divides, and those of floats, of
// which a part may overflow alone, stay whole.
// CHECK-LABEL: axl.stage @whole
// CHECK-COUNT-4: ax.cumulative
// CHECK-NOT: ax.cumulative
axl.stage @whole(%short: tensor<8x128xf32>, %many: tensor<262144x256xf32>, %prime: tensor<491xi32>, %floats: tensor<512xf32>) {
  %0 = ax.cumulative sum %short dim 1 : tensor<8x128xf32> -> tensor<8x128xf32>
  %1 = ax.cumulative sum %many dim 1 : tensor<262144x256xf32> -> tensor<262144x256xf32>
  %2 = ax.cumulative prod %prime dim 0 : tensor<491xi32> -> tensor<491xi32>
  %3 = ax.cumulative prod %floats dim 0 : tensor<512xf32> -> tensor<512xf32>
  axl.yield %0, %1, %2, %3 : tensor<8x128xf32>, tensor<262144x256xf32>, tensor<491xi32>, tensor<512xf32>
}
