// What a kernel consists of, in CUDA and, for tests without a GPU, in C++ on the CPU. A kernel runs
// in blocks of kWarps warps. Its code is a sequence of loops over warps; in CUDA, each thread runs
// one iteration and a barrier follows, and on the CPU, one thread runs all iterations. Within them,
// loops over lanes do the same for the 32 lanes of a warp, whose registers are arrays on the CPU.
// Numbers in memory are f16, and sums are f32.
#ifdef __CUDACC_RTC__

#define DEVICE __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#define EACH_WARP(warp) \
  for (int warp = threadIdx.x / 32; warp < kWarps; warp += kWarps, __syncthreads())
#define EACH_LANE(lane) for (int lane = threadIdx.x % 32; lane < 32; lane += 32)
// Declares an array of registers, whose bounds in CUDA are exact.
#define REGISTERS(type, name, ...) type name __VA_ARGS__
#define EXACT(bound, most) (bound)
#define AT(name, lane) name

typedef unsigned short Half;
typedef unsigned int Pair;
typedef unsigned long long Word;

DEVICE float to_float(Half half) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(half));
  return result;
}

DEVICE Half to_half(float x) {
  Half result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result) : "f"(x));
  return result;
}

DEVICE Pair to_pair(float low, float high) {
  Pair result;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}

DEVICE float exponential(float x) { return __expf(x); }

DEVICE float inverse_root(float x) { return rsqrtf(x); }

// Adds the product of a 16 × 16 matrix with a 16 × 8 matrix. PTX's documentation of
// mma.m16n8k16 shows which lane holds which elements.
DEVICE void multiply_add(float (&sums)[4], const Pair (&left)[4], const Pair (&right)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}

struct Sum {
  DEVICE float operator()(float a, float b) const { return a + b; }
};
struct Most {
  DEVICE float operator()(float a, float b) const { return fmaxf(a, b); }
};

// Combines the values of each group of `Lanes` consecutive lanes.
template <int Lanes, typename Combine>
DEVICE void combine(float& x, Combine combined) {
  UNROLL for (int distance = Lanes / 2; distance > 0; distance /= 2) {
    x = combined(x, __shfl_xor_sync(0xffffffffu, x, distance));
  }
}

#else

#define DEVICE inline
#define UNROLL
// Warps and lanes run in both orders, so that a test can detect one that depends on another.
#define EACH_WARP(warp)                                                         \
  for (int warp##_th = 0, warp = ordered(0, kWarps); warp##_th < kWarps; \
       ++warp##_th, warp = ordered(warp##_th, kWarps))
#define EACH_LANE(lane)                                                \
  for (int lane##_th = 0, lane = ordered(0, 32); lane##_th < 32; \
       ++lane##_th, lane = ordered(lane##_th, 32))
#define REGISTERS(type, name, ...) type name __VA_ARGS__[32]
#define EXACT(bound, most) (most)
#define AT(name, lane) name[lane]

typedef std::uint16_t Half;
typedef std::uint32_t Pair;
typedef std::uint64_t Word;

thread_local bool is_reversed = false;

inline int ordered(int index, int count) { return is_reversed ? count - 1 - index : index; }

inline float to_float(Half half) { return c10::detail::fp16_ieee_to_fp32_value(half); }

inline Half to_half(float x) { return c10::detail::fp16_ieee_from_fp32_value(x); }

inline Pair to_pair(float low, float high) {
  return to_half(low) | static_cast<Pair>(to_half(high)) << 16;
}

inline float exponential(float x) { return std::exp(x); }

inline float inverse_root(float x) { return 1.0f / std::sqrt(x); }

inline void multiply_add(float (&sums)[4][32], const Pair (&left)[4][32],
                         const Pair (&right)[2][32]) {
  float rows[16][16];
  float columns[8][16];
  for (int lane = 0; lane < 32; ++lane) {
    const int group = lane / 4;
    for (int half = 0; half < 2; ++half) {
      const int at = lane % 4 * 2 + half;
      const auto element = [&](Pair pair) { return to_float(static_cast<Half>(pair >> 16 * half)); };
      rows[group][at] = element(left[0][lane]);
      rows[group + 8][at] = element(left[1][lane]);
      rows[group][at + 8] = element(left[2][lane]);
      rows[group + 8][at + 8] = element(left[3][lane]);
      columns[group][at] = element(right[0][lane]);
      columns[group][at + 8] = element(right[1][lane]);
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    for (int part = 0; part < 4; ++part) {
      const float* row = rows[lane / 4 + part / 2 * 8];
      const float* column = columns[lane % 4 * 2 + part % 2];
      for (int k = 0; k < 16; ++k) {
        sums[part][lane] += row[k] * column[k];
      }
    }
  }
}

struct Sum {
  float operator()(float a, float b) const { return a + b; }
};
struct Most {
  float operator()(float a, float b) const { return a > b ? a : b; }
};

template <int Lanes, typename Combine>
void combine(float (&x)[32], Combine combined) {
  for (int distance = Lanes / 2; distance > 0; distance /= 2) {
    float others[32];
    for (int lane = 0; lane < 32; ++lane) {
      others[lane] = x[lane ^ distance];
    }
    for (int lane = 0; lane < 32; ++lane) {
      x[lane] = combined(x[lane], others[lane]);
    }
  }
}

#endif

constexpr int kWarps = 8;
constexpr int kSquares = 64;

// Sixteen bytes, which a lane reads at once.
struct alignas(16) Pairs {
  Pair pairs[4];
};
struct alignas(16) Floats {
  float values[4];
};

DEVICE float low(Pair pair) { return to_float(static_cast<Half>(pair)); }

DEVICE float high(Pair pair) { return to_float(static_cast<Half>(pair >> 16)); }
