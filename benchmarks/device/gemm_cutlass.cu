// Kernels of CUTLASS 4.2 behind the C interface of gemm_hopper.cu, for gemm_cutlass.py: f16, row-major a, weights [n, k], row-major d.
// One part of a build is one configuration with the epilogues of EPILOGUES (a mask): visitor trees, which round once.
#include <cuda_runtime.h>
#include <stdio.h>

#include <map>
#include <string>

#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/epilogue/thread/activation.h"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/default_gemm_universal_with_visitor.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/gemm/threadblock/threadblock_swizzle_streamk.h"
#include "cutlass/util/packed_stride.hpp"
#include "cutlass/epilogue/threadblock/fusion/visitors.hpp"  // needs those before it
#include "ait/math.h"
#include "gemm_call.h"

namespace {

using Half = cutlass::half_t;
using cute::_0, cute::_1;
using cutlass::gemm::GemmShape;
constexpr auto kRound = cutlass::FloatRoundStyle::round_to_nearest;
enum Epilogue { kNone, kBiasGelu, kBiasResidual, kBias, kResidual, kBiasTanh };

constexpr size_t kWorkspaceBytes = size_t(256) << 20;
void* workspace() {
  static void* memory = [] {
    void* made = nullptr;
    cudaMalloc(&made, kWorkspaceBytes);
    return made;
  }();
  return memory;
}

int32_t failed(const char* what, cutlass::Status status) {
  fprintf(stderr, "CUTLASS: %s: %s\n", what, cutlassGetStatusString(status));
  return 1;
}

/// Our own gelu as a function of their visitors.
template <class T>
struct OurGelu;

template <>
struct OurGelu<float> {
  CUTLASS_HOST_DEVICE float operator()(float x) const { return ait::gelu_narrow(x); }
};

template <int N>
struct OurGelu<cutlass::Array<float, N>> {
  CUTLASS_HOST_DEVICE cutlass::Array<float, N> operator()(const cutlass::Array<float, N>& x) const {
    cutlass::Array<float, N> y;
    CUTLASS_PRAGMA_UNROLL
    for (int i = 0; i < N; ++i) y[i] = ait::gelu_narrow(x[i]);
    return y;
  }
};

#if defined(TILE)
namespace fusion = cutlass::epilogue::fusion;
using Tile = TILE;
using Cluster = CLUSTER;
#if defined(CUTLASS_ENABLE_GDC_FOR_SM90)
constexpr bool kDependent = true;  // the kernel waits for the launch before where it must
#else
constexpr bool kDependent = false;
#endif

template <template <class> class F, class Out>
using Compute = fusion::Sm90Compute<F, Out, float, kRound>;
using Accumulator = fusion::Sm90AccFetch;
using BiasRow = fusion::Sm90RowBroadcast<0, Tile, Half, float>;
using Residual = fusion::Sm90SrcFetch<Half>;
template <class Out>
using BiasSum = fusion::Sm90EVT<Compute<cutlass::plus, Out>, Accumulator, BiasRow>;

/// The tree of an epilogue, and its arguments: children first, then the function.
template <int kEpilogue>
struct Tree;
template <>
struct Tree<kNone> {
  using Type = fusion::Sm90EVT<Compute<cutlass::epilogue::thread::Identity, Half>, Accumulator>;
  static typename Type::Arguments arguments(const Half*) { return {{}, {}}; }
};
template <>
struct Tree<kBias> {
  using Type = BiasSum<Half>;
  static typename Type::Arguments arguments(const Half* bias) { return {{}, {bias}, {}}; }
};
template <template <class> class F>
struct Activated {
  using Type = fusion::Sm90EVT<Compute<F, Half>, BiasSum<float>>;
  static typename Type::Arguments arguments(const Half* bias) { return {{{}, {bias}, {}}, {}}; }
};
template <>
struct Tree<kBiasGelu> : Activated<OurGelu> {};
template <>
struct Tree<kBiasTanh> : Activated<cutlass::epilogue::thread::GELU_taylor> {};
template <>
struct Tree<kResidual> {
  using Type = fusion::Sm90EVT<Compute<cutlass::plus, Half>, Accumulator, Residual>;
  static typename Type::Arguments arguments(const Half*) { return {{}, {}, {}}; }
};
template <>
struct Tree<kBiasResidual> {
  using Type = fusion::Sm90EVT<Compute<cutlass::plus, Half>, BiasSum<float>, Residual>;
  static typename Type::Arguments arguments(const Half* bias) { return {{{}, {bias}, {}}, {}, {}}; }
};

template <int kEpilogue>
struct Kernel {
  using RowMajor = cutlass::layout::RowMajor;
  static constexpr bool kReadsC = kEpilogue == kBiasResidual || kEpilogue == kResidual;
  using C = std::conditional_t<kReadsC, Half, void>;
  using Finish =
      typename cutlass::epilogue::collective::CollectiveBuilder<cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
                                                                cutlass::epilogue::collective::EpilogueTileAuto, float, float, C, RowMajor, 8,
                                                                Half, RowMajor, 8, cutlass::epilogue::FINISH,
                                                                typename Tree<kEpilogue>::Type>::CollectiveOp;
  using Products = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Half, RowMajor, 8, Half, cutlass::layout::ColumnMajor, 8, float, Tile, Cluster,
      cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Finish::SharedStorage))>,
      cutlass::gemm::SCHEDULE>::CollectiveOp;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<
      cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Products, Finish, cutlass::gemm::SCHEDULER>>;

  static int32_t run(const GemmCall& c) {
    const auto shape = cute::make_shape(int(c.m), int(c.n), int(c.k), 1);
    using Strides = typename Gemm::GemmKernel;
    auto stride = [](auto kind, int64_t pitch) {
      decltype(kind) s{};
      cute::get<0>(s) = pitch;
      return s;
    };
    const auto residual = stride(typename Strides::StrideC{}, c.ldr);
    typename Gemm::Arguments arguments{cutlass::gemm::GemmUniversalMode::kGemm,
                                       shape,
                                       {static_cast<const Half*>(c.a), stride(typename Strides::StrideA{}, c.lda),
                                        static_cast<const Half*>(c.b), stride(typename Strides::StrideB{}, c.ldb)},
                                       {Tree<kEpilogue>::arguments(static_cast<const Half*>(c.bias)), static_cast<const Half*>(c.residual),
                                        residual, static_cast<Half*>(c.d), stride(typename Strides::StrideD{}, c.ldd)}};
    static const int multiprocessors = cutlass::KernelHardwareInfo::query_device_multiprocessor_count(0);
    arguments.hw_info.sm_count = multiprocessors;
    arguments.scheduler.max_swizzle_size = c.tile > 0 ? c.tile : 1;
    if constexpr (std::is_same_v<cutlass::gemm::SCHEDULER, cutlass::gemm::StreamKScheduler>) arguments.scheduler.splits = c.split;
    if (Gemm::get_workspace_size(arguments) > kWorkspaceBytes) return failed("workspace", cutlass::Status::kErrorWorkspaceNull);
    if (const auto status = Gemm::can_implement(arguments); status != cutlass::Status::kSuccess) return failed("can_implement", status);
    Gemm gemm;
    const auto status = gemm.run(arguments, workspace(), static_cast<cudaStream_t>(c.stream), nullptr, kDependent);
    return status == cutlass::Status::kSuccess ? 0 : failed("run", status);
  }
};

