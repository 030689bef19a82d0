//===- Convolution.cpp - Convolutions -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Contractions.h"
#include "../OpTable.h"

using namespace ax;
using namespace ax::import;

/// Beyond any sensible window; products with a dimension do not overflow.
static constexpr int64_t maxExtent = int64_t(1) << 20;
/// The largest window, of all dimensions together: every element of a result
/// costs as much.
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

/// What a convolution gives, and `bias`, a vector over its channels or null.
static Value addBias(Node &n, Value y, Value bias) {
  if (!y || !bias)
    return y;
  Shape shape(Emitter::rankOf(y) - 1, 1);
  shape[0] = Emitter::shapeOf(y)[1];
  if (Emitter::shapeOf(bias) != ArrayRef<int64_t>(shape[0]))
    return n.fail(llvm::formatv("the bias must have {0} elements", shape[0]));
  return n.b.add(y, n.b.reshape(bias, shape));
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
  return addBias(n, n.b.conv(x, w, *window, n.intAttr("group", 1)), bias);
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
  Value y = n.b.convTranspose(x, w, *window, n.intAttr("group", 1));
  n.out(addBias(n, y, bias));
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

/// Windows [.., taps, windows, rest] along one dimension added up where they
/// lie: [.., size, rest]. `count` windows of `kernel` taps.
static Value addWindows(Node &n, Value x, int64_t dim, int64_t kernel,
                        int64_t count, int64_t size, int64_t stride,
                        int64_t dilation, int64_t pad) {
  // Which taps of which windows meet at each place.
  std::vector<std::vector<int64_t>> met(size);
  for (int64_t tap = 0; tap < kernel; ++tap)
    for (int64_t window = 0; window < count; ++window) {
      int64_t place = window * stride - pad + tap * dilation;
      if (place >= 0 && place < size)
        met[place].push_back(tap * count + window);
    }
  int64_t most = 1;
  for (const std::vector<int64_t> &taps : met)
    most = std::max<int64_t>(most, taps.size());
  HostTensor index(DType::I64, {most, size}), isMet(DType::Bool, {most, size});
  bool isFull = true;
  for (int64_t place = 0; place < size; ++place)
    for (int64_t i = 0; i < most; ++i) {
      bool has = i < static_cast<int64_t>(met[place].size());
      isFull &= has;
      index.setInt(i * size + place, has ? met[place][i] : 0);
      isMet.setInt(i * size + place, has);
    }
  Shape shape(Emitter::shapeOf(x)), merged(shape);
  merged[dim] = kernel * count;
  merged.erase(merged.begin() + dim + 1);
  Value y =
      n.b.gather(n.b.reshape(x, merged), n.b.constant(std::move(index)), dim);
  if (!y)
    return {};
  if (!isFull) {
    Shape line(shape.size(), 1);
    line[dim] = most;
    line[dim + 1] = size;
    y = n.b.select(n.b.reshape(n.b.constant(std::move(isMet)), line), y,
                   n.b.like(y, 0));
  }
  return n.b.reduce(ReduceOpKind::sum, y, {dim}, false);
}

static void importCol2Im(Node &n) {
  Value x = n.in(0);
  auto image = n.knownInts(1, "image_shape"),
       block = n.knownInts(2, "block_shape");
  if (!x || !image || !block)
    return;
  size_t dims = image->size();
  ArrayRef<int64_t> shape = Emitter::shapeOf(x);
  std::vector<int64_t> dilations =
      n.intsAttr("dilations", std::vector<int64_t>(dims, 1));
  std::vector<int64_t> strides =
      n.intsAttr("strides", std::vector<int64_t>(dims, 1));
  std::vector<int64_t> pads =
      n.intsAttr("pads", std::vector<int64_t>(2 * dims, 0));
  // [batch, channels, taps of each dimension, windows of each dimension]
  auto isSize = [](int64_t size) { return size >= 1 && size <= maxExtent; };
  bool fits = shape.size() == 3 && block->size() == dims && dims >= 1 &&
              dilations.size() == dims && strides.size() == dims &&
              pads.size() == 2 * dims && llvm::all_of(*image, isSize) &&
              llvm::all_of(*block, isSize);
  int64_t taps = fits ? checkedNumElements(*block).value_or(0) : 0;
  Shape split{fits ? shape[0] : 0, 0}, windows;
  fits = fits && taps > 0 && shape[1] % taps == 0;
  for (size_t i = 0; fits && i < dims; ++i) {
    int64_t room = (*image)[i] + pads[i] + pads[i + dims] -
                   dilations[i] * ((*block)[i] - 1) - 1;
    fits = room >= 0;
    windows.push_back(fits ? room / strides[i] + 1 : 0);
    fits = fits && windows.back() * (*block)[i] <= maxExtent;
  }
  if (!fits || checkedNumElements(windows) != shape[2]) {
    n.fail("input [" + shapeToString(shape) +
           "], image_shape, block_shape and attributes do not fit");
    return;
  }
  split[1] = shape[1] / taps;
  llvm::append_range(split, *block);
  llvm::append_range(split, windows);
  Value y = n.b.reshape(x, split);
  // Taps and windows of a dimension side by side.
  std::vector<int64_t> order{0, 1};
  for (size_t i = 0; i < dims; ++i) {
    order.push_back(static_cast<int64_t>(2 + i));
    order.push_back(static_cast<int64_t>(2 + dims + i));
  }
  y = n.b.wide(n.b.transpose(y, order));
  for (size_t i = 0; y && i < dims; ++i)
    y = addWindows(n, y, static_cast<int64_t>(2 + i), (*block)[i], windows[i],
                   (*image)[i], strides[i], dilations[i], pads[i]);
  n.out(n.b.cast(y, Emitter::typeOf(x)));
}

static const OpEntry entries[] = {
    {"Col2Im", importCol2Im},
    {"Conv", importConv},
    {"ConvTranspose", importConvTranspose},
};

void ax::import::addConvolution(OpTable &table) { table.add(entries); }
