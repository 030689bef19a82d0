//===- DnnlOp.cpp - Operations made of oneDNN primitives ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DnnlOp.h"

#include "ax/Runtime/HostMemory.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <mutex>

namespace ax::rt {

namespace {

constexpr uint64_t alignment = 64;

llvm::Error dnnlError(dnnl_status_t status, const char *what) {
  return makeErrorf(ExitCode::RunFailed, "oneDNN: {0} failed with status {1}",
                    what, static_cast<int>(status));
}

/// Room for the scratchpad, after the temporaries.
constexpr int64_t scratchpad = -1;

} // namespace

dnnl_engine_t dnnlCpuEngine() {
  static dnnl_engine_t engine = [] {
    dnnl_engine_t result = nullptr;
    dnnl_engine_create(&result, dnnl_cpu, 0);
    return result;
  }();
  return engine;
}

std::optional<dnnl_data_type_t> dnnlType(DType dtype) {
  if (dtype == DType::F32)
    return dnnl_f32;
  if (dtype == DType::BF16)
    return dnnl_bf16;
  return std::nullopt;
}

bool areDnnlIntegers(DType x, DType w, DType sum) {
  // Of what a processor has, users may take some away.
  constexpr int wanted = dnnl_cpu_isa_avx512_core_vnni;
  return x == DType::U8 && w == DType::I8 && sum == DType::I32 &&
         (dnnl_get_effective_cpu_isa() & wanted) == wanted;
}

/// Those of all memory that its primitives read and write.
static std::optional<dnnl_data_type_t> dnnlMemoryType(DType dtype) {
  switch (dtype) {
  case DType::I8:
    return dnnl_s8;
  case DType::U8:
    return dnnl_u8;
  case DType::I32:
    return dnnl_s32;
  default:
    return dnnlType(dtype);
  }
}

bool makeDnnlDesc(const TensorDesc &view, dnnl_memory_desc_t &desc) {
  std::optional<dnnl_data_type_t> type = dnnlMemoryType(view.dtype);
  size_t rank = view.sizes.size();
  if (!type || rank == 0 || rank > DNNL_MAX_NDIMS)
    return false;
  dnnl_dims_t dims, strides;
  for (size_t d = rank; d-- > 0;) {
    dims[d] = view.sizes[d];
    strides[d] = view.strides[d];
    if (dims[d] == 0 || (strides[d] == 0 && dims[d] != 1))
      return false;
    // Any stride is right for a single element; this one looks dense. A batch
    // of one is outermost wherever the channels are.
    if (dims[d] == 1) {
      if (d == 0 && rank > 2) {
        strides[d] = 1;
        for (size_t other = 1; other < rank; ++other)
          strides[d] = std::max(strides[d], dims[other] * strides[other]);
      } else if (d + 1 < rank)
        strides[d] = dims[d + 1] * strides[d + 1];
      else
        strides[d] =
            rank > 1 && view.strides[d - 1] == 1 && view.sizes[d - 1] > 1
                ? view.sizes[d - 1]
                : 1;
    }
  }
  return dnnl_memory_desc_init_by_strides(&desc, static_cast<int>(rank), dims,
                                          *type, strides) == dnnl_success;
}

dnnl_memory_desc_t withAnyFormat(const dnnl_memory_desc_t &desc) {
  dnnl_memory_desc_t result;
  dnnl_memory_desc_init_by_tag(&result, desc.ndims, desc.dims, desc.data_type,
                               dnnl_format_tag_any);
  return result;
}

std::string dnnlFormatKey(const dnnl_memory_desc_t &desc) {
  std::string key =
      std::to_string(desc.data_type) + ":" + std::to_string(desc.format_kind);
  auto add = [&](int64_t value) { key += "," + std::to_string(value); };
  const dnnl_blocking_desc_t &blocking = desc.format_desc.blocking;
  for (int d = 0; d < desc.ndims; ++d) {
    add(desc.dims[d]);
    add(desc.padded_dims[d]);
    add(blocking.strides[d]);
  }
  for (int b = 0; b < blocking.inner_nblks; ++b) {
    add(blocking.inner_blks[b]);
    add(blocking.inner_idxs[b]);
  }
  // Behind weights of eight bits there may be sums of them.
  add(static_cast<int64_t>(desc.extra.flags));
  add(desc.extra.compensation_mask);
  return key;
}

static void appendActivation(dnnl_post_ops_t ops, Activation activation) {
  auto eltwise = [&](dnnl_alg_kind_t kind, float alpha = 0) {
    dnnl_post_ops_append_eltwise(ops, 1, kind, alpha, 0);
  };
  switch (activation) {
  case Activation::None:
    return;
  case Activation::Relu:
    return eltwise(dnnl_eltwise_relu);
  case Activation::GeluErf:
    return eltwise(dnnl_eltwise_gelu_erf);
  case Activation::GeluTanh:
    return eltwise(dnnl_eltwise_gelu_tanh);
  case Activation::Silu:
    return eltwise(dnnl_eltwise_swish, 1);
  case Activation::Tanh:
    return eltwise(dnnl_eltwise_tanh);
  case Activation::Sigmoid:
    return eltwise(dnnl_eltwise_logistic);
  }
}

DnnlAttr makeDnnlAttr(Activation activation, const dnnl_memory_desc_t *residual,
                      bool residualIsDestination, bool activationLast) {
  dnnl_primitive_attr_t attr = nullptr;
  dnnl_primitive_attr_create(&attr);
  DnnlAttr result(attr);
  dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
  dnnl_post_ops_t ops = nullptr;
  dnnl_post_ops_create(&ops);
  DnnlPostOps owner(ops);
  if (!activationLast)
    appendActivation(ops, activation);
  if (residualIsDestination)
    dnnl_post_ops_append_sum(ops, 1);
  else if (residual)
    dnnl_post_ops_append_binary(ops, dnnl_binary_add, residual);
  if (activationLast)
    appendActivation(ops, activation);
  dnnl_primitive_attr_set_post_ops(attr, ops);
  return result;
}

DnnlPrimitiveDesc makeDnnlPrimitiveDesc(const_dnnl_op_desc_t op,
                                        const dnnl_primitive_attr *attr,
                                        const_dnnl_primitive_desc_t forward) {
  dnnl_primitive_desc_t desc = nullptr;
  {
    // oneDNN 2.6 does not do this for several threads at a time: of some
    // convolutions it chose blocks by what it looked at for another one, and
    // they gave wrong numbers.
    static std::mutex creating;
    std::lock_guard<std::mutex> held(creating);
    if (dnnl_primitive_desc_create(&desc, op, attr, dnnlCpuEngine(), forward) !=
        dnnl_success)
      return nullptr;
  }
  DnnlPrimitiveDesc result(desc);
  const char *info = nullptr;
  dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, &info);
  if (info && llvm::StringRef(info).starts_with("ref"))
    return nullptr;
  return result;
}

