//===- Text.cpp - An inspection for readers -------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Inspect/Inspect.h"

#include "ax/Support/ByteText.h"
#include "ax/Support/Error.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace ax;
using namespace ax::inspect;
using llvm::StringRef;

namespace {

/// Lines that differ only in the numbers of a name are one, with their count.
class Lines {
public:
  explicit Lines(bool all) : all(all) {}

  void add(StringRef name, const std::string &rest, int64_t bytes = 0) {
    Group &group = groups[all ? std::to_string(groups.size())
                              : withoutNumbers(name, "") + "\n" + rest];
    ++group.count;
    group.bytes += bytes;
    group.line =
        group.count > 1 ? withoutNumbers(name, "*") + rest : name.str() + rest;
  }
  /// The first lines, or those of most bytes.
  void print(size_t most, llvm::raw_ostream &os) {
    auto found = groups.takeVector();
    llvm::stable_sort(found, [](const auto &a, const auto &b) {
      return a.second.bytes > b.second.bytes;
    });
    for (auto [i, group] : llvm::enumerate(found)) {
      if (!all && i == most && found.size() > most + 1) {
        os << "  and " << found.size() - most << " more: --inspect=all\n";
        return;
      }
      os << "  ";
      if (group.second.count > 1)
        os << group.second.count << " x ";
      os << group.second.line << '\n';
    }
  }

private:
  struct Group {
    int64_t count = 0, bytes = 0;
    std::string line;
  };

  /// `layer.10/node_3`: `layer.*/node*`. Exporters count from `node` on.
  static std::string withoutNumbers(StringRef name, StringRef number) {
    std::string text;
    for (size_t i = 0; i < name.size(); ++i) {
      bool isDigit = llvm::isDigit(name[i]);
      if (isDigit && (i == 0 || !llvm::isDigit(name[i - 1]))) {
        if (llvm::StringRef(text).ends_with("_"))
          text.pop_back();
        text += number;
      }
      if (!isDigit)
        text += name[i];
    }
    return text;
  }

  bool all;
  llvm::MapVector<std::string, Group, std::map<std::string, unsigned>> groups;
};

/// A note is ours; names in it are the file's and of any length.
std::string shortenNames(StringRef note) {
  std::string text;
  while (!note.empty()) {
    size_t end = std::min(note.find_first_of(" \n"), note.size());
    text += shorten(note.take_front(end));
    text += note.substr(end, 1);
    note = note.drop_front(std::min(end + 1, note.size()));
  }
  return text;
}

class Printer {
public:
  Printer(const Inspection &inspection, bool all, llvm::raw_ostream &os)
      : it(inspection), all(all), os(os) {}

  void print() {
    printFile();
    printPorts("inputs", it.model.inputs);
    printPorts("outputs", it.model.outputs);
    printOperators();
    for (const std::string &problem : it.problems)
      os << "cannot be compiled so: " << problem << '\n';
    printSizes();
    printWeights();
    printLayers();
    printBlocks();
    printStages();
    printMatches();
    for (const std::string &note : it.notes)
      os << "note: " << (all ? note : shortenNames(note)) << '\n';
  }

private:
  void printFile() {
    const import::ModelDescription &model = it.model;
    os << it.path << ": IR version " << model.irVersion;
    for (const auto &[domain, version] : model.opsets)
      os << ", operator set "
         << (domain == "ai.onnx" ? std::string() : domain + " ") << version;
    if (!model.producer.empty())
      os << ", by " << model.producer << ' ' << model.producerVersion;
    if (!model.exporter.empty())
      os << " (" << model.exporter << ')';
    os << '\n';
    if (model.files.size() < 2)
      return;
    Lines lines(all);
    for (const import::ModelFile &file : llvm::drop_begin(model.files))
      lines.add(file.name,
                file.size ? ": " + bytesText(*file.size) : ": missing");
    os << "external data\n";
    lines.print(4, os);
  }

  static std::string typeOf(const import::ModelPort &port) {
    if (!port.dims)
      return port.type + " of unknown rank";
    std::string dims;
    for (const import::ModelDim &dim : *port.dims)
      dims += (dims.empty() ? "" : ", ") + (dim.size ? std::to_string(*dim.size)
                                            : dim.symbol.empty() ? "?"
                                                                 : dim.symbol);
    return port.type + "[" + dims + "]";
  }
  void printPorts(StringRef title, llvm::ArrayRef<import::ModelPort> ports) {
    os << title << (ports.empty() ? ": none\n" : "\n");
    Lines lines(all);
    for (const import::ModelPort &port : ports)
      lines.add(port.name, ": " + typeOf(port));
    lines.print(6, os);
  }

