// RUN: axopt-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(ax-differentiate)'

ax.plan @frozen version 1 {
  ax.state @w : tensor<4xf32> from "w" offset 0 length 16
  ax.program @main() -> tensor<f32> {
    %w = ax.load @w : tensor<4xf32>
    // expected-error @below {{the loss depends on no weight that is trained: --trainable and --frozen choose them}}
    %loss = ax.reduce sum %w dims [0] : tensor<4xf32> -> tensor<f32>
    ax.return %loss : tensor<f32>
  }
}

// -----

// Integers are no way.
ax.plan @cut version 1 {
  ax.state @w : tensor<4xf32> from "w" offset 0 length 16 {trainable}
  ax.program @main() -> tensor<f32> {
    %w = ax.load @w : tensor<4xf32>
    %i = ax.cast %w : tensor<4xf32> -> tensor<4xi32>
    %f = ax.cast %i : tensor<4xi32> -> tensor<4xf32>
    // expected-error @below {{the loss depends on no weight that is trained: --trainable and --frozen choose them}}
    %loss = ax.reduce sum %f dims [0] : tensor<4xf32> -> tensor<f32>
    ax.return %loss : tensor<f32>
  }
}

// -----

// A part of the gradient would be lost without a word.
ax.plan @quantised version 1 {
  ax.state @w : tensor<4xf32> from "w" offset 0 length 16 {trainable}
  ax.program @main() -> tensor<f32> {
    %low = ax.constant dense<-128.0> : tensor<f32> -> tensor<f32>
    %high = ax.constant dense<127.0> : tensor<f32> -> tensor<f32>
    %w = ax.load @w : tensor<4xf32>
    %r = ax.unary round %w : tensor<4xf32> -> tensor<4xf32>
    %m = ax.binary max %r, %low : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
    %c = ax.binary min %m, %high : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
    // expected-error @below {{ax.cast of node 'quantize' rounds to integers that are more than dequantised, and so passes no gradient; it lies between the trainable state 'w' and the loss}}
    %q = ax.cast %c {node = "quantize"} : tensor<4xf32> -> tensor<4xi8>
    %i = ax.cast %q : tensor<4xi8> -> tensor<4xi32>
    %s = ax.binary mul %i, %i : tensor<4xi32>, tensor<4xi32> -> tensor<4xi32>
    %f = ax.cast %s : tensor<4xi32> -> tensor<4xf32>
    %sum = ax.binary add %f, %w : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %loss = ax.reduce sum %sum dims [0] : tensor<4xf32> -> tensor<f32>
    ax.return %loss : tensor<f32>
  }
}

// -----

ax.plan @without version 1 {
  ax.state @w : tensor<1x1x4xf32> from "w" offset 0 length 16 {trainable}
  ax.program @main(%x: tensor<1x1x2xf32>) -> tensor<f32> {
    %w = ax.load @w : tensor<1x1x4xf32>
    %n = ax.unary neg %w : tensor<1x1x4xf32> -> tensor<1x1x4xf32>
    // expected-error @below {{ax.max_pool_gradient of node 'pool' has no gradient; it lies between the trainable state 'w' and the loss}}
    %g = ax.max_pool_gradient %n, %x kernel [2] strides [2] pads [0, 0] dilations [1] ceil_extra [0] {node = "pool"} : tensor<1x1x4xf32>, tensor<1x1x2xf32> -> tensor<1x1x4xf32>
    %loss = ax.reduce sum %g dims [0, 1, 2] : tensor<1x1x4xf32> -> tensor<f32>
    ax.return %loss : tensor<f32>
  }
}

// -----

// What no gradient flows into needs none.
ax.plan @beside version 1 {
  ax.state @w : tensor<1x1x4xf32> from "w" offset 0 length 16 {trainable}
  ax.program @main(%x: tensor<1x1x2xf32>) -> (tensor<f32>, tensor<1x1x4xf32>) {
    %w = ax.load @w : tensor<1x1x4xf32>
    %g = ax.max_pool_gradient %w, %x kernel [2] strides [2] pads [0, 0] dilations [1] ceil_extra [0] : tensor<1x1x4xf32>, tensor<1x1x2xf32> -> tensor<1x1x4xf32>
    %loss = ax.reduce sum %w dims [0, 1, 2] : tensor<1x1x4xf32> -> tensor<f32>
    ax.return %loss, %g : tensor<f32>, tensor<1x1x4xf32>
  }
}

// -----

// An index passes no gradient on, whatever it was rounded from.
ax.plan @looked_up version 1 {
  ax.state @w : tensor<4xf32> from "w" offset 0 length 16 {trainable}
  ax.program @main(%table: tensor<256xf32>) -> tensor<f32> {
    %low = ax.constant dense<0.0> : tensor<f32> -> tensor<f32>
    %high = ax.constant dense<255.0> : tensor<f32> -> tensor<f32>
    %w = ax.load @w : tensor<4xf32>
    %r = ax.unary round %w : tensor<4xf32> -> tensor<4xf32>
    %m = ax.binary max %r, %low : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
    %c = ax.binary min %m, %high : tensor<4xf32>, tensor<f32> -> tensor<4xf32>
    %q = ax.cast %c : tensor<4xf32> -> tensor<4xui8>
    %i = ax.cast %q : tensor<4xui8> -> tensor<4xi64>
    %g = ax.gather %table[%i] axis 0 : tensor<256xf32>, tensor<4xi64> -> tensor<4xf32>
    %p = ax.binary mul %g, %w : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
    %loss = ax.reduce sum %p dims [0] : tensor<4xf32> -> tensor<f32>
    ax.return %loss : tensor<f32>
  }
}

// -----

ax.plan @flat version 1 {
  ax.state @w : tensor<4xf32> from "w" offset 0 length 16 {trainable}
  // expected-error @below {{the loss has no gradient in any weight: it depends on none that is to train, or only through what is rounded, compared or counted}}
  ax.program @main() -> tensor<f32> {
    %w = ax.load @w : tensor<4xf32>
    %r = ax.unary round %w : tensor<4xf32> -> tensor<4xf32>
    %loss = ax.reduce sum %r dims [0] : tensor<4xf32> -> tensor<f32>
    ax.return %loss : tensor<f32>
  }
}
