"""Srad: speckles removed from a picture; two kernels walk six matrices in every iteration."""

from __future__ import annotations

from tidegate.options import Option
from tidegate.papers.cppe.applications import srad
from tidegate.papers.gmt.applications.page_visits import whole_objects
from tidegate.workloads.program import Launches, Space, workload
from tidegate.workloads.suites import published_footprint

_THREAD_BLOCK = 16 * 16 * 4  # bytes of each matrix


@workload("gmt-Srad")
class Srad(srad.Srad):
    """Speckle-reducing anisotropic diffusion: ``cppe-SRD`` (srad_v2 of Rodinia) as page visits.

    At each point p of an n × n picture of floats, with its neighbours n, s, w, e; two launches an
    iteration:

        srad_cuda_1   N, S, W, E[p] = J[n], J[s], J[w], J[e] - J[p];  C[p] = f(those, J[p])
        srad_cuda_2   J[p] += λ (C[p] N[p] + C[s] S[p] + C[p] W[p] + C[e] E[p])

    Operands: six matrices. Grid order: from the first row to the last; halos make no visits (see
    ``page_visits``). Access sites: the matrices as they are allocated. Table 2: reuse 83.38 %, I/O
    270 GB. Three iterations visit a page 6 times, 83.33 %; the footprint is then 45 GB. That is
    less than the tiers' 80 GB, although 3.1 says all applications have twice as much.
    """

    bytes = published_footprint("gmt-Srad", "size of the six matrices")
    iterations = Option(3, "iterations (a choice: 3, from Table 2's 83.38 %)", least=1)

    def launches(self, space: Space) -> Launches:
        for _ in range(self.iterations):
            yield whole_objects(space, "srad_cuda_1", "J", "CEWSN", _THREAD_BLOCK)
            yield whole_objects(space, "srad_cuda_2", "CNSWE", "J", _THREAD_BLOCK)
