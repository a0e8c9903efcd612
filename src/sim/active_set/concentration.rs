//! Measures of how unevenly an amount is spread over its holders.

/// The Gini coefficient: half the mean absolute difference of two holders, over the mean. 0 if all have the same or nothing, and
/// (n - 1) / n if one of n has all. Amounts are not negative. Source: Gini, Variabilità e mutabilità, 1912.
pub(crate) fn gini(amounts: &[u64]) -> f64 {
    let mut sorted = amounts.to_vec();
    sorted.sort_unstable();
    let (count, total) = (sorted.len() as f64, sorted.iter().map(|amount| *amount as f64).sum::<f64>());
    if total <= 0.0 {
        return 0.0;
    }
    // With each pair counted once, the differences add up to the sum of (2i - n - 1) times the i-th smallest amount.
    let ranked = sorted.iter().zip(1..).map(|(amount, rank)| (2.0 * f64::from(rank) - count - 1.0) * *amount as f64);
    // For equal amounts, rounding may give a small negative number.
    (ranked.sum::<f64>() / (count * total)).max(0.0)
}

/// The Nakamoto coefficient: the least number of holders who have more than half of all together; 0 if there is nothing.
/// Source: Srinivasan and Lee, Quantifying Decentralization, 2017.
pub(crate) fn nakamoto(amounts: &[u64]) -> u32 {
    let mut sorted = amounts.to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let total: u128 = sorted.iter().map(|amount| u128::from(*amount)).sum();
    let (mut held, mut holders) = (0_u128, 0);
    for amount in sorted {
        if held * 2 > total {
            break;
        }
        held += u128::from(amount);
        holders += u32::from(total > 0);
    }
    holders
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn closed_forms() {
        // Eleven equal weights of this size sum to less than nothing.
        assert!((1..=101).all(|members| gini(&vec![1_136_354_545_454_545; members]) >= 0.0));
        for count in [1_usize, 2, 5, 51] {
            assert!(gini(&vec![7; count]).abs() < 1e-12);
            assert_eq!(nakamoto(&vec![7; count]), count as u32 / 2 + 1);
            let mut one = vec![0; count];
            one[count / 2] = 3;
            assert!((gini(&one) - (count - 1) as f64 / count as f64).abs() < 1e-12);
            assert_eq!(nakamoto(&one), 1);
            // 1 to n: (n - 1) / 3n, by the sums of whole numbers and of their squares.
            let ramp: Vec<u64> = (1..=count as u64).collect();
            assert!((gini(&ramp) - (count - 1) as f64 / (3 * count) as f64).abs() < 1e-12);
        }
        assert_eq!((gini(&[]), nakamoto(&[])), (0.0, 0));
        assert_eq!((gini(&[0, 0]), nakamoto(&[0, 0])), (0.0, 0));
        // Exactly half is not more than half.
        assert_eq!(nakamoto(&[2, 1, 1]), 2);
    }

    proptest! {
        /// By the definitions: all pairs, and all sets of holders.
        #[test]
        fn by_definition(amounts in prop::collection::vec(0_u64..1_000, 1..9)) {
            let (count, total) = (amounts.len(), amounts.iter().sum::<u64>());
            prop_assume!(total > 0);
            let pairs: u64 = amounts.iter().flat_map(|a| amounts.iter().map(move |b| a.abs_diff(*b))).sum();
            let expected = pairs as f64 / (2 * count as u64 * total) as f64;
            prop_assert!((gini(&amounts) - expected).abs() < 1e-9);
            let held = |set: u32| -> u64 { (0..count).filter(|place| set >> place & 1 == 1).map(|place| amounts[place]).sum() };
            let least = (0..1_u32 << count).filter(|set| held(*set) * 2 > total).map(u32::count_ones).min();
            prop_assert_eq!(Some(nakamoto(&amounts)), least);
        }
    }
}