#else  // sm_80: cp.async and mma.sync
namespace visitor = cutlass::epilogue::threadblock;
constexpr int kEpilogueStages = 1;
using Places = visitor::OutputTileThreadLayout<BLOCK, WARPS, Half, 8, kEpilogueStages>;
template <template <class> class F, class Out>
using Compute = visitor::VisitorCompute<F, Out, float, kRound>;
using Accumulator = visitor::VisitorAccFetch;
using Pitch = cute::Stride<int64_t, _1, int64_t>;
using BiasRow = visitor::VisitorRowBroadcast<Places, Half, cute::Stride<_0, _1, int32_t>>;
using Residual = visitor::VisitorAuxLoad<Places, Half, Pitch>;
template <class Out>
using BiasSum = visitor::Sm80EVT<Compute<cutlass::plus, Out>, Accumulator, BiasRow>;

struct Matrix {
  Half* data;
  int64_t pitch;
};

template <int kEpilogue>
struct Tree;
template <>
struct Tree<kBias> {
  using Type = BiasSum<Half>;
  static typename Type::Arguments arguments(Half* bias, Matrix) { return {{}, {bias, Half(0), {}}, {}}; }
};
template <>
struct Tree<kBiasGelu> {
  using Type = visitor::Sm80EVT<Compute<OurGelu, Half>, BiasSum<float>>;
  static typename Type::Arguments arguments(Half* bias, Matrix) { return {{{}, {bias, Half(0), {}}, {}}, {}}; }
};
template <>
struct Tree<kBiasResidual> {
  using Type = visitor::Sm80EVT<Compute<cutlass::plus, Half>, BiasSum<float>, Residual>;
  static typename Type::Arguments arguments(Half* bias, Matrix r) {
    return {{{}, {bias, Half(0), {}}, {}}, {r.data, Half(0), {r.pitch, _1{}, 0}}, {}};
  }
};

