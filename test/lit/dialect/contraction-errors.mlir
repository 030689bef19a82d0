// RUN: axopt-opt %s -split-input-file -verify-diagnostics

%x = ax.iota dim 0 : tensor<4x5xf32>
%y = ax.iota dim 0 : tensor<5x6xi32>
// expected-error @+2 {{element types differ: 'f32' and 'i32'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.dot %x, %y batch [] x [] contract [1] x [0] : tensor<4x5xf32>, tensor<5x6xi32> -> tensor<4x6xf32>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
%e = ax.cast %x : tensor<4x5xf32> -> tensor<4x5xf8E4M3FN>
%h = ax.cast %x : tensor<4x5xf32> -> tensor<4x5xf16>
// expected-error @+2 {{element types differ: 'f8E4M3FN' and 'f16'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.dot %e, %h batch [] x [] contract [1] x [1] : tensor<4x5xf8E4M3FN>, tensor<4x5xf16> -> tensor<4x4xf32>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
%e = ax.cast %x : tensor<4x5xf32> -> tensor<4x5xf8E4M3FN>
%g = ax.cast %x : tensor<4x5xf32> -> tensor<4x5xf8E5M2>
// expected-error @+2 {{'ax.dot' op inferred type(s) 'tensor<4x4xbf16>' are incompatible with return type(s) of operation 'tensor<4x4xf8E5M2>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.dot %e, %g batch [] x [] contract [1] x [1] : tensor<4x5xf8E4M3FN>, tensor<4x5xf8E5M2> -> tensor<4x4xf8E5M2>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
%y = ax.iota dim 0 : tensor<5x6xf32>
// expected-error @+2 {{as many lhs as rhs dimensions must be contracted}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.dot %x, %y batch [] x [] contract [1] x [] : tensor<4x5xf32>, tensor<5x6xf32> -> tensor<4x6xf32>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
%y = ax.iota dim 0 : tensor<5x6xf32>
// expected-error @+2 {{as many lhs as rhs dimensions must be batch}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.dot %x, %y batch [0] x [] contract [1] x [0] : tensor<4x5xf32>, tensor<5x6xf32> -> tensor<4x6xf32>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
%y = ax.iota dim 0 : tensor<5x6xf32>
// expected-error @+2 {{dimension pair 2 x 0 is out of range or used twice}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.dot %x, %y batch [] x [] contract [2] x [0] : tensor<4x5xf32>, tensor<5x6xf32> -> tensor<4x6xf32>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
%y = ax.iota dim 0 : tensor<5x6xf32>
// expected-error @+2 {{sizes of dimension pair 0 x 0 differ: 4 and 5}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.dot %x, %y batch [] x [] contract [0] x [0] : tensor<4x5xf32>, tensor<5x6xf32> -> tensor<5x6xf32>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
%w = ax.iota dim 0 : tensor<5xf32>
// expected-error @+2 {{needs x of rank >= 1 and w of rank 2, got 'tensor<4x5xf32>' and 'tensor<5xf32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.linear %x, %w : tensor<4x5xf32>, tensor<5xf32> -> tensor<4xf32>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
%w = ax.iota dim 0 : tensor<6x7xf32>
// expected-error @+2 {{x has 5 features, the weight takes 6}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.linear %x, %w : tensor<4x5xf32>, tensor<6x7xf32> -> tensor<4x7xf32>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
%w = ax.iota dim 0 : tensor<5x7xf32>
%b = ax.iota dim 0 : tensor<7xf32>
// expected-error @+1 {{has a bias, as plans had before they were ax.binary operations: make the plan again}}
%0 = ax.linear %x, %w bias %b : tensor<7xf32> : tensor<4x5xf32>, tensor<5x7xf32> -> tensor<4x7xf32>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
%w = ax.iota dim 0 : tensor<5x7xf32>
%r = ax.iota dim 0 : tensor<7xf32>
// expected-error @+1 {{has a residual, as plans had before they were ax.binary operations: make the plan again}}
%0 = ax.linear %x, %w residual %r : tensor<7xf32> : tensor<4x5xf32>, tensor<5x7xf32> -> tensor<4x7xf32>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
%w = ax.iota dim 0 : tensor<5x7xf64>
// expected-error @+2 {{element types differ: 'f32' and 'f64'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.linear %x, %w : tensor<4x5xf32>, tensor<5x7xf64> -> tensor<4x7xf32>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
%w = ax.iota dim 0 : tensor<5x7xf32>
// expected-error @+1 {{has an activation, as plans had before they were ax.unary operations: make the plan again}}
%0 = ax.linear %x, %w {activation = #ax<unary_kind relu>} : tensor<4x5xf32>, tensor<5x7xf32> -> tensor<4x7xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%w = ax.iota dim 0 : tensor<6x4x3xf32>
// expected-error @+1 {{has an activation, as plans had before}}
%0 = ax.conv %x, %w strides [1] pads [0, 0] dilations [1] {activation = #ax<unary_kind relu>} : tensor<1x4x9xf32>, tensor<6x4x3xf32> -> tensor<1x6x7xf32>

// -----

%x = ax.iota dim 0 : tensor<1x1x9xf32>
%w = ax.iota dim 0 : tensor<1x1x65537xf32>
// 65536 steps of 2^48 are 0 in 64 bits.
// expected-error @+2 {{the kernel of 281474976710657 is larger than the padded dimension 2 of 9}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.conv %x, %w strides [1] pads [0, 0] dilations [281474976710655] : tensor<1x1x9xf32>, tensor<1x1x65537xf32> -> tensor<1x1x9xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%w = ax.iota dim 0 : tensor<6x4x3xf32>
// expected-error @+2 {{needs 1 strides and dilations and 2 pads, got 2, 1, 2}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.conv %x, %w strides [1, 1] pads [0, 0] dilations [1] : tensor<1x4x9xf32>, tensor<6x4x3xf32> -> tensor<1x6x7xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%w = ax.iota dim 0 : tensor<6x4x3xf32>
// expected-error @+2 {{strides and dilations are at least 1}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.conv %x, %w strides [0] pads [0, 0] dilations [1] : tensor<1x4x9xf32>, tensor<6x4x3xf32> -> tensor<1x6x7xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%w = ax.iota dim 0 : tensor<6x4x3xf32>
// expected-error @+2 {{pads are out of range}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.conv %x, %w strides [1] pads [0, 281474976710657] dilations [1] : tensor<1x4x9xf32>, tensor<6x4x3xf32> -> tensor<1x6x7xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xi32>
%w = ax.iota dim 0 : tensor<6x4x3xi32>
// expected-error @+2 {{x has floats, or integers of eight bits, got 'tensor<1x4x9xi32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.conv %x, %w strides [1] pads [0, 0] dilations [1] : tensor<1x4x9xi32>, tensor<6x4x3xi32> -> tensor<1x6x7xi32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%w = ax.iota dim 0 : tensor<6x4xf32>
// expected-error @+2 {{needs x and w of the same rank >= 3, got 'tensor<1x4x9xf32>' and 'tensor<6x4xf32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.conv %x, %w strides [1] pads [0, 0] dilations [1] : tensor<1x4x9xf32>, tensor<6x4xf32> -> tensor<1x6x7xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%w = ax.iota dim 0 : tensor<6x3x3xf32>
// expected-error @+2 {{channels do not fit: x has 4, w takes 3 in 1 groups and gives 6}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.conv %x, %w strides [1] pads [0, 0] dilations [1] : tensor<1x4x9xf32>, tensor<6x3x3xf32> -> tensor<1x6x7xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%w = ax.iota dim 0 : tensor<6x4x3xf32>
%b = ax.iota dim 0 : tensor<6xf32>
// expected-error @+1 {{has a bias, as plans had before they were ax.binary operations: make the plan again}}
%0 = ax.conv %x, %w bias %b : tensor<6xf32> strides [1] pads [0, 0] dilations [1] : tensor<1x4x9xf32>, tensor<6x4x3xf32> -> tensor<1x6x7xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x2xf32>
%w = ax.iota dim 0 : tensor<6x4x3xf32>
// expected-error @+2 {{the kernel of 3 is larger than the padded dimension 2 of 2}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.conv %x, %w strides [1] pads [0, 0] dilations [1] : tensor<1x4x2xf32>, tensor<6x4x3xf32> -> tensor<1x6x0xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%w = ax.iota dim 0 : tensor<6x4x3xf32>
%r = ax.iota dim 0 : tensor<1x6x9xf32>
// expected-error @+1 {{has a residual, as plans had before they were ax.binary operations: make the plan again}}
%0 = ax.conv %x, %w residual %r : tensor<1x6x9xf32> strides [1] pads [0, 0] dilations [1] : tensor<1x4x9xf32>, tensor<6x4x3xf32> -> tensor<1x6x7xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%w = ax.iota dim 0 : tensor<6x4x3xf16>
// expected-error @+2 {{element types differ: 'f32' and 'f16'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.conv %x, %w strides [1] pads [0, 0] dilations [1] : tensor<1x4x9xf32>, tensor<6x4x3xf16> -> tensor<1x6x7xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%w = ax.iota dim 0 : tensor<4x6xf32>
// expected-error @+2 {{needs x and w of the same rank >= 3, got 'tensor<1x4x9xf32>' and 'tensor<4x6xf32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.conv_transpose %x, %w strides [1] pads [0, 0] dilations [1] output_pads [0] : tensor<1x4x9xf32>, tensor<4x6xf32> -> tensor<1x6x11xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%w = ax.iota dim 0 : tensor<4x6x3xf32>
// expected-error @+2 {{needs 1 output pads in range}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.conv_transpose %x, %w strides [1] pads [0, 0] dilations [1] output_pads [] : tensor<1x4x9xf32>, tensor<4x6x3xf32> -> tensor<1x6x11xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%w = ax.iota dim 0 : tensor<3x6x3xf32>
// expected-error @+2 {{channels do not fit: x has 4, w takes 3 in 1 groups}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.conv_transpose %x, %w strides [1] pads [0, 0] dilations [1] output_pads [0] : tensor<1x4x9xf32>, tensor<3x6x3xf32> -> tensor<1x6x11xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%w = ax.iota dim 0 : tensor<4x6x3xf32>
%b = ax.iota dim 0 : tensor<6xf32>
// expected-error @+1 {{has a bias, as plans had before they were ax.binary operations: make the plan again}}
%0 = ax.conv_transpose %x, %w bias %b : tensor<6xf32> strides [1] pads [0, 0] dilations [1] output_pads [0] : tensor<1x4x9xf32>, tensor<4x6x3xf32> -> tensor<1x6x11xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%w = ax.iota dim 0 : tensor<4x6x3xf32>
// expected-error @+2 {{result would have a dimension of -9 elements}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.conv_transpose %x, %w strides [1] pads [10, 10] dilations [1] output_pads [0] : tensor<1x4x9xf32>, tensor<4x6x3xf32> -> tensor<1x6x0xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%w = ax.iota dim 0 : tensor<4x6x3xf64>
// expected-error @+2 {{element types differ: 'f32' and 'f64'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.conv_transpose %x, %w strides [1] pads [0, 0] dilations [1] output_pads [0] : tensor<1x4x9xf32>, tensor<4x6x3xf64> -> tensor<1x6x11xf32>

// -----

%x = ax.iota dim 0 : tensor<4x9xf32>
// expected-error @+2 {{needs a tensor of rank >= 3, got 'tensor<4x9xf32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.pool max %x kernel [2] strides [1] pads [0, 0] dilations [1] ceil_extra [0] : tensor<4x9xf32> -> tensor<4x8xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
// expected-error @+2 {{needs 1 kernel and ceil_extra sizes}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.pool max %x kernel [2, 2] strides [1] pads [0, 0] dilations [1] ceil_extra [0] : tensor<1x4x9xf32> -> tensor<1x4x8xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
// expected-error @+2 {{kernel sizes are at least 1, ceil_extra sizes at least 0}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.pool max %x kernel [0] strides [1] pads [0, 0] dilations [1] ceil_extra [0] : tensor<1x4x9xf32> -> tensor<1x4x8xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
// expected-error @+2 {{the window of 10 is larger than the padded dimension 2 of 9}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.pool max %x kernel [10] strides [1] pads [0, 0] dilations [1] ceil_extra [0] : tensor<1x4x9xf32> -> tensor<1x4x8xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xi32>
// expected-error @+2 {{a mean needs floating point, got 'i32'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.pool avg %x kernel [1] strides [1] pads [2, 0] dilations [1] ceil_extra [0] : tensor<1x4x9xi32> -> tensor<1x4x11xi32>

// -----

%q = ax.iota dim 0 : tensor<4x8x8xf32>
%k = ax.iota dim 0 : tensor<4x8x8xf32>
%v = ax.reshape %k : tensor<4x8x8xf32> -> tensor<4x8x8xf32>
// expected-error @+2 {{needs q, k, v of rank 4}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.attention %q, %k, %v scale 1.0 : tensor<4x8x8xf32>, tensor<4x8x8xf32>, tensor<4x8x8xf32> -> tensor<4x8x8xf32>

// -----

%q = ax.iota dim 0 : tensor<1x4x8x8xf32>
%k = ax.iota dim 0 : tensor<1x4x8x16xf32>
%v = ax.iota dim 0 : tensor<1x4x8x8xf32>
// expected-error @+2 {{q, k, v do not fit: 'tensor<1x4x8x8xf32>', 'tensor<1x4x8x16xf32>', 'tensor<1x4x8x8xf32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.attention %q, %k, %v scale 1.0 : tensor<1x4x8x8xf32>, tensor<1x4x8x16xf32>, tensor<1x4x8x8xf32> -> tensor<1x4x8x8xf32>

// -----

%q = ax.iota dim 0 : tensor<1x4x8x8xf32>
%k = ax.iota dim 0 : tensor<1x3x8x8xf32>
%v = ax.iota dim 0 : tensor<1x3x8x8xf32>
// expected-error @+2 {{4 heads are no multiple of 3 key/value heads}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.attention %q, %k, %v scale 1.0 : tensor<1x4x8x8xf32>, tensor<1x3x8x8xf32>, tensor<1x3x8x8xf32> -> tensor<1x4x8x8xf32>

// -----

%q = ax.iota dim 0 : tensor<1x4x8x8xf32>
// expected-error @+2 {{rows with nothing to attend to give 0 or a mean, not both}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.attention %q, %q, %q scale 1.0 {empty_rows_mean, empty_rows_zero} : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32> -> tensor<1x4x8x8xf32>

// -----

%q = ax.iota dim 0 : tensor<1x4x8x8xf32>
// expected-error @+2 {{window 0 is not from 1 to 2^31 - 1}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.attention %q, %q, %q scale 1.0 {causal, window = 0 : i64} : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32> -> tensor<1x4x8x8xf32>

// -----

%q = ax.iota dim 0 : tensor<1x4x8x8xf32>
// expected-error @+2 {{a window ends where causal or a mask of i64 says}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.attention %q, %q, %q scale 1.0 {window = 3 : i64} : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32> -> tensor<1x4x8x8xf32>

// -----

%q = ax.iota dim 0 : tensor<1x4x8x8xf32>
%k = ax.iota dim 0 : tensor<1x4x8x8xf32>
%v = ax.iota dim 0 : tensor<1x4x8x8xf32>
%m = ax.iota dim 0 : tensor<1x4x8x9xf32>
// expected-error @+2 {{mask 'tensor<1x4x8x9xf32>' does not broadcast to [1, 4, 8, 8]}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.attention %q, %k, %v mask %m : tensor<1x4x8x9xf32> scale 1.0 : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32> -> tensor<1x4x8x8xf32>

// -----

%q = ax.iota dim 0 : tensor<1x4x8x8xf32>
%k = ax.iota dim 0 : tensor<1x4x8x8xf32>
%v = ax.iota dim 0 : tensor<1x4x8x8xf32>
%m = ax.iota dim 0 : tensor<1x4x8x8xi64>
// expected-error @+2 {{mask 'tensor<1x4x8x8xi64>' is neither i1 nor f32 nor 'f32', nor i64 and the same for all queries}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.attention %q, %k, %v mask %m : tensor<1x4x8x8xi64> scale 1.0 : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32> -> tensor<1x4x8x8xf32>

// -----

%q = ax.iota dim 0 : tensor<1x4x8x8xf32>
%k = ax.iota dim 0 : tensor<1x4x8x8xf32>
%v = ax.iota dim 0 : tensor<1x4x8x8xf32>
%m = ax.iota dim 0 : tensor<1x4x8x8xf64>
// expected-error @+2 {{mask 'tensor<1x4x8x8xf64>' is neither i1 nor f32 nor 'f32', nor i64 and the same for all queries}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.attention %q, %k, %v mask %m : tensor<1x4x8x8xf64> scale 1.0 : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32> -> tensor<1x4x8x8xf32>

// -----

%q = ax.iota dim 0 : tensor<1x4x8x8xf32>
%k = ax.iota dim 0 : tensor<1x4x8x8xf16>
%v = ax.iota dim 0 : tensor<1x4x8x8xf32>
// expected-error @+2 {{element types differ: 'f32' and 'f16'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.attention %q, %k, %v scale 1.0 : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf16>, tensor<1x4x8x8xf32> -> tensor<1x4x8x8xf32>

// -----

%q = ax.iota dim 0 : tensor<1x4x8x8xf32>
%k = ax.iota dim 0 : tensor<1x3x8x8xf32>
// expected-error @+2 {{4 heads are no multiple of 3 key/value heads}}
// expected-error @+1 {{failed to infer returned types}}
%0, %1, %2 = ax.attention_gradient %q, %k, %k, %q, %q scale 1.0 : tensor<1x4x8x8xf32>, tensor<1x3x8x8xf32>, tensor<1x3x8x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32> -> tensor<1x4x8x8xf32>, tensor<1x3x8x8xf32>, tensor<1x3x8x8xf32>

// -----

%q = ax.iota dim 0 : tensor<1x4x8x8xf32>
%v = ax.iota dim 0 : tensor<1x4x8x6xf32>
// expected-error @+2 {{'tensor<1x4x8x8xf32>' is not of the attention of 'tensor<1x4x8x8xf32>' to 'tensor<1x4x8x6xf32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0, %1, %2 = ax.attention_gradient %q, %q, %v, %q, %q scale 1.0 : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x6xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32> -> tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x6xf32>

// -----

%q = ax.iota dim 0 : tensor<1x4x8x8xf32>
%g = ax.iota dim 0 : tensor<1x4x8x8xf16>
// expected-error @+2 {{element types differ: 'f32' and 'f16'}}
// expected-error @+1 {{failed to infer returned types}}
%0, %1, %2 = ax.attention_gradient %q, %q, %q, %q, %g scale 1.0 : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf16> -> tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>

// -----

%q = ax.iota dim 0 : tensor<1x4x8x8xf32>
// expected-error @+2 {{product_type 'f64' is neither f16 nor bf16}}
// expected-error @+1 {{failed to infer returned types}}
%0, %1, %2 = ax.attention_gradient %q, %q, %q, %q, %q scale 1.0 {product_type = f64} : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32> -> tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>

// -----

%q = ax.iota dim 0 : tensor<1x4x8x8xf32>
// expected-error @+2 {{product_type 'f64' is neither f16 nor bf16}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.attention %q, %q, %q scale 1.0 {product_type = f64} : tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32>, tensor<1x4x8x8xf32> -> tensor<1x4x8x8xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%g = ax.iota dim 0 : tensor<1x6xf32>
// expected-error @+2 {{needs x and gradient of the same rank >= 3, got 'tensor<1x4x9xf32>' and 'tensor<1x6xf32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.conv_weight_gradient %x, %g kernel [3] strides [1] pads [0, 0] dilations [1] : tensor<1x4x9xf32>, tensor<1x6xf32> -> tensor<6x4x3xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%g = ax.iota dim 0 : tensor<1x6x7xf32>
// expected-error @+2 {{needs 1 kernel sizes}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.conv_weight_gradient %x, %g kernel [3, 3] strides [1] pads [0, 0] dilations [1] : tensor<1x4x9xf32>, tensor<1x6x7xf32> -> tensor<6x4x3xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%g = ax.iota dim 0 : tensor<2x6x7xf32>
// expected-error @+2 {{batch or channels do not fit: x is 'tensor<1x4x9xf32>', gradient 'tensor<2x6x7xf32>' in 1 groups}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.conv_weight_gradient %x, %g kernel [3] strides [1] pads [0, 0] dilations [1] : tensor<1x4x9xf32>, tensor<2x6x7xf32> -> tensor<6x4x3xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%g = ax.iota dim 0 : tensor<1x6x8xf32>
// expected-error @+2 {{gradient 'tensor<1x6x8xf32>' is not of a convolution of 'tensor<1x4x9xf32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.conv_weight_gradient %x, %g kernel [3] strides [1] pads [0, 0] dilations [1] : tensor<1x4x9xf32>, tensor<1x6x8xf32> -> tensor<6x4x3xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%g = ax.iota dim 0 : tensor<1x6x7xf64>
// expected-error @+2 {{element types differ: 'f32' and 'f64'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.conv_weight_gradient %x, %g kernel [3] strides [1] pads [0, 0] dilations [1] : tensor<1x4x9xf32>, tensor<1x6x7xf64> -> tensor<6x4x3xf32>

// -----

%x = ax.iota dim 0 : tensor<4x9xf32>
%g = ax.iota dim 0 : tensor<4x8xf32>
// expected-error @+2 {{needs a tensor of rank >= 3, got 'tensor<4x9xf32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.max_pool_gradient %x, %g kernel [2] strides [1] pads [0, 0] dilations [1] ceil_extra [0] : tensor<4x9xf32>, tensor<4x8xf32> -> tensor<4x9xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%g = ax.iota dim 0 : tensor<1x4x8xf32>
// expected-error @+2 {{needs 1 kernel and ceil_extra sizes}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.max_pool_gradient %x, %g kernel [2, 2] strides [1] pads [0, 0] dilations [1] ceil_extra [0] : tensor<1x4x9xf32>, tensor<1x4x8xf32> -> tensor<1x4x9xf32>

// -----

%x = ax.iota dim 0 : tensor<1x4x9xf32>
%g = ax.iota dim 0 : tensor<1x4x7xf32>
// expected-error @+2 {{gradient 'tensor<1x4x7xf32>' is not of a pool of 'tensor<1x4x9xf32>'}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.max_pool_gradient %x, %g kernel [2] strides [1] pads [0, 0] dilations [1] ceil_extra [0] : tensor<1x4x9xf32>, tensor<1x4x7xf32> -> tensor<1x4x9xf32>

// -----

// The sum of narrow floats before it is rounded.
%x = ax.iota dim 0 : tensor<4x5xbf16>
%w = ax.iota dim 0 : tensor<5x6xbf16>
%0 = ax.linear %x, %w : tensor<4x5xbf16>, tensor<5x6xbf16> -> tensor<4x6xf32>

// -----

%x = ax.iota dim 0 : tensor<4x5xf32>
%w = ax.iota dim 0 : tensor<5x6xf32>
// expected-error @+2 {{incompatible with return type(s) of operation}}
// expected-error @+1 {{failed to infer returned types}}
%0 = ax.linear %x, %w : tensor<4x5xf32>, tensor<5x6xf32> -> tensor<4x6xf64>
