// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-update-pins))' | FileCheck %s
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-update-pins{zero=1}))' | FileCheck %s --check-prefix=ONE
// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-update-pins{zero=3}))' | FileCheck %s --check-prefix=THREE

// The gradient is summed to where its weight is, and there the weight is updated.
// CHECK: ax.load @w {ax.pins = [#ax.pin<[{}, {}] here_only because "weights are updated there">]}
// CHECK: ax.dot {{.*}}ax.pins = [#ax.pin<[{}, {}] here_only because "weights are updated there">]
// CHECK: ax.binary sub {{.*}}ax.pins = [#ax.pin<[{}, {}] because "weights are updated there">]

// Ranks along data update a part each, of a weight that all have, ...
// ONE: ax.load @w {ax.pins = [#ax.pin<[{}, {}] here_only because "--zero=1">]}
// ONE: ax.dot {{.*}}ax.pins = [#ax.pin<[{data}, {}] here_only because "--zero=1">]
// ONE: ax.binary sub {{.*}}ax.pins = [#ax.pin<[{data}, {}] because "--zero=1">]

// ... or of one that each has a part of.
// THREE: ax.load @w {ax.pins = [#ax.pin<[{data}, {}] here_only because "--zero=3">]}
// THREE: ax.dot {{.*}}ax.pins = [#ax.pin<[{data}, {}] here_only because "--zero=3">]

// In mixed precision what is stored in parts is rounded in parts, for both
// passes, and what is summed to where it is needed was widened before.
// THREE-LABEL: ax.program @mixed
// THREE: ax.load @w {ax.pins = [#ax.pin<[{data}, {}] here_only because "--zero=3">]}
// THREE-NEXT: ax.cast %{{.*}}#ax.factor_pin<operand 0 dim 0 = {data} because {{.*}}#ax.pin<[{data}, {}] here_only because "--zero=3">]
// THREE: ax.cast %{{.*}}#ax.factor_pin<operand 0 dim 0 = {data} because {{.*}}#ax.pin<[{data}, {}] here_only because "--zero=3">]
// THREE: ax.dot %{{.*}} contract [0] x [0] {ax.action = "B"} : tensor<4x4xbf16>, tensor<4x8xbf16>
// THREE-NEXT: ax.cast %{{.*}}#ax.factor_pin<operand 0 dim 0 = {} because {{.*}}#ax.pin<[{data}, {}] here_only because "--zero=3">]
ax.plan @p version 3 {
  ax.mesh [pipe = 1, data = 2, depth = 1, row = 1, col = 1] in time [micro = 1]
  ax.state @w : tensor<4x8xf32> from "w" offset 0 length 128 {trainable}
  ax.program @train(%x: tensor<4x4xf32> {ax.name = "x", ax.pins = [#ax.pin<[{data}, ?] open because "the batch is split">]}) -> (tensor<4x8xf32> {ax.name = "y"}) {
    %w = ax.load @w : tensor<4x8xf32>
    %y = ax.linear %x, %w : tensor<4x4xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    %g = ax.dot %x, %y batch [] x [] contract [0] x [0] {ax.action = "B"} : tensor<4x4xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    %u = ax.binary sub %w, %g {ax.action = "U"} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    ax.store @w, %u {ax.action = "U"} : tensor<4x8xf32>
    ax.return %y : tensor<4x8xf32>
  }
  ax.program @mixed(%x: tensor<4x4xbf16> {ax.name = "x", ax.pins = [#ax.pin<[{data}, ?] open because "the batch is split">]}) -> (tensor<4x8xbf16> {ax.name = "y"}, tensor<4x4xbf16> {ax.name = "dx"}) {
    %w = ax.load @w : tensor<4x8xf32>
    %f = ax.cast %w : tensor<4x8xf32> -> tensor<4x8xbf16>
    %y = ax.linear %x, %f : tensor<4x4xbf16>, tensor<4x8xbf16> -> tensor<4x8xbf16>
    %b = ax.cast %w {ax.action = "B"} : tensor<4x8xf32> -> tensor<4x8xbf16>
    %dx = ax.dot %y, %b batch [] x [] contract [1] x [1] {ax.action = "B"} : tensor<4x8xbf16>, tensor<4x8xbf16> -> tensor<4x4xbf16>
    %d = ax.dot %x, %y batch [] x [] contract [0] x [0] {ax.action = "B"} : tensor<4x4xbf16>, tensor<4x8xbf16> -> tensor<4x8xbf16>
    %g = ax.cast %d {ax.action = "B"} : tensor<4x8xbf16> -> tensor<4x8xf32>
    %u = ax.binary sub %w, %g {ax.action = "U"} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
    ax.store @w, %u {ax.action = "U"} : tensor<4x8xf32>
    ax.return %y, %dx : tensor<4x8xbf16>, tensor<4x4xbf16>
  }
}
