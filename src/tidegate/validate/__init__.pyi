from .points import Point as Point
from .points import Role as Role
from .points import load_points as load_points
