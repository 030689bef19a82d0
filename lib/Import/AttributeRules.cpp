//===- AttributeRules.cpp - Which values attributes may have --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ONNX's schemas say which attributes an operator has and of which type. What
// their numbers and names may be is written in prose only, so it is here, once.
// An attribute of numbers or names without a rule is refused: one that nobody
// looked at is not ignored.
//
//===----------------------------------------------------------------------===//

#include "AttributeRules.h"

#include "llvm/ADT/StringExtras.h"

using namespace ax;
using namespace ax::import;
using onnx::AttributeProto;

namespace {

enum class Kind {
  Any,
  /// A number from `low` to `high`.
  Range,
  /// A dimension of input `low`, negative from the end; one more than its rank
  /// are there when `high` is 1.
  Axis,
  /// One of the names in `names`, divided by '|'.
  Name,
  /// The same in any case of letters.
  AnyCaseName,
};

struct Rule {
  llvm::StringLiteral attribute;
  /// The operator; empty for all without a rule of their own.
  llvm::StringLiteral op;
  Kind kind = Kind::Any;
  int64_t low = 0, high = 0;
  llvm::StringLiteral names = "";
  /// The first operator set that has it so.
  int since = 1;
};

} // namespace

/// Sizes of windows: products with a dimension do not overflow.
static constexpr int64_t maxExtent = int64_t(1) << 20;
static constexpr int64_t maxCount = (int64_t(1) << 31) - 1;
/// The largest size of a dimension, or of a part of one.
static constexpr int64_t maxSize = int64_t(1) << 42;
/// Where the rank is not that of an input; importers know which it is.
static constexpr int64_t maxAxis = 1023;

static constexpr Rule flag(llvm::StringLiteral attribute) {
  return {attribute, "", Kind::Range, 0, 1};
}
static constexpr Rule range(llvm::StringLiteral attribute, int64_t low,
                            int64_t high, llvm::StringLiteral op = "") {
  return {attribute, op, Kind::Range, low, high};
}
static constexpr Rule any(llvm::StringLiteral attribute,
                          llvm::StringLiteral op = "") {
  return {attribute, op, Kind::Any};
}
static constexpr Rule axis(llvm::StringLiteral attribute, int64_t more = 0,
                           llvm::StringLiteral op = "") {
  return {attribute, op, Kind::Axis, 0, more};
}
static constexpr Rule oneOf(llvm::StringLiteral attribute,
                            llvm::StringLiteral op, llvm::StringLiteral names,
                            int since = 1) {
  return {attribute, op, Kind::Name, 0, 0, names, since};
}
/// A TensorProto::DataType; those that we lack are another error.
static constexpr Rule type(llvm::StringLiteral attribute) {
  return {attribute, "", Kind::Range, 0, 255};
}

