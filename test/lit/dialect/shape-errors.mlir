// RUN: axopt-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{value of type 'tensor<2xf32>' for a result of type 'tensor<3xf32>'}}
%0 = ax.constant dense<0.0> : tensor<2xf32> -> tensor<3xf32>

// -----

// expected-error @+1 {{dim 1 is out of range of rank 1}}
%0 = ax.iota dim 1 : tensor<4xi64>

// -----

// expected-error @+1 {{cannot count in i1}}
%0 = ax.iota dim 0 : tensor<4xi1>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
// expected-error @+1 {{operand and result must have the same elements, got 'tensor<4xf32>' and 'tensor<3xf32>'}}
%0 = ax.reshape %x : tensor<4xf32> -> tensor<3xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
// expected-error @+1 {{operand and result must have the same elements, got 'tensor<4xf32>' and 'tensor<4xi32>'}}
%0 = ax.reshape %x : tensor<4xf32> -> tensor<4xi32>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
// expected-error @+2 {{[0, 0] is not a permutation of 2 dimensions}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.transpose %x [0, 0] : tensor<4x5xf32> -> tensor<4x5xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
// expected-error @+1 {{cannot broadcast 'tensor<4xf32>' to 'tensor<2x3xf32>'}}
%0 = ax.broadcast %x : tensor<4xf32> -> tensor<2x3xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
// expected-error @+1 {{needs one start and step per dimension and one element type}}
%0 = ax.slice %x starts [0, 0] steps [1] : tensor<4xf32> -> tensor<2xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
// expected-error @+1 {{step of dimension 0 is 0}}
%0 = ax.slice %x starts [0] steps [0] : tensor<4xf32> -> tensor<2xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
// expected-error @+1 {{dimension 0 reads 2 elements from 3 in steps of 2, but has 4}}
%0 = ax.slice %x starts [3] steps [2] : tensor<4xf32> -> tensor<2xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
// expected-error @+1 {{dimension 0 reads 3 elements from 1 in steps of -1, but has 4}}
%0 = ax.slice %x starts [1] steps [-1] : tensor<4xf32> -> tensor<3xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
// 65536 steps of 2^48 are 0 in 64 bits.
// expected-error @+1 {{dimension 0 reads 65537 elements from 0 in steps of 281474976710656, but has 4}}
%0 = ax.slice %x starts [0] steps [281474976710656] : tensor<4xf32> -> tensor<65537xf32>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
%i = ax.constant dense<0> : tensor<i64> -> tensor<i64>
// expected-error @+1 {{needs one start per dimension and one element type}}
%0 = ax.dynamic_slice %x [%i] : tensor<4x5xf32>, tensor<i64> -> tensor<2x5xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
%i = ax.iota dim 0 : tensor<1xi64>
// expected-error @+1 {{starts must be scalars}}
%0 = ax.dynamic_slice %x [%i] : tensor<4xf32>, tensor<1xi64> -> tensor<2xf32>

// -----

// expected-error @+2 {{needs at least one operand}}
// expected-error @+1 {{failed to infer returned types}}
%0 = "ax.concat"() <{dim = 0 : i64}> : () -> tensor<2xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
// expected-error @+2 {{dim 1 is out of range of rank 1}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.concat %x, %x dim 1 : tensor<4xf32>, tensor<4xf32> -> tensor<8xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
%y = ax.iota dim 0 : tensor<4xi32>
// expected-error @+2 {{operands do not fit: 'tensor<4xf32>' and 'tensor<4xi32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.concat %x, %y dim 0 : tensor<4xf32>, tensor<4xi32> -> tensor<8xf32>

// -----

%x = ax.iota dim 0 : tensor<4x2xf32>
%y = ax.iota dim 0 : tensor<4x3xf32>
// expected-error @+2 {{operands do not fit: 'tensor<4x2xf32>' and 'tensor<4x3xf32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.concat %x, %y dim 0 : tensor<4x2xf32>, tensor<4x3xf32> -> tensor<8x2xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
%v = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
// expected-error @+2 {{needs one low and high per dimension}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.pad %x value %v : tensor<f32> low [1, 1] high [0] : tensor<4xf32> -> tensor<5xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
// expected-error @+2 {{mode constant, and only it, has a value}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.pad %x low [1] high [0] : tensor<4xf32> -> tensor<5xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
%v = ax.constant dense<0> : tensor<i32> -> tensor<i32>
// expected-error @+2 {{value must be a scalar of the operand's element type}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.pad %x value %v : tensor<i32> low [1] high [0] : tensor<4xf32> -> tensor<5xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
%v = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
// expected-error @+2 {{dimension 0: low -1 and high 0 are not at least 0}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.pad %x value %v : tensor<f32> low [-1] high [0] : tensor<4xf32> -> tensor<3xf32>

// -----

%x = ax.iota dim 0 : tensor<0xf32>
// expected-error @+2 {{nothing to repeat in the empty dimension 0}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.pad %x low [1] high [0] {mode = #ax<pad_mode edge>} : tensor<0xf32> -> tensor<1xf32>

