// RMSNorm with many independent partial sums, so that the additions no longer wait for each other and the
// compiler can keep them in vector registers. No intrinsics: the same source serves x86-64 and aarch64.
#include <cmath>
#include <cstdint>

namespace {
constexpr std::int64_t kLanes = 64;

float sum_of_squares(const float* row, std::int64_t count) {
    float partial[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
        for (std::int64_t lane = 0; lane < kLanes; ++lane) {
            partial[lane] += row[i + lane] * row[i + lane];
        }
    }
    for (std::int64_t lane = 0; i < count; ++i, ++lane) {
        partial[lane] += row[i] * row[i];
    }
    for (std::int64_t width = kLanes / 2; width > 0; width /= 2) {
        for (std::int64_t lane = 0; lane < width; ++lane) {
            partial[lane] += partial[lane + width];
        }
    }
    return partial[0];
}
}  // namespace

extern "C" void rms_norm(const float* __restrict x, const float* __restrict weight, float* __restrict out,
                         std::int64_t tokens, std::int64_t hidden, float eps) {
    for (std::int64_t token = 0; token < tokens; ++token) {
        const float* __restrict row = x + token * hidden;
        float* __restrict result = out + token * hidden;
        const float scale = 1.0f / std::sqrt(sum_of_squares(row, hidden) / static_cast<float>(hidden) + eps);
        for (std::int64_t i = 0; i < hidden; ++i) {
            result[i] = row[i] * scale * weight[i];
        }
    }
}
