// Softmax over rows: the largest element first, so that no power overflows.
#include <cmath>
#include <cstdint>

extern "C" void softmax(const float* __restrict x, float* __restrict out, std::int64_t rows, std::int64_t columns) {
    for (std::int64_t row = 0; row < rows; ++row) {
        const float* __restrict value = x + row * columns;
        float* __restrict result = out + row * columns;
        float most = value[0];
        for (std::int64_t i = 1; i < columns; ++i) {
            most = value[i] > most ? value[i] : most;
        }
        float sum = 0.0f;
        for (std::int64_t i = 0; i < columns; ++i) {
            result[i] = std::exp(value[i] - most);
            sum += result[i];
        }
        for (std::int64_t i = 0; i < columns; ++i) {
            result[i] /= sum;
        }
    }
}
