// RUN: axopt-opt %s -split-input-file -verify-diagnostics

%x = ax.iota dim 0 : tensor<4x5xf32>
// expected-error @+2 {{dims must be sorted, unique and below rank 2}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.reduce sum %x dims [1, 0] : tensor<4x5xf32> -> tensor<f32>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
// expected-error @+2 {{dim 2 is out of range of rank 2}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.arg_reduce %x dim 2 : tensor<4x5xf32> -> tensor<4x5xi64>

// -----

%x = ax.iota dim 0 : tensor<4x0xf32>
// expected-error @+2 {{dim 1 is empty: nothing is largest or smallest}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.arg_reduce %x dim 1 : tensor<4x0xf32> -> tensor<4x1xi64>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
// expected-error @+2 {{dim -1 is out of range of rank 2}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.cumulative sum %x dim -1 : tensor<4x5xf32> -> tensor<4x5xf32>

// -----

%x = ax.constant dense<1.0> : tensor<f32> -> tensor<f32>
// expected-error @+2 {{a number is no row}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.fake_quantize %x : tensor<f32> -> tensor<f32>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
// expected-error @+2 {{dim 2 is out of range of rank 2}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.softmax %x dim 2 : tensor<4x5xf32> -> tensor<4x5xf32>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
// expected-error @+2 {{dim 2 is out of range of rank 2}}
// expected-error @+1 {{failed to infer returned types}}
%0, %1 = ax.top_k %x k 1 dim 2 : tensor<4x5xf32> -> tensor<4x1xf32>, tensor<4x1xi64>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
// expected-error @+2 {{k = 6 of a dimension of 5}}
// expected-error @+1 {{failed to infer returned types}}
%0, %1 = ax.top_k %x k 6 dim 1 : tensor<4x5xf32> -> tensor<4x6xf32>, tensor<4x6xi64>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
%s = ax.iota dim 0 : tensor<4xf32>
// expected-error @+2 {{scale and bias must have the shape of the normalised dimensions, got 'tensor<4xf32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.layer_norm %x scale %s : tensor<4xf32> axis 1 epsilon 1.0e-5 : tensor<4x5xf32> -> tensor<4x5xf32>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
%s = ax.iota dim 0 : tensor<5xf32>
// expected-error @+2 {{dim 2 is out of range of rank 2}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.rms_norm %x scale %s : tensor<5xf32> axis 2 epsilon 1.0e-5 : tensor<4x5xf32> -> tensor<4x5xf32>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
%s = ax.iota dim 0 : tensor<5xf64>
// expected-error @+2 {{element types differ: 'f32' and 'f64'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.layer_norm %x scale %s : tensor<5xf64> axis 1 epsilon 1.0e-5 : tensor<4x5xf32> -> tensor<4x5xf32>

// -----

%b = ax.iota dim 0 : tensor<1x5x4xf32>
%s = ax.iota dim 0 : tensor<1x2x4xf32>
// expected-error @+2 {{boxes 'tensor<1x5x4xf32>' and scores 'tensor<1x2x4xf32>' do not fit}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.non_max_suppression %b, %s limit 2 iou_threshold 0.5 : tensor<1x5x4xf32>, tensor<1x2x4xf32> -> tensor<1x2x2xi64>

// -----

%b = ax.iota dim 0 : tensor<1x5x4xf32>
%s = ax.iota dim 0 : tensor<1x2x5xf32>
// expected-error @+2 {{limit 6 of 5 boxes}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.non_max_suppression %b, %s limit 6 iou_threshold 0.5 : tensor<1x5x4xf32>, tensor<1x2x5xf32> -> tensor<1x2x6xi64>

// -----

%c = ax.iota dim 0 : tensor<4xi64>
// expected-error @+2 {{limit -1 is not 0 to 2147483646}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.at_most %c limit -1 : tensor<4xi64> -> tensor<4xi64>
