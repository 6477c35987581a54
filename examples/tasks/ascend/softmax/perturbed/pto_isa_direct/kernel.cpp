// Deliberately wrong: multiplies by the sum instead of dividing by it. The hit proof binds it in a candidate's place.
#include <pto/pto-inst.hpp>

#include <limits>

using namespace pto;

constexpr int kRows = 8;
constexpr int kPiece = 512;

using Rows = pto::Shape<1, 1, 1, DYNAMIC, DYNAMIC>;
using Steps = pto::Stride<1, 1, 1, DYNAMIC, 1>;
using Global = GlobalTensor<float, Rows, Steps>;
using Block = Tile<TileType::Vec, float, kRows, kPiece, BLayout::RowMajor, DYNAMIC, DYNAMIC>;
// One number a row: a column where rows meet it, the same eight numbers in a line where they are calculated with.
using Column = Tile<TileType::Vec, float, kRows, 1, BLayout::ColMajor, DYNAMIC, 1>;
using Line = Tile<TileType::Vec, float, 1, kRows, BLayout::RowMajor, 1, kRows>;

AICORE inline void load(Block& tile, __gm__ float* from, int rows, int columns, int step) {
    Global global(from, Rows(rows, columns), Steps(step));
    TLOAD(tile, global);
    pipe_barrier(PIPE_ALL);
}

AICORE inline void power(Block& tile, Block& shifted, Column& largest) {
    TROWEXPANDSUB(shifted, tile, largest);
    pipe_barrier(PIPE_ALL);
    TEXP(tile, shifted);
    pipe_barrier(PIPE_ALL);
}

extern "C" __global__ AICORE void softmax(__gm__ float* x, __gm__ float* out, int32_t m, int32_t n) {
    const int first = static_cast<int>(get_block_idx()) * kRows;
    const int rows = m - first < kRows ? m - first : kRows;
    if (rows <= 0) {
        return;
    }
    __gm__ float* from = x + static_cast<int64_t>(first) * n;
    __gm__ float* to = out + static_cast<int64_t>(first) * n;
    Column largest(rows), sum(rows), part(rows);
    TASSIGN(largest, 0x0);
    TASSIGN(sum, 0x100);
    TASSIGN(part, 0x200);
    Line largest_line, sum_line, part_line;
    TASSIGN(largest_line, 0x0);
    TASSIGN(sum_line, 0x100);
    TASSIGN(part_line, 0x200);
    TEXPANDS(largest_line, std::numeric_limits<float>::lowest());
    TEXPANDS(sum_line, 0.0f);
    TEXPANDS(part_line, 0.0f);
    for (int pass = 0; pass < 3; ++pass) {
        for (int start = 0; start < n; start += kPiece) {
            const int columns = n - start < kPiece ? n - start : kPiece;
            Block tile(rows, columns), shifted(rows, columns);
            TASSIGN(tile, 0x1000);
            TASSIGN(shifted, 0x8000);
            load(tile, from + start, rows, columns, n);
            if (pass == 0) {
                TROWMAX(part, tile, shifted);
                pipe_barrier(PIPE_ALL);
                TMAX(largest_line, largest_line, part_line);
                pipe_barrier(PIPE_ALL);
                continue;
            }
            power(tile, shifted, largest);
            if (pass == 1) {
                TROWSUM(part, tile, shifted);
                pipe_barrier(PIPE_ALL);
                TADD(sum_line, sum_line, part_line);
                pipe_barrier(PIPE_ALL);
                continue;
            }
            TROWEXPANDMUL(shifted, tile, sum);
            pipe_barrier(PIPE_ALL);
            Global global(to + start, Rows(rows, columns), Steps(n));
            TSTORE(global, shifted);
            pipe_barrier(PIPE_ALL);
        }
    }
}
