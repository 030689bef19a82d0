//===- Driver.cpp - Runs a fuzz target without libFuzzer ------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mutates the files of a corpus and gives them to LLVMFuzzerTestOneInput, with
// libFuzzer's own flags, so that every compiler and every preset can run every
// target. Preset `fuzz` links the real one, which is guided by coverage.
//
//   target [-seed=N] [-runs=N] [-max_total_time=SECONDS] [-timeout=SECONDS]
//          [-artifact_prefix=PATH] CORPUS...   (files and folders)
//
// The input at hand lies in PATHcurrent-input while it is tried: after a crash
// or a timeout (SIGALRM) it is the culprit. Give it alone with -runs=0 to try
// it again.
//
//===----------------------------------------------------------------------===//
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;
namespace fs = std::filesystem;

struct Options {
  uint64_t seed = 1;
  uint64_t runs = UINT64_MAX;
  unsigned maxSeconds = 0;
  unsigned timeout = 20;
  std::string artifactPrefix;
  std::vector<Bytes> corpus;
};

void readInto(std::vector<Bytes> &corpus, const fs::path &path) {
  if (fs::is_directory(path)) {
    for (const fs::directory_entry &entry : fs::directory_iterator(path))
      readInto(corpus, entry.path());
    return;
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    std::exit(2);
  }
  corpus.emplace_back(std::istreambuf_iterator<char>(in),
                      std::istreambuf_iterator<char>());
}

Options parse(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    std::string value =
        equals == std::string::npos ? "" : word.substr(equals + 1);
    if (name == "-seed")
      options.seed = std::stoull(value);
    else if (name == "-runs")
      options.runs = std::stoull(value);
    else if (name == "-max_total_time")
      options.maxSeconds = std::stoul(value);
    else if (name == "-timeout")
      options.timeout = std::stoul(value);
    else if (name == "-artifact_prefix")
      options.artifactPrefix = value;
    else
      readInto(options.corpus, word);
  }
  if (options.corpus.empty())
    options.corpus.emplace_back();
  return options;
}

class Mutator {
public:
  Mutator(const std::vector<Bytes> &corpus, uint64_t seed)
      : corpus(corpus), random(seed) {}

  Bytes next() {
    Bytes bytes = corpus[below(corpus.size())];
    for (size_t i = 0, n = 1 + below(4); i < n; ++i)
      mutate(bytes);
    return bytes;
  }

private:
  size_t below(size_t n) { return n ? random() % n : 0; }

  void mutate(Bytes &bytes) {
    size_t at = below(bytes.size());
    size_t length = below(std::min<size_t>(bytes.size() - at, 64) + 1);
    auto begin = bytes.begin() + at;
    switch (below(7)) {
    case 0:
      bytes.resize(at);
      break;
    case 1:
      if (!bytes.empty())
        bytes[at] ^= 1u << below(8);
      break;
    case 2:
      if (!bytes.empty())
        bytes[at] = static_cast<uint8_t>(random());
      break;
    case 3:
      bytes.erase(begin, begin + length);
      break;
    case 4: {
      Bytes copy(begin, begin + length);
      bytes.insert(bytes.begin() + below(bytes.size() + 1), copy.begin(),
                   copy.end());
      break;
    }
    case 5: {
      // A piece of another input.
      const Bytes &other = corpus[below(corpus.size())];
      size_t from = below(other.size());
      size_t count = below(std::min<size_t>(other.size() - from, 256) + 1);
      bytes.insert(begin, other.begin() + from, other.begin() + from + count);
      break;
    }
    case 6:
      overwriteInteger(bytes, at);
      break;
    }
  }

  /// Integers that sizes and offsets break on.
  void overwriteInteger(Bytes &bytes, size_t at) {
    static const uint64_t values[] = {
        0,          1,          0x7f,       0x80,       0xffff,    0x7fffffff,
        0x80000000, 0xffffffff, 1ull << 40, 1ull << 62, INT64_MAX, UINT64_MAX};
    uint64_t value = values[below(std::size(values))];
    size_t width = std::min<size_t>(size_t(1) << below(4), bytes.size() - at);
    std::memcpy(bytes.data() + at, &value, width);
  }

  const std::vector<Bytes> &corpus;
  std::mt19937_64 random;
};

void tryOne(const Options &options, const Bytes &bytes) {
  std::ofstream(options.artifactPrefix + "current-input",
                std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  // A copy of exactly this size: reading past its end is seen by ASan.
  Bytes exact(bytes);
  alarm(options.timeout);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  alarm(0);
}

} // namespace

int main(int argc, char **argv) {
  Options options = parse(argc, argv);
  for (const Bytes &bytes : options.corpus)
    tryOne(options, bytes);

  using Clock = std::chrono::steady_clock;
  Clock::time_point end =
      Clock::now() + std::chrono::seconds(options.maxSeconds);
  Mutator mutator(options.corpus, options.seed);
  uint64_t runs = 0;
  while (runs < options.runs && (!options.maxSeconds || Clock::now() < end)) {
    tryOne(options, mutator.next());
    ++runs;
  }
  std::remove((options.artifactPrefix + "current-input").c_str());
  std::printf("%llu mutants of %zu inputs\n",
              static_cast<unsigned long long>(runs), options.corpus.size());
  return 0;
}
