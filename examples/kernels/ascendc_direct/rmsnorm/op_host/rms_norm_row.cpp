// Host side of the operator RmsNormRow: tiling, inference of shape and type, registration.
//
// It runs inside the engine, for every shape that is served. A shape that cannot be tiled is refused, never cut.
#include "register/op_def_registry.h"
#include "tiling/platform/platform_ascendc.h"

#include "rms_norm_row_tiling.h"

namespace optiling {
static ge::graphStatus Tiling(gert::TilingContext *context) {
    const auto &x = context->GetInputShape(0)->GetStorageShape();
    const auto &weight = context->GetInputShape(1)->GetStorageShape();
    const float *eps = context->GetAttrs()->GetFloat(0);
    if (x.GetDimNum() != 2 || weight.GetDimNum() != 1 || weight.GetDim(0) != x.GetDim(1) || eps == nullptr) {
        return ge::GRAPH_FAILED;
    }
    if (x.GetDim(0) > UINT32_MAX || x.GetDim(1) > UINT32_MAX) {
        return ge::GRAPH_FAILED;
    }
    const platform_ascendc::PlatformAscendC platform(context->GetPlatformInfo());
    uint64_t memory = 0;
    platform.GetCoreMemSize(platform_ascendc::CoreMemType::UB, memory);
    const auto rows = static_cast<uint32_t>(x.GetDim(0)), width = static_cast<uint32_t>(x.GetDim(1));
    const auto tiling = rms_norm_row_tiling(rows, width, *eps, platform.GetCoreNumAiv(), memory);
    if (tiling.cores == 0) {
        return ge::GRAPH_FAILED;
    }
    *context->GetTilingData<RmsNormRowTiling>() = tiling;
    context->SetBlockDim(tiling.cores);
    context->GetWorkspaceSizes(1)[0] = 0;
    return ge::GRAPH_SUCCESS;
}
}  // namespace optiling

namespace ge {
static graphStatus InferShape(gert::InferShapeContext *context) {
    *context->GetOutputShape(0) = *context->GetInputShape(0);
    return GRAPH_SUCCESS;
}

static graphStatus InferDataType(gert::InferDataTypeContext *context) {
    context->SetOutputDataType(0, context->GetInputDataType(0));
    return GRAPH_SUCCESS;
}
}  // namespace ge

namespace ops {
class RmsNormRow : public OpDef {
public:
    explicit RmsNormRow(const char *name) : OpDef(name) {
        this->Input("x").ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});
        this->Input("weight").ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});
        this->Output("out").ParamType(REQUIRED).DataType({ge::DT_FLOAT16}).Format({ge::FORMAT_ND});
        this->Attr("eps").AttrType(OPTIONAL).Float(1e-6f);
        this->SetInferShape(ge::InferShape).SetInferDataType(ge::InferDataType);
        this->AICore().SetTiling(optiling::Tiling).AddConfig("ascend910b").AddConfig("ascend910_93");
    }
};
OP_ADD(RmsNormRow);
}  // namespace ops
