//===- DnnlOp.h - Operations made of oneDNN primitives ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// oneDNN's C interface: its C++ one throws. Primitives are cheap to make again:
// oneDNN keeps what it generated for equal ones.
//
//===----------------------------------------------------------------------===//
#ifndef AX_RUNTIME_DNNLOP_H
#define AX_RUNTIME_DNNLOP_H

#include "CpuLibrary.h"

#include "oneapi/dnnl/dnnl.h"

#include <optional>
#include <vector>

namespace ax::rt {

template <typename T, dnnl_status_t (*destroy)(T)>
struct DnnlDeleter {
  using pointer = T;
  void operator()(T handle) const { destroy(handle); }
};
using DnnlPrimitiveDesc = std::unique_ptr<
    dnnl_primitive_desc,
    DnnlDeleter<dnnl_primitive_desc_t, dnnl_primitive_desc_destroy>>;
using DnnlPrimitive =
    std::unique_ptr<dnnl_primitive,
                    DnnlDeleter<dnnl_primitive_t, dnnl_primitive_destroy>>;
using DnnlMemory =
    std::unique_ptr<dnnl_memory,
                    DnnlDeleter<dnnl_memory_t, dnnl_memory_destroy>>;
using DnnlStream =
    std::unique_ptr<dnnl_stream,
                    DnnlDeleter<dnnl_stream_t, dnnl_stream_destroy>>;
using DnnlAttr = std::unique_ptr<
    dnnl_primitive_attr,
    DnnlDeleter<dnnl_primitive_attr_t, dnnl_primitive_attr_destroy>>;
using DnnlPostOps =
    std::unique_ptr<dnnl_post_ops,
                    DnnlDeleter<dnnl_post_ops_t, dnnl_post_ops_destroy>>;

dnnl_engine_t dnnlCpuEngine();
/// Returns oneDNN's type; nothing for element types that its CPU primitives do
/// not compute with.
std::optional<dnnl_data_type_t> dnnlType(DType dtype);
/// Whether it has exact sums of products of integers of eight bits, of these
/// types: weights have a sign, and what they are multiplied with has none, as
/// oneDNN 2.6 takes off in f32 what it adds to numbers that have one; and it
/// uses instructions for them, without which sums of two saturate at 16 bits.
bool areDnnlIntegers(DType x, DType w, DType sum);
/// False when the view cannot be described.
bool makeDnnlDesc(const TensorDesc &view, dnnl_memory_desc_t &desc);
/// Returns `desc` in whatever format oneDNN likes best.
dnnl_memory_desc_t withAnyFormat(const dnnl_memory_desc_t &desc);
/// The text that tells formats apart.
std::string dnnlFormatKey(const dnnl_memory_desc_t &desc);
/// Scratchpad in the caller's hands; post-operations activation, then addition
/// of `residual` where it is not null; the reverse with `activationLast`.
DnnlAttr makeDnnlAttr(Activation activation, const dnnl_memory_desc_t *residual,
                      bool residualIsDestination, bool activationLast = false);
/// Null when oneDNN has no implementation, or only its slow reference. A
/// backward primitive wants to know its `forward` one.
DnnlPrimitiveDesc
makeDnnlPrimitiveDesc(const_dnnl_op_desc_t op, const dnnl_primitive_attr *attr,
                      const_dnnl_primitive_desc_t forward = nullptr);
const dnnl_memory_desc_t &queryDnnlDesc(const DnnlPrimitiveDesc &desc,
                                        dnnl_query_t what);

/// Where a primitive's operand is.
struct DnnlPlace {
  enum Kind { Argument, Workspace, Fixed } kind;
  int64_t value = 0;
  void *address = nullptr;

  static DnnlPlace argument(int64_t index) { return {Argument, index}; }
  static DnnlPlace workspace(int64_t offset) { return {Workspace, offset}; }
  static DnnlPlace fixed(void *address) { return {Fixed, 0, address}; }
};

/// Primitives one after another.
class DnnlOp : public CpuOp {
public:
  struct Operand {
    int dnnlArgument;
    const dnnl_memory_desc_t &desc;
    DnnlPlace place;
  };

  /// Room for a value between two primitives.
  DnnlPlace addTemporary(const dnnl_memory_desc_t &desc);
  llvm::Error addPrimitive(const DnnlPrimitiveDesc &desc,
                           llvm::ArrayRef<Operand> operands);
  llvm::Error addReorder(const dnnl_memory_desc_t &from, DnnlPlace source,
                         const dnnl_memory_desc_t &to, DnnlPlace destination);
  /// Packs `constant` from the layout `plain` to `wanted`; the result's place.
  llvm::Expected<DnnlPlace> addConstant(const CpuConstant &constant,
                                        const dnnl_memory_desc_t &plain,
                                        const dnnl_memory_desc_t &wanted,
                                        PackedWeights &packed);
  /// Call after the last addition.
  llvm::Error finish();

  llvm::Error execute(void *const *arguments, void *workspace) override;

private:
  struct Step {
    DnnlPrimitive primitive;
    std::vector<dnnl_exec_arg_t> arguments;
    std::vector<DnnlMemory> memories;
    std::vector<DnnlPlace> places;
    /// Does nothing when its two operands are one.
    bool isCopy = false;
  };

  std::vector<Step> steps;
  DnnlStream stream;
  std::vector<std::shared_ptr<const HostMemory>> constants;
  int64_t temporaryBytes = 0;
  int64_t scratchBytes = 0;
};

} // namespace ax::rt

#endif // AX_RUNTIME_DNNLOP_H
