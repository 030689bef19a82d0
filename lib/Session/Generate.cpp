//===- Generate.cpp - Tokens, one after another ---------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Session/Generate.h"

#include "Decoder.h"
#include "Sampler.h"
#include "ax/Runtime/Agreement.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/StringExtras.h"

using namespace ax;
using Clock = std::chrono::steady_clock;

namespace {

class Generator {
public:
  Generator(Session &session, const GenerateOptions &options, Decoder decoder,
            std::optional<Decoder> prefill)
      : session(session), options(options), decoder(std::move(decoder)),
        prefill(std::move(prefill)), sampler(options.sampling) {}

  llvm::Expected<Generated> run();

private:
  llvm::Error readPrompt();
  llvm::Error checkRoom() const;
  int64_t countForPrefill() const;
  /// Feeds what comes next of each sequence, and returns scores for each behind
  /// it, of the processes that have them.
  llvm::Expected<std::vector<std::vector<double>>> step();
  llvm::Expected<std::string> choose(std::vector<std::vector<double>> scores);
  llvm::Expected<bool> append(std::vector<std::vector<double>> scores);

  Session &session;
  const GenerateOptions &options;
  Decoder decoder;
  std::optional<Decoder> prefill;
  Sampler sampler;
  /// Of each sequence, the tokens that are known, and whether it has ended.
  std::vector<std::vector<int64_t>> sequences;
  std::vector<char> ended;
  std::vector<std::chrono::nanoseconds> times;
  /// How many tokens of each the prompt has, and how many were fed.
  int64_t promptLength = 0, place = 0;
};

} // namespace

llvm::Expected<std::vector<std::string>>
ax::findGenerated(const rt::Program &program,
                  const std::map<std::string, std::string> &names) {
  auto decoder = Decoder::create(program, names);
  if (!decoder)
    return decoder.takeError();
  return decoder->getInputs();
}

llvm::Error Generator::readPrompt() {
  const HostTensor &prompt = options.prompt;
  Shape shape = prompt.getShape();
  if (shape.size() == 1)
    shape.insert(shape.begin(), 1);
  if (shape.size() != 2 || shape[0] != decoder.getBatch() || shape[1] < 1 ||
      isFloat(prompt.getType()))
    return makeErrorf(ExitCode::BadInput,
                      "the prompt is {0}; it has to be integers of [{1}, "
                      "length], one token at least",
                      prompt.typeToString(), decoder.getBatch());
  promptLength = shape[1];
  ended.assign(static_cast<size_t>(shape[0]), false);
  for (int64_t row = 0; row < shape[0]; ++row) {
    std::vector<int64_t> &sequence = sequences.emplace_back();
    for (int64_t i = 0; i < promptLength; ++i) {
      int64_t token = prompt.getInt(row * promptLength + i);
      if (token < 0 || token >= decoder.getClasses())
        return makeErrorf(ExitCode::BadInput,
                          "token {0} of the prompt's sequence {1} is {2}; the "
                          "model knows those below {3}",
                          i, row, token, decoder.getClasses());
      sequence.push_back(token);
    }
  }
  return llvm::Error::success();
}

llvm::Error Generator::checkRoom() const {
  std::optional<int64_t> room = decoder.getRoom();
  // The last token is not fed.
  if (!room || options.count - 1 <= *room - promptLength)
    return llvm::Error::success();
  return makeErrorf(ExitCode::Usage,
                    "--generate={0} behind a prompt of {1}: the plan has room "
                    "for {2} tokens: compile it with a longer past",
                    options.count, promptLength, *room);
}

/// How many tokens the prefill program takes now; 0: none. Those that make no
/// whole number of its steps come first, one by one, where it takes no fewer.
int64_t Generator::countForPrefill() const {
  int64_t left = promptLength - place;
  if (!prefill || left < 2)
    return 0;
  int64_t count = std::min(left, prefill->getLength());
  bool isBehindRest = left % prefill->getLength() == 0;
  return prefill->canTake(count, place) &&
                 (isBehindRest || prefill->canTake(1, place))
             ? count
             : 0;
}

