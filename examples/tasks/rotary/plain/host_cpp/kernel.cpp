// The rotary embedding as it is written down: pairs half a head apart.
#include <cstdint>

extern "C" void rotary(const float* __restrict x, const float* __restrict cosine, const float* __restrict sine,
                       float* __restrict out, std::int64_t tokens, std::int64_t heads, std::int64_t half) {
    for (std::int64_t token = 0; token < tokens; ++token) {
        for (std::int64_t head = 0; head < heads; ++head) {
            const float* __restrict first = x + (token * heads + head) * 2 * half;
            float* __restrict result = out + (token * heads + head) * 2 * half;
            for (std::int64_t i = 0; i < half; ++i) {
                const float across = cosine[token * half + i];
                const float along = sine[token * half + i];
                result[i] = first[i] * across - first[half + i] * along;
                result[half + i] = first[half + i] * across + first[i] * along;
            }
        }
    }
}
