//===- CheckCommands.cpp - Faults of the commands of a program ------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Checker.h"

#include <algorithm>

namespace ax::rt {

void Checker::checkRef(const BufferRef &ref, int64_t bytes, int64_t alignment) {
  if (!require(isIndex(ref.buffer, stage->buffers), "no such buffer"))
    return;
  const Buffer &buffer = bufferOf(ref);
  require(ref.byteOffset >= 0 && bytes >= 0 && ref.byteOffset <= buffer.bytes &&
              bytes <= buffer.bytes - ref.byteOffset,
          std::to_string(bytes) + " bytes at " +
              std::to_string(ref.byteOffset) + " are not inside buffer '" +
              buffer.name + "' of " + std::to_string(buffer.bytes));
  require(ref.byteOffset % alignment == 0,
          "byte " + std::to_string(ref.byteOffset) + " of buffer '" +
              buffer.name + "' begins no element");
  // Where these are is known while their list is done.
  if (buffer.space == Space::Input || buffer.space == Space::Output)
    require(listOf.emplace(ref.buffer, list).first->second == list,
            "buffer '" + buffer.name + "' is another list's");
  if (buffer.space == Space::Received) {
    auto made = received.find(buffer.index);
    require(made != received.end() && made->second == list,
            "buffer '" + buffer.name + "' is not yet received");
  }
}

void Checker::checkResult(const BufferRef &ref, int64_t bytes,
                          int64_t alignment) {
  checkRef(ref, bytes, alignment);
  if (!fault.empty())
    return;
  // The caller's inputs, and files of weights, are used where they are.
  const Buffer &buffer = bufferOf(ref);
  bool isConstant =
      buffer.space == Space::Input ||
      (buffer.space == Space::State &&
       !program.states[static_cast<size_t>(buffer.index)].isMutable);
  require(!isConstant,
          "it writes to buffer '" + buffer.name + "', which does not change");
}

void Checker::operator()(const KernelCommand &c) {
  if (!require(isIndex(c.kernel, program.kernels), "no such kernel"))
    return;
  const Kernel &kernel = program.kernels[static_cast<size_t>(c.kernel)];
  if (!require(!kernel.image.empty(), "the kernel has no code") ||
      !require(kernel.arguments.size() == c.buffers.size(),
               "the kernel has another number of buffers") ||
      !require(kernel.scalarBounds.size() == c.scalars.size(),
               "the kernel has another number of scalars"))
    return;
  for (size_t i = 0; i < c.buffers.size(); ++i) {
    const KernelArgument &argument = kernel.arguments[i];
    if (argument.isWritten)
      checkResult(c.buffers[i], argument.bytes, argument.alignment);
    else
      checkRef(c.buffers[i], argument.bytes, argument.alignment);
  }
  for (size_t i = 0; i < c.scalars.size(); ++i) {
    const Scalar &scalar = c.scalars[i];
    if (auto why = sharding::findFault(scalar.axes, program.mesh)) {
      require(false, *why);
      return;
    }
    int64_t reach = 0, last = 0;
    bool overflows = __builtin_mul_overflow(
                         scalar.scale, numParts(scalar.axes) - 1, &reach) ||
                     __builtin_add_overflow(scalar.constant, reach, &last);
    require(!overflows && std::min(scalar.constant, last) >= 0 &&
                std::max(scalar.constant, last) < kernel.scalarBounds[i],
            "a scalar that the kernel does not take");
  }
}

void Checker::operator()(const LibraryCommand &c) {
  if (std::string why = findFault(c.desc); !require(why.empty(), why))
    return;
  int count = numArguments(c.desc);
  if (!require(static_cast<int>(c.arguments.size()) == count,
               "wrong number of arguments"))
    return;
  int packed = packedArgument(c.desc);
  for (int i = 0; i < count && fault.empty(); ++i) {
    const BufferRef &ref = c.arguments[static_cast<size_t>(i)];
    TensorDesc desc = argumentDesc(c.desc, i);
    if (i >= count - numResults(c.desc))
      checkResult(ref, desc.spanBytes(), byteSize(desc.dtype));
    else
      checkRef(ref, desc.spanBytes(), byteSize(desc.dtype));
    if (i == packed && fault.empty())
      require(bufferOf(ref).space == Space::State,
              "a constant operand that is not state");
  }
  if (const auto *check = std::get_if<IndexCheckDesc>(&c.desc))
    checkOrigin(*check);
}

void Checker::operator()(const FaultCommand &c) {
  if (std::string why = findFault(c.check); !require(why.empty(), why))
    return;
  require(std::find(c.check.sizes.begin(), c.check.sizes.end(), 0) ==
              c.check.sizes.end(),
          "a size of 0, of which there is no index to go on with");
  checkRef(c.word, faultWordBytes, byteSize(DType::I64));
  checkOrigin(c.check);
}

/// The tensor of which the checked one is the rank's part.
void Checker::checkOrigin(const IndexCheckDesc &check) {
  std::vector<int64_t> shape;
  for (const sharding::DimLayout &dim : check.layout.dims) {
    std::vector<int64_t> sizes;
    for (const sharding::Factor &factor : dim.factors)
      sizes.push_back(factor.size);
    std::optional<int64_t> size = checkedNumElements(sizes, 1);
    if (!require(size.has_value(), "impossible sizes"))
      return;
    shape.push_back(*size);
  }
  if (!require(checkedNumElements(shape, 1).has_value(), "impossible sizes"))
    return;
  if (auto why = sharding::findFault(check.layout, shape, program.mesh))
    require(false, *why);
  else
    require(check.layout.localShape() == check.indices.sizes,
            "a layout of other indices");
}

int64_t Checker::spanOf(const CopyCommand &copy,
                        const std::vector<int64_t> &strides) {
  int64_t span = 1, reach = 0;
  for (size_t i = 0; i < copy.sizes.size(); ++i) {
    if (copy.sizes[i] == 0)
      return 0;
    if (strides[i] < 0 ||
        __builtin_mul_overflow(copy.sizes[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(span, reach, &span))
      return -1;
  }
  return __builtin_mul_overflow(span, copy.elementBytes, &span) ? -1 : span;
}

void Checker::operator()(const CopyCommand &c) {
  if (!require(c.sourceStrides.size() == c.sizes.size() &&
                   c.destinationStrides.size() == c.sizes.size() &&
                   c.elementBytes > 0 &&
                   checkedNumElements(c.sizes, c.elementBytes),
               "sizes and strides do not match"))
    return;
  int64_t source = spanOf(c, c.sourceStrides);
  int64_t destination = spanOf(c, c.destinationStrides);
  if (!require(source >= 0 && destination >= 0, "impossible strides"))
    return;
  checkRef(c.source, source);
  checkResult(c.destination, destination);
}

void Checker::checkReduction(const CollectiveCommand &c, size_t members) {
  CollectiveKind kind = c.parts.front().kind;
  if (!require(reduces(kind), "a kernel for what reduces nothing") ||
      !require(isIndex(c.reduction, program.kernels), "no such kernel"))
    return;
  const Kernel &kernel = program.kernels[static_cast<size_t>(c.reduction)];
  size_t buffers = reductionKernel::numBuffers(kind, members);
  // Elements of another size would lie elsewhere.
  auto fits = [&](const KernelArgument &argument) {
    return argument.bytes == byteSize(c.parts.front().dtype);
  };
  require(
      !kernel.image.empty() && kernel.format == kernelFormat::ptx &&
          kernel.scratchBytes == 0 && kernel.arguments.size() == buffers &&
          std::all_of(kernel.arguments.begin(), kernel.arguments.end(), fits) &&
          kernel.scalarBounds.size() == reductionKernel::numScalars,
      "a kernel that does not reduce");
}

void Checker::operator()(const CollectiveCommand &c) {
  if (!require(isIndex(c.groupSet, stage->groups), "no such group set"))
    return;
  auto members = static_cast<int64_t>(
      stage->groups[static_cast<size_t>(c.groupSet)].groups.front().size());
  if (std::string why = findFault({c.parts.begin(), c.parts.end()}, members);
      !require(why.empty(), why))
    return;
  for (const CollectivePart &part : c.parts) {
    checkRef(part.source, sourceBytes(part), byteSize(part.dtype));
    checkResult(part.destination, destinationBytes(part), byteSize(part.dtype));
  }
  if (c.reduction >= 0)
    checkReduction(c, static_cast<size_t>(members));
  if (c.request >= 0)
    require(pending.insert(c.request).second, "its request is in use");
}

} // namespace ax::rt
