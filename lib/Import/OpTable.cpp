//===- OpTable.cpp - Operators and their importers ------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "OpTable.h"

#include "Schemas.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace ax::import;
using llvm::StringRef;
using onnx::OpSchema;

const OpTable &OpTable::get() {
  static const OpTable all = [] {
    OpTable table;
#define AX_FILE(Name) add##Name(table);
#include "Importers.inc"
#undef AX_FILE
    return table;
  }();
  return all;
}

//===----------------------------------------------------------------------===//
// Signatures
//===----------------------------------------------------------------------===//

/// The words of a list, without empty ones.
static llvm::SmallVector<StringRef> wordsOf(StringRef list, char divider) {
  llvm::SmallVector<StringRef> words;
  list.split(words, divider, -1, /*KeepEmpty=*/false);
  return words;
}

static std::vector<std::string> elementTypes(StringRef names) {
  if (names == "floats")
    names = "float|float16|bfloat16|double";
  else if (names == "bytes")
    names = "int8|uint8";
  std::vector<std::string> types;
  for (StringRef name : wordsOf(names, '|'))
    types.push_back(("tensor(" + name + ")").str());
  return types;
}

static onnx::AttributeProto::AttributeType attributeType(StringRef name) {
  using onnx::AttributeProto;
  return llvm::StringSwitch<AttributeProto::AttributeType>(name)
      .Case("int", AttributeProto::INT)
      .Case("ints", AttributeProto::INTS)
      .Case("float", AttributeProto::FLOAT)
      .Case("floats", AttributeProto::FLOATS)
      .Case("string", AttributeProto::STRING)
      .Case("strings", AttributeProto::STRINGS);
}

namespace {
struct Parameter {
  std::string name, type;
  OpSchema::FormalParameterOption option = OpSchema::Single;
  /// Of any number of inputs each may have another type.
  bool isOfOneType() const { return option != OpSchema::Variadic; }
};
} // namespace

/// Reads `name?:T=types`, and gives the schema the types of a variable that is
/// new.
static Parameter readParameter(StringRef word, OpSchema &schema) {
  Parameter parameter;
  auto [name, type] = word.split(':');
  if (name.consume_back("?"))
    parameter.option = OpSchema::Optional;
  else if (name.consume_back("*"))
    parameter.option = OpSchema::Variadic;
  parameter.name = name.str();
  auto [variable, types] = type.split('=');
  bool isVariable = llvm::isUpper(variable.front());
  parameter.type = isVariable ? variable.str() : elementTypes(variable).front();
  if (!types.empty())
    schema.TypeConstraint(variable.str(), elementTypes(types), "");
  return parameter;
}

static OpSchema makeSchema(StringRef domain, StringRef name,
                           const Signature &signature) {
  OpSchema schema(name.str(), "", 0);
  schema.SetDomain(domain.str()).SinceVersion(1);
  for (auto [i, word] : llvm::enumerate(wordsOf(signature.inputs, ' '))) {
    Parameter input = readParameter(word, schema);
    schema.Input(static_cast<int>(i), input.name, "", input.type, input.option,
                 input.isOfOneType());
  }
  for (auto [i, word] : llvm::enumerate(wordsOf(signature.outputs, ' '))) {
    Parameter output = readParameter(word, schema);
    schema.Output(static_cast<int>(i), output.name, "", output.type,
                  output.option, output.isOfOneType());
  }
  for (StringRef word : wordsOf(signature.attributes, ' ')) {
    auto [attribute, type] = word.split(':');
    bool isRequired = attribute.consume_back("!");
    schema.Attr({attribute.str(), "", attributeType(type), isRequired});
  }
  schema.Finalize();
  return schema;
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

void OpTable::add(ArrayRef<OpEntry> group, StringRef domain) {
  for (const OpEntry &entry : group) {
    std::string key = qualifiedName(domain, entry.name);
    Meanings &meanings = byName[key];
    assert((meanings.empty() || meanings.back().since < entry.since) &&
           "one meaning twice, or the newer one first");
    meanings.push_back(entry);
    if (!entry.signature.outputs.empty())
      schemas.try_emplace(key, makeSchema(domain, entry.name, entry.signature));
  }
}

OpImporter OpTable::find(StringRef domain, StringRef opType, int opset) const {
  OpImporter importer = nullptr;
  auto found = byName.find(qualifiedName(domain, opType));
  if (found == byName.end())
    return nullptr;
  for (const OpEntry &entry : found->second)
    if (entry.since <= opset)
      importer = entry.importer;
  return importer;
}

const OpSchema *OpTable::findSchema(StringRef domain, StringRef opType) const {
  auto found = schemas.find(qualifiedName(domain, opType));
  return found == schemas.end() ? nullptr : &found->second;
}

OpImporter ax::import::findImporter(StringRef domain, StringRef opType,
                                    int opset) {
  return OpTable::get().find(domain, opType, opset);
}
