//===- Constants.cpp - A plan's constants in a file beside it -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Constants.h"

#include "ax/Dialect/Ax.h"
#include "ax/Interpreter/Elements.h"
#include "ax/Plan/Plan.h"
#include "ax/Support/AtomicFile.h"
#include "ax/Support/Checksum.h"
#include "ax/Support/Error.h"
#include "ax/Support/Escape.h"
#include "ax/Support/MappedFile.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;

namespace ax::plan {

/// Larger constants go to the file.
static constexpr int64_t maxInlineBytes = 1024;
/// Where each of them begins: what vector instructions and pages like.
static constexpr int64_t alignment = 64;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

std::string constantsFile(PlanOp plan, llvm::StringRef planPath) {
  auto name = plan->getAttrOfType<StringAttr>(kData);
  if (!name)
    return "";
  // A plan may be reached by a link, its constants are where it is itself.
  llvm::SmallString<256> file;
  if (!llvm::sys::fs::is_symlink_file(planPath) ||
      llvm::sys::fs::real_path(planPath, file))
    file = planPath;
  llvm::sys::path::remove_filename(file);
  if (file.empty())
    file = ".";
  llvm::sys::path::append(file, name.getValue());
  return file.str().str();
}

namespace {

/// Elements of one file. Nothing that the plan says of it is believed.
class Reader {
public:
  Reader(std::string path, std::shared_ptr<MappedFile> file)
      : path(std::move(path)), file(std::move(file)),
        room(this->file->getSize()) {}