template <int kEpilogue>
struct Kernel {
  using RowMajor = cutlass::layout::RowMajor;
  using Store = visitor::VisitorAuxStore<Places, Half, kRound, Pitch>;
  using Finish = visitor::Sm80EVT<Store, typename Tree<kEpilogue>::Type>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<typename cutlass::gemm::kernel::DefaultGemmWithVisitor<
      Half, RowMajor, cutlass::ComplexTransform::kNone, 8, Half, cutlass::layout::ColumnMajor, cutlass::ComplexTransform::kNone, 8, Half,
      RowMajor, 8, float, float, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80, BLOCK, WARPS, GemmShape<16, 8, 16>, Finish,
      cutlass::gemm::threadblock::SWIZZLE, STAGES, cutlass::arch::OpMultiplyAdd, kEpilogueStages>::GemmKernel>;

  static int32_t run(const GemmCall& c) {
    // Set up once for each problem: what stream-K counts in its workspace is zero again after a launch.
    static std::map<std::string, Gemm> ready;
    GemmCall problem = c;
    problem.stream = nullptr;
    const auto [place, is_new] = ready.try_emplace(std::string(reinterpret_cast<const char*>(&problem), sizeof problem));
    Gemm& gemm = place->second;
    const auto stream = static_cast<cudaStream_t>(c.stream);
    if (is_new) {
      auto pointer = [](const void* p) { return static_cast<Half*>(const_cast<void*>(p)); };
      typename Finish::Arguments finish{Tree<kEpilogue>::arguments(pointer(c.bias), {pointer(c.residual), c.ldr}),
                                        {pointer(c.d), {c.ldd, _1{}, 0}}};
      const cutlass::gemm::GemmCoord size(int(c.m), int(c.n), int(c.k));
      typename Gemm::Arguments arguments(cutlass::gemm::GemmUniversalMode::kGemm, size, c.split, finish, pointer(c.a), pointer(c.b), nullptr,
                                         nullptr, c.m * c.k, c.n * c.k, 0, 0, c.lda, c.ldb, 0, 0);
      if (const auto status = gemm.can_implement(arguments); status != cutlass::Status::kSuccess) return failed("can_implement", status);
      if (Gemm::get_workspace_size(arguments) > kWorkspaceBytes) return failed("workspace", cutlass::Status::kErrorWorkspaceNull);
      if (const auto status = gemm.initialize(arguments, workspace(), stream); status != cutlass::Status::kSuccess) return failed("initialize", status);
    }
    const auto status = gemm.run(stream);
    return status == cutlass::Status::kSuccess ? 0 : failed("run", status);
  }
};
#endif

template <int kEpilogue>
int32_t run(const GemmCall& c) {
  if constexpr ((EPILOGUES >> kEpilogue & 1) != 0) {
    return Kernel<kEpilogue>::run(c);
  } else {
    return 2;
  }
}

}  // namespace

extern "C" int32_t NAME(const GemmCall* c) {
  switch (c->epilogue) {
    case kNone: return run<kNone>(*c);
    case kBiasGelu: return run<kBiasGelu>(*c);
    case kBiasResidual: return run<kBiasResidual>(*c);
    case kBias: return run<kBias>(*c);
    case kResidual: return run<kResidual>(*c);
    default: return run<kBiasTanh>(*c);
  }
}
