// Deliberately wrong: counts the first piece twice.
// The hit proof binds it in a candidate's place.
#include <pto/pto-inst.hpp>

using namespace pto;

constexpr int kTile = 64;

using Extent = pto::Shape<1, 1, 1, DYNAMIC, DYNAMIC>;
using Steps = pto::Stride<1, 1, 1, DYNAMIC, 1>;
using Global = GlobalTensor<half, Extent, Steps>;
using Result = GlobalTensor<float, Extent, Steps>;
using Near = Tile<TileType::Mat, half, kTile, kTile, BLayout::ColMajor, DYNAMIC, DYNAMIC, SLayout::RowMajor, 512>;
using Left = TileLeft<half, kTile, kTile, DYNAMIC, DYNAMIC>;
using Right = TileRight<half, kTile, kTile, DYNAMIC, DYNAMIC>;
using Sum = TileAcc<float, kTile, kTile, DYNAMIC, DYNAMIC>;

AICORE inline int upto(int size, int start) {
    return size - start < kTile ? size - start : kTile;
}

extern "C" __global__ AICORE void matmul(__gm__ half* a, __gm__ half* b, __gm__ float* c, int32_t m, int32_t n,
                                         int32_t k) {
    const int across = (n + kTile - 1) / kTile;
    const int block = static_cast<int>(get_block_idx());
    const int row = block / across * kTile;
    const int column = block % across * kTile;
    if (row >= m) {
        return;
    }
    const int rows = upto(m, row);
    const int columns = upto(n, column);
    Sum sum(rows, columns);
    TASSIGN(sum, 0x0);
    for (int start = 0; start < k; start += kTile) {
        const int inner = upto(k, start);
        Near near_a(rows, inner), near_b(inner, columns);
        Left left(rows, inner);
        Right right(inner, columns);
        TASSIGN(near_a, 0x0);
        TASSIGN(near_b, 0x4000);
        TASSIGN(left, 0x0);
        TASSIGN(right, 0x0);
        Global global_a(a + static_cast<int64_t>(row) * k + start, Extent(rows, inner), Steps(k));
        Global global_b(b + static_cast<int64_t>(start) * n + column, Extent(inner, columns), Steps(n));
        TLOAD(near_a, global_a);
        TLOAD(near_b, global_b);
        pipe_barrier(PIPE_ALL);
        TMOV(left, near_a);
        TMOV(right, near_b);
        pipe_barrier(PIPE_ALL);
        if (start == 0) {
            TMATMUL(sum, left, right);
            pipe_barrier(PIPE_ALL);
            TMATMUL_ACC(sum, sum, left, right);
        } else {
            TMATMUL_ACC(sum, sum, left, right);
        }
        pipe_barrier(PIPE_ALL);
    }
    Result global_c(c + static_cast<int64_t>(row) * n + column, Extent(rows, columns), Steps(n));
    TSTORE(global_c, sum);
    pipe_barrier(PIPE_ALL);
}
