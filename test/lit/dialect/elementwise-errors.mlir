// RUN: axopt-opt %s -split-input-file -verify-diagnostics

%x = ax.iota dim 0 : tensor<4xf32>
// expected-error @+2 {{logical_not needs i1, got 'f32'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.unary logical_not %x : tensor<4xf32> -> tensor<4xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
// expected-error @+2 {{bit_not needs integers, got 'f32'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.unary bit_not %x : tensor<4xf32> -> tensor<4xf32>

// -----

%x = ax.constant dense<true> : tensor<4xi1> -> tensor<4xi1>
// expected-error @+2 {{neg needs numbers, got 'i1'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.unary neg %x : tensor<4xi1> -> tensor<4xi1>

// -----

%x = ax.iota dim 0 : tensor<4xi32>
// expected-error @+2 {{exp needs floating point, got 'i32'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.unary exp %x : tensor<4xi32> -> tensor<4xi32>

// -----

%x = ax.iota dim 0 : tensor<4xi32>
// expected-error @+2 {{is_nan needs floating point, got 'i32'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.unary is_nan %x : tensor<4xi32> -> tensor<4xi1>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
// expected-error @+2 {{op inferred type(s) 'tensor<4xi1>' are incompatible with return type(s) of operation 'tensor<4xf32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.unary is_nan %x : tensor<4xf32> -> tensor<4xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
// expected-error @+2 {{shl needs integers, got 'f32'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.binary shl %x, %x : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>

// -----

%x = ax.iota dim 0 : tensor<4xi32>
// expected-error @+2 {{logical_and needs i1, got 'i32'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.binary logical_and %x, %x : tensor<4xi32>, tensor<4xi32> -> tensor<4xi32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
%y = ax.iota dim 0 : tensor<4xi32>
// expected-error @+2 {{element types differ: 'f32' and 'i32'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.binary add %x, %y : tensor<4xf32>, tensor<4xi32> -> tensor<4xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
%y = ax.iota dim 0 : tensor<3xf32>
// expected-error @+2 {{shapes do not broadcast: 'tensor<4xf32>' and 'tensor<3xf32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.binary add %x, %y : tensor<4xf32>, tensor<3xf32> -> tensor<4xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
%y = ax.iota dim 0 : tensor<3xf32>
// expected-error @+2 {{shapes do not broadcast: 'tensor<4xf32>' and 'tensor<3xf32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.compare lt %x, %y : tensor<4xf32>, tensor<3xf32> -> tensor<4xi1>

// -----

%x = ax.iota dim 0 : tensor<1099511627776x1xi8>
%y = ax.iota dim 0 : tensor<1x1099511627776xi8>
// expected-error @+2 {{result would be larger than 4 TiB}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.binary add %x, %y : tensor<1099511627776x1xi8>, tensor<1x1099511627776xi8> -> tensor<1099511627776x1099511627776xi8>

// -----

%c = ax.constant dense<true> : tensor<3xi1> -> tensor<3xi1>
%x = ax.iota dim 0 : tensor<4xf32>
// expected-error @+2 {{condition 'tensor<3xi1>' does not broadcast with 'tensor<4xf32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.select %c, %x, %x : tensor<3xi1>, tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
// expected-error @+1 {{operand and result differ in shape}}
%0 = ax.cast %x : tensor<4xf32> -> tensor<2x2xi32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
%s = ax.constant dense<1> : tensor<i64> -> tensor<i64>
// expected-error @+2 {{rate 1.500000e+00 is not between 0 and 1}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.dropout %x seed %s step %s rate 1.5 id 0 : tensor<4xf32>, tensor<i64>, tensor<i64> -> tensor<4xf32>

// -----

%x = ax.iota dim 0 : tensor<4xf32>
%s = ax.constant dense<1> : tensor<i64> -> tensor<i64>
%t = ax.constant dense<1> : tensor<1xi64> -> tensor<1xi64>
// expected-error @+2 {{seed and step are i64 scalars, not 'tensor<1xi64>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.dropout %x seed %t step %s rate 0.5 id 0 : tensor<4xf32>, tensor<1xi64>, tensor<i64> -> tensor<4xf32>

// -----

%s = ax.constant dense<1> : tensor<i64> -> tensor<i64>
// expected-error @+1 {{gives f32, not 'f16'}}
%0 = ax.uniform seed %s step %s id 0 : tensor<i64>, tensor<i64> -> tensor<4xf16>

// -----

%s = ax.constant dense<1> : tensor<i64> -> tensor<i64>
%t = ax.constant dense<1> : tensor<1xi64> -> tensor<1xi64>
// expected-error @+1 {{seed and step are i64 scalars, not 'tensor<1xi64>'}}
%0 = ax.uniform seed %s step %t id 0 : tensor<i64>, tensor<1xi64> -> tensor<4xf32>
