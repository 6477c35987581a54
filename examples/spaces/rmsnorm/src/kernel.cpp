// RMSNorm, rendered from a template: vectors of @width@ floats, @chains@ independent sums, @unroll@ vectors a step of
// the second pass.
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {
constexpr std::int64_t kWidth = @width@, kChains = @chains@, kUnroll = @unroll@, kFold = @fold@;
typedef float Vector __attribute__((vector_size(kWidth * sizeof(float))));

inline Vector load(const float* from) {
    Vector value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

inline void store(float* to, Vector value) { std::memcpy(to, &value, sizeof value); }

float sum_of_squares(const float* row, std::int64_t count) {
    Vector partial[kChains] = {};
    std::int64_t i = 0;
    for (; i + kWidth * kChains <= count; i += kWidth * kChains) {
        for (std::int64_t chain = 0; chain < kChains; ++chain) {
            const Vector value = load(row + i + chain * kWidth);
            partial[chain] += value * value;
        }
    }
    for (std::int64_t chain = 1; chain < kChains; ++chain) {
        partial[0] += partial[chain];
    }
    float sum = 0.0f;
    for (std::int64_t lane = 0; lane < kWidth; ++lane) {
        sum += partial[0][lane];
    }
    for (; i < count; ++i) {
        sum += row[i] * row[i];
    }
    return sum;
}
}  // namespace

extern "C" void rms_norm(const float* __restrict x, const float* __restrict weight, float* __restrict out,
                         std::int64_t tokens, std::int64_t hidden, float eps) {
    for (std::int64_t first = 0; first < tokens; first += kFold) {
        const std::int64_t rows = tokens - first < kFold ? tokens - first : kFold;
        float scale[kFold];
        for (std::int64_t row = 0; row < rows; ++row) {
            const float mean = sum_of_squares(x + (first + row) * hidden, hidden) / static_cast<float>(hidden);
            scale[row] = 1.0f / std::sqrt(mean + eps);
        }
        std::int64_t i = 0;
        for (; i + kWidth * kUnroll <= hidden; i += kWidth * kUnroll) {
            Vector factor[kUnroll];
            for (std::int64_t step = 0; step < kUnroll; ++step) {
                factor[step] = load(weight + i + step * kWidth);
            }
            for (std::int64_t row = 0; row < rows; ++row) {
                const std::int64_t base = (first + row) * hidden + i;
                for (std::int64_t step = 0; step < kUnroll; ++step) {
                    store(out + base + step * kWidth, load(x + base + step * kWidth) * scale[row] * factor[step]);
                }
            }
        }
        for (; i < hidden; ++i) {
            for (std::int64_t row = 0; row < rows; ++row) {
                const std::int64_t at = (first + row) * hidden + i;
                out[at] = x[at] * scale[row] * weight[i];
            }
        }
    }
}
