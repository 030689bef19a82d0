//===- Schemas.h - What ONNX says about an operator -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_IMPORT_SCHEMAS_H
#define AX_LIB_IMPORT_SCHEMAS_H

#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>

#include "llvm/ADT/StringRef.h"

#include <string>

namespace ax::import {

/// `ai.onnx` is the default domain's other name.
inline bool isDefaultDomain(llvm::StringRef domain) {
  return domain.empty() || domain == "ai.onnx";
}

/// The operator's name, with the domain before it unless that is the default
/// one: `com.microsoft.Gelu`.
inline std::string qualifiedName(llvm::StringRef domain,
                                 llvm::StringRef opType) {
  return isDefaultDomain(domain) ? opType.str() : (domain + "." + opType).str();
}
inline std::string qualifiedName(const onnx::NodeProto &node) {
  return qualifiedName(node.domain(), node.op_type());
}

/// Newest operator set of the default domain.
int newestOpset();

/// An operator as operator set `opset` of the default domain has it, or as the
/// table of importers says; null when neither knows it, or the set has it no
/// more.
const onnx::OpSchema *findSchema(llvm::StringRef domain, llvm::StringRef opType,
                                 int opset);

/// The operator set of the default domain that a model or a function imports;
/// `otherwise` when it imports none.
template <typename Proto>
int64_t importedOpset(const Proto &proto, int64_t otherwise) {
  for (const onnx::OperatorSetIdProto &opset : proto.opset_import())
    if (isDefaultDomain(opset.domain()))
      return opset.version();
  return otherwise;
}

/// What onnx's checker finds at fault, in one line; empty when all is well.
/// Every name is made before it is read, once; every node has the inputs,
/// outputs and attributes that its operator asks for, and no others.
std::string checkModel(const onnx::ModelProto &model);

/// The reason that an exception of the onnx library gives, in one line that is
/// not long, without the place in that library's sources.
std::string firstReason(llvm::StringRef what);

} // namespace ax::import

#endif // AX_LIB_IMPORT_SCHEMAS_H
