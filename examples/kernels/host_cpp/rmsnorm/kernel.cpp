// RMSNorm as it is written down: one sum after the other, in single precision.
#include <cmath>
#include <cstdint>

extern "C" void rms_norm(const float* __restrict x, const float* __restrict weight, float* __restrict out,
                         std::int64_t tokens, std::int64_t hidden, float eps) {
    for (std::int64_t token = 0; token < tokens; ++token) {
        const float* __restrict row = x + token * hidden;
        float* __restrict result = out + token * hidden;
        float sum = 0.0f;
        for (std::int64_t i = 0; i < hidden; ++i) {
            sum += row[i] * row[i];
        }
        const float scale = 1.0f / std::sqrt(sum / static_cast<float>(hidden) + eps);
        for (std::int64_t i = 0; i < hidden; ++i) {
            result[i] = row[i] * scale * weight[i];
        }
    }
}
