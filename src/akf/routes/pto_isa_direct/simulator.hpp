// Compiled in front of a kernel for the CPU simulator: which block runs, and on-chip memory of the SoC's size.
#pragma once
#include <pto/pto-inst.hpp>

extern "C" {
__attribute__((weak, used)) void akf_simulator_begin() {
    pto::NPU_MEMORY_INIT(pto::NPUArch::AKF_SIMULATED);
    pto::NPU_MEMORY_CLEAR();
}
__attribute__((weak, used)) void akf_simulator_block(unsigned block) {
    pto::cpu_sim::set_execution_context(block, 0, 1);
}
}
