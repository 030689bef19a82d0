//===- GraphTensors.h - A graph's tensors on the wire -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Initializers, and nodes that are weights, of a graph and of those inside its
// nodes: found, and copied with others in their place, all else byte for byte.
// What withoutTensors leaves is what protobuf has read before: graphs are not
// nested deeper than it allows.
//
//===----------------------------------------------------------------------===//
#ifndef AX_LIB_IMPORT_GRAPHTENSORS_H
#define AX_LIB_IMPORT_GRAPHTENSORS_H

#include "TensorHeader.h"

namespace ax::import {

/// Returns tensors in the order of the file, but for damaged ones; they point
/// into `graph`.
std::vector<TensorHeader> findTensors(llvm::ArrayRef<uint8_t> graph);

/// What becomes of a tensor, whose message is `tensor`; nothing where it stays.
using TensorRewriter =
    llvm::function_ref<llvm::Expected<std::optional<std::string>>(
        const TensorHeader &header, llvm::ArrayRef<uint8_t> tensor)>;

/// The graph with such tensors. `fault` makes an error of what is wrong with
/// it.
llvm::Expected<std::string>
rewriteTensors(llvm::ArrayRef<uint8_t> graph, TensorRewriter rewrite,
               llvm::function_ref<llvm::Error(const llvm::Twine &)> fault);

/// The graph without those that findTensors gives: its nodes, and what is said
/// of values.
std::string withoutTensors(llvm::ArrayRef<uint8_t> graph);

} // namespace ax::import

#endif // AX_LIB_IMPORT_GRAPHTENSORS_H
