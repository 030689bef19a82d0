//===- Outputs.cpp - Files that must not be written to --------------------===//

#include "ax/Import/Import.h"

#include "TensorHeader.h"
#include "WireFormat.h"

#include "ax/Support/Error.h"

#include "llvm/Support/FileSystem.h"

#include <onnx/onnx_pb.h>

#include <set>

using namespace ax;
using namespace ax::import;
using onnx::GraphProto;
using onnx::ModelProto;

/// Calls `visit` with what the fields of that number hold.
template <typename Visit>
static void forEach(llvm::ArrayRef<uint8_t> message, uint32_t number,
                    Visit visit) {
  WireReader reader(message);
  WireField field;
  while (reader.read(field))
    if (field.number == number && field.type == WireType::Bytes)
      visit(field.bytes);
}

/// Relative to the model's folder.
static std::set<std::string> filesOf(ModelFolder &folder) {
  std::set<std::string> files{folder.getModelFile()};
  auto model = folder.openModel();
  if (!model) {
    llvm::consumeError(model.takeError());
    return files;
  }
  forEach((*model)->bytes(), ModelProto::kGraphFieldNumber, [&](auto graph) {
    forEach(graph, GraphProto::kInitializerFieldNumber, [&](auto tensor) {
      TensorHeader header;
      if (readTensorHeader(tensor, header) && header.external)
        files.insert(header.location);
    });
  });
  return files;
}

llvm::Error ax::import::checkOutputs(llvm::StringRef model,
                                     llvm::ArrayRef<std::string> outputs) {
  ModelFolder folder(model);
  for (const std::string &file : filesOf(folder))
    for (const std::string &output : outputs)
      if (llvm::sys::fs::equivalent(folder.getPath() + "/" + file, output))
        return makeErrorf(ExitCode::Usage,
                          "to write '{0}' would destroy '{1}': give the output "
                          "another name",
                          output, model);
  return llvm::Error::success();
}
