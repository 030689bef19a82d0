// RUN: axopt-opt %s -split-input-file -verify-diagnostics

ax.plan @p version 1 {
  ax.mesh [pipe = 2]
  ax.program @main(%x: tensor<4xf32>) {
    // expected-error @+1 {{names stage 2 of a mesh with pipe = 2}}
    ax.stage @s on 2 () {
      ax.yield
    }
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 2]
  ax.program @main(%x: tensor<4xf32>) {
    // expected-error @+1 {{names stage -1 of a mesh with pipe = 2}}
    ax.stage @s on -1 () {
      ax.yield
    }
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 1]
  ax.program @main(%x: tensor<4xf32>) {
    // expected-error @+1 {{operands and region arguments differ in type}}
    "ax.stage"(%x) <{on = 0 : i64, sym_name = "s"}> ({
    ^bb0(%a: tensor<8xf32>):
      ax.yield
    }) : (tensor<4xf32>) -> ()
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 1]
  ax.program @main(%x: tensor<4xf32>) {
    // expected-error @+1 {{'ax.stage' op must end with ax.yield}}
    ax.stage @s on 0 (%a = %x : tensor<4xf32>) {
      %0 = ax.unary exp %a : tensor<4xf32> -> tensor<4xf32>
    }
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 1]
  ax.program @main(%x: tensor<4xf32>) {
    // expected-error @+1 {{'ax.stage' op expects a non-empty block}}
    "ax.stage"() <{on = 0 : i64, sym_name = "s"}> ({
    ^bb0:
    }) : () -> ()
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 1]
  ax.program @main(%x: tensor<4xf32>) {
    // expected-error @+1 {{yields other types than its results have}}
    %s = ax.stage @s on 0 (%a = %x : tensor<4xf32>) -> (tensor<8xf32>) {
      ax.yield %a : tensor<4xf32>
    }
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 2]
  ax.program @main(%x: tensor<4xf32>) {
    // expected-error @+1 {{is from stage 1 to itself}}
    %0 = ax.transfer %x from 1 to 1 slots 1 : tensor<4xf32>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 2]
  ax.program @main(%x: tensor<4xf32>) {
    // expected-error @+1 {{has 0 slots; at least one is needed}}
    %0 = ax.transfer %x from 0 to 1 slots 0 : tensor<4xf32>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 2]
  ax.program @main(%x: tensor<4xf32>) {
    // expected-error @+1 {{has -1 slots; at least one is needed}}
    %0 = ax.transfer %x from 0 to 1 slots -1 : tensor<4xf32>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 2]
  ax.program @main(%x: tensor<4xf32>) {
    // expected-error @+1 {{names stage 5 of a mesh with pipe = 2}}
    %0 = ax.transfer %x from 0 to 5 slots 1 : tensor<4xf32>
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 2]
  ax.program @main(%x: tensor<4xf32>) {
    // expected-error @+1 {{expected stage 0}}
    ax.schedule "forward" { stage 1: "F0" }
    ax.return
  }
}

// -----

ax.plan @p version 1 {
  ax.mesh [pipe = 2]
  ax.program @main(%x: tensor<4xf32>) {
    // expected-error @+1 {{has 1 stages, the mesh has 2}}
    ax.schedule "forward" { stage 0: "F0" }
    ax.return
  }
}
