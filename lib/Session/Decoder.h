//===- Decoder.h - A program that takes tokens and gives scores -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef AX_LIB_SESSION_DECODER_H
#define AX_LIB_SESSION_DECODER_H

#include "ax/Session/Generate.h"

namespace ax {

/// A program of a decoder, which takes so many tokens of each sequence at a
/// time, and knows by its mask what it has seen before.
class Decoder {
public:
  /// A Usage error says why the program is none.
  static llvm::Expected<Decoder>
  create(const rt::Program &program,
         const std::map<std::string, std::string> &names);

  int64_t getBatch() const { return batch; }
  /// How many tokens of a sequence it takes.
  int64_t getLength() const { return length; }
  /// How many tokens of a sequence it can have seen in the end; nothing where
  /// neither its mask nor its table of positions says so.
  std::optional<int64_t> getRoom() const { return room; }
  /// Whether it can take `count` tokens of each sequence that come behind
  /// `place` others: as many as it takes, or fewer, with padding behind them,
  /// where that will be overwritten and scores of all tokens are given.
  bool canTake(int64_t count, int64_t place) const;
  /// Below what a token has to be.
  int64_t getClasses() const;
  /// Names of the inputs that `feed` sets.
  std::vector<std::string> getInputs() const;

  /// Sets all other inputs. A BadInput error where one has not the type and
  /// shape of its input.
  llvm::Error setOthers(const rt::NamedTensors &others);
  /// Inputs for tokens of each sequence, as many of all, behind `place` others.
  const std::vector<HostTensor> &
  feed(const std::vector<llvm::ArrayRef<int64_t>> &tokens, int64_t place);
  /// Scores behind the last of `count` tokens of a sequence.
  std::vector<double> scoresOf(const std::vector<HostTensor> &outputs,
                               int64_t sequence, int64_t count) const;

private:
  explicit Decoder(const rt::Program &program) : program(&program) {}
  llvm::Error checkPorts() const;
  llvm::Error findRoom();

  const rt::Program *program;
  size_t tokens = 0, logits = 0;
  std::optional<size_t> mask, positions;
  int64_t batch = 0, length = 0;
  std::optional<int64_t> room;
  /// Whether the cache is filled from the front, and all that is carried is
  /// such.
  bool fromFront = false, isAllCache = false;
  std::vector<HostTensor> inputs;
};

} // namespace ax

#endif // AX_LIB_SESSION_DECODER_H
