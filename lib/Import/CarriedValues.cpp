//===- CarriedValues.cpp - What one step leaves for the next --------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "CarriedValues.h"

#include "ax/Dialect/ProgramNames.h"
#include "ax/Import/Import.h"
#include "ax/Support/Error.h"
#include "ax/Support/HostTensor.h"
#include "ax/Support/JoinFirst.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

using namespace ax;
using namespace ax::import;

/// What the `*` of a pattern stands for in `name`; nothing when it does not
/// fit.
static std::optional<llvm::StringRef> match(llvm::StringRef pattern,
                                            llvm::StringRef name) {
  size_t star = pattern.find('*');
  if (star == llvm::StringRef::npos)
    return pattern == name ? std::optional(llvm::StringRef()) : std::nullopt;
  if (!name.consume_front(pattern.take_front(star)) ||
      !name.consume_back(pattern.drop_front(star + 1)))
    return std::nullopt;
  return name;
}

static std::string fill(llvm::StringRef pattern, llvm::StringRef text) {
  auto [before, after] = pattern.split('*');
  return pattern.contains('*') ? (before + text + after).str() : pattern.str();
}

/// The end of `value` that has the shape of `wanted`; null where there is none.
static mlir::Value endOf(mlir::Value value, mlir::RankedTensorType wanted,
                         mlir::OpBuilder &builder) {
  mlir::RankedTensorType type = tensorType(value);
  if (type == wanted)
    return value;
  if (type.getElementType() != wanted.getElementType() ||
      type.getRank() != wanted.getRank())
    return {};
  llvm::SmallVector<int64_t> starts;
  for (auto [has, wants] : llvm::zip_equal(type.getShape(), wanted.getShape()))
    starts.push_back(has - wants);
  auto isShorter = [](int64_t start) { return start < 0; };
  auto isSame = [](int64_t start) { return start == 0; };
  if (llvm::any_of(starts, isShorter) ||
      llvm::count_if(starts, isSame) + 1 < type.getRank())
    return {};
  llvm::SmallVector<int64_t> steps(starts.size(), 1);
  return SliceOp::create(builder, value.getLoc(), wanted, value, starts, steps);
}

