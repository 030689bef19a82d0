//===- Train.cpp - Steps of a program that trains -------------------------===//
#include "ax/Session/Train.h"

#include "ax/Runtime/Npy.h"
#include "ax/Support/AtomicFile.h"
#include "ax/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

using namespace ax;

namespace {

constexpr llvm::StringLiteral lossName = "loss";

std::optional<size_t> findLoss(const rt::Program &program) {
  for (size_t i = 0; i < program.outputs.size(); ++i)
    if (program.outputs[i].name == lossName && program.outputs[i].shape.empty())
      return i;
  return std::nullopt;
}

/// The samples of an archive, batch by batch.
class Batches {
public:
  static llvm::Expected<Batches> open(const rt::Program &program,
                                      const TrainOptions &options);

  /// The inputs of step `step`, from 0.
  void fill(int64_t step, std::vector<HostTensor> &inputs);

private:
  llvm::Error bind(const rt::Program &program, const std::string &path);
  void shuffleFor(int64_t epoch);

  /// By input of the program.
  std::vector<HostTensor> arrays;
  int64_t batch = 0, samples = 0;
  bool shuffle = false;
  uint64_t seed = 0;
  int64_t epoch = -1;
  std::vector<int64_t> order;
};

llvm::Expected<Batches> Batches::open(const rt::Program &program,
                                      const TrainOptions &options) {
  Batches batches;
  batches.shuffle = options.shuffle;
  batches.seed = options.seed;
  if (llvm::Error error = batches.bind(program, options.data))
    return error;
  return batches;
}

llvm::Error Batches::bind(const rt::Program &program, const std::string &path) {
  auto tensors = rt::readNpz(path);
  if (!tensors)
    return tensors.takeError();
  auto bad = [&](const llvm::Twine &message) {
    return makeError(ExitCode::BadInput, "--data=" + path + ": " + message);
  };
  for (const rt::Port &port : program.inputs) {
    auto found = llvm::find_if(
        *tensors, [&](const auto &entry) { return entry.first == port.name; });
    if (found == tensors->end())
      return bad("there is no array '" + port.name + "'");
    const HostTensor &array = found->second;
    if (port.shape.empty())
      return bad("input '" + port.name + "' has no dimension for samples");
    Shape wanted = port.shape;
    if (!array.getShape().empty())
      wanted[0] = array.getShape()[0];
    if (array.getType() != port.dtype || array.getShape() != wanted)
      return bad("'" + port.name + "' is " + array.typeToString() +
                 "; a batch of it is to be " +
                 HostTensor::borrow(port.dtype, port.shape, nullptr, nullptr)
                     .typeToString());
    if (arrays.empty()) {
      batch = port.shape[0];
      samples = wanted[0];
    }
    if (port.shape[0] != batch || wanted[0] != samples)
      return bad("'" + port.name + "' has " + llvm::Twine(wanted[0]) +
                 " samples in batches of " + llvm::Twine(port.shape[0]) +
                 ", other inputs " + llvm::Twine(samples) + " in batches of " +
                 llvm::Twine(batch));
    arrays.push_back(array);
  }
  if (batch < 1 || samples < batch)
    return bad(llvm::Twine(samples) + " samples are less than one batch of " +
               llvm::Twine(batch));
  order.resize(samples);
  std::iota(order.begin(), order.end(), 0);
  return llvm::Error::success();
}

/// Fisher and Yates, from a generator that is the same everywhere.
void Batches::shuffleFor(int64_t newEpoch) {
  epoch = newEpoch;
  if (!shuffle)
    return;
  std::iota(order.begin(), order.end(), 0);
  std::seed_seq mixed{seed, seed >> 32, static_cast<uint64_t>(epoch)};
  std::mt19937_64 random(mixed);
  for (auto i = static_cast<uint64_t>(samples - 1); i > 0; --i)
    std::swap(order[i], order[random() % (i + 1)]);
}

void Batches::fill(int64_t step, std::vector<HostTensor> &inputs) {
  int64_t perEpoch = samples / batch;
  if (step / perEpoch != epoch)
    shuffleFor(step / perEpoch);
  int64_t first = step % perEpoch * batch;
  for (auto [input, array] : llvm::zip_equal(inputs, arrays)) {
    int64_t bytes = array.numBytes() / samples;
    uint8_t *to = input.mutableData();
    for (int64_t i = 0; i < batch; ++i)
      std::memcpy(to + i * bytes, array.data() + order[first + i] * bytes,
                  static_cast<size_t>(bytes));
  }
}

/// Lines of JSON, one a step.
class Log {
public:
  static llvm::Expected<Log> create(const std::string &path) {
    Log log;
    log.path = path;
    if (path.empty())
      return log;
    std::error_code fault;
    log.os = std::make_unique<llvm::raw_fd_ostream>(path, fault,
                                                    llvm::sys::fs::OF_Text);
    if (fault)
      return makeError(ExitCode::InputOutput,
                       "cannot write '" + path + "': " + fault.message());
    return log;
  }
  llvm::Error write(int64_t step, const rt::Program &program,
                    const std::vector<HostTensor> &outputs, double seconds) {
    if (!os)
      return llvm::Error::success();
    llvm::json::OStream json(*os);
    json.object([&] {
      json.attribute("step", step);
      for (auto [port, value] : llvm::zip_equal(program.outputs, outputs))
        if (port.shape.empty() && isFloat(port.dtype))
          json.attribute(port.name, number(value.getDouble(0)));
      json.attribute("seconds", seconds);
    });
    *os << '\n';
    os->flush();
    if (!os->has_error())
      return llvm::Error::success();
    std::string fault = os->error().message();
    os->clear_error();
    return makeError(ExitCode::InputOutput,
                     "cannot write '" + path + "': " + fault);
  }

private:
  /// JSON has no infinity.
  static llvm::json::Value number(double value) {
    if (std::isfinite(value))
      return value;
    return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  }
  std::string path;
  std::unique_ptr<llvm::raw_fd_ostream> os;
};

} // namespace