llvm::Expected<std::vector<std::vector<double>>> Generator::step() {
  int64_t forPrefill = countForPrefill(), count = forPrefill ? forPrefill : 1;
  Decoder &taking = forPrefill ? *prefill : decoder;
  rt::Executor &executor =
      forPrefill ? *session.getSecond() : session.getExecutor();
  std::vector<llvm::ArrayRef<int64_t>> tokens;
  for (const std::vector<int64_t> &sequence : sequences)
    tokens.push_back(llvm::ArrayRef(sequence).slice(
        static_cast<size_t>(place), static_cast<size_t>(count)));
  Clock::time_point begin = Clock::now();
  auto outputs = executor.run(taking.feed(tokens, place));
  if (!outputs)
    return outputs.takeError();
  if (!forPrefill)
    times.push_back(Clock::now() - begin);
  place += count;
  std::vector<std::vector<double>> scores;
  if (session.getWorld()->isFirst() && place >= promptLength)
    for (int64_t row = 0; row < decoder.getBatch(); ++row)
      scores.push_back(taking.scoresOf(*outputs, row, count));
  return scores;
}

/// Tokens as they go from process to process.
llvm::Expected<std::string>
Generator::choose(std::vector<std::vector<double>> scores) {
  std::string text;
  for (auto [row, ofRow] : llvm::enumerate(scores)) {
    auto token = sampler.choose(std::move(ofRow));
    if (!token)
      return makeErrorf(ExitCode::NotFinite,
                        "all scores behind token {0} of sequence {1} are NaN",
                        place - 1, row);
    text += (text.empty() ? "" : " ") + std::to_string(*token);
  }
  return text;
}

/// Puts the next token behind each sequence; returns false where all have
/// ended.
llvm::Expected<bool>
Generator::append(std::vector<std::vector<double>> scores) {
  auto text = rt::share(*session.getWorld(), "the next tokens",
                        [&] { return choose(std::move(scores)); });
  if (!text)
    return text.takeError();
  llvm::SmallVector<llvm::StringRef> words;
  llvm::StringRef(*text).split(words, ' ');
  std::vector<int64_t> tokens;
  bool goesOn = false;
  for (auto [sequence, word, hasEnded] :
       llvm::zip_equal(sequences, words, ended)) {
    int64_t token = 0;
    word.getAsInteger(10, token);
    if (hasEnded)
      token = sequence.back();
    sequence.push_back(token);
    tokens.push_back(token);
    hasEnded |= llvm::is_contained(options.stops, token);
    goesOn |= !hasEnded;
  }
  if (options.chosen && session.getWorld()->isFirst())
    options.chosen(tokens);
  return goesOn;
}

llvm::Expected<Generated> Generator::run() {
  if (llvm::Error error = readPrompt())
    return error;
  if (llvm::Error error = checkRoom())
    return error;
  Generated result;
  Clock::time_point begin = Clock::now();
  auto sinceBegin = [&] {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  for (int64_t chosen = 0; chosen < options.count;) {
    auto scores = step();
    if (!scores)
      return scores.takeError();
    if (place < promptLength)
      continue;
    auto goesOn = append(std::move(*scores));
    if (!goesOn)
      return goesOn.takeError();
    if (chosen++ == 0)
      result.promptSeconds = sinceBegin();
    if (!*goesOn)
      break;
  }
  result.restSeconds = sinceBegin() - result.promptSeconds;
  std::vector<int64_t> tokens;
  for (const std::vector<int64_t> &sequence : sequences)
    llvm::append_range(tokens, sequence);
  result.tokens = HostTensor::fromValues<int64_t>(
      {decoder.getBatch(), static_cast<int64_t>(sequences.front().size())},
      tokens);
  result.times = std::move(times);
  return result;
}

llvm::Expected<Generated> ax::generate(Session &session,
                                       const GenerateOptions &options) {
  auto decoder = Decoder::create(session.getProgram(), options.names);
  if (!decoder)
    return decoder.takeError();
  if (decoder->getLength() != 1)
    return makeErrorf(
        ExitCode::Usage,
        "--generate: program '{0}' takes {1} tokens of a sequence "
        "at a time: compile the plan for one, and, for prompts, "
        "with --prefill for several",
        session.getProgram().name, decoder->getLength());
  std::optional<Decoder> prefill;
  if (rt::Executor *second = session.getSecond()) {
    auto made = Decoder::create(second->getProgram(), options.names);
    if (!made)
      return addContext(made.takeError(),
                        "program '" + second->getProgram().name + "'");
    prefill = std::move(*made);
    if (prefill->getBatch() != decoder->getBatch())
      return makeErrorf(ExitCode::Usage,
                        "--generate: program '{0}' is for {1} sequences, and "
                        "'{2}' for {3}",
                        session.getProgram().name, decoder->getBatch(),
                        second->getProgram().name, prefill->getBatch());
    if (llvm::Error error = prefill->setOthers(options.others))
      return error;
  }
  if (llvm::Error error = decoder->setOthers(options.others))
    return error;
  return Generator(session, options, std::move(*decoder), std::move(prefill))
      .run();
}
