"""BLK: Black-Scholes prices, again and again, at the size ObservUVM runs them."""

from __future__ import annotations

from tidegate import units
from tidegate.options import Option
from tidegate.workloads.blackscholes import BlackScholes
from tidegate.workloads.program import workload
from tidegate.workloads.suites import published_bytes


@workload("BLK")
class BLK(BlackScholes):
    """Prices of European options: BlackScholes of NVIDIA's CUDA samples, as in ``blackscholes``, at
    ObservUVM's size.

        opt = blockDim.x * blockIdx.x + threadIdx.x            128 threads, each two options
        d_CallResult[opt], d_PutResult[opt] = f(d_StockPrice[opt], d_OptionStrike[opt], d_OptionYears[opt])

    Operands: five vectors of equal length, walked in step. Grid order: from the first option to the
    last, in every iteration. References: 0 = stock, 1 = strike, 2 = years, 3 = call, 4 = put. Table
    II: "Black Scholes iterative algorithm", 10.0 GB.
    """

    bytes = Option(
        published_bytes("observuvm", "BLK"),
        "size of the five vectors together",
        parse=units.size,
        least=1,
    )
    iterations = Option(
        16,
        "how often all options are priced (a choice, the same as 2DC's and GMV's: the paper does not say, the sample's 512 "
        "are alike but for the first)",
        least=1,
    )
