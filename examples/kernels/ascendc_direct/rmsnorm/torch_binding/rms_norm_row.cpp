// `akf_ops::rms_norm_row(x, weight, eps)` of torch: allocates the result and calls the operator through its aclnn.
//
// It runs inside the engine. The two phases of aclnn are looked up in the operator's own library, by the names that
// op_build gives them; a part that is not installed is said, never passed over.
#include <dlfcn.h>

#include <torch/library.h>
#include <torch_npu/csrc/core/npu/NPUStream.h>

struct aclTensor;
struct aclOpExecutor;

namespace {

constexpr int kFloat16 = 1, kAnyLayout = 2;  // ACL_FLOAT16, ACL_FORMAT_ND

using CreateTensor = aclTensor *(*)(const int64_t *, uint64_t, int, const int64_t *, int64_t, int, const int64_t *,
                                    uint64_t, void *);
using DestroyTensor = int (*)(const aclTensor *);
using Prepare = int (*)(const aclTensor *, const aclTensor *, double, const aclTensor *, uint64_t *, aclOpExecutor **);
using Run = int (*)(void *, uint64_t, aclOpExecutor *, aclrtStream);

template <typename Function>
Function found(const char *library, const char *name) {
    void *handle = dlopen(library, RTLD_LAZY);
    void *function = handle ? dlsym(handle, name) : nullptr;
    TORCH_CHECK(function, name, " is not in ", library, ": is the operator installed?");
    return reinterpret_cast<Function>(function);
}

struct Described {
    explicit Described(const at::Tensor &tensor) {
        static const auto create = found<CreateTensor>("libnnopbase.so", "aclCreateTensor");
        const auto sizes = tensor.sizes();
        const int64_t held = tensor.numel();
        value = create(sizes.data(), sizes.size(), kFloat16, tensor.strides().data(), 0, kAnyLayout, &held, 1,
                       tensor.data_ptr());
        TORCH_CHECK(value, "aclCreateTensor refused a tensor");
    }
    ~Described() {
        static const auto destroy = found<DestroyTensor>("libnnopbase.so", "aclDestroyTensor");
        destroy(value);
    }
    Described(const Described &) = delete;
    Described &operator=(const Described &) = delete;
    aclTensor *value;
};

void check(const at::Tensor &x, const at::Tensor &weight) {
    TORCH_CHECK(x.dim() == 2 && weight.dim() == 1 && weight.size(0) == x.size(1), "weight is not as wide as a row of x");
    TORCH_CHECK(x.scalar_type() == at::kHalf && weight.scalar_type() == at::kHalf, "x and weight are not float16");
}

at::Tensor on_device(const at::Tensor &x, const at::Tensor &weight, double eps) {
    check(x, weight);
    static const auto prepare = found<Prepare>("libcust_opapi.so", "aclnnRmsNormRowGetWorkspaceSize");
    static const auto run = found<Run>("libcust_opapi.so", "aclnnRmsNormRow");
    const at::Tensor rows = x.contiguous(), factors = weight.contiguous(), out = at::empty_like(rows);
    const Described in(rows), factor(factors), result(out);
    uint64_t bytes = 0;
    aclOpExecutor *executor = nullptr;
    int status = prepare(in.value, factor.value, eps, result.value, &bytes, &executor);
    TORCH_CHECK(status == 0, "aclnnRmsNormRowGetWorkspaceSize gave ", status);
    const at::Tensor workspace = at::empty({static_cast<int64_t>(bytes)}, x.options().dtype(at::kByte));
    status = run(workspace.data_ptr(), bytes, executor, c10_npu::getCurrentNPUStream().stream());
    TORCH_CHECK(status == 0, "aclnnRmsNormRow gave ", status);
    return out;
}

at::Tensor on_meta(const at::Tensor &x, const at::Tensor &weight, double) {
    check(x, weight);
    return at::empty_like(x);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(akf_ops, library) { library.def("rms_norm_row(Tensor x, Tensor weight, float eps) -> Tensor"); }
TORCH_LIBRARY_IMPL(akf_ops, PrivateUse1, library) { library.impl("rms_norm_row", &on_device); }
TORCH_LIBRARY_IMPL(akf_ops, Meta, library) { library.impl("rms_norm_row", &on_meta); }
