// A cheat: the call returns at once and a thread goes on with the work. A harness that looks at the results later sees
// the right answer and the time of an empty call. It must be caught.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <thread>

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

void honest(const float* __restrict x, const float* __restrict weight, float* __restrict out, std::int64_t tokens,
            std::int64_t hidden, float eps) {
    for (std::int64_t token = 0; token < tokens; ++token) {
        const float* __restrict row = x + token * hidden;
        float* __restrict result = out + token * hidden;
        const float scale = 1.0f / std::sqrt(sum_of_squares(row, hidden) / static_cast<float>(hidden) + eps);
        for (std::int64_t i = 0; i < hidden; ++i) {
            result[i] = row[i] * scale * weight[i];
        }
    }
}
}  // namespace

extern "C" void rms_norm(const float* __restrict x, const float* __restrict weight, float* __restrict out,
                         std::int64_t tokens, std::int64_t hidden, float eps) {
    std::thread([=] {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        honest(x, weight, out, tokens, hidden, eps);
    }).detach();
}