static constexpr Rule rules[] = {
    flag("align_corners"),
    flag("allowzero"),
    flag("antialias"),
    flag("causal"),
    flag("ceil_mode"),
    flag("center_point_box"),
    flag("channels_last"),
    flag("count_include_pad"),
    flag("detect_negative"),
    flag("detect_positive"),
    flag("do_rotary"),
    flag("exclude_outside"),
    flag("exclusive"),
    flag("fmod"),
    flag("input_forget"),
    flag("interleaved"),
    flag("inverse"),
    flag("is_bidirectional"),
    flag("is_causal"),
    flag("is_packed_batching"),
    flag("keepdims"),
    flag("largest"),
    flag("layout"),
    flag("linear_before_reset"),
    flag("mrope_layout"),
    flag("new_axis"),
    flag("normalize_routing_weights"),
    flag("noop_with_empty_axes"),
    flag("onesided"),
    flag("past_present_share_buffer"),
    flag("periodic"),
    flag("reverse"),
    flag("rotary_interleaved"),
    flag("saturate"),
    flag("scan_input_directions"),
    flag("scan_output_directions"),
    flag("select_last_index"),
    flag("sliding_window_cache"),
    flag("sorted"),
    flag("spatial"),
    flag("storage_order"),
    flag("swiglu_limit_after_activation"),
    flag("training_mode"),
    flag("transA"),
    flag("transB"),
    flag("transBatchA"),
    flag("transBatchB"),
    flag("unidirectional"),
    flag("upper"),
    flag("use_sparse_mixer"),

    axis("axes"),
    range("axes", -maxAxis - 1, maxAxis, "Unsqueeze"),
    axis("axis"),
    axis("axis", 1, "Flatten"),
    axis("axis", 1, "OneHot"),
    range("axis", -maxAxis - 1, maxAxis, "QLinearConcat"),
    range("axis", -maxAxis - 1, maxAxis, "ConcatFromSequence"),
    // Without meaning, and often beyond the rank, where one scale is for all.
    range("axis", -maxAxis - 1, maxAxis, "DequantizeLinear"),
    range("axis", -maxAxis - 1, maxAxis, "QuantizeLinear"),
    range("batch_axis", 0, 1),
    range("batch_dims", 0, maxAxis),
    axis("gather_axis"),
    axis("perm"),
    axis("quantize_axis"),
    range("scan_input_axes", -maxAxis - 1, maxAxis),
    range("scan_output_axes", -maxAxis - 1, maxAxis),
    range("time_axis", 0, 1),

    range("K", 1, maxSize),
    range("N", 1, maxSize),
    range("accuracy_level", 0, 4),
    any("bits"),
    range("block_size", 0, maxCount),
    range("blocksize", 1, 1 << 15),
    range("chunk_size", 0, maxCount),
    range("dilation", 1, maxExtent),
    range("dilations", 1, maxExtent),
    any("expert_weight_bits"),
    any("fc1_expert_weight_bits"),
    any("fc2_expert_weight_bits"),
    any("fc3_expert_weight_bits"),
    range("group", 1, maxCount),
    range("groups", 1, maxCount),
    range("hidden_size", 1, maxCount),
    range("input_channel_offset", 0, maxCount),
    range("input_channels", 0, maxCount),
    range("k", 0, maxSize),
    any("k", "EyeLike"),
    range("kernel_shape", 1, maxExtent),
    range("kv_cache_bit_width", 0, 8),
    range("kv_num_heads", 0, maxExtent),
    range("left_window_size", -1, maxCount),
    range("local_window_size", -1, maxCount),
    range("mask_index_type", 0, 1),
    range("max_distance", 1, maxCount),
    range("mrope_section", 0, maxExtent),
    range("ndim", 1, 3),
    range("num_groups", 1, maxCount),
    range("num_heads", 0, maxExtent),
    range("num_outputs", 1, maxCount),
    range("num_scan_inputs", 1, maxCount),
    range("offset_group", 1, maxCount),
    range("opset", 1, maxCount),
    range("output_height", 1, maxExtent),
    range("output_padding", 0, maxExtent),
    range("output_shape", 0, maxExtent),
    range("output_width", 1, maxExtent),
    range("p", 1, maxExtent),
    range("pads", -maxExtent, maxExtent),
    range("pads", -maxSize, maxSize, "Pad"),
    range("q_num_heads", 0, maxExtent),
    range("qk_matmul_output_mode", 0, 3),
    range("qk_output", 0, 2),
    range("qkv_hidden_sizes", 0, maxSize),
    range("right_window_size", -1, maxCount),
    range("rotary_embedding_dim", 0, maxExtent),
    range("sample_size", 1, maxCount),
    range("sampling_ratio", 0, 1 << 10),
    range("shape", 0, maxSize),
    range("size", 1, maxExtent),
    range("smooth_softmax", -1, 1),
    range("split", 0, maxSize),
    range("state_channels_last", -1, 1),
    range("state_length", 0, maxCount),
    range("state_update_capacity", 0, 8),
    range("state_window", 0, maxCount),
    range("strides", 1, maxExtent),
    range("swiglu_fusion", 0, 2),
    range("weight_prepacked", 0, 2),
    range("weights_prepacked", -1, 1),

    type("dtype"),
    type("output_datatype"),
    type("output_dtype"),
    type("precision"),
    type("softmax_precision"),
    type("stash_type"),
    type("to"),

    any("end"),
    any("ends"),
    any("ignore_index"),
    any("seed"),
    any("start"),
    any("starts"),
    any("value_int"),
    any("value_ints"),

    {"activations", "", Kind::AnyCaseName, 0, 0,
     "affine|elu|hardsigmoid|leakyrelu|relu|scaledtanh|sigmoid|softplus|"
     "softsign|tanh|thresholdedrelu"},
    oneOf("activation", "", "none|silu|swish"),
    oneOf("activation", "GatedRMSNorm", "sigmoid|silu|swish"),
    range("activation", 0, 1, "GroupNorm"),
    range("activation", 0, 1, "SkipGroupNorm"),
    oneOf("activation", "FusedConv",
          "Clip|HardSigmoid|LeakyRelu|Relu|Sigmoid|Silu|Tanh"),
    oneOf("activation", "FusedGemm",
          "Elu|HardSigmoid|LeakyRelu|Relu|ScaledTanh|Sigmoid|Softplus|Softsign|"
          "Tanh|ThresholdedRelu"),
    oneOf("activation_type", "", "gelu|identity|relu|silu|swiglu"),
    oneOf("approximate", "", "none|tanh"),
    oneOf("auto_pad", "", "NOTSET|SAME_LOWER|SAME_UPPER|VALID"),
    oneOf("coordinate_transformation_mode", "Resize",
          "align_corners|asymmetric|half_pixel|half_pixel_symmetric|"
          "pytorch_half_pixel|tf_crop_and_resize|tf_half_pixel_for_nn"),
    oneOf("coordinate_transformation_mode", "RoiAlign",
          "half_pixel|output_half_pixel"),
    oneOf("direction", "", "bidirectional|forward|reverse"),
    oneOf("direction", "BitShift", "LEFT|RIGHT"),
    any("equation"),
    oneOf("k_quant_type", "", "NONE|PER_CHANNEL|PER_TENSOR"),
    oneOf("keep_aspect_ratio_policy", "", "not_larger|not_smaller|stretch"),
    oneOf("mode", "DepthToSpace", "CRD|DCR"),
    oneOf("mode", "GridSample", "bicubic|bilinear|nearest"),
    oneOf("mode", "GridSample", "cubic|linear|nearest", 20),
    oneOf("mode", "Pad", "constant|edge|reflect|wrap"),
    oneOf("mode", "Resize", "cubic|linear|nearest"),
    oneOf("mode", "RoiAlign", "avg|max"),
    oneOf("mode", "SpaceToDepth", "CRD|DCR"),
    oneOf("mode", "TensorScatter", "circular|linear"),
    oneOf("mode", "Upsample", "linear|nearest"),
    oneOf("nearest_mode", "",
          "ceil|floor|round_prefer_ceil|round_prefer_floor"),
    oneOf("padding_mode", "", "border|reflection|zeros"),
    oneOf("quant_type", "", "fp4|fp8|int|nvfp4|wfp4afp8"),
    oneOf("reduction", "", "mean|none|sum"),
    oneOf("reduction", "ScatterElements", "add|max|min|mul|none"),
    oneOf("reduction", "ScatterND", "add|max|min|mul|none"),
    oneOf("round_mode", "", "down|nearest|up"),
    oneOf("update_rule", "", "delta|gated|gated_delta|linear"),
    oneOf("v_quant_type", "", "NONE|PER_CHANNEL|PER_TENSOR"),
    any("value_string"),
    any("value_strings"),
};

