// A product of two matrices: rows of the second are added up, so that memory is read in its order.
#include <cstdint>

extern "C" void matmul(const float* __restrict a, const float* __restrict b, float* __restrict c, std::int64_t m,
                       std::int64_t n, std::int64_t k) {
    for (std::int64_t row = 0; row < m; ++row) {
        float* __restrict result = c + row * n;
        for (std::int64_t column = 0; column < n; ++column) {
            result[column] = 0.0f;
        }
        for (std::int64_t inner = 0; inner < k; ++inner) {
            const float factor = a[row * k + inner];
            for (std::int64_t column = 0; column < n; ++column) {
                result[column] += factor * b[inner * n + column];
            }
        }
    }
}
