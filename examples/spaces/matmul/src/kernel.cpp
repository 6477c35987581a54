// A product of two matrices, rendered from a template: tiles of @rows@ rows by @vectors@ vectors of @width@ floats that stay
// in registers, @unroll@ steps of the inner sum at a time.
#include <cstdint>
#include <cstring>

namespace {
constexpr std::int64_t kRows = @rows@, kVectors = @vectors@, kWidth = @width@, kUnroll = @unroll@;
constexpr std::int64_t kColumns = kVectors * kWidth;
typedef float Vector __attribute__((vector_size(kWidth * sizeof(float))));

inline Vector load(const float* from) {
    Vector value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

inline void store(float* to, Vector value) { std::memcpy(to, &value, sizeof value); }

template <std::int64_t Rows>
inline void step(Vector (&sum)[Rows][kVectors], const float* a, const float* b, std::int64_t k) {
    Vector factor[kVectors];
    for (std::int64_t j = 0; j < kVectors; ++j) {
        factor[j] = load(b + j * kWidth);
    }
    for (std::int64_t i = 0; i < Rows; ++i) {
        for (std::int64_t j = 0; j < kVectors; ++j) {
            sum[i][j] += factor[j] * a[i * k];
        }
    }
}

template <std::int64_t Rows>
void tile(const float* __restrict a, const float* __restrict b, float* __restrict c, std::int64_t n, std::int64_t k) {
    Vector sum[Rows][kVectors] = {};
    std::int64_t inner = 0;
    for (; inner + kUnroll <= k; inner += kUnroll) {
        for (std::int64_t next = 0; next < kUnroll; ++next) {
            step<Rows>(sum, a + inner + next, b + (inner + next) * n, k);
        }
    }
    for (; inner < k; ++inner) {
        step<Rows>(sum, a + inner, b + inner * n, k);
    }
    for (std::int64_t i = 0; i < Rows; ++i) {
        for (std::int64_t j = 0; j < kVectors; ++j) {
            store(c + i * n + j * kWidth, sum[i][j]);
        }
    }
}

template <std::int64_t Rows>
void band(const float* __restrict a, const float* __restrict b, float* __restrict c, std::int64_t n, std::int64_t k) {
    std::int64_t column = 0;
    for (; column + kColumns <= n; column += kColumns) {
        tile<Rows>(a, b + column, c + column, n, k);
    }
    for (; column < n; ++column) {
        for (std::int64_t row = 0; row < Rows; ++row) {
            float sum = 0.0f;
            for (std::int64_t inner = 0; inner < k; ++inner) {
                sum += a[row * k + inner] * b[inner * n + column];
            }
            c[row * n + column] = sum;
        }
    }
}
}  // namespace

extern "C" void matmul(const float* __restrict a, const float* __restrict b, float* __restrict c, std::int64_t m,
                       std::int64_t n, std::int64_t k) {
    std::int64_t row = 0;
    for (; row + kRows <= m; row += kRows) {
        band<kRows>(a + row * k, b, c + row * n, n, k);
    }
    for (; row < m; ++row) {
        band<1>(a + row * k, b, c + row * n, n, k);
    }
}
