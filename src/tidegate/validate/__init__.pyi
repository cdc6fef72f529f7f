from .ledger import Card as Card
from .ledger import Row as Row
from .ledger import Validation as Validation
from .ledger import validate as validate
from .points import Point as Point
from .points import Role as Role
from .points import load_points as load_points
