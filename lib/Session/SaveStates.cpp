//===- SaveStates.cpp - States into a .safetensors file -------------------===//
//
// Eight bytes with the length of a JSON header, which gives each tensor's type,
// shape and place; then the tensors, little endian and row-major.
//
//===----------------------------------------------------------------------===//
#include "ax/Session/Train.h"

#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"

using namespace ax;

static std::string headerOf(const std::vector<const rt::State *> &states) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  int64_t at = 0;
  json.object([&] {
    for (const rt::State *state : states)
      json.attributeObject(state->name, [&] {
        int64_t bytes =
            *checkedNumElements(state->shape) * byteSize(state->dtype);
        json.attribute("dtype",
                       llvm::StringRef(toString(state->dtype)).upper());
        json.attributeArray("shape", [&] {
          for (int64_t size : state->shape)
            json.value(size);
        });
        json.attributeArray("data_offsets", [&] {
          json.value(at);
          json.value(at + bytes);
        });
        at += bytes;
      });
  });
  // Tensors start at multiples of 8.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

llvm::Error ax::saveStates(rt::Executor &executor, const std::string &path) {
  std::vector<const rt::State *> states;
  for (const rt::State &state : executor.getProgram().states)
    if (state.isMutable)
      states.push_back(&state);
  auto file = AtomicFile::create(path);
  if (!file)
    return file.takeError();
  std::string header = headerOf(states);
  uint8_t length[8];
  llvm::support::endian::write64le(length, header.size());
  if (llvm::Error error = file->write(llvm::ArrayRef<uint8_t>(length)))
    return error;
  if (llvm::Error error = file->write(llvm::StringRef(header)))
    return error;
  for (const rt::State *state : states) {
    auto number =
        static_cast<int32_t>(state - executor.getProgram().states.data());
    auto tensor = executor.readState(number);
    if (!tensor)
      return tensor.takeError();
    if (llvm::Error error = file->write(
            {tensor->data(), static_cast<size_t>(tensor->numBytes())}))
      return error;
  }
  return file->commit();
}
