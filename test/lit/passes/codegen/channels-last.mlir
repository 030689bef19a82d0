// RUN: axopt-opt %s --axl-join-epilogues --axl-channels-last --axl-merge-equal | FileCheck %s

// RUN: axopt-opt %s --axl-join-epilogues="gpu=true" --axl-channels-last="cudnn=true" --axl-merge-equal | FileCheck %s --check-prefix=CUDNN

// Between the two nothing is turned; the residual is read as the result is
// written, what works on elements is done in between, and the gather has its
// channels in the last dimension.
// CHECK: axl.stage @s(%[[X:.*]]: tensor<1x4x5x6xf32>, %[[W:.*]]: tensor<4x4x1x1xf32>)
// CHECK: %[[IN:.*]] = ax.transpose %[[X]] [0, 2, 3, 1] : tensor<1x4x5x6xf32> -> tensor<1x5x6x4xf32>
// CHECK: %[[X2:.*]] = ax.transpose %[[IN]] [0, 3, 1, 2]
// CHECK: %[[A:.*]] = axl.library(%[[X2]], %[[W]]) {
// CHECK: ax.conv
// CHECK: ax.transpose %{{.*}} [0, 2, 3, 1]
// CHECK: } : (tensor<1x4x5x6xf32>, tensor<4x4x1x1xf32>) -> tensor<1x5x6x4xf32>
// CHECK: %[[E:.*]] = ax.unary exp %[[A]] : tensor<1x5x6x4xf32>
// CHECK: %[[E2:.*]] = ax.transpose %[[E]] [0, 3, 1, 2]
// CHECK: %[[B:.*]] = axl.library(%[[E2]], %[[W]], %[[E]]) {
// CHECK: ^bb0(%{{.*}}: tensor<1x4x5x6xf32>, %{{.*}}: tensor<4x4x1x1xf32>, %[[R:.*]]: tensor<1x5x6x4xf32>)
// CHECK: %[[R2:.*]] = ax.transpose %[[R]] [0, 3, 1, 2]
// CHECK: %[[C:.*]] = ax.conv
// CHECK: ax.binary add %[[C]], %[[R2]]
// CHECK: ax.transpose %{{.*}} [0, 2, 3, 1]
// CHECK: %[[G:.*]] = axl.all_gather %[[B]] dims [3] over {col} : tensor<1x5x6x4xf32> -> tensor<1x5x6x8xf32>
// CHECK: %[[OUT:.*]] = ax.transpose %[[G]] [0, 3, 1, 2]
// CHECK: axl.yield %[[OUT]]
// cuDNN has kernels for f32 as it is.
// CUDNN: axl.stage @s
// CUDNN-NOT: ax.transpose
// CUDNN: axl.yield
axl.stage @s(%x: tensor<1x4x5x6xf32>, %w: tensor<4x4x1x1xf32>) {
  %0 = ax.conv %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x4x5x6xf32>, tensor<4x4x1x1xf32> -> tensor<1x4x5x6xf32>
  %1 = ax.unary exp %0 : tensor<1x4x5x6xf32> -> tensor<1x4x5x6xf32>
  %c = ax.conv %1, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x4x5x6xf32>, tensor<4x4x1x1xf32> -> tensor<1x4x5x6xf32>
  %2 = ax.binary add %c, %1 : tensor<1x4x5x6xf32>, tensor<1x4x5x6xf32> -> tensor<1x4x5x6xf32>
  %3 = axl.all_gather %2 dims [1] over {col} : tensor<1x4x5x6xf32> -> tensor<1x8x5x6xf32>
  axl.yield %3 : tensor<1x8x5x6xf32>
}

