// RMSNorm over rows, a share of the rows a core, one row at a time: sums and scaling in float32.
#include "kernel_operator.h"

#include "rms_norm_row_tiling.h"

namespace {

class RmsNormRow {
public:
    __aicore__ inline RmsNormRow(GM_ADDR x, GM_ADDR weight, GM_ADDR out, const RmsNormRowTiling &tiling)
        : tiling_(tiling), padded_((tiling.width + 63) / 64 * 64) {
        x_.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(x), static_cast<uint64_t>(tiling.rows) * tiling.width);
        weight_.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(weight), tiling.width);
        out_.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(out), static_cast<uint64_t>(tiling.rows) * tiling.width);
        pipe_.InitBuffer(in_, 2, padded_ * sizeof(half));
        pipe_.InitBuffer(factors_, 2, padded_ * sizeof(half));
        pipe_.InitBuffer(results_, 2, padded_ * sizeof(half));
        pipe_.InitBuffer(wide_, padded_ * sizeof(float));
        pipe_.InitBuffer(square_, padded_ * sizeof(float));
        pipe_.InitBuffer(work_, padded_ * sizeof(float));
        pipe_.InitBuffer(sum_, 32);
    }

    __aicore__ inline void Process() {
        const uint32_t core = AscendC::GetBlockIdx();
        const uint32_t end = rms_norm_row_first(tiling_, core + 1);
        for (uint32_t row = rms_norm_row_first(tiling_, core); row < end; ++row) {
            Load(in_, x_[static_cast<uint64_t>(row) * tiling_.width]);
            Load(factors_, weight_);
            Compute();
            Store(row);
        }
    }

private:
    template <typename Queue>
    __aicore__ inline void Load(Queue &queue, const AscendC::GlobalTensor<half> &from) {
        AscendC::LocalTensor<half> to = queue.template AllocTensor<half>();
        const AscendC::DataCopyExtParams bytes{1, static_cast<uint32_t>(tiling_.width * sizeof(half)), 0, 0, 0};
        const AscendC::DataCopyPadExtParams<half> zeros{true, 0, 0, static_cast<half>(0)};
        AscendC::DataCopyPad(to, from, bytes, zeros);
        queue.EnQue(to);
    }

    __aicore__ inline void Compute() {
        AscendC::LocalTensor<half> x = in_.DeQue<half>(), factor = factors_.DeQue<half>();
        AscendC::LocalTensor<half> result = results_.AllocTensor<half>();
        AscendC::LocalTensor<float> wide = wide_.Get<float>(), square = square_.Get<float>();
        AscendC::LocalTensor<float> work = work_.Get<float>(), sum = sum_.Get<float>();
        const int32_t width = static_cast<int32_t>(tiling_.width);
        AscendC::Cast(wide, x, AscendC::RoundMode::CAST_NONE, width);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Mul(square, wide, wide, width);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::ReduceSum<float>(sum, square, work, width);
        const event_t ready = static_cast<event_t>(GetTPipePtr()->FetchEventID(AscendC::HardEvent::V_S));
        AscendC::SetFlag<AscendC::HardEvent::V_S>(ready);
        AscendC::WaitFlag<AscendC::HardEvent::V_S>(ready);
        const float mean = sum.GetValue(0) / static_cast<float>(tiling_.width);
        const float scale = 1.0f / sqrt(mean + tiling_.eps);
        AscendC::Muls(wide, wide, scale, width);
        AscendC::Cast(square, factor, AscendC::RoundMode::CAST_NONE, width);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Mul(wide, wide, square, width);
        AscendC::PipeBarrier<PIPE_V>();
        AscendC::Cast(result, wide, AscendC::RoundMode::CAST_RINT, width);
        results_.EnQue(result);
        in_.FreeTensor(x);
        factors_.FreeTensor(factor);
    }

    __aicore__ inline void Store(uint32_t row) {
        AscendC::LocalTensor<half> result = results_.DeQue<half>();
        const AscendC::DataCopyExtParams bytes{1, static_cast<uint32_t>(tiling_.width * sizeof(half)), 0, 0, 0};
        AscendC::DataCopyPad(out_[static_cast<uint64_t>(row) * tiling_.width], result, bytes);
        results_.FreeTensor(result);
    }

    const RmsNormRowTiling tiling_;
    const uint32_t padded_;
    AscendC::TPipe pipe_;
    AscendC::TQue<AscendC::TPosition::VECIN, 2> in_, factors_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 2> results_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> wide_, square_, work_, sum_;
    AscendC::GlobalTensor<half> x_, weight_, out_;
};

}  // namespace

extern "C" __global__ __aicore__ void rms_norm_row(GM_ADDR x, GM_ADDR weight, GM_ADDR out, GM_ADDR workspace,
                                                   GM_ADDR tiling) {
    (void)workspace;
    const auto *given = reinterpret_cast<const __gm__ RmsNormRowTiling *>(tiling);
    const RmsNormRowTiling copy{given->rows, given->width, given->cores, given->eps};
    RmsNormRow(x, weight, out, copy).Process();
}
