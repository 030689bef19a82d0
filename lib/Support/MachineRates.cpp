//===- MachineRates.cpp - How fast ranks compute and exchange -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Support/MachineRates.h"

#include "ax/Support/ByteText.h"
#include "ax/Support/Nearest.h"
#include "ax/Support/Target.h"
#include "ax/Support/Yaml.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace ax;

namespace {

/// What a card's data sheet has: dense products of f32 and of bf16, its memory,
/// and one direction of NVLink.
struct DataSheet {
  unsigned capability;
  llvm::StringRef name;
  double flops, narrowFlops, bytes, linkBytes;
  int64_t memoryBytes;
};

/// `80GiB`, or a number.
struct Bytes {
  int64_t count;
};

} // namespace

static constexpr DataSheet sheets[] = {
    {80, "NVIDIA A100", 19.5e12, 312e12, 2.0e12, 300e9, 80'000'000'000},
    {90, "NVIDIA H100", 67e12, 989e12, 3.35e12, 450e9, 80'000'000'000},
    {100, "NVIDIA B200", 80e12, 2250e12, 8.0e12, 900e9, 180'000'000'000},
};

std::optional<MachineRates> MachineRates::ofGpu(llvm::StringRef target) {
  std::optional<GpuTarget> gpu = GpuTarget::find(target);
  if (!gpu)
    return std::nullopt;
  const auto *sheet = llvm::find_if(sheets, [&](const DataSheet &sheet) {
    return sheet.capability == gpu->capability;
  });
  if (sheet == std::end(sheets))
    return std::nullopt;
  // Large products and copies get so far on an H100: 798 TFLOP/s, 3.0 TB/s.
  constexpr double reached = 0.8;
  MachineRates rates;
  rates.name = sheet->name.str();
  rates.target = target.str();
  rates.flopsPerSecond = reached * sheet->flops;
  rates.narrowFlopsPerSecond = reached * sheet->narrowFlops;
  rates.bytesPerSecond = reached * sheet->bytes;
  // No sheet has it: that is what launches take, captured or not.
  rates.commandLatency = 2e-6;
  rates.memoryBytes = sheet->memoryBytes;
  rates.link = rates.hostLink = {10e-6, reached * sheet->linkBytes};
  rates.overlapsCollectives = true;
  return rates;
}

std::string MachineRates::findFault() const {
  if (!target.empty() && !ofGpu(target))
    return "has the target '" + target + "', and known are " +
           llvm::join(GpuTarget::names(), ", ");
  std::string fault;
  forEach(*this, [&](llvm::StringRef key, const auto &value) {
    using Value = std::decay_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, double>) {
      bool isTime = key.ends_with("latency");
      double least = isTime ? 0 : 1, most = isTime ? 1e6 : 1e30;
      if (fault.empty() && !(value >= least && value <= most))
        fault = llvm::formatv("has the {0} {1:E}, which is to be from {2} to "
                              "{3:E}",
                              key, value, isTime ? "0" : "1", most);
    } else if constexpr (std::is_same_v<Value, int64_t>) {
      if (fault.empty() && value < 0)
        fault = llvm::formatv("has the {0} {1}, which is to be at least 0", key,
                              value);
    }
  });
  // Else a collective over two axes could be dearer than one over each, which
  // the search for paths between layouts counts on (ax/Sharding/Reshard.h).
  if (fault.empty() && (hostLink.latency < link.latency ||
                        hostLink.bytesPerSecond > link.bytesPerSecond))
    fault = "has a faster way to other hosts than within one";
  return fault;
}

template <>
struct llvm::yaml::ScalarTraits<Bytes> {
  static void output(const Bytes &bytes, void *, llvm::raw_ostream &os) {
    os << bytes.count;
  }
  static StringRef input(StringRef text, void *, Bytes &bytes) {
    if (text == "0") {
      bytes.count = 0;
    } else if (std::optional<int64_t> count = parseBytes(text)) {
      bytes.count = *count;
    } else {
      return "expected a size, as 80GB or 24GiB";
    }
    return "";
  }
  static QuotingType mustQuote(StringRef) { return QuotingType::None; }
};

template <>
struct llvm::yaml::MappingTraits<MachineRates> {
  static void mapping(IO &io, MachineRates &rates) {
    // What the others are, if they are not said, follows from these.
    if (!io.outputting()) {
      io.mapOptional("target", rates.target);
      if (std::optional<MachineRates> gpu = MachineRates::ofGpu(rates.target))
        rates = *gpu;
      io.mapOptional("latency", rates.link.latency);
      io.mapOptional("bandwidth", rates.link.bytesPerSecond);
      rates.hostLink = rates.link;
    }
    MachineRates::forEach(rates, [&](const char *key, auto &value) {
      if (static_cast<void *>(&value) == &rates.memoryBytes) {
        Bytes bytes{rates.memoryBytes};
        io.mapOptional(key, bytes);
        rates.memoryBytes = bytes.count;
      } else {
        io.mapOptional(key, value);
      }
    });
  }
};

llvm::Expected<MachineRates> MachineRates::fromYAML(llvm::StringRef text,
                                                    llvm::StringRef fileName) {
  if (text.trim().empty())
    return makeError(ExitCode::Usage, fileName + ": there is no machine in it");
  MachineRates rates;
  auto adviseKey = [&](llvm::StringRef key) {
    llvm::SmallVector<llvm::StringRef> known;
    forEach(rates, [&](const char *name, auto &) { known.push_back(name); });
    return suggestNearest(key, known);
  };
  if (llvm::Error error = parseYaml(text, fileName, rates, adviseKey))
    return error;
  if (std::string fault = rates.findFault(); !fault.empty())
    return makeError(ExitCode::Usage,
                     fileName + ": the machine '" + rates.name + "' " + fault);
  return rates;
}

llvm::Expected<MachineRates> MachineRates::parse(llvm::StringRef text) {
  if (std::optional<MachineRates> gpu = ofGpu(text))
    return *gpu;
  auto read = readYamlFile(text, "; machines without a file are " +
                                     llvm::join(GpuTarget::names(), ", "));
  if (!read)
    return read.takeError();
  return fromYAML(*read, text);
}

std::string MachineRates::toYAML() const { return printYaml(*this); }
