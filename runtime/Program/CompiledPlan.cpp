//===- CompiledPlan.cpp - Programs in a file ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A line `axopt compiled plan VERSION CHECKSUM LENGTH`, then so many bytes of
// the message, of which the checksum is, then its field of weights, if it has
// them.
//
//===----------------------------------------------------------------------===//
#include "ax/Runtime/CompiledPlan.h"

#include "EmbeddedWeights.h"
#include "FieldReader.h"
#include "FieldWriter.h"
#include "ax/Support/AtomicFile.h"
#include "ax/Support/Checksum.h"
#include "ax/Support/Error.h"
#include "ax/Support/MappedFile.h"

#include "llvm/Support/Alignment.h"
#include "llvm/Support/Path.h"

namespace ax::rt {

/// The version of Fields.h: raised with any change of what a field means.
static constexpr int64_t version = 12;
static constexpr llvm::StringLiteral beginning = "axopt compiled plan ";

std::shared_ptr<Program> TargetPrograms::find(llvm::StringRef name) const {
  for (const std::shared_ptr<Program> &program : programs)
    if (program->name == name)
      return program;
  return nullptr;
}

void CompiledPlan::setPredicted(const std::map<std::string, double> &seconds,
                                llvm::StringRef machine) {
  for (TargetPrograms &target : targets)
    for (const std::shared_ptr<Program> &program : target.programs)
      if (auto known = seconds.find(program->name); known != seconds.end()) {
        program->predictedSeconds = known->second;
        program->predictedFor = machine.str();
      }
}

bool isCompiledPlan(const std::string &path) {
  auto file = MappedFile::open(path);
  if (file)
    return llvm::toStringRef((*file)->bytes()).starts_with(beginning);
  llvm::consumeError(file.takeError());
  return false;
}

/// What is checked by the line: the message without the weights.
static std::string lineOf(const std::string &message) {
  return beginning.str() + std::to_string(version) + " " +
         checksumOf(llvm::arrayRefFromStringRef<uint8_t>(message)) + " " +
         std::to_string(message.size());
}

llvm::Error writeCompiledPlan(const std::string &path, CompiledPlan plan,
                              const std::optional<std::string> &embedFrom) {
  EmbeddedWeights weights;
  if (embedFrom) {
    auto taken = EmbeddedWeights::take(plan, *embedFrom);
    if (!taken)
      return taken.takeError();
    weights = std::move(*taken);
  }
  std::string message;
  fields::FieldWriter writer(message);
  fields::visit(writer, plan);
  std::string line = lineOf(message);
  std::string header = EmbeddedWeights::header(weights.getBytes());
  // The weights begin where they are aligned.
  uint64_t size = line.size() + 1 + message.size() + header.size();
  if (!header.empty())
    line.append(
        llvm::offsetToAlignment(size, llvm::Align(EmbeddedWeights::alignment)),
        ' ');
  line += '\n';
  auto file = AtomicFile::create(path);
  if (!file)
    return file.takeError();
  for (const std::string &part : {line, message, header})
    if (llvm::Error error = file->write(part))
      return error;
  if (llvm::Error error = weights.write(*file))
    return error;
  return file->commit();
}

/// A BadPlan error for what a run would take for granted.
static llvm::Error checkPrograms(const CompiledPlan &plan) {
  const std::vector<TargetPrograms> &targets = plan.targets;
  if (targets.empty())
    return makeError(ExitCode::BadPlan, "it is for no target");
  for (const TargetPrograms &each : targets)
    if (each.programs.empty())
      return makeError(ExitCode::BadPlan, "it has a target without programs");
  const sharding::Mesh &mesh = targets.front().programs.front()->mesh;
  for (const TargetPrograms &each : targets)
    for (const std::shared_ptr<Program> &program : each.programs) {
      if (program->mesh.getAxes() != mesh.getAxes())
        return makeErrorf(ExitCode::BadPlan,
                          "its programs for '{0}' have another mesh than those "
                          "for '{1}'",
                          each.target.name, targets.front().target.name);
      // A plan's files are named from its folder on.
      for (const State &state : program->states)
        if (llvm::sys::path::is_absolute(state.file))
          return makeErrorf(ExitCode::BadPlan,
                            "state '{0}' is in '{1}', which is no path inside "
                            "the model's folder",
                            state.name, state.file);
      if (llvm::Error error = checkProgram(*program))
        return error;
    }
  return llvm::Error::success();
}

llvm::Expected<CompiledPlan> readCompiledPlan(const std::string &path) {
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  auto refuse = [&](const llvm::Twine &why) {
    return makeError(ExitCode::BadPlan, "compiled plan '" + path + "' " + why);
  };
  llvm::ArrayRef<uint8_t> bytes = (*file)->bytes();
  llvm::StringRef text = llvm::toStringRef(bytes);
  auto [line, rest] = text.split('\n');
  if (!line.consume_front(beginning))
    return refuse("is none: it does not begin like one");
  auto [number, facts] = line.split(' ');
  if (number != std::to_string(version))
    return refuse("is of version '" + llvm::Twine(shorten(number, 20)) +
                  "', and this program reads " + llvm::Twine(version) +
                  ": compile it again");
  auto [checksum, length] = facts.split(' ');
  uint64_t messageBytes;
  if (length.rtrim(' ').getAsInteger(10, messageBytes) ||
      messageBytes > rest.size())
    return refuse("is damaged: it is cut off");
  llvm::ArrayRef<uint8_t> contents = bytes.take_back(rest.size()),
                          message = contents.take_front(messageBytes);
  if (checksumOf(message) != checksum)
    return refuse("is damaged: its checksum is another");
  CompiledPlan plan;
  if (!fields::FieldReader::readMessage(message, plan))
    return refuse("is damaged: it cannot be read");
  if (llvm::Error error =
          placeEmbedded(plan, contents.drop_front(messageBytes), *file))
    return error;
  if (llvm::Error error = checkPrograms(plan))
    return addContext(std::move(error), "compiled plan '" + path + "'");
  return plan;
}

} // namespace ax::rt
