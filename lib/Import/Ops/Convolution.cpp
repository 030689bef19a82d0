//===- Convolution.cpp - Convolutions -------------------------------------===//

#include "../Contractions.h"
#include "../OpTable.h"

using namespace ax;
using namespace ax::import;

/// Beyond any sensible window; products with a dimension do not overflow.
static constexpr int64_t maxExtent = int64_t(1) << 20;
/// Of all dimensions together: every element of a result costs as much.
static constexpr int64_t maxWindow = int64_t(1) << 32;

std::optional<Window> ax::import::readWindow(Node &n, Value x,
                                             ArrayRef<int64_t> kernel) {
  if (!x)
    return std::nullopt;
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  if (shape.size() < 3) {
    n.fail("needs batch, channels and at least one more dimension");
    return std::nullopt;
  }
  size_t spatial = shape.size() - 2;
  Window window;
  window.kernel = n.intsAttr("kernel_shape", kernel.vec());
  window.strides = n.intsAttr("strides", std::vector<int64_t>(spatial, 1));
  window.dilations = n.intsAttr("dilations", std::vector<int64_t>(spatial, 1));
  window.pads = n.intsAttr("pads", std::vector<int64_t>(2 * spatial, 0));
  window.extra.assign(spatial, 0);
  auto isSane = [](int64_t size) { return size >= 1 && size <= maxExtent; };
  if (window.kernel.size() != spatial || window.strides.size() != spatial ||
      window.dilations.size() != spatial || window.pads.size() != 2 * spatial ||
      !llvm::all_of(window.kernel, isSane)) {
    n.fail(llvm::formatv("kernel_shape, strides, dilations and pads do not fit "
                         "{0} spatial dimensions",
                         spatial));
    return std::nullopt;
  }
  int64_t room = maxWindow;
  for (size_t i = 0; i < spatial; ++i) {
    if (window.kernel[i] > maxExtent / window.dilations[i] ||
        window.kernel[i] > room) {
      n.fail("the window is too large");
      return std::nullopt;
    }
    room /= window.kernel[i];
  }
  return window;
}

/// Sets the pads of `auto_pad` for a convolution or pool.
static void autoPad(Node &n, Value x, Window &window) {
  std::string mode = n.stringAttr("auto_pad", "NOTSET");
  if (mode == "NOTSET")
    return;
  size_t spatial = window.kernel.size();
  window.pads.assign(2 * spatial, 0);
  if (mode == "VALID")
    return;
  for (size_t i = 0; i < spatial; ++i) {
    int64_t in = Emitter::shapeOf(x)[i + 2];
    int64_t out = (in + window.strides[i] - 1) / window.strides[i];
    int64_t extent = (window.kernel[i] - 1) * window.dilations[i] + 1;
    int64_t total =
        std::max<int64_t>(0, (out - 1) * window.strides[i] + extent - in);
    int64_t low = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    window.pads[i] = low;
    window.pads[i + spatial] = total - low;
  }
}

Value ax::import::importConvolution(Node &n, Value x, Value w, Value bias) {
  if (!x || !w)
    return {};
  if (Emitter::rankOf(w) < 3 || Emitter::rankOf(w) != Emitter::rankOf(x))
    return n.fail("X and W must have the same rank, at least 3");
  ArrayRef<int64_t> kernel = Emitter::shapeOf(w).drop_front(2);
  std::optional<Window> window = readWindow(n, x, kernel);
  if (!window)
    return {};
  if (ArrayRef<int64_t>(window->kernel) != kernel)
    return n.fail("kernel_shape is not the shape of W");
  autoPad(n, x, *window);
  return n.b.conv(x, w, bias, *window, n.intAttr("group", 1));
}

static void importConv(Node &n) {
  Value bias = n.optional(2);
  n.out(importConvolution(n, n.in(0), n.in(1), bias));
}

static void importConvTranspose(Node &n) {
  Value x = n.in(0), w = n.in(1), bias = n.optional(2);
  if (!x || !w)
    return;
  if (Emitter::rankOf(w) < 3 || Emitter::rankOf(w) != Emitter::rankOf(x)) {
    n.fail("X and W must have the same rank, at least 3");
    return;
  }
  ArrayRef<int64_t> kernel = Emitter::shapeOf(w).drop_front(2);
  std::optional<Window> window = readWindow(n, x, kernel);
  if (!window)
    return;
  size_t spatial = kernel.size();
  if (ArrayRef<int64_t>(window->kernel) != kernel) {
    n.fail("kernel_shape is not the shape of W");
    return;
  }
  window->extra =
      n.intsAttr("output_padding", std::vector<int64_t>(spatial, 0));
  std::vector<int64_t> target = n.intsAttr("output_shape");
  if (target.size() == spatial + 2)
    target.erase(target.begin(), target.begin() + 2);
  std::string mode = n.stringAttr("auto_pad", "NOTSET");
  if (window->extra.size() != spatial ||
      (!target.empty() && target.size() != spatial)) {
    n.fail("output_padding and output_shape do not fit");
    return;
  }
  bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  if (target.empty() && same)
    for (size_t i = 0; i < spatial; ++i)
      target.push_back(Emitter::shapeOf(x)[i + 2] * window->strides[i]);
  if (mode == "VALID")
    window->pads.assign(2 * spatial, 0);
  for (size_t i = 0; i < target.size(); ++i) {
    int64_t natural = window->strides[i] * (Emitter::shapeOf(x)[i + 2] - 1) +
                      window->extra[i] +
                      (window->kernel[i] - 1) * window->dilations[i] + 1;
    int64_t total = natural - target[i];
    if (total < 0)
      window->extra[i] -= total;
    total = std::max<int64_t>(0, total);
    int64_t low = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    window->pads[i] = low;
    window->pads[i + spatial] = total - low;
  }
  n.out(n.b.convTranspose(x, w, bias, *window, n.intAttr("group", 1)));
}

void ax::import::finishPoolWindow(Node &n, Value x, Window &window) {
  autoPad(n, x, window);
  if (!n.intAttr("ceil_mode", 0))
    return;
  size_t spatial = window.kernel.size();
  for (size_t i = 0; i < spatial; ++i) {
    int64_t in = Emitter::shapeOf(x)[i + 2];
    int64_t extent = (window.kernel[i] - 1) * window.dilations[i] + 1;
    int64_t padded = in + window.pads[i] + window.pads[i + spatial];
    int64_t stride = window.strides[i];
    int64_t out = (std::max<int64_t>(0, padded - extent) + stride - 1) / stride;
    // No window starts in the high padding.
    if (out * stride >= in + window.pads[i])
      --out;
    window.extra[i] = std::max<int64_t>(0, out * stride + extent - padded);
  }
}

static const OpEntry entries[] = {
    {"Conv", importConv},
    {"ConvTranspose", importConvTranspose},
};

OpTable ax::import::convolutionOps() { return entries; }
