//! Fisher's exact test, one-sided, whether two counts come from one share. It is valid for few runs as well, and a recorded count is as
//! uncertain as the new one. Source: R. A. Fisher, The logic of inductive inference (1935).

use statrs::distribution::{DiscreteCDF, Hypergeometric};

/// A count: `so` of `of` trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    pub so: u64,
    pub of: u64,
}

/// The probability of a count as high as `found` or higher beside `other`, if both have the same share.
pub fn chance_of_more(found: Count, other: Count) -> f64 {
    found.so.checked_sub(1).map_or(1.0, |below| given_both(found, other).sf(below))
}

/// The probability of a count as low as `found` or lower beside `other`, if both have the same share.
pub fn chance_of_fewer(found: Count, other: Count) -> f64 {
    given_both(found, other).cdf(found.so)
}

/// The distribution of the first of two counts with the same share, given the sum of both.
fn given_both(found: Count, other: Count) -> Hypergeometric {
    let all = Hypergeometric::new(found.of + other.of, found.so + other.so, found.of);
    all.expect("a count is part of what it is of")
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::function::factorial::ln_factorial;

    fn count(so: u64, of: u64) -> Count {
        Count { so, of }
    }

    #[track_caller]
    fn near(found: f64, wanted: f64) {
        assert!((found / wanted - 1.0).abs() < 1e-6, "{found} for {wanted}");
    }

    /// The lady tasting tea, and R's `fisher.test(matrix(c(10, 2, 3, 15), 2), alternative = …)` of its manual's convictions.
    #[test]
    fn chances_are_the_published_ones() {
        near(chance_of_more(count(3, 4), count(1, 4)), 17.0 / 70.0);
        near(chance_of_more(count(4, 4), count(0, 4)), 1.0 / 70.0);
        near(chance_of_fewer(count(1, 4), count(3, 4)), 17.0 / 70.0);
        near(chance_of_fewer(count(2, 17), count(10, 13)), 0.000_465_180_943);
    }

    /// Over all outcomes of two binomial numbers of one share, an alarm at a level comes no more often than the level says.
    #[test]
    fn alarms_come_no_more_often_than_promised() {
        const LEVEL: f64 = 0.01;
        let binomial = |of: u64, share: f64| -> Vec<f64> {
            let ways = |so: u64| (ln_factorial(of) - ln_factorial(so) - ln_factorial(of - so)).exp();
            (0..=of).map(|so| ways(so) * share.powi(so as i32) * (1.0 - share).powi((of - so) as i32)).collect()
        };
        for share in [0.01, 0.05, 0.2, 0.5, 0.9] {
            for (new, recorded) in [(5, 60), (40, 60), (60, 10)] {
                let (chances, others) = (binomial(new, share), binomial(recorded, share));
                let mut alarms = 0.0;
                for (so, chance) in (0..).zip(&chances) {
                    for (other, likely) in (0..).zip(&others) {
                        let is_alarm = chance_of_more(count(so, new), count(other, recorded)) < LEVEL;
                        alarms += if is_alarm { chance * likely } else { 0.0 };
                    }
                }
                assert!(alarms <= LEVEL, "{alarms} at {share}");
            }
        }
    }

    #[test]
    fn a_cause_that_comes_a_hundred_times_as_often_is_seen_in_few_runs_and_one_that_comes_as_before_is_not() {
        let recorded = count(27, 17_337);
        assert!(chance_of_more(count(170, 400), recorded) < 1e-100);
        assert!(chance_of_more(count(5, 40), recorded) < 1e-4);
        assert!(chance_of_more(count(1, 40), recorded) > 1e-2);
        assert!(chance_of_more(count(27, 17_337), recorded) > 0.1);
        assert!(chance_of_fewer(count(0, 20_000), recorded) < 1e-4);
        assert!((chance_of_more(count(0, 400), recorded) - 1.0).abs() < 1e-9);
    }
}
