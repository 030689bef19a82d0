// RUN: axopt-opt %s --split-input-file -verify-diagnostics

ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x"}) -> (tensor<4x64xf32> {ax.name = "y"}) {
    // expected-error @+1 {{ax.pins is a list of #ax.pin and #ax.factor_pin, got 3 : i64}}
    %y = ax.unary relu %x {ax.pins = 3} : tensor<4x64xf32> -> tensor<4x64xf32>
    ax.return %y : tensor<4x64xf32>
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x"}) -> (tensor<4x64xf32> {ax.name = "y"}) {
    // expected-error @+1 {{of node 'act' #ax.pin<result 1 [?, {col}] because "mine">: there is no result 1}}
    %y = ax.unary relu %x {ax.pins = [#ax.pin<result 1 [?, {col}] because "mine">], node = "act"} : tensor<4x64xf32> -> tensor<4x64xf32>
    ax.return %y : tensor<4x64xf32>
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x"}) -> (tensor<4x64xf32> {ax.name = "y"}) {
    // expected-error @+1 {{it is a user's, and so not weak}}
    %y = ax.unary relu %x {ax.pins = [#ax.pin<[?, {col}] user weak because "mine">]} : tensor<4x64xf32> -> tensor<4x64xf32>
    ax.return %y : tensor<4x64xf32>
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x"}) -> (tensor<4x64xf32> {ax.name = "y"}) {
    // expected-error @+1 {{of the tensor's 2 dimensions it names 1}}
    %y = ax.unary relu %x {ax.pins = [#ax.pin<[{col}] because "mine">]} : tensor<4x64xf32> -> tensor<4x64xf32>
    ax.return %y : tensor<4x64xf32>
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x"}) -> (tensor<4x64xf32> {ax.name = "y"}) {
    // expected-error @+1 {{the mesh has no axis 'columns'}}
    %y = ax.unary relu %x {ax.pins = [#ax.pin<[{columns}, ?] because "mine">]} : tensor<4x64xf32> -> tensor<4x64xf32>
    ax.return %y : tensor<4x64xf32>
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x"}) -> (tensor<4x64xf32> {ax.name = "y"}) {
    // expected-error @+1 {{there is no such dimension}}
    %y = ax.unary relu %x {ax.pins = [#ax.factor_pin<operand 0 dim 2 = {col} because "mine">]} : tensor<4x64xf32> -> tensor<4x64xf32>
    ax.return %y : tensor<4x64xf32>
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x"}) -> (tensor<4x64xf32> {ax.name = "y"}) {
    // expected-error @+1 {{there is no such dimension}}
    %y = ax.unary relu %x {ax.pins = [#ax.factor_pin<result 1 dim 0 = {col} because "mine">]} : tensor<4x64xf32> -> tensor<4x64xf32>
    ax.return %y : tensor<4x64xf32>
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x"}) -> (tensor<4x64xf32> {ax.name = "y"}) {
    // expected-error @+1 {{the dimension is made of 1 factors}}
    %y = ax.unary relu %x {ax.pins = [#ax.factor_pin<operand 0 dim 1 part 1 = {col} because "mine">]} : tensor<4x64xf32> -> tensor<4x64xf32>
    ax.return %y : tensor<4x64xf32>
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x"}) -> (tensor<4x64xf32> {ax.name = "y"}) {
    // expected-error @+1 {{the mesh has no axis 'rows'}}
    %y = ax.unary relu %x {ax.pins = [#ax.factor_pin<operand 0 dim 1 = {rows} because "mine">]} : tensor<4x64xf32> -> tensor<4x64xf32>
    ax.return %y : tensor<4x64xf32>
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  // expected-error @+1 {{input 'x' #ax.factor_pin<operand 0 dim 1 = {col} because "mine">: it stands on what has no factors}}
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x", ax.pins = [#ax.factor_pin<operand 0 dim 1 = {col} because "mine">]}) -> (tensor<4x64xf32> {ax.name = "y"}) {
    %y = ax.unary relu %x : tensor<4x64xf32> -> tensor<4x64xf32>
    ax.return %y : tensor<4x64xf32>
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  // expected-error @+1 {{input 'x' #ax.pin<[{col}, ?, ?] because "mine">: of the tensor's 2 dimensions it names 3}}
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x", ax.pins = [#ax.pin<[{col}, ?, ?] because "mine">]}) -> (tensor<4x64xf32> {ax.name = "y"}) {
    %y = ax.unary relu %x : tensor<4x64xf32> -> tensor<4x64xf32>
    ax.return %y : tensor<4x64xf32>
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x"}) -> (tensor<4x64xf32> {ax.name = "y"}) {
    // expected-error @+1 {{ax.sharding is a #ax.sharding of 1 operands and 1 results, got}}
    %y = ax.unary relu %x {ax.sharding = #ax.sharding<() -> ([{}, {}])>} : tensor<4x64xf32> -> tensor<4x64xf32>
    ax.return %y : tensor<4x64xf32>
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x"}) -> (tensor<4x64xf32> {ax.name = "y"}) {
    // expected-error @+1 {{ax.sharding of operand 0, #ax.layout<[{col}, {col}]>: axis 'col' is used twice}}
    %y = ax.unary relu %x {ax.sharding = #ax.sharding<([{col}, {col}]) -> ([{}, {}])>} : tensor<4x64xf32> -> tensor<4x64xf32>
    ax.return %y : tensor<4x64xf32>
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  // expected-error @+1 {{ax.sharding #ax.layout<[{}, {}], partial sum {col}>: what is given or stored is no partial sum}}
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x", ax.sharding = #ax.sharding<() -> ([{}, {}] partial sum {col})>}) -> (tensor<4x64xf32> {ax.name = "y"}) {
    %y = ax.unary relu %x : tensor<4x64xf32> -> tensor<4x64xf32>
    ax.return %y : tensor<4x64xf32>
  }
}