const dnnl_memory_desc_t &queryDnnlDesc(const DnnlPrimitiveDesc &desc,
                                        dnnl_query_t what) {
  return *dnnl_primitive_desc_query_md(desc.get(), what, 0);
}

DnnlPlace DnnlOp::addTemporary(const dnnl_memory_desc_t &desc) {
  DnnlPlace place = DnnlPlace::workspace(temporaryBytes);
  temporaryBytes += static_cast<int64_t>(
      llvm::alignTo(dnnl_memory_desc_get_size(&desc), alignment));
  return place;
}

llvm::Error DnnlOp::addPrimitive(const DnnlPrimitiveDesc &desc,
                                 llvm::ArrayRef<Operand> operands) {
  Step step;
  dnnl_primitive_t primitive = nullptr;
  dnnl_status_t status = dnnl_primitive_create(&primitive, desc.get());
  if (status != dnnl_success)
    return dnnlError(status, "creating a primitive");
  step.primitive.reset(primitive);
  auto add = [&](const Operand &operand) {
    dnnl_memory_t memory = nullptr;
    dnnl_memory_create(&memory, &operand.desc, dnnlCpuEngine(),
                       DNNL_MEMORY_NONE);
    step.memories.emplace_back(memory);
    step.places.push_back(operand.place);
    step.arguments.push_back({operand.dnnlArgument, memory});
  };
  for (const Operand &operand : operands)
    add(operand);
  const dnnl_memory_desc_t &scratch =
      queryDnnlDesc(desc, dnnl_query_scratchpad_md);
  if (size_t bytes = dnnl_memory_desc_get_size(&scratch)) {
    add({DNNL_ARG_SCRATCHPAD, scratch, DnnlPlace::workspace(scratchpad)});
    scratchBytes = std::max(scratchBytes, static_cast<int64_t>(bytes));
  }
  steps.push_back(std::move(step));
  return llvm::Error::success();
}

