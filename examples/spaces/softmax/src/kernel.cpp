// Softmax over rows, rendered from a template: vectors of @width@ floats, @chains@ at a time, powers of e by a polynomial
// of degree @degree@ after range reduction.
#include <cstdint>
#include <cstring>
#include <limits>

namespace {
constexpr std::int64_t kWidth = @width@, kChains = @chains@, kDegree = @degree@, kStep = kWidth * kChains;
constexpr bool kReciprocal = @reciprocal@;
typedef float Vector __attribute__((vector_size(kWidth * sizeof(float))));
typedef std::int32_t Whole __attribute__((vector_size(kWidth * sizeof(std::int32_t))));

inline Vector load(const float* from) {
    Vector value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

inline void store(float* to, Vector value) { std::memcpy(to, &value, sizeof value); }

inline Vector power(Vector x) {  // x <= 0
    constexpr float kTaylor[] = {1.0f,        1.0f,         1.0f / 2,    1.0f / 6,     1.0f / 24,
                                 1.0f / 120,  1.0f / 720,   1.0f / 5040, 1.0f / 40320};
    constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest whole number in the low bits
    x = x < -87.0f ? Vector{} - 87.0f : x;
    const Vector shifted = x * 1.44269504088896341f + kRound;
    const Vector whole = shifted - kRound;
    const Vector rest = (x - whole * 0.693359375f) - whole * -2.12194440e-4f;
    Vector sum = Vector{} + kTaylor[kDegree];
    for (std::int64_t term = kDegree - 1; term >= 0; --term) {
        sum = sum * rest + kTaylor[term];
    }
    Whole bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits - 0x4B400000 + 127) << 23;
    Vector scale;
    std::memcpy(&scale, &bits, sizeof scale);
    return sum * scale;
}
}  // namespace

extern "C" void softmax(const float* __restrict x, float* __restrict out, std::int64_t rows, std::int64_t columns) {
    const std::int64_t whole = columns - columns % kStep;
    for (std::int64_t row = 0; row < rows; ++row) {
        const float* __restrict value = x + row * columns;
        float* __restrict result = out + row * columns;
        float rest[kStep];
        for (std::int64_t i = 0; i < kStep; ++i) {
            rest[i] = whole + i < columns ? value[whole + i] : -std::numeric_limits<float>::infinity();
        }
        Vector most[kChains], sum[kChains] = {};
        for (std::int64_t chain = 0; chain < kChains; ++chain) {
            most[chain] = load(rest + chain * kWidth);
        }
        for (std::int64_t i = 0; i < whole; i += kStep) {
            for (std::int64_t chain = 0; chain < kChains; ++chain) {
                const Vector here = load(value + i + chain * kWidth);
                most[chain] = here > most[chain] ? here : most[chain];
            }
        }
        float top = most[0][0];
        for (std::int64_t chain = 0; chain < kChains; ++chain) {
            for (std::int64_t lane = 0; lane < kWidth; ++lane) {
                top = most[chain][lane] > top ? most[chain][lane] : top;
            }
        }
        for (std::int64_t i = 0; i < whole; i += kStep) {
            for (std::int64_t chain = 0; chain < kChains; ++chain) {
                const Vector here = power(load(value + i + chain * kWidth) - top);
                store(result + i + chain * kWidth, here);
                sum[chain] += here;
            }
        }
        float total = 0.0f;
        for (std::int64_t chain = 0; chain < kChains; ++chain) {
            store(rest + chain * kWidth, power(load(rest + chain * kWidth) - top));
            for (std::int64_t lane = 0; lane < kWidth; ++lane) {
                total += sum[chain][lane];
            }
        }
        for (std::int64_t i = 0; whole + i < columns; ++i) {
            result[whole + i] = rest[i];
            total += rest[i];
        }
        const float factor = 1.0f / total;
        for (std::int64_t i = 0; i < whole; i += kStep) {
            for (std::int64_t chain = 0; chain < kChains; ++chain) {
                const Vector here = load(result + i + chain * kWidth);
                store(result + i + chain * kWidth, kReciprocal ? here * factor : here / total);
            }
        }
        for (std::int64_t i = whole; i < columns; ++i) {
            result[i] = kReciprocal ? result[i] * factor : result[i] / total;
        }
    }
}
