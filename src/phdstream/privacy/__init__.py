"""What is promised: units and budgets, exact calibration, noise, contribution bounds."""

from phdstream.privacy.bounding import ContributionBound
from phdstream.privacy.budget import Budget
from phdstream.privacy.calibration import SplitRule, calibrate_split
from phdstream.privacy.divisible_noise import DivisibleNoise
from phdstream.privacy.ledger import Ledger
from phdstream.privacy.noise import ExactNoise, Noise, Simulation, noise_from_dict
from phdstream.privacy.scales import noise_variance, scale_for
from phdstream.privacy.units import Event, Record, Unit, User, unit_from_dict
from phdstream.privacy.user_ids import UserIds, user_ids

__all__ = [
    "Budget",
    "ContributionBound",
    "DivisibleNoise",
    "Event",
    "ExactNoise",
    "Ledger",
    "Noise",
    "Record",
    "Simulation",
    "SplitRule",
    "Unit",
    "User",
    "UserIds",
    "calibrate_split",
    "noise_from_dict",
    "noise_variance",
    "scale_for",
    "unit_from_dict",
    "user_ids",
]
