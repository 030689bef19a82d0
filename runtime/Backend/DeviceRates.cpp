//===- DeviceRates.cpp - How fast a device is at best ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ax/Runtime/DeviceRates.h"

#include "ax/Runtime/Program.h"
#include "ax/Runtime/StridedCopy.h"
#include "ax/Support/Error.h"
#include "ax/Support/HostTensor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

namespace ax::rt {

double DeviceRates::leastSeconds(int64_t flops, std::optional<DType> factors,
                                 int64_t bytes) const {
  double least = 0;
  if (factors)
    if (auto rate = flopsPerSecond.find(*factors); rate != flopsPerSecond.end())
      least = static_cast<double>(flops) / rate->second;
  if (bytesPerSecond > 0)
    least = std::max(least, static_cast<double>(bytes) / bytesPerSecond);
  return least;
}

std::optional<DType> rateType(const LibraryDesc &desc) {
  if (countFlops(desc) == 0)
    return std::nullopt;
  DType type = argumentDesc(desc, 0).dtype;
  if (!isFloat(type))
    return std::nullopt;
  return isFloat8(type) ? DType::F8E4M3FN : type;
}

namespace {

/// From these on, a factor of 2 each time, until one takes long enough.
constexpr int64_t firstProduct = 128, largestProduct = 8192;
constexpr int64_t firstCopy = 16 << 20, largestCopy = 1 << 30;
constexpr std::chrono::milliseconds longEnough(10);
/// Executions of which the fastest counts.
constexpr int numExecutions = 3;
/// What is next to nothing, and how often it is done between two readings of
/// the clock.
constexpr int64_t smallProduct = 8;
constexpr int numSmallProducts = 1000;

/// A product of square matrices. Eight bits are multiplied as GPUs have them:
/// what is summed over lies innermost in both.
MatmulDesc squareProduct(DType type, int64_t size) {
  MatmulDesc desc;
  desc.a = desc.b = TensorDesc::dense(type, {size, size});
  desc.c = TensorDesc::dense(isFloat8(type) ? DType::BF16 : type, {size, size});
  if (isFloat8(type))
    std::swap(desc.b.strides[0], desc.b.strides[1]);
  // As a Linear's weights.
  desc.constantB = true;
  return desc;
}

/// A product that is ready to be executed.
struct Product {
  std::vector<std::unique_ptr<DeviceMemory>> memory;
  std::vector<DeviceAddress> arguments;
  std::unique_ptr<LibraryOp> op;
  std::unique_ptr<DeviceMemory> workspace;
};

class RateMeter {
public:
  RateMeter(Device &device, const RateTeam &team)
      : device(device), team(team) {}
  llvm::Error begin();
  /// Operations per second, of products of this type; 0 where there are none.
  llvm::Expected<double> measureProducts(DType type);
  llvm::Expected<double> measureCopies();
  llvm::Expected<std::optional<double>> measureSmallProducts();

private:
  using Memory = std::unique_ptr<DeviceMemory>;
  using Seconds = std::chrono::duration<double>;

  /// Memory of these sizes; none where that is too much.
  llvm::Expected<std::vector<Memory>>
  allocate(llvm::ArrayRef<int64_t> sizes) const;
  llvm::Error fill(const DeviceMemory &memory, DType type);
  /// Nothing where there is no memory, or nobody who does it.
  llvm::Expected<std::optional<Product>> prepare(const MatmulDesc &desc);
  llvm::Expected<std::optional<Seconds>> timeProduct(const MatmulDesc &desc,
                                                     int numCalls = 1);
  llvm::Expected<std::optional<Seconds>> timeCopy(int64_t bytes);
  /// Nothing where a rank is not ready.
  llvm::Expected<std::optional<Seconds>>
  time(bool isReady, llvm::function_ref<llvm::Error()> execute);