bool ax::isTraining(const rt::Program &program) {
  return findLoss(program) &&
         llvm::any_of(program.states,
                      [](const rt::State &state) { return state.isMutable; });
}

llvm::Error ax::train(Session &session, const TrainOptions &options,
                      llvm::raw_ostream &progress) {
  using Clock = std::chrono::steady_clock;
  rt::Executor &executor = session.getExecutor();
  const rt::Program &program = executor.getProgram();
  std::optional<size_t> loss = findLoss(program);
  if (!isTraining(program))
    return makeError(ExitCode::Usage,
                     "program '" + program.name +
                         "' does not train: compile it with axopt --train");
  auto batches = Batches::open(program, options);
  if (!batches)
    return batches.takeError();
  auto log = Log::create(options.log);
  if (!log)
    return log.takeError();
  auto request = executor.createRequest();
  if (!request)
    return request.takeError();
  for (size_t i = 0; i < program.inputs.size(); ++i)
    (*request)->inputs[i] =
        HostTensor(program.inputs[i].dtype, program.inputs[i].shape);

  llvm::Error failure = llvm::Error::success();
  for (int64_t step = 0; step < options.steps && !failure; ++step) {
    Clock::time_point start = Clock::now();
    batches->fill(step, (*request)->inputs);
    if (llvm::Error error = executor.submit(**request))
      return error;
    if (llvm::Error error = executor.wait(**request))
      return error;
    double seconds =
        std::chrono::duration<double>(Clock::now() - start).count();
    if (llvm::Error error =
            log->write(step + 1, program, (*request)->outputs, seconds))
      return error;
    double value = (*request)->outputs[*loss].getDouble(0);
    progress << "axrun: step " << step + 1 << " of " << options.steps
             << ": loss " << llvm::format("%.6f", value)
             << llvm::format(", %.1f ms", 1e3 * seconds) << '\n';
    if (!std::isfinite(value))
      failure = makeError(ExitCode::RunFailed,
                          "the loss of step " + llvm::Twine(step + 1) +
                              " is no finite number: lower the learning rate, "
                              "or clip gradients (axopt --clip-norm)");
  }
  if (failure || options.save.empty())
    return failure;
  if (std::error_code fault = llvm::sys::fs::create_directories(options.save))
    return makeError(ExitCode::InputOutput,
                     "cannot make '" + options.save + "': " + fault.message());
  llvm::SmallString<128> path(options.save);
  llvm::sys::path::append(path, "model.safetensors");
  return saveStates(executor, path.str().str());
}
