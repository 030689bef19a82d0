//===- TestData.cpp - Tensors of an ONNX test case ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Import/Import.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace ax;

std::vector<std::string> ax::import::filesOfTestData(llvm::StringRef folder,
                                                     llvm::StringRef prefix) {
  llvm::SmallString<128> at(folder);
  llvm::sys::path::append(at, "test_data_set_0");
  if (!llvm::sys::fs::is_directory(at))
    at = folder;
  std::vector<std::string> files;
  while (true) {
    llvm::SmallString<128> file(at);
    llvm::sys::path::append(file,
                            prefix + "_" + llvm::Twine(files.size()) + ".pb");
    if (!llvm::sys::fs::exists(file))
      return files;
    files.push_back(file.str().str());
  }
}

llvm::Expected<std::vector<import::NamedTensor>>
ax::import::readTestData(llvm::StringRef folder, llvm::StringRef prefix) {
  if (!llvm::sys::fs::is_directory(folder))
    return makeErrorf(ExitCode::InputOutput, "'{0}' is no folder of test data",
                      folder);
  std::vector<NamedTensor> tensors;
  for (const std::string &file : filesOfTestData(folder, prefix)) {
    auto tensor = readTensorProto(file);
    if (!tensor)
      return tensor.takeError();
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

void ax::import::nameByPosition(std::vector<NamedTensor> &tensors,
                                llvm::ArrayRef<std::string> names) {
  llvm::StringSet<> taken;
  for (const NamedTensor &tensor : tensors)
    taken.insert(tensor.name);
  for (size_t i = 0; i < std::min(tensors.size(), names.size()); ++i)
    if (!llvm::is_contained(names, tensors[i].name) &&
        !taken.contains(names[i]))
      tensors[i].name = names[i];
}

llvm::Expected<std::vector<HostTensor>>
ax::import::readTestData(llvm::StringRef folder, llvm::StringRef prefix,
                         llvm::ArrayRef<std::string> names) {
  auto read = readTestData(folder, prefix);
  if (!read)
    return read.takeError();
  nameByPosition(*read, names);
  std::vector<HostTensor> tensors;
  for (const std::string &name : names) {
    auto found = llvm::find_if(
        *read, [&](const NamedTensor &tensor) { return tensor.name == name; });
    if (found == read->end())
      return makeErrorf(ExitCode::BadInput, "{0}: there is no {1} '{2}'",
                        folder, prefix, name);
    tensors.push_back(found->tensor);
  }
  return tensors;
}
