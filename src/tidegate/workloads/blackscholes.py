"""blackscholes: five vectors walked in step, again and again."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.trace.trace import Launch
from tidegate.workloads.elementwise import merged_blocks, one_pass
from tidegate.workloads.program import Derived, Launches, Space, footprint, workload

# bytes of each vector: 128 threads of one float2, that is two options, each
_THREAD_BLOCK = 128 * 8

# Operations per option, counted in BlackScholes_kernel.cuh: 18 in each of two cndGPU and 23 around
# them; exp, log, rsqrt and a division count as one each, and fabs, signs and comparisons as none.
_FLOPS = 2 * 18 + 23


@workload("blackscholes")
class BlackScholes(Derived):
    """Prices of European options: BlackScholes of NVIDIA's CUDA samples (5_Domain_Specific).

        opt = blockDim.x * blockIdx.x + threadIdx.x            128 threads, each two options
        d_CallResult[opt], d_PutResult[opt] =
            f(d_StockPrice[opt], d_OptionStrike[opt], d_OptionYears[opt])

    The sample prices the same options over and over, a launch each time (512 times; here
    ``iterations``). Access sites, in order of use: 0 = stock, 1 = strike, 2 = years, 3 = call, 4 =
    put.
    """

    bytes = footprint("1GiB", "size of the five vectors together")
    iterations = Option(4, "how often all options are priced", least=1)

    def sizes(self) -> dict[str, int]:
        options = self.bytes // 40 * 2  # a thread prices two
        return dict.fromkeys(("call", "put", "stock", "strike", "years"), 4 * options)

    def launches(self, space: Space) -> Launches:
        block, width = merged_blocks(space.geometry, _THREAD_BLOCK)
        order = ["stock", "strike", "years", "call", "put"]
        for _ in range(self.iterations):
            touches = one_pass(space, order, block, writes=["call", "put"])
            yield Launch("BlackScholesGPU", touches, width, intensity=_FLOPS / 20)
