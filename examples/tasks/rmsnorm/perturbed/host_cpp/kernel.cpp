// Deliberately wrong: scales by the mean square instead of its root. The hit proof binds it in a candidate's place.
#include <cstdint>

extern "C" void rms_norm(const float* x, const float* weight, float* out, std::int64_t tokens, std::int64_t hidden,
                         float eps) {
    for (std::int64_t token = 0; token < tokens; ++token) {
        const float* row = x + token * hidden;
        float* result = out + token * hidden;
        float sum = 0.0f;
        for (std::int64_t i = 0; i < hidden; ++i) {
            sum += row[i] * row[i];
        }
        const float scale = 0.5f / (sum / static_cast<float>(hidden) + eps);
        for (std::int64_t i = 0; i < hidden; ++i) {
            result[i] = row[i] * scale * weight[i];
        }
    }
}
