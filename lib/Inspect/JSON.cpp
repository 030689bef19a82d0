//===- JSON.cpp - An inspection for programs ------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ax/Inspect/Inspect.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace ax;
using namespace ax::inspect;
using llvm::StringRef;

namespace {

class Writer {
public:
  Writer(const Inspection &inspection, llvm::raw_ostream &os)
      : it(inspection), json(os, 1) {}

  void write() {
    json.object([&] {
      writeFile();
      writePorts("inputs", it.model.inputs);
      writePorts("outputs", it.model.outputs);
      json.attributeObject("sizes", [&] {
        for (const auto &[name, size] : it.sizes)
          json.attribute(llvm::json::fixUTF8(name), size);
      });
      texts("assumed", it.assumed);
      list("operators", it.model.operators, [&](const auto &use) {
        text("domain", use.domain.empty() ? "ai.onnx" : use.domain);
        text("name", use.name);
        json.attribute("nodes", use.count);
        texts("unsupported", use.unsupported);
      });
      writeWeights();
      list("layers", it.layers, [&](const Layer &layer) {
        text("kind", layer.kind);
        text("node", layer.node);
        json.attributeObject("sizes", [&] {
          for (const auto &[name, size] : layer.dims)
            json.attribute(name, size);
        });
        json.attribute("flops", layer.flops);
      });
      list("blocks", it.blocks, [&](const Block &block) {
        text("name", block.name);
        writeSums(block);
        textOrNull("cut", block.cut);
      });
      list("stages", it.stages, [&](const Stage &stage) {
        json.attribute("operations", stage.operations);
        writeSums(stage);
        text("first", stage.first);
        text("last", stage.last);
      });
      list("matches", it.matches, [&](const PatternMatch &match) {
        text("flag", match.flag);
        text("pattern", match.pattern);
        texts("names", match.names);
      });
      texts("problems", it.problems);
      texts("notes", it.notes);
    });
  }

private:
  void text(StringRef key, StringRef value) {
    json.attribute(key, llvm::json::fixUTF8(value));
  }
  void textOrNull(StringRef key, StringRef value) {
    if (value.empty())
      json.attribute(key, nullptr);
    else
      text(key, value);
  }
  void texts(StringRef key, llvm::ArrayRef<std::string> values) {
    json.attributeArray(key, [&] {
      for (const std::string &value : values)
        json.value(llvm::json::fixUTF8(value));
    });
  }
  template <typename Range, typename Fn>
  void list(StringRef key, const Range &range, Fn writeOne) {
    json.attributeArray(key, [&] {
      for (const auto &one : range)
        json.object([&] { writeOne(one); });
    });
  }
  template <typename T>
  void writeSums(const T &sums) {
    json.attribute("layers", sums.layers);
    json.attribute("weight_bytes", sums.weightBytes);
    json.attribute("flops", sums.flops);
  }

  void writeFile() {
    const import::ModelDescription &model = it.model;
    text("model", it.path);
    json.attribute("ir_version", model.irVersion);
    text("producer", model.producer);
    text("producer_version", model.producerVersion);
    textOrNull("exporter", model.exporter);
    json.attributeObject("operator_sets", [&] {
      for (const auto &[domain, version] : model.opsets)
        json.attribute(llvm::json::fixUTF8(domain), version);
    });
    list("files", model.files, [&](const import::ModelFile &file) {
      text("name", file.name);
      if (file.size)
        json.attribute("bytes", *file.size);
      else
        json.attribute("bytes", nullptr);
    });
  }

  void writePorts(StringRef key, llvm::ArrayRef<import::ModelPort> ports) {
    list(key, ports, [&](const import::ModelPort &port) {
      text("name", port.name);
      text("type", port.type);
      if (!port.dims)
        return json.attribute("shape", nullptr);
      json.attributeArray("shape", [&] {
        for (const import::ModelDim &dim : *port.dims)
          if (dim.size)
            json.value(*dim.size);
          else if (dim.symbol.empty())
            json.value(nullptr);
          else
            json.value(llvm::json::fixUTF8(dim.symbol));
      });
    });
  }

  void writeWeights() {
    int64_t parameters = 0, bytes = 0;
    list("weights", it.weights, [&](const Weight &weight) {
      int64_t elements = 1;
      text("name", weight.name);
      text("type", toString(weight.type));
      json.attributeArray("shape", [&] {
        for (int64_t size : weight.shape) {
          elements *= size;
          json.value(size);
        }
      });
      text("file", weight.file);
      json.attribute("offset", weight.offset);
      json.attribute("bytes", weight.bytes);
      if (weight.isTrained)
        json.attribute("trained", *weight.isTrained);
      else
        json.attribute("trained", nullptr);
      text("why", weight.why);
      parameters += weight.isTrained.value_or(false) ? elements : 0;
      bytes += weight.bytes;
    });
    json.attribute("parameters", parameters);
    json.attribute("weight_bytes", bytes);
  }

  const Inspection &it;
  llvm::json::OStream json;
};

} // namespace

void inspect::printJSON(const Inspection &inspection, llvm::raw_ostream &os) {
  Writer(inspection, os).write();
  os << '\n';
}