llvm::Error DnnlOp::addReorder(const dnnl_memory_desc_t &from, DnnlPlace source,
                               const dnnl_memory_desc_t &to,
                               DnnlPlace destination) {
  DnnlAttr attr = makeDnnlAttr(Activation::None, nullptr, false);
  dnnl_primitive_desc_t desc = nullptr;
  dnnl_status_t status = dnnl_reorder_primitive_desc_create(
      &desc, &from, dnnlCpuEngine(), &to, dnnlCpuEngine(), attr.get());
  if (status != dnnl_success)
    return dnnlError(status, "creating a reorder");
  if (llvm::Error error = addPrimitive(
          DnnlPrimitiveDesc(desc),
          {{DNNL_ARG_FROM, from, source}, {DNNL_ARG_TO, to, destination}}))
    return error;
  steps.back().isCopy = dnnl_memory_desc_equal(&from, &to);
  return llvm::Error::success();
}

llvm::Expected<DnnlPlace> DnnlOp::addConstant(const CpuConstant &constant,
                                              const dnnl_memory_desc_t &plain,
                                              const dnnl_memory_desc_t &wanted,
                                              PackedWeights &packed) {
  auto bytes = static_cast<int64_t>(dnnl_memory_desc_get_size(&wanted));
  auto pack = [&](void *to) -> llvm::Error {
    DnnlOp reorder;
    if (llvm::Error error = reorder.addReorder(
            plain, DnnlPlace::fixed(const_cast<void *>(constant.data)), wanted,
            DnnlPlace::fixed(to)))
      return error;
    if (llvm::Error error = reorder.finish())
      return error;
    llvm::Expected<HostMemory> workspace =
        HostMemory::allocate(reorder.getWorkspaceBytes());
    if (!workspace)
      return workspace.takeError();
    return reorder.execute(nullptr, workspace->getData());
  };
  llvm::Expected<std::shared_ptr<const HostMemory>> memory =
      packed.get(constant, dnnlFormatKey(plain) + ">" + dnnlFormatKey(wanted),
                 bytes, pack);
  if (!memory)
    return memory.takeError();
  constants.push_back(*memory);
  readsConstantOperand = false;
  return DnnlPlace::fixed((*memory)->getData());
}

llvm::Error DnnlOp::finish() {
  dnnl_stream_t handle = nullptr;
  dnnl_status_t status =
      dnnl_stream_create(&handle, dnnlCpuEngine(), dnnl_stream_default_flags);
  if (status != dnnl_success)
    return dnnlError(status, "creating a stream");
  stream.reset(handle);
  workspaceBytes = temporaryBytes + scratchBytes;
  for (Step &step : steps)
    for (DnnlPlace &place : step.places)
      if (place.kind == DnnlPlace::Workspace && place.value == scratchpad)
        place.value = temporaryBytes;
  return llvm::Error::success();
}

llvm::Error DnnlOp::execute(void *const *arguments, void *workspace) {
  for (Step &step : steps) {
    auto addressOf = [&](const DnnlPlace &place) -> void * {
      if (place.kind == DnnlPlace::Argument)
        return arguments[place.value];
      if (place.kind == DnnlPlace::Workspace)
        return static_cast<char *>(workspace) + place.value;
      return place.address;
    };
    if (step.isCopy && addressOf(step.places[0]) == addressOf(step.places[1]))
      continue;
    for (size_t i = 0; i < step.places.size(); ++i)
      dnnl_memory_set_data_handle_v2(step.memories[i].get(),
                                     addressOf(step.places[i]), stream.get());
    dnnl_status_t status = dnnl_primitive_execute(
        step.primitive.get(), stream.get(),
        static_cast<int>(step.arguments.size()), step.arguments.data());
    if (status != dnnl_success)
      return dnnlError(status, "a primitive");
  }
  return llvm::Error::success();
}

} // namespace ax::rt
