from . import plugins as plugins
from . import policy as policy
from . import record as record
from . import workload as workload
from .advice import Advice as Advice
from .advice import advise as advise
from .errors import PolicyError as PolicyError
from .errors import TidegateError as TidegateError
from .experiments import Comparison as Comparison
from .experiments import Run as Run
from .experiments import RunSpec as RunSpec
from .experiments import Sweep as Sweep
from .experiments import analyze as analyze
from .experiments import compare as compare
from .experiments import run as run
from .live import Arena as Arena
from .machine import Machine as Machine
from .machine import load_machine as load_machine
from .trace import Trace as Trace
from .trace import load_trace as load_trace
from .trace import save_trace as save_trace

__version__: str
