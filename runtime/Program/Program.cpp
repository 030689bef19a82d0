//===- Program.cpp - Command lists: what the executor runs ----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/Program.h"

namespace ax::rt {

std::string Labels::describe() const {
  return "the " + std::to_string(classes) + " classes 0 to " +
         std::to_string(classes - 1) + ", nor " + std::to_string(ignored) +
         ", which is ignored";
}

namespace {

struct Describe {
  const Program &program;
  const StageProgram &stage;

  std::string operator()(const KernelCommand &c) const {
    return "kernel " + program.kernels[static_cast<size_t>(c.kernel)].name;
  }
  std::string operator()(const LibraryCommand &c) const {
    return ax::rt::toString(c.desc);
  }
  std::string operator()(const CollectiveCommand &c) const {
    return toString(CollectiveSpecs(c.parts.begin(), c.parts.end())) +
           " over " + stage.groups[static_cast<size_t>(c.groupSet)].name;
  }
  std::string operator()(const WaitCommand &c) const {
    return "wait " + std::to_string(c.request);
  }
  std::string operator()(const CopyCommand &c) const {
    return "copy " + shapeToString(c.sizes);
  }
  std::string operator()(const SendCommand &c) const {
    const Transfer &t = program.transfers[static_cast<size_t>(c.transfer)];
    return "send " + t.name + " to stage " + std::to_string(t.toStage);
  }
  std::string operator()(const RecvCommand &c) const {
    const Transfer &t = program.transfers[static_cast<size_t>(c.transfer)];
    return "recv " + t.name + " from stage " + std::to_string(t.fromStage);
  }
  std::string operator()(const FaultCommand &c) const {
    return ax::rt::toString(c.check);
  }
};

} // namespace

GroupSet makeGroupSet(const sharding::Mesh &mesh, const sharding::SubAxes &axes,
                      const std::vector<int32_t> &ranks) {
  GroupSet set;
  set.name = "{";
  for (const sharding::SubAxis &axis : axes)
    set.name +=
        (set.name.size() > 1 ? ", " : "") + sharding::toString(axis, mesh);
  set.name += "}";
  for (int32_t rank : ranks) {
    std::vector<int64_t> members = mesh.group(axes, rank);
    // Each group is made by its first member.
    if (members.front() == rank)
      set.groups.emplace_back(members.begin(), members.end());
  }
  return set;
}

size_t reductionKernel::numBuffers(CollectiveKind kind, size_t members) {
  return members + (kind == CollectiveKind::AllReduce ? members : 1);
}

std::vector<std::string> namesOf(const std::vector<Port> &ports) {
  std::vector<std::string> names;
  for (const Port &port : ports)
    names.push_back(port.name);
  return names;
}

std::vector<const Command *> StageProgram::allCommands() const {
  std::vector<const Command *> all;
  for (const CommandList &list : lists)
    for (const Command &command : list.commands)
      all.push_back(&command);
  return all;
}

std::vector<BufferRef> buffersOf(const Command &command) {
  if (const auto *kernel = std::get_if<KernelCommand>(&command.body))
    return kernel->buffers;
  if (const auto *library = std::get_if<LibraryCommand>(&command.body))
    return library->arguments;
  if (const auto *collective = std::get_if<CollectiveCommand>(&command.body)) {
    // All sources, then all destinations.
    std::vector<BufferRef> references;
    for (const CollectivePart &part : collective->parts)
      references.push_back(part.source);
    for (const CollectivePart &part : collective->parts)
      references.push_back(part.destination);
    return references;
  }
  if (const auto *copy = std::get_if<CopyCommand>(&command.body))
    return {copy->source, copy->destination};
  if (const auto *send = std::get_if<SendCommand>(&command.body))
    return {send->source};
  if (const auto *fault = std::get_if<FaultCommand>(&command.body))
    return {fault->word};
  return {};
}

std::string describe(const Program &program, const StageProgram &stage,
                     const Command &command) {
  return std::visit(Describe{program, stage}, command.body);
}

} // namespace ax::rt