// -----

%x = ax.iota dim 0 : tensor<1xf32>
// expected-error @+2 {{nothing to reflect in dimension 0}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.pad %x low [1] high [0] {mode = #ax<pad_mode reflect>} : tensor<1xf32> -> tensor<2xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
%i = ax.iota dim 0 : tensor<2xi64>
// expected-error @+2 {{axis -1 is out of range of rank 1}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.gather %x[%i] axis -1 : tensor<4xf32>, tensor<2xi64> -> tensor<2xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
%i = ax.iota dim 0 : tensor<2xi64>
// expected-error @+2 {{axis 1 is out of range of rank 1}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.gather %x[%i] axis 1 : tensor<4xf32>, tensor<2xi64> -> tensor<2xf32>

// -----

%x = ax.iota dim 0 : tensor<0xf32>
%i = ax.iota dim 0 : tensor<2xi64>
// expected-error @+2 {{nothing to choose from in an empty dimension}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.gather %x[%i] axis 0 : tensor<0xf32>, tensor<2xi64> -> tensor<2xf32>

// -----

%x = ax.iota dim 0 : tensor<0xf32>
%i = ax.iota dim 0 : tensor<2xi64>
// expected-error @+2 {{nothing to choose from in an empty dimension}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.gather_elements %x[%i] axis 0 : tensor<0xf32>, tensor<2xi64> -> tensor<2xf32>

// -----

%x = ax.iota dim 0 : tensor<0xf32>
%i = ax.iota dim 0 : tensor<2x1xi64>
// expected-error @+2 {{nothing to choose from in an empty dimension}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.gather_nd %x[%i] batch_dims 0 : tensor<0xf32>, tensor<2x1xi64> -> tensor<2xf32>

// -----

%x = ax.iota dim 0 : tensor<4x3xf32>
%i = ax.iota dim 0 : tensor<2x4xi64>
// expected-error @+2 {{indices 'tensor<2x4xi64>' do not fit operand 'tensor<4x3xf32>' along axis 0}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.gather_elements %x[%i] axis 0 : tensor<4x3xf32>, tensor<2x4xi64> -> tensor<2x4xf32>

// -----

%x = ax.iota dim 0 : tensor<4x3xf32>
%i = ax.iota dim 0 : tensor<2x3xi64>
// expected-error @+2 {{indices 'tensor<2x3xi64>' do not fit operand 'tensor<4x3xf32>' with 0 batch dimensions}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.gather_nd %x[%i] batch_dims 0 : tensor<4x3xf32>, tensor<2x3xi64> -> tensor<2xf32>

// -----

%u = ax.iota dim 0 : tensor<3x4xf32>
%i = ax.iota dim 0 : tensor<2xi64>
// expected-error @+2 {{indices 'tensor<2xi64>' do not fit updates 'tensor<3x4xf32>' at axis 0}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.gather_gradient %u[%i] axis 0 size 8 : tensor<3x4xf32>, tensor<2xi64> -> tensor<8x4xf32>

// -----

%u = ax.iota dim 0 : tensor<2x4xf32>
%i = ax.iota dim 0 : tensor<2xi64>
// expected-error @+2 {{size -1 is out of range}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.gather_gradient %u[%i] axis 0 size -1 : tensor<2x4xf32>, tensor<2xi64> -> tensor<8x4xf32>

// -----

%u = ax.iota dim 0 : tensor<2x4xf32>
%i = ax.iota dim 0 : tensor<2xi64>
// expected-error @+2 {{nothing to choose from in an empty dimension}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.gather_gradient %u[%i] axis 0 size 0 : tensor<2x4xf32>, tensor<2xi64> -> tensor<0x4xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
%i = ax.iota dim 0 : tensor<2xi64>
%u = ax.iota dim 0 : tensor<3xf32>
// expected-error @+2 {{updates 'tensor<3xf32>' do not fit indices 'tensor<2xi64>' and operand 'tensor<4xf32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.scatter_elements set %x[%i], %u axis 0 : tensor<4xf32>, tensor<2xi64>, tensor<3xf32> -> tensor<4xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
%i = ax.iota dim 0 : tensor<1x2xi64>
%u = ax.iota dim 0 : tensor<1xf32>
// expected-error @+2 {{indices 'tensor<1x2xi64>' do not fit operand 'tensor<4xf32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.scatter_nd set %x[%i], %u : tensor<4xf32>, tensor<1x2xi64>, tensor<1xf32> -> tensor<4xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
%i = ax.iota dim 0 : tensor<2x1xi64>
%u = ax.iota dim 0 : tensor<3xf32>
// expected-error @+2 {{updates 'tensor<3xf32>' do not fit indices 'tensor<2x1xi64>' and operand 'tensor<4xf32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.scatter_nd set %x[%i], %u : tensor<4xf32>, tensor<2x1xi64>, tensor<3xf32> -> tensor<4xf32>
