// What training takes a result for is said by its role, once, in plans of a
// version that has roles.
// RUN: axopt %s --verify | FileCheck %s --check-prefix=GOOD
// RUN: sed 's/version 3/version 2/' %s > %t.old.mlir
// RUN: %exit 5 axopt %t.old.mlir --verify 2>&1 | FileCheck %s --check-prefix=OLD
// RUN: sed 's/#ax.role<gradient_norm>/#ax.role<loss>/' %s > %t.twice.mlir
// RUN: %exit 5 axopt %t.twice.mlir --verify 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: sed 's/#ax.role<loss>/"loss"/' %s > %t.text.mlir
// RUN: %exit 5 axopt %t.text.mlir --verify 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: sed 's/, ax.role = #ax.role<gradient_norm>//' %s > %t.norm.mlir
// RUN: %exit 5 axopt %t.norm.mlir --verify 2>&1 | FileCheck %s --check-prefix=NORM
// RUN: sed 's/#ax.role<loss>/#ax.role<cost>/' %s > %t.none.mlir
// RUN: %exit 5 axopt %t.none.mlir --verify 2>&1 | FileCheck %s --check-prefix=NONE

// Older plans have names in place of roles.
// RUN: sed 's/version 3/version 1/; s/, ax.role = #ax.role<[a-z_]*>//g; s/"a"/"loss"/; s/"b"/"gradient_norm"/' %s > %t.names.mlir
// RUN: axopt %t.names.mlir | FileCheck %s --check-prefix=NAMES
// NAMES: ax.plan @p version 3
// NAMES: {ax.name = "loss", ax.role = #ax.role<loss>}{{.*}}{ax.name = "gradient_norm", ax.role = #ax.role<gradient_norm>}

// GOOD: verified
// OLD: 'ax.program' op has a result with an 'ax.role', which version 2 has not
// TWICE: 'ax.program' op has two results of the role #ax.role<loss>
// TEXT: 'ax.program' op ax.role of a result is a role, got "loss"
// NORM: 'ax.program' op trains, but no output has the role 'gradient_norm'
// NONE: expected ::ax::ResultRole to be one of
ax.plan @p version 3 {
  ax.mesh [pipe = 1]
  ax.state @k : tensor<i64> stages [0]
  ax.program @main(%x: tensor<f32> {ax.name = "x"}) -> (tensor<f32> {ax.name = "a", ax.role = #ax.role<loss>}, tensor<f32> {ax.name = "b", ax.role = #ax.role<gradient_norm>}) {
    %s:2 = ax.stage @f on 0 (%w = %x : tensor<f32>) -> (tensor<f32>, tensor<f32>) attributes {ax.action = "U"} {
      %k = ax.load @k : tensor<i64>
      %one = ax.constant dense<1> : tensor<i64> -> tensor<i64>
      %next = ax.binary add %k, %one : tensor<i64>, tensor<i64> -> tensor<i64>
      %inf = ax.constant dense<0x7F800000> : tensor<f32> -> tensor<f32>
      %y = ax.unary exp %w : tensor<f32> -> tensor<f32>
      %m0 = ax.unary abs %w : tensor<f32> -> tensor<f32>
      %m1 = ax.unary abs %y : tensor<f32> -> tensor<f32>
      %c0 = ax.compare lt %m0, %inf : tensor<f32>, tensor<f32> -> tensor<i1>
      %c1 = ax.compare lt %m1, %inf : tensor<f32>, tensor<f32> -> tensor<i1>
      %ok = ax.binary logical_and %c0, %c1 : tensor<i1>, tensor<i1> -> tensor<i1>
      %new = ax.select %ok, %next, %k : tensor<i1>, tensor<i64>, tensor<i64> -> tensor<i64>
      ax.store @k, %new : tensor<i64>
      ax.yield %w, %y : tensor<f32>, tensor<f32>
    }
    ax.schedule "forward" { stage 0: "U" }
    ax.return %s#0, %s#1 : tensor<f32>, tensor<f32>
  }
}
