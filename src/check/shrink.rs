//! Making a failing value smaller for as long as it fails: delta debugging, greedy and deterministic.
//!
//! 1. A *pass* proposes smaller values of one kind, the boldest first: a list without half of it, then without a quarter,
//!    down to single items; a number at its least, then halfway there, down to one less.
//! 2. The first proposal that still fails becomes the value.
//! 3. The same pass proposes anew from there, and continues at the same place. Proposals that were rejected before that place are not
//!    tried again.
//! 4. When the pass has nothing left, the next pass begins.
//! 5. When all passes have gone by and the value is as it was before them, it is minimal: no single proposal makes it
//!    smaller. Otherwise all passes begin again.
//! 6. The caller may end it after any try; the value then is the smallest so far.

/// One way to make a value smaller: the proposals from a value, boldest first.
pub(crate) type Pass<'a, T> = &'a dyn Fn(&T) -> Vec<T>;

/// The result of shrinking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShrinkResult<T> {
    /// The smallest value found that still fails.
    pub value: T,
    /// Proposals tried.
    pub tried: usize,
    /// True if it had to end before everything was tried.
    pub cut_short: bool,
}

/// Makes `value`, which fails, smaller for as long as `may_try` allows another try after a number of tries. `fails` returns true if a
/// proposal still shows the failure. `progress` receives the number of tries and the smallest value so far, after each try.
pub(crate) fn shrink<T: Clone + PartialEq>(
    value: T,
    passes: &[Pass<'_, T>],
    may_try: impl Fn(usize) -> bool,
    mut fails: impl FnMut(&T) -> bool,
    mut progress: impl FnMut(usize, &T),
) -> ShrinkResult<T> {
    let mut shrunk = ShrinkResult { value, tried: 0, cut_short: false };
    loop {
        let before = shrunk.value.clone();
        for pass in passes {
            if !exhaust(&mut shrunk, pass, &may_try, &mut fails, &mut progress) {
                shrunk.cut_short = true;
                return shrunk;
            }
        }
        if shrunk.value == before {
            return shrunk;
        }
    }
}

/// Runs one pass until none of its proposals fails. After a success the pass continues at the same place, and does not try the
/// rejected proposals again. Returns false if `may_try` ended it.
fn exhaust<T: Clone + PartialEq>(
    shrunk: &mut ShrinkResult<T>,
    pass: &dyn Fn(&T) -> Vec<T>,
    may_try: &impl Fn(usize) -> bool,
    fails: &mut impl FnMut(&T) -> bool,
    progress: &mut impl FnMut(usize, &T),
) -> bool {
    let mut skip = 0;
    loop {
        let proposals = pass(&shrunk.value);
        let Some((index, proposal)) =
            proposals.into_iter().enumerate().skip(skip).find(|(_, one)| *one != shrunk.value)
        else {
            return true;
        };
        if !may_try(shrunk.tried) {
            return false;
        }
        shrunk.tried += 1;
        let smaller = fails(&proposal);
        if smaller {
            shrunk.value = proposal;
            skip = index;
        } else {
            skip = index + 1;
        }
        progress(shrunk.tried, &shrunk.value);
    }
}

/// A list without one part of it, for all parts of half its length, then a quarter, down to single items.
pub(crate) fn without_parts<I: Clone>(list: &[I]) -> Vec<Vec<I>> {
    let mut proposals = Vec::new();
    let mut size = list.len();
    while size > 0 {
        for start in (0..list.len()).step_by(size) {
            let end = (start + size).min(list.len());
            proposals.push([&list[..start], &list[end..]].concat());
        }
        size /= 2;
    }
    proposals
}

/// Smaller numbers down to `least`, boldest first: `least` itself, then halfway, three quarters, and one less.
pub(crate) fn smaller(number: u32, least: u32) -> Vec<u32> {
    let mut proposals = Vec::new();
    let mut step = number.saturating_sub(least);
    while step > 0 {
        proposals.push(number - step);
        step /= 2;
    }
    proposals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_goes() {
        let items = |list: &Vec<u32>| without_parts(list);
        let numbers = |list: &Vec<u32>| -> Vec<Vec<u32>> {
            let each = list
                .iter()
                .enumerate()
                .flat_map(|(index, number)| smaller(*number, 0).into_iter().map(move |less| (index, less)));
            each.map(|(index, less)| {
                let mut list = list.clone();
                list[index] = less;
                list
            })
            .collect()
        };
        // Fails while an item of 10 or more stands before one of 3 or more.
        let fails = |list: &Vec<u32>| {
            let big = list.iter().position(|item| *item >= 10);
            big.is_some_and(|big| list[big + 1..].iter().any(|item| *item >= 3))
        };
        let start: Vec<u32> = (0..200).map(|index| index * 7 % 31).collect();
        let mut last = 0;
        let shrunk = shrink(
            start.clone(),
            &[&items, &numbers],
            |tried| tried < 2_000,
            fails,
            |tried, _| {
                assert_eq!(tried, last + 1, "progress is reported after each try");
                last = tried;
            },
        );
        assert_eq!((shrunk.value, shrunk.cut_short), (vec![10, 3], false));
        assert!(shrunk.tried < 200, "{}", shrunk.tried);
        let again = shrink(start.clone(), &[&items, &numbers], |tried| tried < 2_000, fails, |_, _| {});
        assert_eq!(again.tried, shrunk.tried, "the same every time");
        let short = shrink(start, &[&items, &numbers], |tried| tried < 5, fails, |_, _| {});
        assert!(short.cut_short && short.tried == 5 && fails(&short.value));
    }
}
