// RMSNorm that keeps its sum in double precision and divides in the second pass: correct, and slower.
#include <cmath>
#include <cstdint>

extern "C" void rms_norm(const float* x, const float* weight, float* out, std::int64_t tokens, std::int64_t hidden,
                         float eps) {
    for (std::int64_t token = 0; token < tokens; ++token) {
        const float* row = x + token * hidden;
        float* result = out + token * hidden;
        double sum = 0.0;
        for (std::int64_t i = 0; i < hidden; ++i) {
            sum += static_cast<double>(row[i]) * static_cast<double>(row[i]);
        }
        const double root = std::sqrt(sum / static_cast<double>(hidden) + static_cast<double>(eps));
        for (std::int64_t i = 0; i < hidden; ++i) {
            result[i] = static_cast<float>(static_cast<double>(row[i]) / root * static_cast<double>(weight[i]));
        }
    }
}
