// RUN: axopt-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{sub-axis sizes are at least 1}}
%0 = ax.iota dim 0 : tensor<4xf32, #ax.layout<[{col:(0)2}]>>

// -----

// expected-error @+1 {{factor sizes are at least 1}}
%0 = ax.iota dim 0 : tensor<4xf32, #ax.layout<[0{col} * 4]>>

// -----

// expected-error @+1 {{expected sum, max or min, got 'mean'}}
%0 = ax.iota dim 0 : tensor<4xf32, #ax.layout<[{}], partial mean {col}>>

// -----

ax.plan @p version 1 {
  ax.mesh [col = 4]
  ax.program @main() {
    // expected-error @+1 {{the layout has 2 dimensions, the tensor 1}}
    %0 = ax.iota dim 0 : tensor<4xf32, #ax.layout<[{}, {}]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 4]
  ax.program @main() {
    // expected-error @+1 {{result 'tensor<4xf32, #ax.layout<[{row}]>>': the mesh has no axis 'row'}}
    %0 = ax.iota dim 0 : tensor<4xf32, #ax.layout<[{row}]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 4]
  ax.program @main() {
    // expected-error @+1 {{'col:(1)3' is no digit of axis 'col' of size 4}}
    %0 = ax.iota dim 0 : tensor<4xf32, #ax.layout<[{col:(1)3}]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 2]
  ax.program @main(%x: tensor<4x8xf8E5M2>) {
    // expected-error @+1 {{result 'tensor<4x8xf8E5M2, #ax.layout<[{}, {}], partial sum {col}>>': floats of eight bits are no addends}}
    %0 = ax.to_partial %x over {col} : tensor<4x8xf8E5M2> -> tensor<4x8xf8E5M2, #ax.layout<[{}, {}], partial sum {col}>>
    ax.return
  }
}

// -----

// Of a maximum, numbers of eight bits are as good as any.
ax.plan @p version 1 {
  ax.mesh [col = 2]
  ax.program @main(%x: tensor<4x8xf8E5M2>) {
    %0 = ax.to_partial %x over {col} : tensor<4x8xf8E5M2> -> tensor<4x8xf8E5M2, #ax.layout<[{}, {}], partial max {col}>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 4]
  ax.program @main() {
    // expected-error @+1 {{axis 'col' is used twice}}
    %0 = ax.iota dim 0 : tensor<4x4xf32, #ax.layout<[{col}, {col}]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 4]
  ax.program @main() {
    // expected-error @+1 {{dimension 0: an empty dimension cannot be split}}
    %0 = ax.iota dim 0 : tensor<0xf32, #ax.layout<[{col}]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 4]
  ax.program @main() {
    // expected-error @+1 {{dimension 0: factors do not multiply to 8}}
    %0 = ax.iota dim 0 : tensor<8xf32, #ax.layout<[4{col} * 4]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 4]
  ax.program @main() {
    // expected-error @+1 {{dimension 0: factors multiply to 4, the tensor has 8}}
    %0 = ax.iota dim 0 : tensor<8xf32, #ax.layout<[2 * 2]>>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 4]
  ax.program @main() {
    // expected-error @+1 {{dimension 0: factor 2 of a compound dimension does not divide over 4 parts}}
    %0 = ax.iota dim 0 : tensor<8xf32, #ax.layout<[4 * 2{col}]>>
    ax.return
  }
}
