// RUN: axopt-opt %s --pass-pipeline='builtin.module(ax.plan(ax-select-trainable))' --split-input-file 2>&1 | FileCheck %s

// What the file says comes first: a parameter that meets nothing, a buffer that
// meets a Linear's result. What values say counts in arithmetic, and a mask is a
// weight where a layer takes it as one. What a layer takes as data, and what makes
// more of the input, are parameters; what scales the input is none, but where an
// operator takes it as its parameter: what that made meets a parameter.
// CHECK: remark: trained: 2 parameters, as the file says (declared, declared.scale); 6 by what is done with them (w, eye, query, tokens, gamma, position)
// CHECK-NEXT: not trained: 1 buffers, as the file says (buffer); 1 masks (mask); 1 by what is done with them (deviation); 1 tables of sines (sines)
// CHECK-NOT: ax.weight_kind
ax.plan @p version 1 {
  ax.state @declared : tensor<4xf32> from "w" offset 0 length 16 {ax.weight_kind = "parameter"}
  ax.state @declared.scale : tensor<f32> from "w" offset 0 length 4 {ax.weight_kind = "parameter"}
  ax.state @buffer : tensor<4xf32> from "w" offset 0 length 16 {ax.weight_kind = "buffer"}
  ax.state @mask : tensor<4xf32> from "w" offset 0 length 16 {ax.weight_kind = "mask"}
  ax.state @w : tensor<4x4xf32> from "w" offset 0 length 64
  ax.state @eye : tensor<4x4xf32> from "w" offset 0 length 64 {ax.weight_kind = "mask"}
  ax.state @query : tensor<2x4xf32> from "w" offset 0 length 32
  ax.state @tokens : tensor<4x4xf32> from "w" offset 0 length 64
  ax.state @deviation : tensor<4x1xf32> from "w" offset 0 length 16
  ax.state @gamma : tensor<1xf32> from "w" offset 0 length 4 {ax.weight_kind = "layer_parameter"}
  ax.state @position : tensor<4x1xf32> from "w" offset 0 length 16
  ax.state @sines : tensor<8x4xf32> from "w" offset 0 length 128 {ax.weight_kind = "sines"}
  ax.program @main(%x: tensor<4x1xf32>, %i: tensor<4xi64>) -> (tensor<2x4xf32>, tensor<4x4xf32>, tensor<4x1xf32>) {
    %query = ax.load @query : tensor<2x4xf32>
    %w = ax.load @w : tensor<4x4xf32>
    %eye = ax.load @eye : tensor<4x4xf32>
    %a = ax.linear %query, %w : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
    %b = ax.linear %a, %eye : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
    %buffer = ax.load @buffer : tensor<4xf32>
    %c = ax.binary add %b, %buffer : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>
    %mask = ax.load @mask : tensor<4xf32>
    %d = ax.binary add %c, %mask : tensor<2x4xf32>, tensor<4xf32> -> tensor<2x4xf32>
    %deviation = ax.load @deviation : tensor<4x1xf32>
    %normal = ax.binary div %x, %deviation : tensor<4x1xf32>, tensor<4x1xf32> -> tensor<4x1xf32>
    %tokens = ax.load @tokens : tensor<4x4xf32>
    %e = ax.binary mul %normal, %tokens : tensor<4x1xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %sines = ax.load @sines : tensor<8x4xf32>
    %place = ax.gather %sines[%i] axis 0 : tensor<8x4xf32>, tensor<4xi64> -> tensor<4x4xf32>
    %f = ax.binary add %e, %place : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    %gamma = ax.load @gamma : tensor<1xf32>
    %column = ax.reshape %gamma : tensor<1xf32> -> tensor<1x1xf32>
    %scaled = ax.binary mul %x, %column : tensor<4x1xf32>, tensor<1x1xf32> -> tensor<4x1xf32>
    %position = ax.load @position : tensor<4x1xf32>
    %g = ax.binary add %scaled, %position : tensor<4x1xf32>, tensor<4x1xf32> -> tensor<4x1xf32>
    ax.return %d, %f, %g : tensor<2x4xf32>, tensor<4x4xf32>, tensor<4x1xf32>
  }
}

// -----

// Added to scores: of all of several heads a mask, though its values do not say so; of
// each head, of one head, and what the file calls so, a parameter.
// CHECK: remark: trained: 2 by what is done with them (each, one); 1 parameters, as the file says (said)
// CHECK-NEXT: not trained: 2 masks (all, row)
ax.plan @masks version 1 {
  ax.state @all : tensor<2x1x4x4xf32> from "w" offset 0 length 128 {ax.weight_kind = "repeated"}
  ax.state @row : tensor<1x1x1x4xf32> from "w" offset 0 length 16
  ax.state @each : tensor<1x2x4x4xf32> from "w" offset 0 length 128
  ax.state @one : tensor<1x1x4x4xf32> from "w" offset 0 length 64
  ax.state @said : tensor<1x1x4x4xf32> from "w" offset 0 length 64 {ax.weight_kind = "parameter"}
  ax.program @main(%x: tensor<2x2x4x8xf32>, %z: tensor<2x1x4x8xf32>) -> (tensor<2x2x4x8xf32>, tensor<2x1x4x8xf32>) {
    %all = ax.load @all : tensor<2x1x4x4xf32>
    %0 = ax.attention %x, %x, %x mask %all : tensor<2x1x4x4xf32> scale 1.0 : tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32> -> tensor<2x2x4x8xf32>
    %row = ax.load @row : tensor<1x1x1x4xf32>
    %1 = ax.attention %0, %0, %0 mask %row : tensor<1x1x1x4xf32> scale 1.0 : tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32> -> tensor<2x2x4x8xf32>
    %each = ax.load @each : tensor<1x2x4x4xf32>
    %2 = ax.attention %1, %1, %1 mask %each : tensor<1x2x4x4xf32> scale 1.0 : tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32> -> tensor<2x2x4x8xf32>
    %said = ax.load @said : tensor<1x1x4x4xf32>
    %3 = ax.attention %2, %2, %2 mask %said : tensor<1x1x4x4xf32> scale 1.0 : tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32> -> tensor<2x2x4x8xf32>
    %one = ax.load @one : tensor<1x1x4x4xf32>
    %4 = ax.attention %z, %z, %z mask %one : tensor<1x1x4x4xf32> scale 1.0 : tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32> -> tensor<2x1x4x8xf32>
    ax.return %3, %4 : tensor<2x2x4x8xf32>, tensor<2x1x4x8xf32>
  }
}