  void printOperators() {
    std::vector<const import::OperatorUse *> uses;
    int64_t nodes = 0;
    bool areAll = true;
    for (const import::OperatorUse &use : it.model.operators) {
      uses.push_back(&use);
      nodes += use.count;
      areAll &= use.unsupported.empty();
    }
    llvm::stable_sort(
        uses, [](const auto *a, const auto *b) { return a->count > b->count; });
    os << "operators: " << uses.size() << ", in " << nodes << " nodes\n ";
    constexpr size_t most = 12;
    for (auto [i, use] : llvm::enumerate(uses)) {
      if (!all && i == most && uses.size() > most + 1) {
        os << " and " << uses.size() - most << " more";
        break;
      }
      os << ' ' << nameOf(*use) << ' ' << use->count
         << (i + 1 < uses.size() ? "," : "");
    }
    os << '\n';
    if (areAll)
      return;
    os << "not supported\n";
    for (const import::OperatorUse &use : it.model.operators) {
      size_t count = use.unsupported.size();
      if (!count)
        continue;
      size_t shown = all ? count : std::min<size_t>(count, 4);
      os << "  " << nameOf(use) << ": "
         << llvm::join(llvm::ArrayRef(use.unsupported).take_front(shown), ", ");
      if (shown < count)
        os << " and " << count - shown << " more: --inspect=all";
      os << '\n';
    }
  }
  static std::string nameOf(const import::OperatorUse &use) {
    return use.domain.empty() ? use.name : use.domain + "." + use.name;
  }

  void printSizes() {
    if (it.assumed.empty())
      return;
    os << (it.problems.empty() ? "taken for what follows:"
                               : "taken for that, and what follows:");
    for (const std::string &name : it.assumed)
      if (auto size = it.sizes.find(name); size != it.sizes.end())
        os << " --dim " << name << '=' << size->second;
      else
        os << " a shape of " << name << " (--shape)";
    os << '\n';
  }

  void printWeights() {
    int64_t parameters = 0, trained = 0, trainedBytes = 0, bytes = 0;
    llvm::MapVector<std::string, int64_t, std::map<std::string, unsigned>>
        reasons;
    Lines lines(all);
    for (const Weight &weight : it.weights) {
      int64_t elements = 1;
      for (int64_t size : weight.shape)
        elements *= size;
      bytes += weight.bytes;
      if (weight.isTrained.value_or(false)) {
        ++trained;
        parameters += elements;
        trainedBytes += weight.bytes;
      }
      std::string rest = " " + shapeToString(weight.shape);
      rest += (weight.shape.empty() ? "" : "x") +
              std::string(toString(weight.type));
      if (weight.isTrained) {
        std::string why =
            (*weight.isTrained ? "trained: " : "not trained: ") + weight.why;
        ++reasons[why];
        if (all || !*weight.isTrained)
          rest += ", " + why;
      }
      if (all)
        rest += "; " + std::to_string(weight.bytes) + " bytes at " +
                std::to_string(weight.offset) + " of " + weight.file;
      lines.add(weight.name, rest, weight.bytes);
    }
    os << "weights: " << it.weights.size() << ", " << bytesText(bytes);
    if (it.problems.empty())
      os << "; --train changes " << trained << " with "
         << StringRef(countText(static_cast<double>(parameters), "")).rtrim()
         << " parameters, " << bytesText(trainedBytes);
    for (auto [i, reason] : llvm::enumerate(reasons))
      os << (i ? "; " : "\n  ") << reason.second << ' ' << reason.first;
    os << '\n';
    lines.print(8, os);
  }

  void printLayers() {
    llvm::MapVector<StringRef, int64_t> kinds;
    double flops = 0;
    Lines lines(all);
    for (const Layer &layer : it.layers) {
      ++kinds[layer.kind];
      flops += layer.flops;
      std::string rest = "':";
      for (auto [i, dim] : llvm::enumerate(layer.dims))
        rest += (i ? ", " : " ") + dim.first + " " + std::to_string(dim.second);
      lines.add(layer.kind + " '" + layer.node, rest);
    }
    if (kinds.empty())
      return;
    os << "layers, " << countText(flops, "FLOP") << ':';
    for (auto [i, kind] : llvm::enumerate(kinds))
      os << (i ? ", " : " ") << kind.second << ' ' << kind.first;
    os << '\n';
    lines.print(8, os);
  }

  static std::string sizesOf(int64_t layers, int64_t bytes, double flops) {
    return ": " + std::to_string(layers) +
           (layers == 1 ? " layer, " : " layers, ") + bytesText(bytes) + ", " +
           countText(flops, "FLOP");
  }
  void printBlocks() {
    if (it.blocks.empty())
      return;
    os << "blocks: " << it.blocks.size() << '\n';
    Lines lines(all);
    for (const Block &block : it.blocks)
      lines.add(
          block.name,
          sizesOf(block.layers, block.weightBytes, block.flops) +
              (all && !block.cut.empty() ? "; --cut '" + block.cut + "'" : ""));
    lines.print(4, os);
    if (!all && !it.blocks.front().cut.empty())
      os << "  after the first: --cut '" << it.blocks.front().cut << "'\n";
  }

  void printStages() {
    for (auto [i, stage] : llvm::enumerate(it.stages))
      os << "stage " << i
         << sizesOf(stage.layers, stage.weightBytes, stage.flops) << ", '"
         << stage.first << "' to '" << stage.last << "'\n";
  }

  void printMatches() {
    for (const PatternMatch &match : it.matches) {
      os << match.flag << " '" << match.pattern << "': " << match.names.size()
         << '\n';
      Lines lines(all);
      for (const std::string &name : match.names)
        lines.add(name, "");
      lines.print(4, os);
    }
  }

  const Inspection &it;
  bool all;
  llvm::raw_ostream &os;
};

} // namespace

void inspect::print(const Inspection &inspection, bool all,
                    llvm::raw_ostream &os) {
  Printer(inspection, all, os).print();
}
