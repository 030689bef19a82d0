// RUN: axopt-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{has version 7; this build reads version 1}}
ax.plan @p version 7 {
}

// -----

// expected-error @below {{has a 'ax.unbatched' that lists no names}}
ax.plan @p version 1 attributes {ax.unbatched = ["x", 1]} {
}

// -----

// expected-error @+1 {{has version -1; this build reads version 1}}
ax.plan @p version -1 {
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{'ax.iota' op does not belong directly into a plan}}
  %0 = ax.iota dim 0 : tensor<4xf32>
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 2]
  // expected-error @+1 {{is the plan's second mesh}}
  ax.mesh [col = 2]
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{'ax.mesh' op needs one size per axis}}
  "ax.mesh"() <{names = ["col"], num_space = 1 : i64, sizes = array<i64: 2, 2>}> : () -> ()
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{'ax.mesh' op needs one size per axis}}
  "ax.mesh"() <{names = ["col"], num_space = 2 : i64, sizes = array<i64: 2>}> : () -> ()
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{'ax.mesh' op needs one size per axis}}
  "ax.mesh"() <{names = ["col"], num_space = -1 : i64, sizes = array<i64: 2>}> : () -> ()
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{has two axes named 'col'}}
  ax.mesh [col = 2, col = 2]
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{axis 'col' has size 0; 1 .. 16777216 is possible}}
  ax.mesh [col = 0]
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{axis 'micro' has size -1; 1 .. 16777216 is possible}}
  ax.mesh [col = 1] in time [micro = -1]
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{axis 'pipe' says which rank it is: it cannot be in time}}
  ax.mesh [data = 1] in time [pipe = 2]
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{has more than 16777216 ranks and slices}}
  ax.mesh [row = 8192] in time [micro = 8192]
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{must be a tensor of static shape, got 'tensor<?xf32>'}}
  ax.state @w : tensor<?xf32> from "w" offset 0 length 16
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{must be a tensor of static shape, got 'f32'}}
  ax.state @w : f32 from "w" offset 0 length 4
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{of type 'tensor<4xf32>' does not have 12 bytes at offset 0}}
  ax.state @w : tensor<4xf32> from "w" offset 0 length 12
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{of type 'tensor<4xf32>' does not have 16 bytes at offset -8}}
  ax.state @w : tensor<4xf32> from "w" offset -8 length 16
}

// -----

ax.plan @p version 4 {
  // expected-error @+1 {{of type 'tensor<4xf32>' does not have 16 bytes at offset 0}}
  ax.state @w : tensor<4xf32> from "w" offset 0 length 16 as bf16
}

// -----

ax.plan @p version 4 {
  // expected-error @+1 {{of type 'tensor<4xf32>' is read as 'f64': only f32 has another type in a file, f16 or bf16}}
  ax.state @w : tensor<4xf32> from "w" offset 0 length 32 as f64
}

// -----

ax.plan @p version 4 {
  // expected-error @+1 {{of type 'tensor<4xi32>' is read as 'f16': only f32 has another type in a file, f16 or bf16}}
  ax.state @w : tensor<4xi32> from "w" offset 0 length 8 as f16
}

// -----

ax.plan @p version 4 {
  // expected-error @+1 {{is read as 'f16', but has no file}}
  "ax.state"() <{sym_name = "w", type = tensor<4xf32>, file_type = f16}> : () -> ()
}

// -----

ax.plan @p version 3 {
  // expected-error @+1 {{is read as 'bf16', which version 3 has not}}
  ax.state @w : tensor<4xf32> from "w" offset 0 length 8 as bf16
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{of type 'tensor<0xf32>' does not have -16 bytes at offset 0}}
  ax.state @w : tensor<0xf32> from "w" offset 0 length -16
}

// -----

ax.plan @p version 1 {
  // 2^64 elements are not 0 bytes.
  // expected-error @+1 {{does not have 0 bytes at offset 0}}
  ax.state @w : tensor<4294967296x4294967296xi8> from "w" offset 0 length 0
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{state has an encoding that is no layout: "columns"}}
  ax.state @w : tensor<4xf32, "columns"> from "w" offset 0 length 16
}

// -----

ax.plan @p version 1 {
  ax.program @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{there is no state @w}}
    %w = ax.load @w : tensor<4xf32>
    ax.return %w : tensor<4xf32>
  }
}

// -----