  Device &device;
  const RateTeam &team;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Event> earlier, later;
};

} // namespace

llvm::Error RateMeter::begin() {
  auto made = device.createStream();
  if (!made)
    return made.takeError();
  stream = std::move(*made);
  for (std::unique_ptr<Event> *event : {&earlier, &later}) {
    auto timed = device.createEvent(/*isTimed=*/true);
    if (!timed)
      return timed.takeError();
    *event = std::move(*timed);
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<RateMeter::Memory>>
RateMeter::allocate(llvm::ArrayRef<int64_t> sizes) const {
  auto has = device.getMemorySize();
  if (!has)
    return has.takeError();
  int64_t total = 0;
  for (int64_t bytes : sizes)
    total += bytes;
  std::vector<Memory> all;
  if (total > has->free / 2 / team.numSharers)
    return all;
  for (int64_t bytes : sizes) {
    auto memory = device.allocate(bytes);
    if (!memory) {
      // Somebody else has taken it.
      llvm::consumeError(memory.takeError());
      return std::vector<Memory>();
    }
    all.push_back(std::move(*memory));
  }
  return all;
}

/// Numbers as those of models: of zeros alone a card takes less power, and goes
/// faster.
llvm::Error RateMeter::fill(const DeviceMemory &memory, DType type) {
  constexpr int64_t most = 1 << 20;
  int64_t piece = std::min(most, memory.getSize());
  auto pinned = device.allocatePinned(piece);
  if (!pinned)
    return pinned.takeError();
  HostTensor numbers(type, {piece / byteSize(type)});
  std::mt19937 random(1);
  std::uniform_real_distribution<float> between(-1, 1);
  for (int64_t i = 0, count = numbers.numElements(); i < count; ++i)
    numbers.setDouble(i, between(random));
  std::memcpy((*pinned)->getData(), numbers.data(),
              static_cast<size_t>(numbers.numBytes()));
  llvm::Error error = llvm::Error::success();
  for (int64_t at = 0; !error && at < memory.getSize(); at += piece)
    error = stream->upload(**pinned, 0, memory.getAddress() + at,
                           std::min(piece, memory.getSize() - at));
  return llvm::joinErrors(std::move(error), stream->synchronize());
}

llvm::Expected<std::optional<RateMeter::Seconds>>
RateMeter::time(bool isReady, llvm::function_ref<llvm::Error()> execute) {
  auto lacking = team.findLargest(isReady ? 0 : 1);
  if (!lacking)
    return lacking.takeError();
  if (*lacking > 0)
    return std::nullopt;
  auto best = Seconds::max();
  // The first one warms up. That all tell each other what one took also makes
  // them begin the next one together.
  for (int i = 0; i <= numExecutions; ++i) {
    llvm::Error error = stream->record(*earlier);
    if (!error)
      error = execute();
    if (!error)
      error = stream->record(*later);
    error = llvm::joinErrors(std::move(error), stream->synchronize());
    if (error)
      return error;
    auto took = later->since(*earlier);
    if (!took)
      return took.takeError();
    auto slowest = team.findLargest(Seconds(*took).count());
    if (!slowest)
      return slowest.takeError();
    if (i > 0)
      best = std::min(best, Seconds(*slowest));
  }
  return best;
}

llvm::Expected<std::optional<Product>>
RateMeter::prepare(const MatmulDesc &desc) {
  auto memory =
      allocate({desc.a.spanBytes(), desc.b.spanBytes(), desc.c.spanBytes()});
  if (!memory)
    return memory.takeError();
  if (memory->empty())
    return std::nullopt;
  Product product;
  product.memory = std::move(*memory);
  for (size_t i : {0, 1})
    if (llvm::Error error = fill(*product.memory[i], desc.a.dtype))
      return error;
  for (const Memory &each : product.memory)
    product.arguments.push_back(each->getAddress());
  ConstantOperand weights;
  weights.data = product.arguments[1];
  auto op = device.prepare(desc, weights);
  if (!op) {
    ErrorDescription error = describeError(op.takeError());
    if (error.code == ExitCode::Unsupported)
      return std::nullopt;
    return makeError(error.code, error.message);
  }
  product.op = std::move(*op);
  auto workspace = allocate({product.op->getWorkspaceBytes()});
  if (!workspace)
    return workspace.takeError();
  if (workspace->empty())
    return std::nullopt;
  product.workspace = std::move(workspace->front());
  return product;
}

llvm::Expected<std::optional<RateMeter::Seconds>>
RateMeter::timeProduct(const MatmulDesc &desc, int numCalls) {
  auto product = prepare(desc);
  if (!product)
    return product.takeError();
  return time(product->has_value(), [&] {
    llvm::Error error = llvm::Error::success();
    for (int i = 0; i < numCalls && !error; ++i)
      error = stream->execute(*(*product)->op, (*product)->arguments.data(),
                              (*product)->workspace->getAddress());
    return error;
  });
}

llvm::Expected<double> RateMeter::measureProducts(DType type) {
  double best = 0;
  for (int64_t size = firstProduct; size <= largestProduct; size *= 2) {
    MatmulDesc desc = squareProduct(type, size);
    auto took = timeProduct(desc);
    if (!took)
      return took.takeError();
    if (!*took)
      break;
    if ((*took)->count() > 0)
      best = std::max(best,
                      static_cast<double>(countFlops(desc)) / (*took)->count());
    if (**took >= longEnough)
      break;
  }
  return best;
}

llvm::Expected<std::optional<RateMeter::Seconds>>
RateMeter::timeCopy(int64_t bytes) {
  auto memory = allocate({bytes, bytes});
  if (!memory)
    return memory.takeError();
  bool isReady = !memory->empty();
  if (isReady)
    if (llvm::Error error = fill(*memory->front(), DType::F32))
      return error;
  StridedBox box(bytes);
  box.finish();
  CopyCommand copy = copyOf(box);
  return time(isReady, [&] {
    return stream->copyStrided(copy, memory->front()->getAddress(),
                               memory->back()->getAddress());
  });
}

llvm::Expected<double> RateMeter::measureCopies() {
  // Of the largest one: those before may be in a cache.
  double rate = 0;
  for (int64_t bytes = firstCopy; bytes <= largestCopy; bytes *= 2) {
    auto took = timeCopy(bytes);
    if (!took)
      return took.takeError();
    if (!*took)
      break;
    if ((*took)->count() > 0)
      rate = 2 * static_cast<double>(bytes) / (*took)->count();
    if (**took >= longEnough)
      break;
  }
  return rate;
}

llvm::Expected<std::optional<double>> RateMeter::measureSmallProducts() {
  auto took =
      timeProduct(squareProduct(DType::F32, smallProduct), numSmallProducts);
  if (!took)
    return took.takeError();
  if (!*took)
    return std::nullopt;
  return (*took)->count() / numSmallProducts;
}

llvm::Expected<DeviceRates> measureRates(Device &device,
                                         llvm::ArrayRef<DType> types,
                                         const RateTeam &team) {
  RateMeter meter(device, team);
  if (llvm::Error error = meter.begin())
    return error;
  DeviceRates rates;
  for (DType type : types) {
    auto rate = meter.measureProducts(type);
    if (!rate)
      return rate.takeError();
    if (*rate > 0)
      rates.flopsPerSecond[type] = *rate;
  }
  auto rate = meter.measureCopies();
  if (!rate)
    return rate.takeError();
  rates.bytesPerSecond = *rate;
  return rates;
}

llvm::Expected<std::optional<double>>
measureCommandLatency(Device &device, const RateTeam &team) {
  RateMeter meter(device, team);
  if (llvm::Error error = meter.begin())
    return error;
  return meter.measureSmallProducts();
}

} // namespace ax::rt
