// Deliberately wrong: the gate takes the place of the other half.
#include <cmath>
#include <cstdint>

extern "C" void swiglu(const float* __restrict x, float* __restrict out, std::int64_t tokens, std::int64_t hidden) {
    for (std::int64_t token = 0; token < tokens; ++token) {
        const float* __restrict gate = x + token * 2 * hidden;
        const float* __restrict up = gate + hidden;
        float* __restrict result = out + token * hidden;
        for (std::int64_t i = 0; i < hidden; ++i) {
            result[i] = gate[i] / (1.0f + std::exp(-gate[i])) * gate[i];
        }
    }
}