  /// An error without place.
  llvm::Expected<DenseElementsAttr> read(StoredAttr stored);

private:
  std::string path;
  std::shared_ptr<MappedFile> file;
  /// Different constants are of different bytes, so that a plan is no larger
  /// in memory than its file.
  int64_t room;
  llvm::DenseMap<Attribute, DenseElementsAttr> known;
};

} // namespace

llvm::Expected<DenseElementsAttr> Reader::read(StoredAttr stored) {
  if (DenseElementsAttr elements = known.lookup(stored))
    return elements;
  auto fault = [](const auto &...text) {
    return makeErrorf(ExitCode::BadPlan, text...);
  };
  ShapedType type = stored.getType();
  std::optional<DType> element = interpreter::toDType(type.getElementType());
  Shape shape(type.getShape());
  auto count = element ? checkedNumElements(shape, byteSize(*element))
                       : std::optional<int64_t>();
  int64_t offset = stored.getOffset(), length = stored.getLength();
  if (!count || *count * byteSize(*element) != length)
    return fault("stored elements of length {0} are not those of their type",
                 length);
  if (offset < 0 || offset > file->getSize() ||
      length > file->getSize() - offset)
    return fault("bytes {0} to {0} + {1} are not inside '{2}', which has {3} "
                 "bytes",
                 offset, length, path, file->getSize());
  room -= length;
  if (room < 0)
    return fault("the stored constants have more bytes than '{0}'", path);
  // Others may write the mapped file meanwhile: what is checked is a copy.
  llvm::ArrayRef<uint8_t> mapped = file->bytes().slice(offset, length);
  std::vector<uint8_t> bytes(mapped.begin(), mapped.end());
  if (checksumOf(bytes) != stored.getChecksum())
    return fault("'{0}' has other bytes than this constant's checksum says: it "
                 "is damaged, or of another plan",
                 path);
  auto tensor = HostTensor::fromBytes(*element, std::move(shape), bytes);
  if (!tensor)
    return tensor.takeError();
  auto elements = interpreter::toElementsAttr(*tensor, stored.getContext());
  return known[stored] = elements;
}

llvm::Error readConstants(ModuleOp module, llvm::StringRef planPath) {
  SmallVector<ConstantOp> constants;
  module.walk([&](ConstantOp constant) {
    if (isa<StoredAttr>(constant.getValue()))
      constants.push_back(constant);
  });
  if (constants.empty())
    return llvm::Error::success();
  auto plan = constants.front()->getParentOfType<PlanOp>();
  auto name = plan->getAttrOfType<StringAttr>(kData);
  if (!name)
    return makeErrorf(ExitCode::BadPlan,
                      "{0}: constants are in a file, but the plan has no "
                      "'{1}', which names it",
                      planPath, kData);
  std::string path = constantsFile(plan, planPath);
  std::string folder = llvm::sys::path::parent_path(path).str();
  if (llvm::sys::path::filename(name.getValue()) != name.getValue() ||
      !findEscape(folder, name.getValue()).empty())
    return makeErrorf(ExitCode::BadPlan,
                      "{0}: '{1}' is no file beside the plan, where its "
                      "constants are",
                      planPath, name.getValue());
  auto file = MappedFile::open(path);
  if (!file)
    return addContext(file.takeError(),
                      planPath + ": the plan's constants, which move with it");
  Reader reader(path, *file);
  for (ConstantOp constant : constants) {
    auto elements = reader.read(cast<StoredAttr>(constant.getValue()));
    if (!elements) {
      ErrorDescription why = describeError(elements.takeError());
      auto at = constant.getLoc()->findInstanceOf<FileLineColLoc>();
      std::string line = at ? ":" + std::to_string(at.getLine()) : "";
      return makeError(why.code, planPath + line + ": " + why.message);
    }
    constant.setValueAttr(*elements);
  }
  // What was read from a file that has become shorter is no constant.
  return checkMappedFiles();
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

std::optional<std::string> constantsFileFor(llvm::StringRef output) {
  if (output == "-" || output.empty())
    return std::nullopt;
  llvm::sys::fs::file_status status;
  bool isThere = !llvm::sys::fs::status(output, status);
  if (isThere && status.type() != llvm::sys::fs::file_type::regular_file)
    return std::nullopt;
  return behindLinks(output.str()) + ".data";
}

static bool isLarge(ElementsAttr value) {
  std::optional<DType> element =
      interpreter::toDType(value.getShapedType().getElementType());
  return element && !isa<StoredAttr>(value) && !value.isSplat() &&
         value.getNumElements() * byteSize(*element) > maxInlineBytes;
}

llvm::Expected<std::optional<AtomicFile>>
storeConstants(ModuleOp module, const std::string &path) {
  std::optional<AtomicFile> file;
  llvm::DenseMap<Attribute, StoredAttr> known;
  llvm::Error error = llvm::Error::success();
  auto store = [&](ElementsAttr value) -> llvm::Expected<StoredAttr> {
    if (StoredAttr stored = known.lookup(value))
      return stored;
    auto tensor = interpreter::toHostTensor(value);
    if (!tensor)
      return tensor.takeError();
    if (!file) {
      auto made = AtomicFile::create(path);
      if (!made)
        return made.takeError();
      file.emplace(std::move(*made));
    }
    std::string padding((-file->getPosition()) & (alignment - 1), '\0');
    if (llvm::Error error = file->write(llvm::StringRef(padding)))
      return error;
    int64_t offset = file->getPosition();
    if (llvm::Error error = file->write(tensor->rawBytes()))
      return error;
    return known[value] = StoredAttr::get(
               module.getContext(), value.getShapedType(), offset,
               tensor->numBytes(), checksumOf(tensor->rawBytes()));
  };
  module.walk([&](ConstantOp constant) {
    if (!isLarge(constant.getValue()))
      return WalkResult::advance();
    auto stored = store(constant.getValue());
    if (!stored) {
      error = stored.takeError();
      return WalkResult::interrupt();
    }
    constant.setValueAttr(*stored);
    return WalkResult::advance();
  });
  if (error)
    return error;
  for (auto plan : module.getOps<PlanOp>()) {
    plan->removeAttr(kData);
    if (!file)
      continue;
    plan->setAttr(kData, StringAttr::get(module.getContext(),
                                         llvm::sys::path::filename(path)));
    plan.needVersion(PlanOp::preparedVersion);
  }
  return file;
}

} // namespace ax::plan
