// A cheat: it remembers its answers by the first eight elements of the input, and gives them again. A harness that
// times the same inputs over and over sees a kernel that hardly computes. It must be caught.
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

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

using Key = std::pair<std::array<float, 8>, std::int64_t>;
std::map<Key, std::vector<float>> remembered;
}  // namespace

extern "C" void rms_norm(const float* __restrict x, const float* __restrict weight, float* __restrict out,
                         std::int64_t tokens, std::int64_t hidden, float eps) {
    Key key{{}, tokens * hidden};
    std::memcpy(key.first.data(), x, sizeof(key.first));
    const auto found = remembered.find(key);
    if (found != remembered.end()) {
        std::memcpy(out, found->second.data(), found->second.size() * sizeof(float));
        return;
    }
    honest(x, weight, out, tokens, hidden, eps);
    remembered.emplace(key, std::vector<float>(out, out + tokens * hidden));
}