/// What it was before it was moved or cast.
static mlir::Value behindMoves(mlir::Value value) {
  while (mlir::Operation *op = value.getDefiningOp()) {
    if (!mlir::isa<TransposeOp, ReshapeOp, CastOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Whether `value` is `input` with more behind it. Others, as a cache that is
/// filled from the front, cannot do without their beginning.
static bool growsBehind(mlir::Value value, mlir::Value input) {
  auto concat = behindMoves(value).getDefiningOp<ConcatOp>();
  return concat && behindMoves(concat->getOperand(0)) == input;
}

/// Whether nobody but attention reads `value`, which is a cache of its keys or
/// values, and the one output: padding is before that for a sink.
static bool isReadByAttention(mlir::Value value) {
  int numOutputs = 0;
  for (mlir::Operation *user : value.getUsers()) {
    numOutputs += mlir::isa<ReturnOp>(user);
    auto isAttention = [](mlir::Operation *op) {
      return mlir::isa<AttentionOp>(op);
    };
    if (!mlir::isa<ReturnOp, AttentionOp>(user) &&
        !(mlir::isa<PadOp>(user) &&
          llvm::all_of(user->getUsers(), isAttention)))
      return false;
  }
  return numOutputs == 1;
}

/// A cache that is filled from the front, `select(isOld, %input, select(isNew,
/// %new, 0))`, has zeros behind the new rows, as onnxruntime's outputs have.
/// Where it is carried they need not be written in each step: it begins with
/// zeros, and what comes to lie there is overwritten before it is seen.
static void keepUnseen(mlir::Value value, mlir::Value input) {
  auto choice = value.getDefiningOp<SelectOp>();
  if (!choice || choice.getOnTrue() != input || !isReadByAttention(value))
    return;
  auto behind = choice.getOnFalse().getDefiningOp<SelectOp>();
  if (behind && behind->hasAttr(kUnseenElse) && behind->hasOneUse())
    behind.getOnFalseMutable().assign(input);
}

namespace {

class Carrier {
public:
  explicit Carrier(ProgramOp program)
      : program(program), output(mlir::cast<ReturnOp>(
                              program.getBody().front().getTerminator())) {}

  llvm::Error carry(llvm::StringRef outputs, llvm::StringRef inputs);

private:
  llvm::Error carryOne(unsigned result, const std::string &input);

  ProgramOp program;
  ReturnOp output;
  /// The output that each input gets.
  llvm::StringMap<std::string> givers;
};

} // namespace

static std::string typeText(llvm::StringRef name, mlir::RankedTensorType type) {
  std::string text = "'" + name.str() + "' (" + shapeToString(type.getShape());
  llvm::raw_string_ostream(text)
      << (type.getRank() ? "x" : "") << type.getElementType() << ')';
  return text;
}

llvm::Error Carrier::carryOne(unsigned result, const std::string &input) {
  llvm::StringRef name = program.getResultName(result);
  std::vector<std::string> known;
  mlir::BlockArgument taker;
  for (auto argument : program.getBody().getArguments()) {
    known.push_back(program.getArgName(argument.getArgNumber()).str());
    if (known.back() == input)
      taker = argument;
  }
  if (!taker)
    return makeError(ExitCode::Usage,
                     "output '" + name + "' would be input '" + input +
                         "', which there is not, or which has a value that is "
                         "known; inputs are " +
                         joinFirst(known));
  if (program.getCountedDim(result))
    return makeError(ExitCode::Usage,
                     "output '" + name +
                         "' has as many results as data decide, and padding "
                         "behind them: it cannot be input '" +
                         input + "'");
  auto [giver, isFirst] = givers.try_emplace(input, name.str());
  if (!isFirst)
    return makeError(ExitCode::Usage, "input '" + input + "' would be '" +
                                          name + "', and is '" + giver->second +
                                          "' already");
  mlir::OpBuilder builder(output);
  mlir::Value value = output.getOperand(result),
              end = endOf(value, tensorType(taker), builder);
  if (!end)
    return makeError(
        ExitCode::Usage,
        "output " + typeText(name, tensorType(value)) + " cannot be input " +
            typeText(input, tensorType(taker)) +
            ": an output has its input's type and shape, or is longer in one "
            "dimension, of which the last part is carried");
  if (end != value && !growsBehind(value, taker)) {
    end.getDefiningOp()->erase();
    return makeError(
        ExitCode::Usage,
        "output " + typeText(name, tensorType(value)) + " cannot be input " +
            typeText(input, tensorType(taker)) +
            ": it is longer, and not the input with more behind it, of which "
            "the end is carried; give the input its length (of "
            "GroupQueryAttention past_sequence_length is "
            "total_sequence_length)");
  }
  output.setOperand(result, end);
  keepUnseen(end, taker);
  program.setResultAttr(result, kCarried, builder.getStringAttr(input));
  return llvm::Error::success();
}

llvm::Error Carrier::carry(llvm::StringRef outputs, llvm::StringRef inputs) {
  std::vector<std::string> known;
  bool fits = false;
  for (unsigned i = 0, e = program.getNumResults(); i < e; ++i) {
    llvm::StringRef name = program.getResultName(i);
    known.push_back(name.str());
    auto text = match(outputs, name);
    if (!text)
      continue;
    fits = true;
    if (program.getResultAttr(i, kCarried))
      return makeError(ExitCode::Usage,
                       "output '" + name + "' is carried to an input already");
    if (llvm::Error error = carryOne(i, fill(inputs, *text)))
      return error;
  }
  if (!fits)
    return makeError(ExitCode::Usage, "no output is called '" + outputs +
                                          "'; outputs are " + joinFirst(known));
  return llvm::Error::success();
}

llvm::Error import::markCarried(
    ProgramOp program,
    llvm::ArrayRef<std::pair<std::string, std::string>> patterns) {
  Carrier carrier(program);
  for (const auto &[outputs, inputs] : patterns)
    if (llvm::Error error = carrier.carry(outputs, inputs))
      return addContext(std::move(error), "--carry=" + outputs + "=" + inputs);
  mlir::Block &body = program.getBody().front();
  for (mlir::Operation &op : body)
    op.removeAttr(kUnseenElse);
  program.setFunctionType(
      mlir::FunctionType::get(program.getContext(), body.getArgumentTypes(),
                              body.getTerminator()->getOperandTypes()));
  return llvm::Error::success();
}

llvm::Error import::addCarry(ImportOptions &options, llvm::StringRef text) {
  auto [output, input] = text.split('=');
  if (output.empty() || input.empty() || output.count('*') > 1 ||
      input.count('*') != output.count('*'))
    return makeError(ExitCode::Usage,
                     "--carry=" + text +
                         ": expected OUTPUT=INPUT, both with one '*' for the "
                         "same text, or with none");
  options.carried.emplace_back(output, input);
  return llvm::Error::success();
}
