// RUN: axopt-opt %s -split-input-file -verify-diagnostics

ax.plan @p version 1 {
  ax.mesh [row = 2, col = 4]
  ax.program @main(%x: tensor<8x8xf32, #ax.layout<[{}, {}], partial sum {col}>>) {
    // expected-error @+1 {{changes more than the layout:}}
    %0 = ax.all_reduce %x over {col} : tensor<8x8xf32, #ax.layout<[{}, {}], partial sum {col}>> -> tensor<8x4xf32, #ax.layout<[{}, {}]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [row = 2, col = 4]
  ax.program @main(%x: tensor<8x8xf32, #ax.layout<[{}, {}], partial sum {col}>>) {
    // expected-error @+1 {{names an axis that the mesh lacks: line}}
    %0 = ax.all_reduce %x over {line} : tensor<8x8xf32, #ax.layout<[{}, {}], partial sum {col}>> -> tensor<8x8xf32, #ax.layout<[{}, {}]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [row = 2, col = 4]
  ax.program @main(%x: tensor<8x8xf32, #ax.layout<[{}, {}], partial sum {col}>>) {
    // expected-error @+1 {{names an axis that the mesh lacks: col:(1)3}}
    %0 = ax.all_reduce %x over {col:(1)3} : tensor<8x8xf32, #ax.layout<[{}, {}], partial sum {col}>> -> tensor<8x8xf32, #ax.layout<[{}, {}]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [row = 2, col = 4]
  ax.program @main(%x: tensor<8x8xf32, #ax.layout<[{}, {}], partial sum {col}>>) {
    // expected-error @+1 {{no all_reduce over {row} leads from [{}, {}], partial sum {col} to [{}, {}]; all_reduce over {col} does}}
    %0 = ax.all_reduce %x over {row} : tensor<8x8xf32, #ax.layout<[{}, {}], partial sum {col}>> -> tensor<8x8xf32, #ax.layout<[{}, {}]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [row = 2, col = 4]
  ax.program @main(%x: tensor<8x8xf32, #ax.layout<[{}, {}], partial sum {col}>>) {
    // expected-error @+1 {{no reduce_scatter over {col} leads from [{}, {}], partial sum {col} to [{}, {}]; all_reduce over {col} does}}
    %0 = ax.reduce_scatter %x over {col} : tensor<8x8xf32, #ax.layout<[{}, {}], partial sum {col}>> -> tensor<8x8xf32, #ax.layout<[{}, {}]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [row = 2, col = 4]
  ax.program @main(%x: tensor<8x8xf32, #ax.layout<[{col}, {}]>>) {
    // expected-error @+1 {{no all_gather over {col} leads from [{col}, {}] to [{col}, {}]: they are the same layout}}
    %0 = ax.all_gather %x over {col} : tensor<8x8xf32, #ax.layout<[{col}, {}]>> -> tensor<8x8xf32, #ax.layout<[{col}, {}]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [row = 2, col = 4]
  ax.program @main(%x: tensor<8x8xf32, #ax.layout<[{col}, {}]>>) {
    // expected-error @+1 {{no all_slice over {col} leads from [{col}, {}] to [{}, {}]; all_gather over {col} does}}
    %0 = ax.all_slice %x over {col} : tensor<8x8xf32, #ax.layout<[{col}, {}]>> -> tensor<8x8xf32, #ax.layout<[{}, {}]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [row = 2, col = 4]
  ax.program @main(%x: tensor<8x8xf32, #ax.layout<[{col}, {}]>>) {
    // expected-error @+1 {{no all_to_all over {row} leads from [{col}, {}] to [{}, {col}]; all_to_all over {col} does}}
    %0 = ax.all_to_all %x over {row} : tensor<8x8xf32, #ax.layout<[{col}, {}]>> -> tensor<8x8xf32, #ax.layout<[{}, {col}]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [row = 2, col = 4]
  ax.program @main(%x: tensor<8x8xf32, #ax.layout<[{col}, {}]>>) {
    // expected-error @+1 {{no collective_permute over {col} leads from [{col}, {}] to [{row}, {}]}}
    %0 = ax.collective_permute %x over {col} : tensor<8x8xf32, #ax.layout<[{col}, {}]>> -> tensor<8x8xf32, #ax.layout<[{row}, {}]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [row = 2, col = 4]
  ax.program @main(%x: tensor<8x8xf32, #ax.layout<[{}, {}]>>) {
    // expected-error @+1 {{no to_partial over {col} leads from [{}, {}] to [{}, {}]: they are the same layout}}
    %0 = ax.to_partial %x over {col} : tensor<8x8xf32, #ax.layout<[{}, {}]>> -> tensor<8x8xf32, #ax.layout<[{}, {}]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 4]
  ax.program @main(%x: tensor<8x8xf32, #ax.layout<[{}, {}]>>) {
    // expected-error @+1 {{exchanges nothing: there is nothing to start}}
    %0 = ax.all_slice %x over {col} start : tensor<8x8xf32, #ax.layout<[{}, {}]>> -> tensor<8x8xf32, #ax.layout<[{col}, {}]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 4]
  ax.program @main(%x: tensor<8x8xf32, #ax.layout<[{}, {}], partial sum {col}>>) {
    // expected-error @+1 {{is started: its result has one use, an ax.wait of the same stage}}
    %0 = ax.all_reduce %x over {col} start : tensor<8x8xf32, #ax.layout<[{}, {}], partial sum {col}>> -> tensor<8x8xf32, #ax.layout<[{}, {}]>>
    %1 = ax.unary neg %0 : tensor<8x8xf32, #ax.layout<[{}, {}]>> -> tensor<8x8xf32, #ax.layout<[{}, {}]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 4]
  ax.program @main(%x: tensor<8x8xf32, #ax.layout<[{}, {}], partial sum {col}>>) {
    %0 = ax.all_reduce %x over {col} : tensor<8x8xf32, #ax.layout<[{}, {}], partial sum {col}>> -> tensor<8x8xf32, #ax.layout<[{}, {}]>>
    // expected-error @+1 {{waits for a value that no collective with `start` gives}}
    %1 = ax.wait %0 : tensor<8x8xf32, #ax.layout<[{}, {}]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 4]
  ax.program @main(%x: tensor<8xf32, #ax.layout<[{}], partial sum {col}>>, %y: tensor<8xf32, #ax.layout<[{}]>>) {
    // expected-error @+1 {{no all_reduce over {col} leads from [{}] to [{}]: they are the same layout}}
    %0:2 = ax.all_reduce %x, %y over {col} : tensor<8xf32, #ax.layout<[{}], partial sum {col}>>, tensor<8xf32, #ax.layout<[{}]>> -> tensor<8xf32, #ax.layout<[{}]>>, tensor<8xf32, #ax.layout<[{}]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 4]
  ax.program @main(%x: tensor<8xf32, #ax.layout<[{}], partial sum {col}>>, %y: tensor<8xf32, #ax.layout<[{}], partial max {col}>>) {
    // expected-error @+1 {{they need one element type, which of addends of narrow floats is f32, and one kind of sum}}
    %0:2 = ax.all_reduce %x, %y over {col} : tensor<8xf32, #ax.layout<[{}], partial sum {col}>>, tensor<8xf32, #ax.layout<[{}], partial max {col}>> -> tensor<8xf32, #ax.layout<[{}]>>, tensor<8xf32, #ax.layout<[{}]>>
    ax.return
  }
}

// -----

// Of bf16 both, but the addend is f32 where it is held.
ax.plan @p version 1 {
  ax.mesh [row = 2, col = 4]
  ax.program @main(%x: tensor<8xbf16, #ax.layout<[{col}], partial sum {row}>>, %y: tensor<8xbf16, #ax.layout<[{col}]>>) {
    // expected-error @+1 {{they need one element type, which of addends of narrow floats is f32}}
    %0:2 = ax.all_gather %x, %y over {col} : tensor<8xbf16, #ax.layout<[{col}], partial sum {row}>>, tensor<8xbf16, #ax.layout<[{col}]>> -> tensor<8xbf16, #ax.layout<[{}], partial sum {row}>>, tensor<8xbf16, #ax.layout<[{}]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 4]
  ax.program @main(%x: tensor<8xf32, #ax.layout<[{}], partial sum {col}>>, %y: tensor<8xf32, #ax.layout<[{}], partial sum {col}>>) {
    // expected-error @+1 {{has 2 operands and 1 results: each result is an operand in another layout}}
    %0 = "ax.all_reduce"(%x, %y) {axes = #ax.axes<{col}>} : (tensor<8xf32, #ax.layout<[{}], partial sum {col}>>, tensor<8xf32, #ax.layout<[{}], partial sum {col}>>) -> tensor<8xf32, #ax.layout<[{}]>>
    ax.return
  }
}
