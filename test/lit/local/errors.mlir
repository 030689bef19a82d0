// RUN: axopt-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{has 0 operands and 0 results: each result is made of an operand}}
"axl.all_reduce"() <{axes = #ax.axes<{col}>, kind = #ax<reduce_kind sum>}> : () -> ()

// -----

%x = ax.constant dense<1.0> : tensor<4xf32> -> tensor<4xf32>
// expected-error @+1 {{multiplies: ranks add, or take the largest or smallest}}
%0 = axl.all_reduce prod %x over {col} : tensor<4xf32> -> tensor<4xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4xf32> -> tensor<4xf32>
// expected-error @+1 {{names 2 dimensions for 1 operands, or one below 0}}
%0 = axl.all_gather %x dims [0, 0] over {col} : tensor<4xf32> -> tensor<8xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4xf32> -> tensor<4xf32>
// expected-error @+1 {{names dimension 1 of 'tensor<4xf32>'}}
%0 = axl.all_gather %x dims [1] over {col} : tensor<4xf32> -> tensor<8xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4xf32> -> tensor<4xf32>
// expected-error @+1 {{cannot make 'tensor<3xf32>' of 'tensor<4xf32>'}}
%0 = axl.all_gather %x dims [0] over {col} : tensor<4xf32> -> tensor<3xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4xf32> -> tensor<4xf32>
%y = ax.constant dense<1> : tensor<4xi32> -> tensor<4xi32>
// expected-error @+1 {{exchanges elements of two types}}
%0:2 = axl.all_reduce sum %x, %y over {col} : tensor<4xf32>, tensor<4xi32> -> tensor<4xf32>, tensor<4xi32>

// -----

%x = ax.constant dense<1.0> : tensor<4xf32> -> tensor<4xf32>
// expected-error @+1 {{gathers dimension 0 and scatters dimension 0}}
%0 = axl.all_to_all %x gather 0 scatter 0 over {col} : tensor<4xf32> -> tensor<4xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4xf32> -> tensor<4xf32>
// expected-error @+1 {{is started: it has one result, for axl.await alone}}
%0 = axl.all_reduce sum %x over {col} start : tensor<4xf32> -> tensor<4xf32>
%1 = ax.unary neg %0 : tensor<4xf32> -> tensor<4xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4xf32> -> tensor<4xf32>
// expected-error @+1 {{waits for a value that no collective with `start` gives}}
%0 = axl.await %x source %x : tensor<4xf32>, tensor<4xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4xf32> -> tensor<4xf32>
%y = ax.unary neg %x : tensor<4xf32> -> tensor<4xf32>
%0 = axl.all_reduce sum %x over {col} start : tensor<4xf32> -> tensor<4xf32>
// expected-error @+1 {{holds another value than the exchange reads}}
%1 = axl.await %0 source %y : tensor<4xf32>, tensor<4xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4xf32> -> tensor<4xf32, #ax.layout<[{col}]>>
// expected-error @+1 {{must be variadic of statically shaped tensor of any type values without a layout}}
%0 = axl.all_reduce sum %x over {col} : tensor<4xf32, #ax.layout<[{col}]>> -> tensor<4xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4xf32> -> tensor<4xf32>
// expected-error @+1 {{operands and region arguments differ in type}}
%0 = axl.fusion(%x) {
^bb0(%a: tensor<5xf32>):
  axl.yield %a : tensor<5xf32>
} : (tensor<4xf32>) -> tensor<5xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4xf32> -> tensor<4xf32>
// expected-error @+1 {{must end with axl.yield of what it gives}}
%0 = axl.fusion(%x) {
^bb0(%a: tensor<4xf32>):
  axl.yield %a : tensor<4xf32>
} : (tensor<4xf32>) -> tensor<5xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4xf32> -> tensor<4xf32>
// expected-error @+1 {{needs a place for each of 1 results, -1 for one of its own}}
%0 = axl.fusion(%x) in_place [0, 0] {
^bb0(%a: tensor<4xf32>):
  axl.yield %a : tensor<4xf32>
} : (tensor<4xf32>) -> tensor<4xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4xf32> -> tensor<4xf32>
// expected-error @+1 {{makes 'tensor<4xf32>' in place of operand 1, which is no such tensor}}
%0 = axl.fusion(%x) in_place [1] {
^bb0(%a: tensor<4xf32>):
  axl.yield %a : tensor<4xf32>
} : (tensor<4xf32>) -> tensor<4xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
%w = ax.constant dense<1.0> : tensor<8x8xf32> -> tensor<8x8xf32>
// expected-error @+1 {{operands and region arguments differ in type}}
%0 = axl.library(%x, %w) {
^bb0(%a: tensor<4x8xf32>, %b: tensor<8x7xf32>):
  axl.yield %a : tensor<4x8xf32>
} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
%w = ax.constant dense<1.0> : tensor<8x8xf32> -> tensor<8x8xf32>
// expected-error @+1 {{must end with axl.yield of what it gives}}
%0 = axl.library(%x, %w) {
^bb0(%a: tensor<4x8xf32>, %b: tensor<8x8xf32>):
  %1 = ax.linear %a, %b : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  axl.yield %b : tensor<8x8xf32>
} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
// expected-error @+1 {{has no operation to do}}
%0 = axl.library(%x) {
^bb0(%a: tensor<4x8xf32>):
  axl.yield %a : tensor<4x8xf32>
} : (tensor<4x8xf32>) -> tensor<4x8xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
%w = ax.constant dense<1.0> : tensor<8x8xf32> -> tensor<8x8xf32>
// expected-error @+1 {{needs an operation that reads each argument once}}
%0 = axl.library(%x, %w) {
^bb0(%a: tensor<4x8xf32>, %b: tensor<8x8xf32>):
  %1 = ax.unary relu %a : tensor<4x8xf32> -> tensor<4x8xf32>
  axl.yield %1 : tensor<4x8xf32>
} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
%w = ax.constant dense<1.0> : tensor<8x8xf32> -> tensor<8x8xf32>
// expected-error @+1 {{needs an operation that reads its arguments in order}}
%0 = axl.library(%w, %x) {
^bb0(%b: tensor<8x8xf32>, %a: tensor<4x8xf32>):
  %1 = ax.linear %a, %b : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  axl.yield %1 : tensor<4x8xf32>
} : (tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
%w = ax.constant dense<1.0> : tensor<8x8xf32> -> tensor<8x8xf32>
// expected-error @+1 {{has more than a bias, an activation, a residual and a transpose behind ax.linear}}
%0 = axl.library(%x, %w) {
^bb0(%a: tensor<4x8xf32>, %b: tensor<8x8xf32>):
  %1 = ax.linear %a, %b : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = ax.unary relu %1 : tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = ax.unary relu %2 : tensor<4x8xf32> -> tensor<4x8xf32>
  axl.yield %3 : tensor<4x8xf32>
} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>

// -----

// A residual is one more argument, and is added.
%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
%w = ax.constant dense<1.0> : tensor<8x8xf32> -> tensor<8x8xf32>
// expected-error @+1 {{needs an operation that reads each argument once}}
%0 = axl.library(%x, %w) {
^bb0(%a: tensor<4x8xf32>, %b: tensor<8x8xf32>):
  %1 = ax.linear %a, %b : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = ax.binary add %1, %a : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  axl.yield %2 : tensor<4x8xf32>
} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
%w = ax.constant dense<1.0> : tensor<8x8xf32> -> tensor<8x8xf32>
// expected-error @+1 {{has more than a bias, an activation, a residual and a transpose behind ax.linear}}
%0 = axl.library(%x, %w, %x) {
^bb0(%a: tensor<4x8xf32>, %b: tensor<8x8xf32>, %c: tensor<4x8xf32>):
  %1 = ax.linear %a, %b : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = ax.binary mul %1, %c : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  axl.yield %2 : tensor<4x8xf32>
} : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>

// -----

// A second bias is no residual.
%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
%w = ax.constant dense<1.0> : tensor<8x8xf32> -> tensor<8x8xf32>
%b = ax.constant dense<1.0> : tensor<8xf32> -> tensor<8xf32>
// expected-error @+1 {{adds a residual of 'tensor<8xf32>' to 'tensor<4x8xf32>'}}
%0 = axl.library(%x, %w, %b, %b) {
^bb0(%a0: tensor<4x8xf32>, %a1: tensor<8x8xf32>, %a2: tensor<8xf32>, %a3: tensor<8xf32>):
  %1 = ax.linear %a0, %a1 : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = ax.binary add %1, %a2 : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  %3 = ax.binary add %2, %a3 : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>
  axl.yield %3 : tensor<4x8xf32>
} : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>

// -----

// Two results, of which one is nothing that the other is the activation of.
%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
%w = ax.constant dense<1.0> : tensor<8x8xf32> -> tensor<8x8xf32>
// expected-error @+1 {{gives more than what it computes and what its activation is of}}
%0:2 = axl.library(%x, %w) {
^bb0(%a: tensor<4x8xf32>, %b: tensor<8x8xf32>):
  %1 = ax.linear %a, %b : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = ax.unary relu %1 : tensor<4x8xf32> -> tensor<4x8xf32>
  axl.yield %2, %2 : tensor<4x8xf32>, tensor<4x8xf32>
} : (tensor<4x8xf32>, tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)

// -----

%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
%w = ax.constant dense<1.0> : tensor<8x8xf32> -> tensor<8x8xf32>
// expected-error @+1 {{gives more than what it computes and what its activation is of}}
axl.library(%x, %w) {
^bb0(%a: tensor<4x8xf32>, %b: tensor<8x8xf32>):
  %1 = ax.linear %a, %b : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  axl.yield
} : (tensor<4x8xf32>, tensor<8x8xf32>) -> ()

// -----

// A gradient behind an activation, in front of one, of a residual, and of what
// is written in another order.
%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
%w = ax.constant dense<1.0> : tensor<8x8xf32> -> tensor<8x8xf32>
// expected-error @+1 {{has the gradient of an activation elsewhere than between a product and what is given}}
%0 = axl.library(%x, %w, %x) {
^bb0(%a: tensor<4x8xf32>, %b: tensor<8x8xf32>, %c: tensor<4x8xf32>):
  %1 = ax.linear %a, %b : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = ax.unary relu %1 : tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = axl.unary_gradient relu %2 at %c : tensor<4x8xf32>
  axl.yield %3 : tensor<4x8xf32>
} : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
%w = ax.constant dense<1.0> : tensor<8x8xf32> -> tensor<8x8xf32>
// expected-error @+1 {{has the gradient of an activation elsewhere than between a product and what is given}}
%0 = axl.library(%x, %w, %x) {
^bb0(%a: tensor<4x8xf32>, %b: tensor<8x8xf32>, %c: tensor<4x8xf32>):
  %1 = ax.linear %a, %b : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = axl.unary_gradient relu %1 at %c : tensor<4x8xf32>
  %3 = ax.unary relu %2 : tensor<4x8xf32> -> tensor<4x8xf32>
  axl.yield %3 : tensor<4x8xf32>
} : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
%w = ax.constant dense<1.0> : tensor<8x8xf32> -> tensor<8x8xf32>
// expected-error @+1 {{has the gradient of an activation elsewhere than between a product and what is given}}
%0 = axl.library(%x, %w, %x) {
^bb0(%a: tensor<4x8xf32>, %b: tensor<8x8xf32>, %c: tensor<4x8xf32>):
  %1 = ax.linear %a, %b : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = axl.unary_gradient relu %1 at %c : tensor<4x8xf32>
  %3 = ax.transpose %2 [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  axl.yield %3 : tensor<8x4xf32>
} : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<8x4xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
%w = ax.constant dense<1.0> : tensor<8x8xf32> -> tensor<8x8xf32>
// expected-error @+1 {{has the gradient of an activation elsewhere than between a product and what is given}}
%0 = axl.library(%x, %w, %x, %x) {
^bb0(%a: tensor<4x8xf32>, %b: tensor<8x8xf32>, %c: tensor<4x8xf32>, %d: tensor<4x8xf32>):
  %1 = ax.linear %a, %b : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = axl.unary_gradient relu %1 at %d : tensor<4x8xf32>
  %3 = ax.binary add %2, %c : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  axl.yield %3 : tensor<4x8xf32>
} : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>

// -----

// No activation of libraries.
%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
%w = ax.constant dense<1.0> : tensor<8x8xf32> -> tensor<8x8xf32>
// expected-error @+1 {{has exp behind its product, which is no activation that libraries have}}
%0 = axl.library(%x, %w) {
^bb0(%a: tensor<4x8xf32>, %b: tensor<8x8xf32>):
  %1 = ax.linear %a, %b : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = ax.unary exp %1 : tensor<4x8xf32> -> tensor<4x8xf32>
  axl.yield %2 : tensor<4x8xf32>
} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
%w = ax.constant dense<1.0> : tensor<8x8xf32> -> tensor<8x8xf32>
%0 = axl.library(%x, %w, %x) {
^bb0(%a: tensor<4x8xf32>, %b: tensor<8x8xf32>, %c: tensor<4x8xf32>):
  %1 = ax.linear %a, %b : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  // expected-error @+1 {{is of no activation that libraries have: exp}}
  %2 = axl.unary_gradient exp %1 at %c : tensor<4x8xf32>
  axl.yield %2 : tensor<4x8xf32>
} : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
// expected-error @+1 {{expects parent op 'axl.library'}}
%0 = axl.unary_gradient relu %x at %x : tensor<4x8xf32>

// -----

// Convolutions have neither a gradient of an activation nor its operand.
%x = ax.constant dense<1.0> : tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
%w = ax.constant dense<1.0> : tensor<2x2x1x1xf32> -> tensor<2x2x1x1xf32>
// expected-error @+1 {{has the gradient of an activation elsewhere than between a product and what is given}}
%0 = axl.library(%x, %w, %x) {
^bb0(%a: tensor<1x2x4x4xf32>, %b: tensor<2x2x1x1xf32>, %c: tensor<1x2x4x4xf32>):
  %1 = ax.conv %a, %b strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
  %2 = axl.unary_gradient relu %1 at %c : tensor<1x2x4x4xf32>
  axl.yield %2 : tensor<1x2x4x4xf32>
} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>, tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>

// -----

%x = ax.constant dense<1.0> : tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
%w = ax.constant dense<1.0> : tensor<2x2x1x1xf32> -> tensor<2x2x1x1xf32>
// expected-error @+1 {{gives more than what it computes and what its activation is of}}
%0:2 = axl.library(%x, %w) {
^bb0(%a: tensor<1x2x4x4xf32>, %b: tensor<2x2x1x1xf32>):
  %1 = ax.conv %a, %b strides [1, 1] pads [0, 0, 0, 0] dilations [1, 1] : tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32> -> tensor<1x2x4x4xf32>
  %2 = ax.unary relu %1 : tensor<1x2x4x4xf32> -> tensor<1x2x4x4xf32>
  axl.yield %2, %1 : tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>
} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> (tensor<1x2x4x4xf32>, tensor<1x2x4x4xf32>)

// -----

// Two activations.
%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
%w = ax.constant dense<1.0> : tensor<8x8xf32> -> tensor<8x8xf32>
// expected-error @+1 {{has more than a bias, an activation, a residual and a transpose behind ax.linear}}
%0 = axl.library(%x, %w, %x) {
^bb0(%a: tensor<4x8xf32>, %b: tensor<8x8xf32>, %c: tensor<4x8xf32>):
  %1 = ax.linear %a, %b : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = ax.unary relu %1 : tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = ax.binary add %2, %c : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  %4 = ax.unary relu %3 : tensor<4x8xf32> -> tensor<4x8xf32>
  axl.yield %4 : tensor<4x8xf32>
} : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>

// -----

%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
%w = ax.constant dense<1.0> : tensor<8x8xf32> -> tensor<8x8xf32>
// expected-error @+1 {{does not give what it computes}}
%0 = axl.library(%x, %w) {
^bb0(%a: tensor<4x8xf32>, %b: tensor<8x8xf32>):
  %1 = ax.linear %a, %b : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = ax.unary relu %a : tensor<4x8xf32> -> tensor<4x8xf32>
  axl.yield %2 : tensor<4x8xf32>
} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>

// -----

ax.plan @p version 1 {
  ax.mesh [col = 2]
  axl.program @main {
    axl.stage @s(%x: tensor<4xf32>) {
      // expected-error @+1 {{names an axis that the mesh lacks: row}}
      %0 = axl.all_reduce sum %x over {row} : tensor<4xf32> -> tensor<4xf32>
      axl.yield %x : tensor<4xf32>
    }
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 2]
  axl.program @main {
    axl.stage @s(%x: tensor<4xf32>) {
      // expected-error @+1 {{cannot make 'tensor<9xf32>' of 'tensor<4xf32>'}}
      %0 = axl.all_gather %x dims [0] over {col} : tensor<4xf32> -> tensor<9xf32>
      axl.yield %x : tensor<4xf32>
    }
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 2]
  axl.program @main {
    axl.stage @s(%x: tensor<4xf32>) {
      // expected-error @+1 {{needs for each of 2 ranks a source of its own group}}
      %0 = axl.permute %x sources [0, 2] over {col} : tensor<4xf32> -> tensor<4xf32>
      axl.yield %x : tensor<4xf32>
    }
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 2]
  axl.program @main {
    // expected-error @+1 {{does not belong into a local program}}
    %x = ax.iota dim 0 : tensor<4xi64>
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 2]
  axl.program @main {
    // expected-error @+1 {{must end with axl.yield}}
    axl.stage @s(%x: tensor<4xf32>) {
      %0 = ax.unary neg %x : tensor<4xf32> -> tensor<4xf32>
    }
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 2]
  axl.program @main {
    // expected-error @+1 {{names states by @name alone}}
    "axl.stage"() <{sym_name = "s", states = [1], stored = [], accumulated = array<i64>}> ({
    ^bb0(%x: tensor<4xf32>):
      axl.yield
    }) : () -> ()
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 2]
  axl.program @main {
    // expected-error @+1 {{has fewer arguments or results than states and sums}}
    axl.stage @s(%x: tensor<4xf32>) stores(@w) {
      axl.yield
    }
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 2]
  axl.program @main {
    // expected-error @+1 {{adds up result 0, which is not what its sum is}}
    axl.stage @s(%x: tensor<4xf32>) adds(0 = %sum: tensor<5xf32>) {
      axl.yield %x : tensor<4xf32>
    }
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 2]
  axl.program @main {
    // expected-error @+1 {{there is no state @w}}
    axl.stage @s() loads(@w = %w: tensor<4xf32>) {
      axl.yield
    }
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 2]
  ax.state @w : tensor<4xf32, #ax.layout<[{col}]>>
  axl.program @main {
    // expected-error @+1 {{has 'tensor<4xf32>' for a rank's part of @w}}
    axl.stage @s() loads(@w = %w: tensor<4xf32>) {
      axl.yield
    }
  }
}

// -----

axl.stage @s(%x: tensor<4x4xf32>) {
  // expected-error @+1 {{'axl.places' has a place for each result}}
  %0 = ax.linear %x, %x {axl.places = ["arena 0"]} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  axl.yield %0 : tensor<4x4xf32>
}

// -----

axl.stage @s(%x: tensor<4x4xf32>) {
  // expected-error @+1 {{there is no place #axl.place<operand 2>}}
  %0 = ax.linear %x, %x {axl.places = [#axl.place<operand 2>]} : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  axl.yield %0 : tensor<4x4xf32>
}

// -----

// expected-error @+1 {{has no result 1 to make directly}}
axl.stage @s(%x: tensor<4x4xf32>) direct(1) {
  axl.yield %x : tensor<4x4xf32>
}

// -----

axl.stage @s(%x: tensor<4x3xi64>) {
  // expected-error @+1 {{has 2 sizes for indices of type 'tensor<4x3xi64>'}}
  %0 = axl.check_indices %x sizes [5, 6] of tensor<4x3xi64> order 1 : tensor<4x3xi64>
  axl.yield %0 : tensor<4x3xi64>
}

// -----

axl.stage @s(%x: tensor<3xi64>) {
  // expected-error @+1 {{needs a place and an index, and has 'tensor<3xi64>'}}
  axl.report_fault %x among tensor<4xi64> sizes [5] of tensor<4xi64> order 1 : tensor<3xi64>
  axl.yield
}

// -----

axl.stage @s(%x: tensor<2xi64>) {
  // expected-error @+1 {{checks no indices, but 'tensor<4xf32>'}}
  axl.report_fault %x among tensor<4xf32> sizes [5] of tensor<4xf32> order 1 : tensor<2xi64>
  axl.yield
}

// -----

%q = ax.constant dense<1.0> : tensor<1x3x4x8xf16> -> tensor<1x3x4x8xf16>
%k = ax.constant dense<1.0> : tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>
%v = ax.constant dense<1.0> : tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>
// expected-error @+1 {{q, k, v do not fit: 'tensor<1x3x4x8xf16>', 'tensor<1x2x4x8xf16>', 'tensor<1x2x4x8xf16>'}}
%0, %1 = axl.attention %q, %k, %v scale 5.000000e-01 : tensor<1x3x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16> -> tensor<1x3x4x8xf16>, tensor<1x3x4xf32>

// -----

%q = ax.constant dense<1.0> : tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>
%k = ax.constant dense<1.0> : tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>
%v = ax.constant dense<1.0> : tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>
// expected-error @+1 {{gives no 'tensor<1x2x4x4xf16>'}}
%0, %1 = axl.attention %q, %k, %v scale 5.000000e-01 : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16> -> tensor<1x2x4x4xf16>, tensor<1x2x4xf32>

// -----

%q = ax.constant dense<1.0> : tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>
%k = ax.constant dense<1.0> : tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>
%v = ax.constant dense<1.0> : tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>
// expected-error @+1 {{has a sum in f32 for each query, not 'tensor<1x2x4xf16>'}}
%0, %1 = axl.attention %q, %k, %v scale 5.000000e-01 : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>, tensor<1x2x4xf16>

// -----

%q = ax.constant dense<1.0> : tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>
%m = ax.constant dense<true> : tensor<1x1x4x5xi1> -> tensor<1x1x4x5xi1>
// expected-error @+1 {{mask 'tensor<1x1x4x5xi1>' does not broadcast to [1, 2, 4, 4]}}
%0, %1 = axl.attention %q, %q, %q mask %m : tensor<1x1x4x5xi1> scale 5.000000e-01 : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>, tensor<1x2x4xf32>

// -----

%q = ax.constant dense<1.0> : tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>
%m = ax.constant dense<true> : tensor<4x4xi1> -> tensor<4x4xi1>
// expected-error @+1 {{mask 'tensor<4x4xi1>' does not broadcast to [1, 2, 4, 4]}}
%0, %1 = axl.attention %q, %q, %q mask %m : tensor<4x4xi1> scale 5.000000e-01 : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>, tensor<1x2x4xf32>

// -----

%q = ax.constant dense<1.0> : tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>
%s = ax.constant dense<1.0> : tensor<1x2x4xf32> -> tensor<1x2x4xf32>
%m = ax.constant dense<1.0> : tensor<1x1x4x4xbf16> -> tensor<1x1x4x4xbf16>
// expected-error @+1 {{mask 'tensor<1x1x4x4xbf16>' is neither i1 nor f32 nor 'f16'}}
%0, %1, %2 = axl.attention_gradient %q, %q, %q, %q, %q mask %m : tensor<1x1x4x4xbf16> sums %s scale 5.000000e-01 : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4xf32> -> tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>

// -----

%q = ax.constant dense<1.0> : tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>
%g = ax.constant dense<1.0> : tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>
%s = ax.constant dense<1.0> : tensor<1x2x4xf32> -> tensor<1x2x4xf32>
// expected-error @+1 {{gives gradients of the types of q, k and v}}
%0, %1, %2 = axl.attention_gradient %q, %q, %q, %q, %g sums %s scale 5.000000e-01 : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4xf32> -> tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf32>

// -----

%q = ax.constant dense<1.0> : tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>
%g = ax.constant dense<1.0> : tensor<1x2x4x8xf32> -> tensor<1x2x4x8xf32>
%s = ax.constant dense<1.0> : tensor<1x2x4xf32> -> tensor<1x2x4xf32>
// expected-error @+1 {{needs a gradient of 'tensor<1x2x4x8xf16>'}}
%0, %1, %2 = axl.attention_gradient %q, %q, %q, %q, %g sums %s scale 5.000000e-01 : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf32>, tensor<1x2x4xf32> -> tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>

// -----

%q = ax.constant dense<1.0> : tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>
// expected-error @+1 {{has more than transposes, reshapes and concatenations behind ax.attention_gradient}}
%0 = axl.library(%q, %q, %q, %q, %q) {
^bb0(%a: tensor<1x2x4x8xf16>, %b: tensor<1x2x4x8xf16>, %c: tensor<1x2x4x8xf16>, %d: tensor<1x2x4x8xf16>, %e: tensor<1x2x4x8xf16>):
  %1, %2, %3 = ax.attention_gradient %a, %b, %c, %d, %e scale 5.000000e-01 : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>
  %4 = ax.unary neg %1 : tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>
  %5 = ax.concat %4, %2, %3 dim 0 : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16> -> tensor<3x2x4x8xf16>
  axl.yield %5 : tensor<3x2x4x8xf16>
} : (tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>) -> tensor<3x2x4x8xf16>

// -----

%q = ax.constant dense<1.0> : tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>
// expected-error @+1 {{does not read what it computes once}}
%0 = axl.library(%q, %q, %q, %q, %q) {
^bb0(%a: tensor<1x2x4x8xf16>, %b: tensor<1x2x4x8xf16>, %c: tensor<1x2x4x8xf16>, %d: tensor<1x2x4x8xf16>, %e: tensor<1x2x4x8xf16>):
  %1, %2, %3 = ax.attention_gradient %a, %b, %c, %d, %e scale 5.000000e-01 : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>
  %5 = ax.concat %1, %2, %2 dim 0 : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16> -> tensor<3x2x4x8xf16>
  axl.yield %5 : tensor<3x2x4x8xf16>
} : (tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>) -> tensor<3x2x4x8xf16>

// -----

%q = ax.constant dense<1.0> : tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>
// expected-error @+1 {{moves what it does not compute}}
%0 = axl.library(%q, %q, %q, %q, %q) {
^bb0(%a: tensor<1x2x4x8xf16>, %b: tensor<1x2x4x8xf16>, %c: tensor<1x2x4x8xf16>, %d: tensor<1x2x4x8xf16>, %e: tensor<1x2x4x8xf16>):
  %1, %2, %3 = ax.attention_gradient %a, %b, %c, %d, %e scale 5.000000e-01 : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>
  %5 = ax.concat %1, %2, %3, %a dim 0 : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16> -> tensor<4x2x4x8xf16>
  axl.yield %5 : tensor<4x2x4x8xf16>
} : (tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>) -> tensor<4x2x4x8xf16>

// -----

// What is computed in rows of 8 would be in rows of 4, turned.
%q = ax.constant dense<1.0> : tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>
// expected-error @+1 {{writes result 0 of ax.attention_gradient to where no strides lead: reshapes behind it may join only dimensions that are one in memory}}
%0, %1, %2 = axl.library(%q, %q, %q, %q, %q) {
^bb0(%a: tensor<1x2x4x8xf16>, %b: tensor<1x2x4x8xf16>, %c: tensor<1x2x4x8xf16>, %d: tensor<1x2x4x8xf16>, %e: tensor<1x2x4x8xf16>):
  %3, %4, %5 = ax.attention_gradient %a, %b, %c, %d, %e scale 5.000000e-01 : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16> -> tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>
  %6 = ax.reshape %3 : tensor<1x2x4x8xf16> -> tensor<1x2x8x4xf16>
  %7 = ax.transpose %6 [0, 1, 3, 2] : tensor<1x2x8x4xf16> -> tensor<1x2x4x8xf16>
  axl.yield %7, %4, %5 : tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>
} : (tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>) -> (tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>, tensor<1x2x4x8xf16>)

// -----

// A sum over micro-batches behind an activation, and of a convolution's result.
%x = ax.constant dense<1.0> : tensor<4x8xf32> -> tensor<4x8xf32>
%w = ax.constant dense<1.0> : tensor<8x8xf32> -> tensor<8x8xf32>
// expected-error @+1 {{adds up micro-batches elsewhere than between a product and what is given}}
%0 = axl.library(%x, %w, %x) {
^bb0(%a: tensor<4x8xf32>, %b: tensor<8x8xf32>, %c: tensor<4x8xf32>):
  %1 = ax.linear %a, %b : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
  %2 = ax.unary relu %1 : tensor<4x8xf32> -> tensor<4x8xf32>
  %3 = axl.accumulate %2 to %c over {micro} : tensor<4x8xf32>
  axl.yield %3 : tensor<4x8xf32>
} : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>

// -----

%x = ax.constant dense<1.0> : tensor<1x2x8xf32> -> tensor<1x2x8xf32>
%w = ax.constant dense<1.0> : tensor<2x2x1xf32> -> tensor<2x2x1xf32>
// expected-error @+1 {{adds up micro-batches elsewhere than between a product and what is given}}
%0 = axl.library(%x, %w, %x) {
^bb0(%a: tensor<1x2x8xf32>, %b: tensor<2x2x1xf32>, %c: tensor<1x2x8xf32>):
  %1 = ax.conv %a, %b strides [1] pads [0, 0] dilations [1] : tensor<1x2x8xf32>, tensor<2x2x1xf32> -> tensor<1x2x8xf32>
  %2 = axl.accumulate %1 to %c over {micro} : tensor<1x2x8xf32>
  axl.yield %2 : tensor<1x2x8xf32>
} : (tensor<1x2x8xf32>, tensor<2x2x1xf32>, tensor<1x2x8xf32>) -> tensor<1x2x8xf32>

// -----

axl.stage @s(%x: tensor<4xi16>, %t: tensor<256xi8>) {
  // expected-error @+1 {{looks up integers of eight bits, and not 'tensor<4xi16>'}}
  %0 = axl.look_up %x in %t : tensor<4xi16>, tensor<256xi8> -> tensor<4xi8>
  axl.yield %0 : tensor<4xi8>
}

// -----

axl.stage @s(%x: tensor<4xi8>, %t: tensor<255xi8>) {
  // expected-error @+1 {{needs a table of 256 integers of eight bits, and has 'tensor<255xi8>'}}
  %0 = axl.look_up %x in %t : tensor<4xi8>, tensor<255xi8> -> tensor<4xi8>
  axl.yield %0 : tensor<4xi8>
}

// -----

axl.stage @s(%x: tensor<4xi8>, %t: tensor<256xui8>) {
  // expected-error @+1 {{gives 'tensor<4xui8>', and not 'tensor<4xi8>'}}
  %0 = axl.look_up %x in %t : tensor<4xi8>, tensor<256xui8> -> tensor<4xi8>
  axl.yield %0 : tensor<4xi8>
}

// -----

axl.stage @s(%x: tensor<4x3xf32>, %w: tensor<3x5xf32>, %g: tensor<4xi64>) {
  // expected-error @+1 {{needs rows, and a matrix for each group, and has 'tensor<4x3xf32>', 'tensor<3x5xf32>' and 'tensor<4x5xf32>'}}
  %0 = axl.grouped_matmul %x, %w[%g] : tensor<4x3xf32>, tensor<3x5xf32>, tensor<4xi64> -> tensor<4x5xf32>
  axl.yield %0 : tensor<4x5xf32>
}

// -----

axl.stage @s(%x: tensor<4x3xf32>, %w: tensor<2x3x5xf32>, %g: tensor<4xi64>) {
  // expected-error @+1 {{has rows 'tensor<4x3xf32>' and 'tensor<4x5xf32>', which do not fit matrices 'tensor<2x3x5xf32>'}}
  %0 = axl.grouped_matmul %x, %w[%g] transpose_w : tensor<4x3xf32>, tensor<2x3x5xf32>, tensor<4xi64> -> tensor<4x5xf32>
  axl.yield %0 : tensor<4x5xf32>
}

// -----

axl.stage @s(%x: tensor<4x3xf32>, %y: tensor<4x5xf32>, %g: tensor<3xi64>) {
  // expected-error @+1 {{has groups 'tensor<3xi64>' of 4 rows}}
  %0 = axl.grouped_weight_gradient %x, %y[%g] : tensor<4x3xf32>, tensor<4x5xf32>, tensor<3xi64> -> tensor<2x3x5xf32>
  axl.yield %0 : tensor<2x3x5xf32>
}

// -----

axl.stage @s(%x: tensor<4x3xf32>, %w: tensor<0x3x5xf32>, %g: tensor<4xi64>) {
  // expected-error @+1 {{has rows, and no group}}
  %0 = axl.grouped_matmul %x, %w[%g] : tensor<4x3xf32>, tensor<0x3x5xf32>, tensor<4xi64> -> tensor<4x5xf32>
  axl.yield %0 : tensor<4x5xf32>
}

// -----

axl.stage @s(%x: tensor<4x3xbf16>, %w: tensor<2x3x5xf32>, %g: tensor<4xi64>) {
  // expected-error @+1 {{cannot multiply 'bf16' by 'f32' to 'f32'}}
  %0 = axl.grouped_matmul %x, %w[%g] : tensor<4x3xbf16>, tensor<2x3x5xf32>, tensor<4xi64> -> tensor<4x5xf32>
  axl.yield %0 : tensor<4x5xf32>
}

// -----

axl.stage @s(%x: tensor<4x64xf32>, %w: tensor<3x32xui8>, %s: tensor<3x2xf32>, %z: tensor<3x2xi8>) {
  // expected-error @+1 {{has numbers of 3 bits, not 2, 4 or 8}}
  %0 = axl.block_matmul %x, %w scales %s bits 3 : tensor<4x64xf32>, tensor<3x32xui8>, tensor<3x2xf32> -> tensor<4x3xf32>
  axl.yield %0 : tensor<4x3xf32>
}

// -----

axl.stage @s(%x: tensor<4x64xf32>, %w: tensor<3x32xui8>, %s: tensor<3x2xf32>, %z: tensor<3x2xi8>) {
  // expected-error @+1 {{has rows 'tensor<4x64xf32>' and 'tensor<4x3xf32>', which do not fit 'tensor<3x32xui8>'}}
  %0 = axl.block_matmul %x, %w scales %s bits 8 : tensor<4x64xf32>, tensor<3x32xui8>, tensor<3x2xf32> -> tensor<4x3xf32>
  axl.yield %0 : tensor<4x3xf32>
}

// -----

axl.stage @s(%x: tensor<4x64xf32>, %w: tensor<3x32xui8>, %s: tensor<3x2xf32>, %z: tensor<3x2xi8>) {
  // expected-error @+1 {{needs matrices of f32, and one of ui8, and has 'tensor<4x64xf32>', 'tensor<3x2xi8>', 'tensor<3x2xf32>' and 'tensor<4x3xf32>'}}
  %0 = axl.block_matmul %x, %z scales %s bits 4 : tensor<4x64xf32>, tensor<3x2xi8>, tensor<3x2xf32> -> tensor<4x3xf32>
  axl.yield %0 : tensor<4x3xf32>
}

// -----

axl.stage @s(%x: tensor<4x64xf32>, %w: tensor<3x32xui8>, %s: tensor<3x2xf32>, %z: tensor<3x2xi8>) {
  // expected-error @+1 {{has zero points 'tensor<3x2xi8>' beside scales 'tensor<3x2xf32>'}}
  %0 = axl.block_matmul %x, %w scales %s zeros %z : tensor<3x2xi8> bits 4 : tensor<4x64xf32>, tensor<3x32xui8>, tensor<3x2xf32> -> tensor<4x3xf32>
  axl.yield %0 : tensor<4x3xf32>
}

// -----

axl.stage @s(%x: tensor<4x64xf32>, %w: tensor<3x32xui8>, %s: tensor<3x8xf32>) {
  // expected-error @+1 {{has scales 'tensor<3x8xf32>' of blocks of 'tensor<3x32xui8>'}}
  %0 = axl.block_matmul %x, %w scales %s bits 4 : tensor<4x64xf32>, tensor<3x32xui8>, tensor<3x8xf32> -> tensor<4x3xf32>
  axl.yield %0 : tensor<4x3xf32>
}

// -----

axl.stage @s(%x: tensor<1x65536xf32>, %w: tensor<1x32768xui8>, %s: tensor<1x1xf32>) {
  // expected-error @+1 {{has scales 'tensor<1x1xf32>' of blocks of 'tensor<1x32768xui8>'}}
  %0 = axl.block_matmul %x, %w scales %s bits 4 : tensor<1x65536xf32>, tensor<1x32768xui8>, tensor<1x1xf32> -> tensor<1x1xf32>
  axl.yield %0 : tensor<1x1xf32>
}
