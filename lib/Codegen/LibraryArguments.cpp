//===- LibraryArguments.cpp - What a library reads and writes -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "LibraryArguments.h"

#include "ax/Interpreter/Elements.h"

using namespace mlir;

namespace ax::codegen {

DType dtypeOf(Value value) {
  std::optional<DType> type =
      interpreter::toDType(tensorType(value).getElementType());
  assert(type && "tensors have element types of ours");
  return *type;
}

std::vector<int64_t> toVector(ArrayRef<int64_t> values) {
  return {values.begin(), values.end()};
}

/// The activation as libraries do it.
static rt::Activation activationOf(UnaryKind kind) {
  switch (kind) {
  case UnaryKind::relu:
    return rt::Activation::Relu;
  case UnaryKind::gelu:
    return rt::Activation::GeluErf;
  case UnaryKind::gelu_tanh:
    return rt::Activation::GeluTanh;
  case UnaryKind::silu:
    return rt::Activation::Silu;
  case UnaryKind::tanh:
    return rt::Activation::Tanh;
  case UnaryKind::sigmoid:
    return rt::Activation::Sigmoid;
  default:
    llvm_unreachable("a library that supports it");
  }
}

/// Whether a view begins where a GPU's library wants that: at a multiple of
/// 16 bytes.
static bool isAligned(const StridedView &view) {
  constexpr int64_t alignment = 16;
  return view.offset * byteSize(dtypeOf(view.base)) % alignment == 0;
}

static SmallVector<int64_t> inverted(ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> inverse(permutation.size());
  for (auto [i, from] : llvm::enumerate(permutation))
    inverse[from] = i;
  return inverse;
}

/// Whether it gives [outer, channels, spatial...] of [outer, spatial...,
/// channels].
static bool isFromChannelsLast(TransposeOp turned) {
  int64_t rank = tensorType(turned).getRank();
  SmallVector<int64_t> permutation{0, rank - 1};
  for (int64_t dim = 1; dim + 1 < rank; ++dim)
    permutation.push_back(dim);
  return turned.getPermutation() == ArrayRef(permutation);
}

StridedView LibraryArguments::argument(Value value) {
  StridedView view = viewOf(value, inMemory);
  call.arguments.push_back(
      {view.base, view.offset * byteSize(dtypeOf(view.base))});
  return view;
}

rt::TensorDesc LibraryArguments::denseArgument(Value value) {
  StridedView view = argument(value);
  if (!view.isDense())
    call.wantsDense.push_back(value);
  return rt::TensorDesc::dense(dtypeOf(view.base), toVector(view.sizes));
}

rt::TensorDesc LibraryArguments::packedArgument(OpOperand &operand) {
  StridedView view = argument(operand);
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, view.sizes.size()));
  llvm::stable_sort(dims, [&](int64_t a, int64_t b) {
    return view.strides[a] > view.strides[b];
  });
  StridedView ordered{view.base, view.offset, {}, {}};
  for (int64_t dim : dims) {
    ordered.sizes.push_back(view.sizes[dim]);
    ordered.strides.push_back(view.strides[dim]);
  }
  if (!ordered.isDense() || (gpu && !isAligned(view)))
    call.wantsDense.push_back(outside(operand));
  return desc(view);
}

rt::TensorDesc LibraryArguments::imageArgument(OpOperand &operand) {
  auto turned = outside(operand).getDefiningOp<TransposeOp>();
  constexpr int64_t narrow = 2;
  if (!gpu || !turned || byteSize(dtypeOf(turned)) != narrow ||
      inMemory.contains(turned) || !isFromChannelsLast(turned))
    return packedArgument(operand);
  StridedView view = argument(operand);
  StridedView last{view.base, view.offset, {}, {}};
  for (int64_t dim : inverted(turned.getPermutation())) {
    last.sizes.push_back(view.sizes[dim]);
    last.strides.push_back(view.strides[dim]);
  }
  if (!last.isDense() || !isAligned(view))
    call.wantsDense.push_back(turned.getOperand());
  return desc(view);
}

rt::TensorDesc LibraryArguments::rowArgument(OpOperand &operand) {
  StridedView view = argument(operand);
  bool isFit = view.sizes.back() == 1 || view.strides.back() == 1;
  if (gpu) {
    constexpr int64_t alignment = 16;
    int64_t step = alignment / byteSize(dtypeOf(view.base));
    isFit &= isAligned(view);
    for (auto [size, stride] :
         llvm::drop_end(llvm::zip_equal(view.sizes, view.strides)))
      isFit &= size == 1 || (stride != 0 && stride % step == 0);
  }
  if (!isFit)
    call.wantsDense.push_back(outside(operand));
  return desc(view);
}

bool LibraryArguments::addBias() {
  if (!library || !library.getBias())
    return false;
  denseArgument(library.getBiasOperand().get());
  return true;
}

void LibraryArguments::addGradientOperand() {
  Value value = library.getGradientOperand().get();
  StridedView view = argument(value);
  if (!view.isDense() || (gpu && !isAligned(view)))
    call.wantsDense.push_back(value);
}

void LibraryArguments::addResults(Operation *core) {
  if (core->getNumResults() == 1) {
    for (Value given : op->getResults())
      call.arguments.push_back({given, 0});
    return;
  }
  for (Value made : core->getResults()) {
    StridedView place = placeOf(made);
    call.arguments.push_back(
        {place.base, place.offset * byteSize(dtypeOf(place.base))});
  }
}

rt::TensorDesc LibraryArguments::result() {
  Value value = op->getResult(0);
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  rt::TensorDesc dense = rt::TensorDesc::dense(dtypeOf(value), toVector(shape));
  TransposeOp transpose = library ? library.getTranspose() : TransposeOp();
  if (!transpose)
    return dense;
  rt::TensorDesc computed = dense;
  for (auto [i, from] : llvm::enumerate(transpose.getPermutation())) {
    computed.sizes[from] = dense.sizes[i];
    computed.strides[from] = dense.strides[i];
  }
  return computed;
}

StridedView LibraryArguments::placeOf(Value made) {
  auto given = [](Value value) {
    return llvm::find_if(value.getUses(), [](OpOperand &use) {
      return isa<LocalYieldOp>(use.getOwner());
    });
  };
  auto isWhole = [&](Value value) {
    return !library || given(value) != value.use_end();
  };
  std::optional<StridedView> place = whereMoved(made, isWhole);
  assert(place && "results are moved to where strides lead");
  if (library)
    place->base = library->getResult(given(place->base)->getOperandNumber());
  return *place;
}

Value LibraryArguments::getResidual() {
  if (library && library.getResidual())
    return library.getResidualOperand().get();
  return library && library.getAccumulation() ? library.getSumOperand().get()
                                              : Value();
}

rt::Activation LibraryArguments::getActivation() {
  if (!library)
    return rt::Activation::None;
  if (UnaryGradientOp gradient = library.getGradient())
    return activationOf(gradient.getKind());
  UnaryOp activation = library.getActivation();
  return activation ? activationOf(activation.getKind()) : rt::Activation::None;
}

rt::ActivationForm LibraryArguments::getForm() {
  if (library && library.getGradient())
    return rt::ActivationForm::Gradient;
  return library && library.givesInput() ? rt::ActivationForm::ValueAndInput
                                         : rt::ActivationForm::Value;
}

} // namespace ax::codegen