static const Rule *findRule(llvm::StringRef attribute, llvm::StringRef op,
                            int opset) {
  const Rule *found = nullptr;
  for (const Rule &rule : rules) {
    if (rule.attribute != attribute || rule.since > opset)
      continue;
    if (rule.op == op)
      found = &rule;
    else if (rule.op.empty() && !found)
      found = &rule;
  }
  return found;
}

/// Returns the rank of an input that is a tensor, or of the first tensor of a
/// sequence.
static int64_t rankOfInput(const Node &node, int i) {
  if (!node.has(i))
    return 0;
  const Entry &entry = node.entry(i);
  if (entry.sequence)
    return entry.sequence->empty() ? 0
                                   : Emitter::rankOf(entry.sequence->front());
  return Emitter::rankOf(entry.tensor);
}

static bool checkNumber(Node &node, const Rule &rule, int64_t value) {
  int64_t low = rule.low, high = rule.high;
  if (rule.kind == Kind::Axis) {
    int64_t rank = rankOfInput(node, static_cast<int>(rule.low));
    if (value >= -rank - rule.high && value < rank + rule.high)
      return true;
    node.fail(rule.attribute + " " + llvm::Twine(value) +
              " is out of range of rank " + llvm::Twine(rank));
    return false;
  }
  if (rule.kind != Kind::Range || (value >= low && value <= high))
    return true;
  node.fail("attribute '" + rule.attribute + "' is " + llvm::Twine(value) +
            ", not " + llvm::Twine(low) + " to " + llvm::Twine(high));
  return false;
}

