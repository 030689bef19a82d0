//===- Descriptors.cpp - What the simulated cuDNN is told -----------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Descriptors.h"

#include "../LibraryDriver.h"

#include <algorithm>
#include <set>

namespace simcudnn {

static thread_local std::string reason;

cudnnStatus_t enter(const char *call, uint64_t *context) {
  reason.clear();
  int status =
      simgpu::enterLibraryCall(call, CUDNN_STATUS_NOT_INITIALIZED, context);
  if (status)
    reason = "made to fail";
  return static_cast<cudnnStatus_t>(status);
}

cudnnStatus_t refuse(cudnnStatus_t status, const std::string &why) {
  reason = why;
  simgpu::refuseLibraryCall(why);
  return status;
}

const std::string &lastReason() { return reason; }
void setReason(const std::string &why) { reason = why; }

// Never destroyed: threads may still call.
Living<Handle, cudnnHandle_t> &handles() {
  static auto *living = new Living<Handle, cudnnHandle_t>;
  return *living;
}
Living<Descriptor, cudnnBackendDescriptor_t> &descriptors() {
  static auto *living = new Living<Descriptor, cudnnBackendDescriptor_t>;
  return *living;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

namespace {

/// What an attribute must be.
struct Rule {
  cudnnBackendDescriptorType_t of;
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  int64_t mostElements;
  bool isNeeded;
  /// Of one that is descriptors: of these. OPERATIONGRAPH_OPS takes several.
  int referenced = -1;
};

constexpr int64_t any = 1 << 16;
constexpr int tensorType = CUDNN_BACKEND_TENSOR_DESCRIPTOR;

#define DESCRIPTOR(NAME) CUDNN_BACKEND_##NAME##_DESCRIPTOR
#define ATTRIBUTE(OF, NAME, TYPE)                                              \
  DESCRIPTOR(OF), CUDNN_ATTR_##OF##_##NAME, CUDNN_TYPE_##TYPE
#define CONVOLUTION_ATTRIBUTE(KIND, PREFIX, NAME, TYPE)                        \
  DESCRIPTOR(OPERATION_CONVOLUTION_##KIND),                                    \
      CUDNN_ATTR_OPERATION_CONVOLUTION_##PREFIX##_##NAME, CUDNN_TYPE_##TYPE
#define CONVOLUTION_RULES(KIND, PREFIX, X, W, Y)                               \
  {CONVOLUTION_ATTRIBUTE(KIND, PREFIX, CONV_DESC, BACKEND_DESCRIPTOR), 1,      \
   true, DESCRIPTOR(CONVOLUTION)},                                             \
      {CONVOLUTION_ATTRIBUTE(KIND, PREFIX, X, BACKEND_DESCRIPTOR), 1, true,    \
       tensorType},                                                            \
      {CONVOLUTION_ATTRIBUTE(KIND, PREFIX, W, BACKEND_DESCRIPTOR), 1, true,    \
       tensorType},                                                            \
      {CONVOLUTION_ATTRIBUTE(KIND, PREFIX, Y, BACKEND_DESCRIPTOR), 1, true,    \
       tensorType},                                                            \
      {CONVOLUTION_ATTRIBUTE(KIND, PREFIX, ALPHA, FLOAT), 1, true}, {          \
    CONVOLUTION_ATTRIBUTE(KIND, PREFIX, BETA, FLOAT), 1, true                  \
  }
const Rule rules[] = {
    {ATTRIBUTE(TENSOR, UNIQUE_ID, INT64), 1, true},
    {ATTRIBUTE(TENSOR, DATA_TYPE, DATA_TYPE), 1, true},
    {ATTRIBUTE(TENSOR, DIMENSIONS, INT64), CUDNN_DIM_MAX, true},
    {ATTRIBUTE(TENSOR, STRIDES, INT64), CUDNN_DIM_MAX, true},
    {ATTRIBUTE(TENSOR, BYTE_ALIGNMENT, INT64), 1, true},
    {ATTRIBUTE(TENSOR, IS_VIRTUAL, BOOLEAN), 1, false},
    {ATTRIBUTE(TENSOR, IS_BY_VALUE, BOOLEAN), 1, false},
    {ATTRIBUTE(MATMUL, COMP_TYPE, DATA_TYPE), 1, true},
    {ATTRIBUTE(POINTWISE, MODE, POINTWISE_MODE), 1, true},
    {ATTRIBUTE(POINTWISE, MATH_PREC, DATA_TYPE), 1, true},
    {ATTRIBUTE(POINTWISE, AXIS, INT64), 1, false},
    {ATTRIBUTE(REDUCTION, OPERATOR, REDUCTION_OPERATOR_TYPE), 1, true},
    {ATTRIBUTE(REDUCTION, COMP_TYPE, DATA_TYPE), 1, true},
    {ATTRIBUTE(CONVOLUTION, COMP_TYPE, DATA_TYPE), 1, true},
    {ATTRIBUTE(CONVOLUTION, CONV_MODE, CONVOLUTION_MODE), 1, true},
    {ATTRIBUTE(CONVOLUTION, SPATIAL_DIMS, INT64), 1, true},
    {ATTRIBUTE(CONVOLUTION, FILTER_STRIDES, INT64), CUDNN_DIM_MAX, true},
    {ATTRIBUTE(CONVOLUTION, DILATIONS, INT64), CUDNN_DIM_MAX, true},
    {ATTRIBUTE(CONVOLUTION, PRE_PADDINGS, INT64), CUDNN_DIM_MAX, true},
    {ATTRIBUTE(CONVOLUTION, POST_PADDINGS, INT64), CUDNN_DIM_MAX, true},
    CONVOLUTION_RULES(FORWARD, FORWARD, X, W, Y),
    CONVOLUTION_RULES(BACKWARD_DATA, BWD_DATA, DX, W, DY),
    CONVOLUTION_RULES(BACKWARD_FILTER, BWD_FILTER, X, DW, DY),
    {ATTRIBUTE(OPERATION_MATMUL, DESC, BACKEND_DESCRIPTOR), 1, true,
     DESCRIPTOR(MATMUL)},
    {ATTRIBUTE(OPERATION_MATMUL, ADESC, BACKEND_DESCRIPTOR), 1, true,
     tensorType},
    {ATTRIBUTE(OPERATION_MATMUL, BDESC, BACKEND_DESCRIPTOR), 1, true,
     tensorType},
    {ATTRIBUTE(OPERATION_MATMUL, CDESC, BACKEND_DESCRIPTOR), 1, true,
     tensorType},
    {ATTRIBUTE(OPERATION_POINTWISE, PW_DESCRIPTOR, BACKEND_DESCRIPTOR), 1, true,
     DESCRIPTOR(POINTWISE)},
    {ATTRIBUTE(OPERATION_POINTWISE, XDESC, BACKEND_DESCRIPTOR), 1, true,
     tensorType},
    {ATTRIBUTE(OPERATION_POINTWISE, BDESC, BACKEND_DESCRIPTOR), 1, false,
     tensorType},
    {ATTRIBUTE(OPERATION_POINTWISE, TDESC, BACKEND_DESCRIPTOR), 1, false,
     tensorType},
    {ATTRIBUTE(OPERATION_POINTWISE, YDESC, BACKEND_DESCRIPTOR), 1, true,
     tensorType},
    {ATTRIBUTE(OPERATION_REDUCTION, DESC, BACKEND_DESCRIPTOR), 1, true,
     DESCRIPTOR(REDUCTION)},
    {ATTRIBUTE(OPERATION_REDUCTION, XDESC, BACKEND_DESCRIPTOR), 1, true,
     tensorType},
    {ATTRIBUTE(OPERATION_REDUCTION, YDESC, BACKEND_DESCRIPTOR), 1, true,
     tensorType},
    {ATTRIBUTE(OPERATION_RESHAPE, XDESC, BACKEND_DESCRIPTOR), 1, true,
     tensorType},
    {ATTRIBUTE(OPERATION_RESHAPE, YDESC, BACKEND_DESCRIPTOR), 1, true,
     tensorType},
    {ATTRIBUTE(OPERATIONGRAPH, OPS, BACKEND_DESCRIPTOR), any, true},
    {ATTRIBUTE(OPERATIONGRAPH, HANDLE, HANDLE), 1, false},
    {ATTRIBUTE(DEVICEPROP, JSON_REPRESENTATION, CHAR), any, true},
    {ATTRIBUTE(ENGINEHEUR, OPERATION_GRAPH, BACKEND_DESCRIPTOR), 1, true,
     DESCRIPTOR(OPERATIONGRAPH)},
    {ATTRIBUTE(ENGINEHEUR, MODE, HEUR_MODE), 1, true},
    {ATTRIBUTE(ENGINEHEUR, DEVICEPROP, BACKEND_DESCRIPTOR), 1, false,
     DESCRIPTOR(DEVICEPROP)},
    {ATTRIBUTE(EXECUTION_PLAN, ENGINE_CONFIG, BACKEND_DESCRIPTOR), 1, false,
     DESCRIPTOR(ENGINECFG)},
    {ATTRIBUTE(EXECUTION_PLAN, JSON_REPRESENTATION, CHAR), any, false},
    {ATTRIBUTE(EXECUTION_PLAN, HANDLE, HANDLE), 1, false},
    {ATTRIBUTE(VARIANT_PACK, UNIQUE_IDS, INT64), any, true},
    {ATTRIBUTE(VARIANT_PACK, DATA_POINTERS, VOID_PTR), any, true},
    {ATTRIBUTE(VARIANT_PACK, WORKSPACE, VOID_PTR), 1, true},
};
#undef CONVOLUTION_RULES
#undef CONVOLUTION_ATTRIBUTE
#undef ATTRIBUTE

bool isConvolution(cudnnBackendDescriptorType_t type) {
  return type == DESCRIPTOR(OPERATION_CONVOLUTION_FORWARD) ||
         type == DESCRIPTOR(OPERATION_CONVOLUTION_BACKWARD_DATA) ||
         type == DESCRIPTOR(OPERATION_CONVOLUTION_BACKWARD_FILTER);
}

bool isOperation(cudnnBackendDescriptorType_t type) {
  return type == DESCRIPTOR(OPERATION_MATMUL) ||
         type == DESCRIPTOR(OPERATION_POINTWISE) ||
         type == DESCRIPTOR(OPERATION_REDUCTION) ||
         type == DESCRIPTOR(OPERATION_RESHAPE) || isConvolution(type);
}

} // namespace

bool isKnown(cudnnBackendDescriptorType_t type) {
  return type == DESCRIPTOR(ENGINECFG) || type == DESCRIPTOR(ENGINE) ||
         std::any_of(std::begin(rules), std::end(rules),
                     [&](const Rule &rule) { return rule.of == type; });
}

size_t bytesOf(cudnnBackendAttributeType_t type) {
  switch (type) {
  case CUDNN_TYPE_BOOLEAN:
  case CUDNN_TYPE_CHAR:
    return sizeof(char);
  case CUDNN_TYPE_CONVOLUTION_MODE:
  case CUDNN_TYPE_DATA_TYPE:
  case CUDNN_TYPE_FLOAT:
  case CUDNN_TYPE_HEUR_MODE:
  case CUDNN_TYPE_POINTWISE_MODE:
  case CUDNN_TYPE_REDUCTION_OPERATOR_TYPE:
    return sizeof(cudnnDataType_t);
  case CUDNN_TYPE_INT64:
  case CUDNN_TYPE_VOID_PTR:
  case CUDNN_TYPE_HANDLE:
  case CUDNN_TYPE_BACKEND_DESCRIPTOR:
    return sizeof(int64_t);
  default:
    return 0;
  }
}

/// Sets `found` to the descriptors behind the handles, if they may be there.
static cudnnStatus_t findOthers(const Rule &rule, const Attribute &given,
                                std::vector<SharedDescriptor> &found) {
  std::vector<cudnnBackendDescriptor_t> named(static_cast<size_t>(given.count));
  std::memcpy(named.data(), given.bytes.data(), given.bytes.size());
  for (cudnnBackendDescriptor_t one : named) {
    SharedDescriptor other = descriptors().find(one);
    if (!other)
      return refuse(CUDNN_STATUS_BAD_PARAM, "there is no such descriptor");
    bool fits = rule.referenced >= 0 ? other->type == rule.referenced
                                     : isOperation(other->type);
    if (!fits)
      return refuse(CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE,
                    "the attribute is a descriptor of another type");
    if (!other->isFinal)
      return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                    "the attribute is a descriptor that is not final");
    found.push_back(std::move(other));
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Descriptor::set(cudnnBackendAttributeName_t name,
                              cudnnBackendAttributeType_t given, int64_t count,
                              const void *values) {
  if (isFinal)
    return refuse(CUDNN_STATUS_NOT_INITIALIZED,
                  "the descriptor is final already");
  const auto *rule = std::find_if(
      std::begin(rules), std::end(rules), [&](const Rule &candidate) {
        return candidate.of == type && candidate.name == name;
      });
  if (rule == std::end(rules))
    return refuse(CUDNN_STATUS_BAD_PARAM,
                  "the descriptor has no such attribute");
  if (rule->type != given)
    return refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
                  "the attribute is of another type");
  if (count < 1 || count > rule->mostElements)
    return refuse(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                  "the attribute has another number of elements");
  if (!values)
    return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
                  "the attribute's elements are nowhere");
  Attribute attribute;
  attribute.count = count;
  const auto *bytes = static_cast<const unsigned char *>(values);
  attribute.bytes.assign(bytes,
                         bytes + static_cast<size_t>(count) * bytesOf(given));
  if (given == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    if (cudnnStatus_t status =
            findOthers(*rule, attribute, attribute.descriptors))
      return status;
  attributes[name] = std::move(attribute);
  return CUDNN_STATUS_SUCCESS;
}

//===----------------------------------------------------------------------===//
// What they say
//===----------------------------------------------------------------------===//

static Tensor readTensor(const Descriptor &from) {
  Tensor made;
  made.number = from.get<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  made.type = from.get<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  made.sizes = from.list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  made.strides = from.list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  made.alignment = from.get<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  made.isVirtual = from.get<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  made.isByValue = from.get<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  return made;
}

namespace {

/// What a convolution is told, in the order of its inputs and the output.
struct ConvolutionNames {
  Kind kind;
  cudnnBackendAttributeName_t window, first, second, output, alpha, beta;
};

} // namespace

static Fault readConvolution(const Descriptor &from,
                             const ConvolutionNames &names, Node &made) {
  const Descriptor &how = from.other(names.window);
  made.kind = names.kind;
  made.type = how.get<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
  made.window.numDims = how.get<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
  made.window.strides =
      how.list<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  made.window.dilations = how.list<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  made.window.before = how.list<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  made.window.behind = how.list<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  for (cudnnBackendAttributeName_t name : {names.first, names.second})
    made.inputs.push_back(from.other(name).tensor);
  made.output = from.other(names.output).tensor;
  if (how.get<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) !=
      CUDNN_CROSS_CORRELATION)
    return {CUDNN_STATUS_NOT_SUPPORTED, "weights are not turned round here"};
  if (from.get<float>(names.alpha) != 1 || from.get<float>(names.beta) != 0)
    return {CUDNN_STATUS_NOT_SUPPORTED,
            "convolutions are neither scaled nor added here"};
  return {};
}

/// Sets `made` to what a descriptor of a convolution says.
static Fault readConvolution(const Descriptor &from, Node &made) {
#define NAME(NAME) CUDNN_ATTR_OPERATION_CONVOLUTION_##NAME
  switch (from.type) {
  case DESCRIPTOR(OPERATION_CONVOLUTION_FORWARD):
    return readConvolution(from,
                           {Kind::Convolution, NAME(FORWARD_CONV_DESC),
                            NAME(FORWARD_X), NAME(FORWARD_W), NAME(FORWARD_Y),
                            NAME(FORWARD_ALPHA), NAME(FORWARD_BETA)},
                           made);
  case DESCRIPTOR(OPERATION_CONVOLUTION_BACKWARD_DATA):
    return readConvolution(from,
                           {Kind::ImageGradient, NAME(BWD_DATA_CONV_DESC),
                            NAME(BWD_DATA_W), NAME(BWD_DATA_DY),
                            NAME(BWD_DATA_DX), NAME(BWD_DATA_ALPHA),
                            NAME(BWD_DATA_BETA)},
                           made);
  default:
    return readConvolution(from,
                           {Kind::WeightGradient, NAME(BWD_FILTER_CONV_DESC),
                            NAME(BWD_FILTER_X), NAME(BWD_FILTER_DY),
                            NAME(BWD_FILTER_DW), NAME(BWD_FILTER_ALPHA),
                            NAME(BWD_FILTER_BETA)},
                           made);
  }
#undef NAME
}

static Node readNode(const Descriptor &from) {
  Node made;
  auto input = [&](cudnnBackendAttributeName_t name) {
    if (from.has(name))
      made.inputs.push_back(from.other(name).tensor);
  };
  auto output = [&](cudnnBackendAttributeName_t name) {
    made.output = from.other(name).tensor;
  };
  switch (from.type) {
  case DESCRIPTOR(OPERATION_MATMUL):
    made.kind = Kind::Matmul;
    made.type = from.other(CUDNN_ATTR_OPERATION_MATMUL_DESC)
                    .get<cudnnDataType_t>(CUDNN_ATTR_MATMUL_COMP_TYPE);
    input(CUDNN_ATTR_OPERATION_MATMUL_ADESC);
    input(CUDNN_ATTR_OPERATION_MATMUL_BDESC);
    output(CUDNN_ATTR_OPERATION_MATMUL_CDESC);
    break;
  case DESCRIPTOR(OPERATION_POINTWISE): {
    const Descriptor &how =
        from.other(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    made.kind = Kind::Pointwise;
    made.mode = how.get<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    made.type = how.get<cudnnDataType_t>(CUDNN_ATTR_POINTWISE_MATH_PREC);
    made.axis = how.get<int64_t>(CUDNN_ATTR_POINTWISE_AXIS, -1);
    input(CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    input(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    input(CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    output(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    break;
  }
  case DESCRIPTOR(OPERATION_REDUCTION): {
    const Descriptor &how = from.other(CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    made.kind = Kind::Reduction;
    made.reduction =
        how.get<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
    made.type = how.get<cudnnDataType_t>(CUDNN_ATTR_REDUCTION_COMP_TYPE);
    input(CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
    output(CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
    break;
  }
  default:
    made.kind = Kind::Reshape;
    input(CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
    output(CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
  }
  return made;
}

/// What a plan does: an engine's graph, or what another plan said of itself.
static Fault readPlan(const Descriptor &from,
                      std::shared_ptr<const Graph> &graph, Engine &engine) {
  if (from.has(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)) {
    const Descriptor &config =
        from.other(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    graph = config.graph;
    engine = config.engine;
    return {};
  }
  if (!from.has(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION))
    return {CUDNN_STATUS_BAD_PARAM, "the plan is of no engine"};
  auto text = from.list<char>(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
  auto said = parsePlan(std::string(text.begin(), text.end()));
  if (!said)
    return {CUDNN_STATUS_BAD_PARAM, "what the plan is made of says nothing"};
  engine = said->engine;
  for (const Node &node : said->nodes)
    if (Fault fault = node.check())
      return fault;
  auto made = std::make_shared<Graph>();
  Fault fault = made->build(std::move(said->nodes));
  graph = std::move(made);
  return fault;
}

static Fault checkPack(const Descriptor &pack) {
  auto numbers = pack.list<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  if (static_cast<int64_t>(numbers.size()) !=
      pack.attributes.at(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).count)
    return {CUDNN_STATUS_BAD_PARAM, "there are not as many numbers as places"};
  if (std::set<int64_t>(numbers.begin(), numbers.end()).size() !=
      numbers.size())
    return {CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES,
            "a tensor is given twice"};
  return {};
}

cudnnStatus_t Descriptor::finalize() {
  if (isFinal)
    return refuse(CUDNN_STATUS_NOT_INITIALIZED,
                  "the descriptor is final already");
  if (type == DESCRIPTOR(ENGINECFG) || type == DESCRIPTOR(ENGINE))
    return refuse(CUDNN_STATUS_NOT_SUPPORTED,
                  "only the heuristic makes an engine's configuration here");
  for (const Rule &rule : rules)
    if (rule.of == type && rule.isNeeded && !has(rule.name))
      return refuse(CUDNN_STATUS_BAD_PARAM,
                    "attribute " + std::to_string(rule.name) + " is not set");
  Fault fault;
  if (type == DESCRIPTOR(TENSOR)) {
    tensor = readTensor(*this);
    fault = tensor.check();
  } else if (isOperation(type)) {
    if (isConvolution(type))
      fault = readConvolution(*this, node);
    else
      node = readNode(*this);
    if (!fault)
      fault = node.check();
  } else if (type == DESCRIPTOR(OPERATIONGRAPH)) {
    std::vector<Node> nodes;
    for (const SharedDescriptor &one :
         attributes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS).descriptors)
      nodes.push_back(one->node);
    auto made = std::make_shared<Graph>();
    fault = made->build(std::move(nodes));
    graph = std::move(made);
  } else if (type == DESCRIPTOR(DEVICEPROP)) {
    if (get<char>(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION) != '{')
      fault = {CUDNN_STATUS_BAD_PARAM, "what describes a card is no JSON"};
  } else if (type == DESCRIPTOR(ENGINEHEUR)) {
    const Descriptor &of = other(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    graph = of.graph;
    if (!of.has(CUDNN_ATTR_OPERATIONGRAPH_HANDLE) &&
        !has(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP))
      fault = {CUDNN_STATUS_BAD_PARAM, "there is no card to choose for"};
  } else if (type == DESCRIPTOR(EXECUTION_PLAN)) {
    fault = readPlan(*this, graph, engine);
  } else if (type == DESCRIPTOR(VARIANT_PACK)) {
    fault = checkPack(*this);
  }
  if (fault)
    return refuse(fault);
  isFinal = true;
  return CUDNN_STATUS_SUCCESS;
}

} // namespace simcudnn
