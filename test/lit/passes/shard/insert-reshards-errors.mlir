// RUN: axopt-opt %s --split-input-file --pass-pipeline='builtin.module(ax.plan(ax-insert-reshards))' -verify-diagnostics

ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x", ax.sharding = #ax.sharding<() -> ([{}, {}])>}) -> (tensor<4x64xf32> {ax.name = "y"}) {
    // expected-error @+1 {{has no ax.sharding: ax-propagate goes before ax-insert-reshards}}
    %y = ax.unary relu %x : tensor<4x64xf32> -> tensor<4x64xf32>
    ax.return %y : tensor<4x64xf32>
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x", ax.sharding = #ax.sharding<() -> ([{}, {}])>}) -> (tensor<4x64xf32> {ax.name = "y"}) {
    // expected-error @+1 {{of node 'act' has an ax.sharding that its rule does not allow: result 0 is [{}, {}], by the others it is [{}, {col}]}}
    %y = ax.unary relu %x {ax.sharding = #ax.sharding<([{}, {col}]) -> ([{}, {}])>, node = "act"} : tensor<4x64xf32> -> tensor<4x64xf32>
    ax.return %y : tensor<4x64xf32>
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.program @main(%x: tensor<4x64xf32> {ax.name = "x", ax.sharding = #ax.sharding<() -> ([{}, {}])>}) -> (tensor<4x64xf32> {ax.name = "y"}) {
    // expected-error @+1 {{has an ax.sharding that its rule does not allow}}
    %y = ax.unary relu %x {ax.sharding = #ax.sharding<([{}, {}] partial sum {col}) -> ([{}, {}] partial sum {col})>} : tensor<4x64xf32> -> tensor<4x64xf32>
    ax.return %y : tensor<4x64xf32>
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 1, data = 1, depth = 1, row = 1, col = 2] in time [micro = 1]
  ax.state @w1 : tensor<64x256xf32> from "w" offset 0 length 65536
  ax.program @first(%x: tensor<4x64xf32> {ax.name = "x", ax.sharding = #ax.sharding<() -> ([{}, {}])>}) -> (tensor<4x256xf32> {ax.name = "y"}) {
    %w = ax.load @w1 {ax.sharding = #ax.sharding<() -> ([{}, {col}])>} : tensor<64x256xf32>
    %y = ax.linear %x, %w {ax.sharding = #ax.sharding<([{}, {}], [{}, {}]) -> ([{}, {}])>} : tensor<4x64xf32>, tensor<64x256xf32> -> tensor<4x256xf32>
    ax.return %y : tensor<4x256xf32>
  }
  ax.program @second(%x: tensor<4x64xf32> {ax.name = "x", ax.sharding = #ax.sharding<() -> ([{}, {}])>}) -> (tensor<4x256xf32> {ax.name = "y"}) {
    // expected-error @+1 {{and a load of the state before it}}
    %w = ax.load @w1 {ax.sharding = #ax.sharding<() -> ([{}, {}])>} : tensor<64x256xf32>
    %y = ax.linear %x, %w {ax.sharding = #ax.sharding<([{}, {}], [{}, {}]) -> ([{}, {}])>} : tensor<4x64xf32>, tensor<64x256xf32> -> tensor<4x256xf32>
    ax.return %y : tensor<4x256xf32>
  }
}
