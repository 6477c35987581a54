// What the host decides for one shape and the device reads: shared by both, so that they cannot disagree.
#pragma once
#include <cstdint>

#ifdef __CCE_AICORE__
#define RMS_NORM_ROW_BOTH __aicore__ inline
#else
#define RMS_NORM_ROW_BOTH inline
#endif

struct RmsNormRowTiling {
    uint32_t rows;
    uint32_t width;
    uint32_t cores;
    float eps;
};

// Bytes of a core's memory that a row of this width takes: x and weight twice, the result twice, three float copies.
RMS_NORM_ROW_BOTH uint64_t rms_norm_row_bytes(uint32_t width) {
    const uint64_t padded = (static_cast<uint64_t>(width) + 63) / 64 * 64;
    return padded * (2 * 2 + 2 * 2 + 2 * 2 + 3 * 4) + 256;
}

// The first row of a core; that of the next one ends its share. Shares differ by one row at the most.
RMS_NORM_ROW_BOTH uint32_t rms_norm_row_first(const RmsNormRowTiling &tiling, uint32_t core) {
    return static_cast<uint32_t>(static_cast<uint64_t>(tiling.rows) * core / tiling.cores);
}

// The tiling of one shape, no core without a row; `cores` is 0 where a row does not fit a core's memory.
RMS_NORM_ROW_BOTH RmsNormRowTiling rms_norm_row_tiling(uint32_t rows, uint32_t width, float eps, uint32_t cores,
                                                       uint64_t memory) {
    const bool fits = rows > 0 && width > 0 && cores > 0 && rms_norm_row_bytes(width) <= memory;
    const uint32_t used = rows < cores ? rows : cores;
    return RmsNormRowTiling{rows, width, fits ? used : 0, eps};
}