static bool checkName(Node &node, const Rule &rule, llvm::StringRef value) {
  if (rule.kind == Kind::Any)
    return true;
  std::string name =
      rule.kind == Kind::AnyCaseName ? value.lower() : value.str();
  llvm::SmallVector<llvm::StringRef> names;
  rule.names.split(names, '|');
  if (llvm::is_contained(names, name))
    return true;
  node.fail("attribute '" + rule.attribute + "' is '" + value.take_front(40) +
            "', not " + llvm::join(llvm::ArrayRef(names).drop_back(), ", ") +
            " or " + names.back());
  return false;
}

static bool checkAttribute(Node &node, const AttributeProto &attribute) {
  bool hasNumbers = attribute.type() == AttributeProto::INT ||
                    attribute.type() == AttributeProto::INTS;
  bool hasNames = attribute.type() == AttributeProto::STRING ||
                  attribute.type() == AttributeProto::STRINGS;
  if (!hasNumbers && !hasNames)
    return true;
  const Rule *rule =
      findRule(attribute.name(), node.proto.op_type(), node.opset);
  if (!rule) {
    node.unsupported("attribute '" + attribute.name() + "' is not supported");
    return false;
  }
  switch (attribute.type()) {
  case AttributeProto::INT:
    return checkNumber(node, *rule, attribute.i());
  case AttributeProto::INTS:
    return llvm::all_of(attribute.ints(), [&](int64_t value) {
      return checkNumber(node, *rule, value);
    });
  case AttributeProto::STRING:
    return checkName(node, *rule, attribute.s());
  default:
    return llvm::all_of(attribute.strings(), [&](const std::string &value) {
      return checkName(node, *rule, value);
    });
  }
}

bool ax::import::checkAttributes(Node &node, const onnx::OpSchema &schema) {
  for (const AttributeProto &attribute : node.proto.attribute()) {
    // The checker did not see what calls of functions gave their nodes.
    auto known = schema.attributes().find(attribute.name());
    if (known != schema.attributes().end() &&
        known->second.type != attribute.type()) {
      node.fail("attribute '" + attribute.name() + "' is of type " +
                AttributeProto::AttributeType_Name(attribute.type()) +
                ", not " +
                AttributeProto::AttributeType_Name(known->second.type));
      return false;
    }
    if (!checkAttribute(node, attribute))
      return false;
  }
  return true;
}
