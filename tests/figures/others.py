"""Statistics of sweeps by libraries that share no code with the program or with the rest of these tests: lifelines and statsmodels.

The confidence sequence is drawn anew in numpy.
"""

import math
import warnings

import numpy
from scipy import special, stats

from compare import Comparison

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import lifelines
    from statsmodels.duration.survfunc import survdiff

CONFIDENCE = 0.95
# Studies, looks in each, and runs between two looks: those of docs/figures.md.
STUDIES, LOOKS, RUNS = 10_000, 30, 20
# Four standard deviations of the number of wrong studies at the rate that is allowed.
MARGIN = 4 * math.sqrt(0.05 * 0.95 / STUDIES)


def survival(times, censored):
    """Kaplan's and Meier's estimate by lifelines: (time, share, low, high) of each event, by Greenwood's log-log interval."""
    seen = [not is_censored for is_censored in censored]
    fitted = lifelines.KaplanMeierFitter(alpha=1 - CONFIDENCE).fit(times, seen)
    share = fitted.survival_function_.iloc[:, 0]
    low, high = (fitted.confidence_interval_.iloc[:, column] for column in (0, 1))
    events = sorted({time for time, is_seen in zip(times, seen) if is_seen})
    return [(time, share[time], low[time], high[time]) for time in events]


def log_rank(pairs):
    """The stratified log-rank statistic by statsmodels, with a stratum for each pair: of (time, event) of both runs."""
    times = numpy.array([time for pair in pairs for time, _ in pair])
    seen = numpy.array([int(event) for pair in pairs for _, event in pair])
    groups = numpy.array([side for _ in pairs for side in (0, 1)])
    strata = numpy.array([number for number, _ in enumerate(pairs) for _ in (0, 1)])
    return float(survdiff(times, seen, groups, strata=strata)[0])


def excluded(sums, counts, mean):
    """Where the mixture of likelihood ratios reaches 20, by the formula of docs/figures.md in numpy."""
    mixed = special.betaln(0.5 + sums, 0.5 + counts - sums) - special.betaln(0.5, 0.5)
    return mixed - sums * math.log(mean) - (counts - sums) * math.log1p(-mean) >= math.log(1 / (1 - CONFIDENCE))


def wilson_excluded(sums, counts, mean):
    """Where the score test of one look refuses the mean, which is where Wilson's interval does not hold it."""
    deviation = numpy.sqrt(counts * mean * (1 - mean))
    return abs(sums - counts * mean) > stats.norm.ppf(0.5 + CONFIDENCE / 2) * deviation


def wrong_share(draw, mean, rule):
    """The share of studies without an effect in which some look excludes the true mean."""
    sums = draw((STUDIES, LOOKS, RUNS)).sum(axis=2).cumsum(axis=1)
    counts = RUNS * numpy.arange(1, LOOKS + 1)
    return float(rule(sums, counts, mean).any(axis=1).mean())


def false_rates():
    """The false rate of the sequence in A/A studies, for shares and for values between 0 and 1, and that of an interval for one look."""
    comparison, random = Comparison(), numpy.random.default_rng(24)
    shares = lambda mean: lambda size: (random.random(size) < mean).astype(float)
    studies = {f"shares of {mean}": (shares(mean), mean) for mean in (0.02, 0.3, 0.5)}
    studies["even values"] = (random.random, 0.5)
    studies["beta values"] = (lambda size: random.beta(0.5, 2.0, size), 0.2)
    for where, (draw, mean) in studies.items():
        found = wrong_share(draw, mean, excluded)
        comparison.value("until_ci.false_rate", f"{where}: {found}", found <= 0.05 + MARGIN, True)
    # The test can fail: half the evidence that the sequence asks for is not enough, and an interval for one look is wrong more often.
    weak = lambda sums, counts, mean: excluded(sums * 2, counts * 2, mean)
    found = wrong_share(shares(0.3), 0.3, weak)
    comparison.value("until_ci.false_rate_planted", f"doubled runs: {found}", found > 0.05 + MARGIN, True)
    found = wrong_share(shares(0.3), 0.3, wilson_excluded)
    comparison.value("until_ci.false_rate_of_one_look", f"{found}", 0.24 < found < 0.34, True)
    return comparison
