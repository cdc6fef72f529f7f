"""BLK: Black-Scholes prices, again and again, at the size of ObservUVM."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.workloads.blackscholes import BlackScholes
from tidegate.workloads.program import workload
from tidegate.workloads.suites import published_footprint


@workload("BLK")
class BLK(BlackScholes):
    """Prices of European options: ``blackscholes`` (BlackScholes of the CUDA samples).

        opt = blockDim.x * blockIdx.x + threadIdx.x            128 threads, each two options
        d_CallResult[opt], d_PutResult[opt] =
            f(d_StockPrice[opt], d_OptionStrike[opt], d_OptionYears[opt])

    Operands: five vectors of equal length, walked in step. Grid order: from the first option to the
    last, in every iteration. Access sites: 0 = stock, 1 = strike, 2 = years, 3 = call, 4 = put.
    Table II: "Black Scholes iterative algorithm", 10.0 GB, without a number of iterations; the
    sample's 512 are alike but for the first.
    """

    bytes = published_footprint("BLK", "size of the five vectors together")
    iterations = Option(
        16, "how often all options are priced (a choice: the paper does not say)", least=1
    )
