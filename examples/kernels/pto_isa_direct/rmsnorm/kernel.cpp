// RMSNorm over rows, eight rows a block; sums in float32. Columns are taken in pieces of kPiece, any number of them.
#include <pto/pto-inst.hpp>

using namespace pto;

constexpr int kRows = 8;
constexpr int kPiece = 512;

using Rows = pto::Shape<1, 1, 1, DYNAMIC, DYNAMIC>;
using Steps = pto::Stride<1, 1, 1, DYNAMIC, 1>;
using Global = GlobalTensor<half, Rows, Steps>;
using Half = Tile<TileType::Vec, half, kRows, kPiece, BLayout::RowMajor, DYNAMIC, DYNAMIC>;
using Wide = Tile<TileType::Vec, float, kRows, kPiece, BLayout::RowMajor, DYNAMIC, DYNAMIC>;
using HalfRow = Tile<TileType::Vec, half, 1, kPiece, BLayout::RowMajor, DYNAMIC, DYNAMIC>;
using WideRow = Tile<TileType::Vec, float, 1, kPiece, BLayout::RowMajor, DYNAMIC, DYNAMIC>;
// One number a row: a column where rows meet it, the same eight numbers in a line where they are calculated with.
using Column = Tile<TileType::Vec, float, kRows, 1, BLayout::ColMajor, DYNAMIC, 1>;
using Line = Tile<TileType::Vec, float, 1, kRows, BLayout::RowMajor, 1, kRows>;

AICORE inline void load(Half& narrow, Wide& wide, __gm__ half* from, int rows, int columns, int step) {
    Global global(from, Rows(rows, columns), Steps(step));
    TLOAD(narrow, global);
    pipe_barrier(PIPE_ALL);
    TCVT(wide, narrow, RoundMode::CAST_NONE);
    pipe_barrier(PIPE_ALL);
}

extern "C" __global__ AICORE void rms_norm(__gm__ half* x, __gm__ half* weight, __gm__ half* out, int32_t t, int32_t n,
                                           float eps) {
    const int first = static_cast<int>(get_block_idx()) * kRows;
    const int rows = t - first < kRows ? t - first : kRows;
    if (rows <= 0) {
        return;
    }
    Column part(rows);
    Line part_line, total;
    TASSIGN(part, 0x0);
    TASSIGN(part_line, 0x0);
    TASSIGN(total, 0x100);
    TEXPANDS(total, 0.0f);
    TEXPANDS(part_line, 1.0f);
    for (int start = 0; start < n; start += kPiece) {
        const int columns = n - start < kPiece ? n - start : kPiece;
        Half narrow(rows, columns);
        Wide wide(rows, columns), square(rows, columns), scratch(rows, columns);
        TASSIGN(narrow, 0x1000);
        TASSIGN(wide, 0x4000);
        TASSIGN(square, 0x8000);
        TASSIGN(scratch, 0xC000);
        load(narrow, wide, x + static_cast<int64_t>(first) * n + start, rows, columns, n);
        TMUL(square, wide, wide);
        pipe_barrier(PIPE_ALL);
        TROWSUM(part, square, scratch);
        pipe_barrier(PIPE_ALL);
        TADD(total, total, part_line);
        pipe_barrier(PIPE_ALL);
    }
    TMULS(total, total, 1.0f / static_cast<float>(n));
    pipe_barrier(PIPE_ALL);
    TADDS(total, total, eps);
    pipe_barrier(PIPE_ALL);
    TRSQRT(part_line, total);
    pipe_barrier(PIPE_ALL);
    for (int start = 0; start < n; start += kPiece) {
        const int columns = n - start < kPiece ? n - start : kPiece;
        Half narrow(rows, columns);
        Wide wide(rows, columns), scaled(rows, columns);
        HalfRow factor(1, columns);
        WideRow wide_factor(1, columns);
        TASSIGN(narrow, 0x1000);
        TASSIGN(wide, 0x4000);
        TASSIGN(scaled, 0x8000);
        TASSIGN(factor, 0xC000);
        TASSIGN(wide_factor, 0xD000);
        load(narrow, wide, x + static_cast<int64_t>(first) * n + start, rows, columns, n);
        Global global_factor(weight + start, Rows(1, columns), Steps(n));
        TLOAD(factor, global_factor);
        pipe_barrier(PIPE_ALL);
        TCVT(wide_factor, factor, RoundMode::CAST_NONE);
        TROWEXPANDMUL(scaled, wide, part);
        pipe_barrier(PIPE_ALL);
        TCOLEXPANDMUL(wide, scaled, wide_factor);
        pipe_barrier(PIPE_ALL);
        TCVT(narrow, wide, RoundMode::CAST_RINT);
        pipe_barrier(PIPE_ALL);
        Global global_out(out + static_cast<int64_t>(first) * n + start, Rows(rows, columns), Steps(n));
        TSTORE(global_out, narrow);
        pipe_barrier(PIPE_ALL);
    }
}