ax.plan @p version 1 {
  ax.state @w : tensor<4xf32> from "w" offset 0 length 16
  ax.program @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error @+1 {{gives 'tensor<8xf32>', the state @w is 'tensor<4xf32>'}}
    %w = ax.load @w : tensor<8xf32>
    ax.return %w : tensor<8xf32>
  }
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{region #0 ('body') failed to verify constraint: region with 1 blocks}}
  ax.program @main(tensor<4xf32>) -> tensor<4xf32>
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{inputs and outputs must be tensors of static shape, got 'tensor<?xf32>'}}
  ax.program @main(%x: tensor<?xf32>) {
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{inputs and outputs must be tensors of static shape, got 'i32'}}
  ax.program @main() -> i32 {
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.program @main(%x: tensor<4xf32>) -> tensor<8xf32> {
    // expected-error @+1 {{operands do not have the program's result types}}
    ax.return %x : tensor<4xf32>
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [col = 2]
  // expected-error @+1 {{input 'tensor<4xf32, #ax.layout<[{row}]>>': the mesh has no axis 'row'}}
  ax.program @main(%x: tensor<4xf32, #ax.layout<[{row}]>>) {
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{ax.labels of an input of i64 needs the i64 numbers classes, ignore_index and shift, got {classes = 3 : i64} of 'tensor<4xi64>'}}
  ax.program @main(%x: tensor<4xi64> {ax.labels = {classes = 3}}) {
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{ax.labels of an input of i64 needs}}
  ax.program @main(%x: tensor<4xf32> {ax.labels = {classes = 3, ignore_index = 0, shift = 0}}) {
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{ax.labels of an input of i64 needs}}
  ax.program @main(%x: tensor<4xi64> {ax.labels = {classes = -3, ignore_index = 0, shift = 0}}) {
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{ax.samples of a result is the i64 number of one of its dimensions, got 1 : i64 of 'tensor<4xf32>'}}
  ax.program @main(%x: tensor<4xf32>) -> (tensor<4xf32> {ax.samples = 1}) {
    ax.return %x : tensor<4xf32>
  }
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{ax.samples of a result is the i64 number of one of its dimensions, got "x" of 'tensor<4xf32>'}}
  ax.program @main(%x: tensor<4xf32>) -> (tensor<4xf32> {ax.samples = "x"}) {
    ax.return %x : tensor<4xf32>
  }
}

// -----

ax.plan @p version 1 {
  // expected-error @+1 {{dimension 1 of the result 'tensor<4x6xf32>' cannot count samples: the inputs take batches of 4}}
  ax.program @main(%x: tensor<4x6xf32>) -> (tensor<4x6xf32> {ax.samples = 1}) {
    ax.return %x : tensor<4x6xf32>
  }
}

// -----

ax.plan @p version 1 attributes {ax.unbatched = ["x"]} {
  // expected-error @+1 {{dimension 0 of the result 'tensor<4xf32>' cannot count samples: the inputs take no batches}}
  ax.program @main(%x: tensor<4xf32> {ax.name = "x"}) -> (tensor<4xf32> {ax.samples = 0}) {
    ax.return %x : tensor<4xf32>
  }
}

// -----

ax.plan @p version 5 {
  // expected-error @+1 {{of type 'tensor<8x4xf32>' is not dealt so: there is no dimension 2}}
  ax.state @w : tensor<8x4xf32> dealt <[4, 4] to 2 along 2>
}

// -----

ax.plan @p version 5 {
  // expected-error @+1 {{is not dealt so: its parts are 6 of the 8 elements of dimension 0}}
  ax.state @w : tensor<8x4xf32> dealt <[4, 2] to 2 along 0>
}

// -----

ax.plan @p version 5 {
  // expected-error @+1 {{is not dealt so: its parts are more than the 8 elements of dimension 0}}
  ax.state @w : tensor<8x4xf32> dealt <[4, 9223372036854775806, 4] to 2 along 0>
}

// -----

ax.plan @p version 5 {
  // expected-error @+1 {{is not dealt so: a part of 5 is not dealt to 2 hands evenly}}
  ax.state @w : tensor<8x4xf32> dealt <[5, 3] to 2 along 0>
}

// -----

ax.plan @p version 5 {
  // expected-error @+1 {{is not dealt so: a part of -4 is not dealt to 2 hands evenly}}
  ax.state @w : tensor<8x4xf32> dealt <[4, -4, 8] to 2 along 0>
}

// -----

ax.plan @p version 5 {
  // expected-error @+1 {{is dealt, but prepared: no model has an order of it}}
  ax.state @w : tensor<8x4xf32> dealt <[4, 4] to 2 along 0> {prepared}
}

// -----

ax.plan @p version 4 {
  // expected-error @+1 {{is dealt, which version 4 has not}}
  ax.state @w : tensor<8x4xf32> dealt <[4, 4] to 2 along 0>
}

// -----

ax.plan @p version 5 {
  // expected-error @+1 {{is not dealt so: there are at least 2 hands}}
  ax.state @w : tensor<8x4xf32> dealt <[4, 4] to 1 along 0>
}

// -----

ax.plan @p version 5 {
  // expected-error @+1 {{expected '['}}
  ax.state @w : tensor<8x4xf32> dealt <4 to 2 along 0>
}
