//===- MatmulView.cpp - Simpler forms of a matrix product -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/MatmulView.h"

#include <algorithm>

namespace ax::rt {

namespace {

/// The product's views, always in step.
struct ProductViews {
  TensorDesc *views[4];
  int count;

  template <typename Fn>
  bool all(Fn &&fn) const {
    return std::all_of(views, views + count, fn);
  }
};

/// Dimensions d and d + 1 of `view` are one dimension of memory.
bool isOne(const TensorDesc &view, size_t d) {
  return view.sizes[d] == 1 || view.sizes[d + 1] == 1 ||
         view.strides[d] == view.sizes[d + 1] * view.strides[d + 1];
}

void merge(TensorDesc &view, size_t d) {
  if (view.sizes[d + 1] == 1)
    view.strides[d + 1] = view.strides[d];
  view.sizes[d + 1] *= view.sizes[d];
  view.sizes.erase(view.sizes.begin() + static_cast<ptrdiff_t>(d));
  view.strides.erase(view.strides.begin() + static_cast<ptrdiff_t>(d));
}

void drop(TensorDesc &view, size_t d) {
  view.sizes.erase(view.sizes.begin() + static_cast<ptrdiff_t>(d));
  view.strides.erase(view.strides.begin() + static_cast<ptrdiff_t>(d));
}

} // namespace

MatmulDesc collapse(const MatmulDesc &original) {
  MatmulDesc desc = original;
  ProductViews rows{{&desc.a, &desc.c}, 2};
  if (desc.hasResidual)
    rows.views[rows.count++] = &desc.residual;
  if (desc.hasInput())
    rows.views[rows.count++] = &desc.input;
  for (size_t d = 0; d + 2 < desc.c.sizes.size(); ++d)
    for (TensorDesc *view : {&desc.a, &desc.b})
      if (view->strides[d] == 0)
        view->sizes[d] = 1;
  // Batch dimensions next to the rows become rows.
  while (desc.c.sizes.size() > 2) {
    size_t d = desc.c.sizes.size() - 3;
    bool mergeable = desc.b.sizes[d] == 1 &&
                     desc.a.sizes[d] == desc.c.sizes[d] &&
                     rows.all([&](TensorDesc *v) { return isOne(*v, d); });
    if (!mergeable)
      break;
    for (int i = 0; i < rows.count; ++i)
      merge(*rows.views[i], d);
    drop(desc.b, d);
  }
  // Others merge with each other.
  for (size_t d = desc.c.sizes.size() - 2; d-- > 1;) {
    size_t outer = d - 1;
    auto mergeable = [&](const TensorDesc &view) {
      bool broadcast = view.sizes[outer] == 1 && view.sizes[d] == 1;
      bool whole = view.sizes[outer] == desc.c.sizes[outer] &&
                   view.sizes[d] == desc.c.sizes[d];
      return broadcast || (whole && isOne(view, outer));
    };
    if (!mergeable(desc.b) ||
        !rows.all([&](TensorDesc *v) { return mergeable(*v); }))
      continue;
    merge(desc.b, outer);
    for (int i = 0; i < rows.count; ++i)
      merge(*rows.views[i], outer);
  }
  return desc;
}

} // namespace ax::rt
