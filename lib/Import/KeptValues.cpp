//===- KeptValues.cpp - Values to be given beside the outputs -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KeptValues.h"

#include "ax/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"

#include <algorithm>

using namespace ax;
using namespace ax::import;

namespace {

/// A value, and what users may call it.
struct Candidate {
  std::string value;
  std::vector<std::string> names;
};

} // namespace

static std::vector<Candidate> findCandidates(const PreparedModel &model) {
  std::vector<Candidate> candidates;
  for (const onnx::NodeProto &node : model.proto.graph().node()) {
    if (node.op_type() == "Constant")
      continue;
    std::vector<std::string> ofNode;
    if (!node.name().empty())
      ofNode.push_back(node.name());
    auto scope = node.output_size() ? model.scopes.find(node.output(0))
                                    : model.scopes.end();
    if (scope != model.scopes.end()) {
      ofNode.push_back(scope->second);
      ofNode.push_back(scope->second + "/" + node.name());
    }
    for (const std::string &value : node.output()) {
      if (value.empty())
        continue;
      Candidate &made = candidates.emplace_back(Candidate{value, ofNode});
      made.names.push_back(value);
    }
  }
  return candidates;
}

/// Some names, the likest first.
static std::string namesLike(llvm::StringRef pattern,
                             const std::vector<Candidate> &candidates) {
  constexpr size_t shown = 3;
  std::string letters;
  llvm::copy_if(pattern, std::back_inserter(letters),
                [](char c) { return !llvm::StringRef("*?[]{}").contains(c); });
  std::vector<std::pair<unsigned, llvm::StringRef>> ranked;
  for (const Candidate &candidate : candidates)
    for (llvm::StringRef name : candidate.names) {
      // Who leaves out the modules means the rest.
      llvm::StringRef last = name.substr(name.rfind('/') + 1);
      ranked.emplace_back(
          name.contains_insensitive(letters)
              ? 0
              : std::min(name.edit_distance(letters),
                         last.edit_distance(llvm::StringRef(letters).substr(
                             llvm::StringRef(letters).rfind('/') + 1))),
          name);
    }
  llvm::sort(ranked);
  ranked.erase(std::unique(ranked.begin(), ranked.end()), ranked.end());
  ranked.resize(std::min(ranked.size(), shown));
  return llvm::join(llvm::make_second_range(ranked), "', '");
}

llvm::Expected<std::vector<std::string>>
ax::import::findKeptValues(const PreparedModel &model,
                           llvm::ArrayRef<std::string> patterns) {
  std::vector<Candidate> candidates = findCandidates(model);
  std::vector<bool> isKept(candidates.size(), false);
  for (const std::string &pattern : patterns) {
    auto fault = [&](const llvm::Twine &why) {
      return makeError(ExitCode::Usage,
                       "--dump-tensors=" + pattern + ": " + why);
    };
    auto glob = llvm::GlobPattern::create(pattern);
    if (!glob)
      return fault(llvm::toString(glob.takeError()));
    bool matches = false;
    for (auto [i, candidate] : llvm::enumerate(candidates))
      if (llvm::any_of(candidate.names, [&](const std::string &name) {
            return name == pattern || glob->match(name);
          })) {
        isKept[i] = true;
        matches = true;
      }
    if (!matches)
      return fault("no value, node or module has such a name; there are '" +
                   namesLike(pattern, candidates) + "'");
  }
  std::vector<std::string> kept;
  for (auto [i, candidate] : llvm::enumerate(candidates))
    if (isKept[i] &&
        llvm::none_of(model.proto.graph().output(),
                      [&, value = candidate.value](const auto &output) {
                        return output.name() == value;
                      }))
      kept.push_back(candidate.value);
  return kept;
}
