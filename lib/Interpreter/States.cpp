//===- States.cpp - Values of states, from the model's files --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Interpreter/States.h"
#include "ax/Dialect/PlanAttrs.h"

#include "ax/Interpreter/Elements.h"
#include "ax/Support/Error.h"
#include "ax/Support/PiecedTensor.h"

#include "llvm/Support/Path.h"

using namespace ax;

llvm::Expected<llvm::ArrayRef<uint8_t>>
interpreter::bytesOf(StateOp state, std::shared_ptr<MappedFile> &file) {
  auto folder =
      state->getParentOp()->getAttrOfType<mlir::StringAttr>(kModelDir);
  if (!folder)
    return makeError(ExitCode::InputOutput, "the model's folder is not known");
  llvm::SmallString<256> path(folder.getValue());
  llvm::sys::path::append(path, state.getFile());
  auto opened = MappedFile::open(path.str().str());
  if (!opened)
    return opened.takeError();
  file = std::move(*opened);
  return file->range(state.getOffset(), state.getLength());
}

llvm::Expected<HostTensor> interpreter::readState(StateOp state) {
  std::shared_ptr<MappedFile> file;
  auto bytes = bytesOf(state, file);
  if (!bytes)
    return bytes.takeError();
  mlir::RankedTensorType type = state.getTensorType();
  std::optional<DType> element = toDType(type.getElementType()),
                       inFile = toDType(state.getElementTypeInFile());
  if (!element || !inFile)
    return makeError(ExitCode::BadModel,
                     "state @" + state.getSymName() +
                         ": its type has no values at run time");
  auto tensor = HostTensor::fromBytes(*inFile, Shape(type.getShape()), *bytes);
  if (!tensor)
    return tensor;
  if (std::optional<DealtAttr> dealt = state.getDealt()) {
    PiecedTensor pieces = PiecedTensor::of(std::move(*tensor));
    pieces.wanted = dealt->getOrder();
    tensor = pieces.assemble();
    if (!tensor)
      return tensor;
  }
  return inFile == element ? std::move(tensor) : tensor->cast(*element);
}
