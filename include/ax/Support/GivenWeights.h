//===- GivenWeights.h - Weights of a file for those of a model --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What is common to axrun --weights and axopt --export-onnx: a file from
// elsewhere does not have all that a model names, not always as it has it, and
// more than that.
//
//===----------------------------------------------------------------------===//
#ifndef AX_SUPPORT_GIVENWEIGHTS_H
#define AX_SUPPORT_GIVENWEIGHTS_H

#include "ax/Support/PiecedTensor.h"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ax {

/// A weight as the model has it. The bytes are there as long as its files are
/// mapped; none where they cannot be read.
struct ModelWeight {
  std::string name;
  DType type = DType::F32;
  Shape shape;
  llvm::ArrayRef<uint8_t> bytes;
  /// A file that has the model's weights has this one.
  bool isRequired = true;
  /// A constant of a plan: neither bytes nor shape are known.
  bool isFolded = false;
};

/// A name without its numbers: one for all layers of a model.
std::string withoutNumbers(llvm::StringRef name);

/// Where a weight's values are found.
struct Twin {
  std::string name;
  bool isTransposed = false;
  bool operator==(const Twin &other) const {
    return name == other.name && isTransposed == other.isTransposed;
  }
};

/// Returns for each of `missing` that has the elements of one of `given` in the
/// model that one: exporters write a weight that is used twice two times, the
/// second one of matrices perhaps transposed, and save_pretrained does so once.
/// Only floats that are not all equal count: a bias of zeros equals every other
/// one. So do layers that began as copies: what differs from a name in the file
/// only by numbers is no twin.
std::map<std::string, Twin> findTied(llvm::ArrayRef<ModelWeight> missing,
                                     llvm::ArrayRef<ModelWeight> given);

/// Returns those of `weights` that are another one again in the same sense,
/// each with the first such.
std::vector<std::pair<std::string, Twin>>
findTwins(llvm::ArrayRef<ModelWeight> weights);

/// Whether the matrix `one` is `other` with rows and columns exchanged.
bool isTransposeOf(const ModelWeight &one, const ModelWeight &other);
/// Returns the transpose of `matrix`, which has two dimensions.
llvm::Expected<HostTensor> transposed(const HostTensor &matrix);

/// The user's word for such: names of weights that a file lacks, each with that
/// of the file's whose values it gets (`--tied A=B`), transposed if that is
/// `B.T`.
using Ties = std::map<std::string, std::string>;
llvm::Expected<Ties> parseTies(llvm::ArrayRef<std::string> pairs);

/// Whether a tensor of that name is computed by the model's code, and not
/// learned, so that state_dict leaves it out: PyTorch's buffers that are not
/// persistent (`rotary_emb.inv_freq`).
bool isComputedBuffer(llvm::StringRef name);

/// Whether such elements are a layer's: floats and, of quantised layers,
/// integers of 8 and 16 bits, and of 32 (biases) where it is known that the
/// model `isQuantised`, unless they are a mask of zeros and ones. Other
/// integers are indices, counts and shapes. Without elements: they may be.
bool isOfLayers(DType type, llvm::ArrayRef<uint8_t> elements,
                bool isQuantised = false);

/// Type and checksum of elements, `f32:8c1d3f0a52b7e964`, by which a plan knows
/// the weights again that it has as constants.
std::string fingerprintOf(const HostTensor &tensor);
/// Returns the type of the tensor that a fingerprint is of; nothing where it is
/// none.
std::optional<DType> typeOfFingerprint(llvm::StringRef fingerprint);

/// What a file has for a model.
struct GivenWeights {
  /// The file, for messages.
  std::string path;
  /// The tensors, by the file's names at first.
  std::map<std::string, PiecedTensor> tensors;
  Ties ties;
  /// Globs over the file's names: what is not meant for the model.
  std::vector<std::string> leaveOut;
  /// Weights that a plan has as constants, by name: fingerprintOf each.
  std::map<std::string, std::string> folded;
  /// The file is a checkpoint that axrun wrote: it has each weight that its run
  /// had, as the model names it, and what its optimizer had.
  bool isCheckpoint = false;
  std::function<void(const std::string &)> warn;
  /// Names of tensors that have a use, though they are no weights of the model.
  std::set<std::string> used;
  /// The file's own names of those that were taken under others.
  std::map<std::string, std::string> fileNames;
};

/// Makes `given.tensors` have the model's names, and all that the model lacks
/// of them and that others there tell: what is to be left out goes, dotted
/// prefixes (`model.`) that all names have in one of the two only are added or
/// removed, weights that the model has twice get both their values, and so do
/// those that the user ties. `given.warn` is told of each. Gives the required
/// weights that are still not there, in the model's order; those that the model
/// computes are none of them. BadInput errors when several prefixes fit, a tie
/// does not, a pattern names nothing, or a constant has another value.
llvm::Expected<std::vector<std::string>>
matchWeights(llvm::ArrayRef<ModelWeight> model, GivenWeights &given);

/// A BadInput error when after that something is left over which might make a
/// difference: not what is computed or an optimizer keeps, integers, and what
/// equals a weight that the model has in its place.
llvm::Error checkLeftOver(llvm::ArrayRef<ModelWeight> model,
                          const GivenWeights &given);

/// Returns for each weight that matchWeights found missing what of the file
/// could be it, if that is one tensor: ` (to take ...)`; else nothing.
llvm::Expected<std::vector<std::string>>
describeMissing(llvm::ArrayRef<ModelWeight> model, const GivenWeights &given,
                llvm::ArrayRef<std::string> missing);
/// What to do about missing names that no file will have; may be empty.
std::string adviceForMissing(llvm::ArrayRef<std::string> missing);

/// `'a', 'b' and 3 more`.
std::string listSome(llvm::ArrayRef<std::string> names, size_t most = 5);

} // namespace ax

#endif // AX_SUPPORT_GIVENWEIGHTS_H
