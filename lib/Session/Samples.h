//===- Samples.h - What a program is trained or measured with ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SESSION_SAMPLES_H
#define AX_LIB_SESSION_SAMPLES_H

#include "ax/Runtime/Executor.h"
#include "ax/Runtime/Program.h"
#include "ax/Session/Train.h"

namespace ax {

/// An array for each input of a program, samples first: from an .npz archive, a
/// folder of .npy files, or a file of tokens. An input without samples has one
/// array for all batches, or one for each of them, in their order.
class Samples {
public:
  /// `flag` names the option in messages. BadInput errors when arrays are
  /// missing or do not fit the inputs.
  static llvm::Expected<Samples> open(const std::vector<rt::Port> &ports,
                                      const std::string &path, Tokens tokens,
                                      llvm::StringRef flag);

  /// From now on nothing is read, checked and copied but what the executor's
  /// ranks read of inputs: the rows of a batch that getNeededRows says.
  void readFor(const rt::Executor &executor);
  /// Room for a batch; an input that nobody here reads stays empty.
  std::vector<HostTensor> makeBatch() const;

  /// `--data=FILE has arrays that no input takes: 'a', 'b'`; empty where each
  /// is taken.
  std::string describeUnused() const;

  /// Samples of a batch, and in all.
  int64_t getBatch() const { return batch; }
  int64_t size() const { return numSamples; }

  /// Inputs without samples become those of the batch `number`, counted in the
  /// order of the samples. A BadInput error as of `check`.
  llvm::Error beginBatch(int64_t number, std::vector<HostTensor> &inputs) const;
  /// An input without samples has others in every batch.
  bool needsOrder() const;
  /// Sample `sample` becomes the `at`-th of a batch.
  void copy(int64_t sample, int64_t at, std::vector<HostTensor> &inputs) const;
  /// The labels of the `at`-th of a batch are ignored from now on.
  void ignore(int64_t at, std::vector<HostTensor> &inputs) const;
  /// Whether it can be ignored.
  bool hasLabels() const;
  /// A BadInput error when the sample, as the `at`-th of a batch, has a label
  /// that is no class, or an index that is out of range: found here, a step
  /// with it has changed nothing.
  llvm::Error check(int64_t sample, int64_t at) const;
  /// Whether the first `count` of a batch have a label that counts, among those
  /// that are read here; true where there are no labels.
  bool anyCounts(const std::vector<HostTensor> &inputs, int64_t count) const;

  llvm::Error fault(const llvm::Twine &message) const {
    return makeFault(name, message);
  }

private:
  /// The samples of one input.
  struct Source {
    rt::Port port;
    /// Samples, one after another; or all tokens.
    HostTensor array;
    bool isTokens = false;
    /// A sample of tokens begins so many places later.
    int64_t shift = 0;
    /// How many batches have a value of their own, of an input without samples;
    /// 0: one for all.
    int64_t batches = 0;
    /// Which rows of a batch are read; none where all are.
    std::vector<bool> rows = {};

    bool reads(int64_t row) const {
      return rows.empty() || rows[static_cast<size_t>(row)];
    }
    bool isRead() const {
      return rows.empty() || llvm::is_contained(rows, true);
    }
    /// Puts elements of the array behind `at` others of `input`, in its type.
    void copyElements(int64_t first, int64_t count, HostTensor &input,
                      int64_t at) const;
  };

  static llvm::Error makeFault(const std::string &name,
                               const llvm::Twine &message);
  /// A fault when finite numbers would be infinite in the input's type.
  llvm::Error checkRange(const rt::Port &port, const HostTensor &array) const;
  llvm::Error addWhole(const rt::Port &port, const HostTensor &array);
  static std::string describeValue(const Source &source, int64_t value,
                                   llvm::StringRef kind, int64_t position,
                                   int64_t count, const llvm::Twine &where);
  llvm::Error check(const Source &source, int64_t first, int64_t count,
                    const llvm::Twine &where) const;
  llvm::Error readArrays(const std::vector<rt::Port> &ports,
                         const std::string &path);
  llvm::Error readTokens(const std::vector<rt::Port> &ports,
                         const std::string &path, Tokens tokens);

  /// `--data=train.npz`.
  std::string name;
  std::vector<Source> sources;
  /// Arrays, or files, that are no input's.
  std::vector<std::string> unused;
  /// The samples of a batch, and all; -1 until an array has told.
  int64_t batch = 0, numSamples = -1;
};

} // namespace ax

#endif // AX_LIB_SESSION_SAMPLES_H