// Of 16 bits it has weights so, too: who rounds them turns them, once for both
// convolutions, and their gradient comes so.
// CUDNN: axl.stage @narrow(%[[X:.*]]: tensor<1x4x5x6xbf16>, %[[W:.*]]: tensor<4x4x3x3xf32>)
// CUDNN: %[[N:.*]] = ax.cast %[[W]]
// CUDNN-DAG: %[[XL:.*]] = ax.transpose %[[X]] [0, 2, 3, 1]
// CUDNN-DAG: %[[XI:.*]] = ax.transpose %[[XL]] [0, 3, 1, 2]
// CUDNN-DAG: %[[WL:.*]] = ax.transpose %[[N]] [0, 2, 3, 1] : tensor<4x4x3x3xbf16> -> tensor<4x3x3x4xbf16>
// CUDNN-DAG: %[[WI:.*]] = ax.transpose %[[WL]] [0, 3, 1, 2]
// CUDNN: %[[Y:.*]] = axl.library(%[[XI]], %[[WI]]) {
// CUDNN: ax.conv
// CUDNN: %[[YI:.*]] = ax.transpose %[[Y]] [0, 3, 1, 2]
// CUDNN: axl.library(%[[YI]], %[[WI]]) {
// CUDNN: ax.conv_transpose
// CUDNN: %[[G:.*]] = axl.library(%[[XI]], %[[YI]]) {
// CUDNN: ax.conv_weight_gradient
// CUDNN: ax.transpose %{{.*}} [0, 2, 3, 1]
// CUDNN: } : {{.*}} -> tensor<4x3x3x4xbf16>
// CUDNN: %[[F:.*]] = ax.cast %[[G]] : tensor<4x3x3x4xbf16> -> tensor<4x3x3x4xf32>
// CUDNN: ax.transpose %[[F]] [0, 3, 1, 2]
axl.stage @narrow(%x: tensor<1x4x5x6xbf16>, %w: tensor<4x4x3x3xf32>) {
  %n = ax.cast %w : tensor<4x4x3x3xf32> -> tensor<4x4x3x3xbf16>
  %0 = ax.conv %x, %n strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] : tensor<1x4x5x6xbf16>, tensor<4x4x3x3xbf16> -> tensor<1x4x5x6xbf16>
  %1 = ax.conv_transpose %0, %n strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] output_pads [0, 0] : tensor<1x4x5x6xbf16>, tensor<4x4x3x3xbf16> -> tensor<1x4x5x6xbf16>
  %2 = ax.conv_weight_gradient %x, %0 kernel [3, 3] strides [1, 1] pads [1, 1, 1, 1] dilations [1, 1] : tensor<1x4x5x6xbf16>, tensor<1x4x5x6xbf16> -> tensor<4x4x3x3xbf16>
  %3 = ax.cast %2 : tensor<4x4x3x3xbf16> -> tensor<4x4x3x3xf32>
  axl.yield %1, %3 : tensor<1x4x5x6xbf16>, tensor<4x4x3x3xf32>
}

// Parts of a batch are cut, and joined, in the order of memory, too; a row of
// all that an image has is not.
// CHECK: axl.stage @parts
// CHECK: %[[C:.*]] = axl.library
// CHECK: %[[CUT:.*]] = ax.reshape %[[C]] : tensor<6x5x6x4xf32> -> tensor<2x3x5x6x4xf32>
// CHECK: %[[S:.*]] = ax.reduce sum %[[CUT]] dims [1, 2, 3] keep_dims : tensor<2x3x5x6x4xf32> -> tensor<2x1x1x1x4xf32>
// CHECK: %[[D:.*]] = ax.binary sub %[[CUT]], %[[S]]
// CHECK: %[[JOINED:.*]] = ax.reshape %[[D]] : tensor<2x3x5x6x4xf32> -> tensor<6x5x6x4xf32>
// CHECK: %[[BACK:.*]] = ax.transpose %[[JOINED]] [0, 3, 1, 2]
// CHECK: %[[ROWS:.*]] = ax.reshape %[[BACK]] : tensor<6x4x5x6xf32> -> tensor<6x120xf32>
// CHECK: axl.yield %[[BACK]], %[[ROWS]]
axl.stage @parts(%x: tensor<6x4x5x6xf32>, %w: tensor<4x4x1x1xf32>) {
  %0 = ax.conv %x, %w strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<6x4x5x6xf32>, tensor<4x4x1x1xf32> -> tensor<6x4x5x6xf32>
  %1 = ax.reshape %0 : tensor<6x4x5x6xf32> -> tensor<2x3x4x5x6xf32>
  %2 = ax.reduce sum %1 dims [1, 3, 4] keep_dims : tensor<2x3x4x5x6xf32> -> tensor<2x1x4x1x1xf32>
  %3 = ax.binary sub %1, %2 : tensor<2x3x4x5x6xf32>, tensor<2x1x4x1x1xf32> -> tensor<2x3x4x5x6xf32>
  %4 = ax.reshape %3 : tensor<2x3x4x5x6xf32> -> tensor<6x4x5x6xf32>
  %5 = ax.reshape %4 : tensor<6x4x5x6xf32> -> tensor<6x120xf32>
  axl.yield %4, %5 : tensor<6x4x5x6xf32>, tensor<6x120xf32>
}
