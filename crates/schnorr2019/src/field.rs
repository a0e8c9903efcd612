//! Numbers modulo p = 2^256 - 0x1000003d1, made for checking many signatures at once.
//!
//! Measured against the field of `k256`, whose squaring waits for itself: 18 ns instead of 27 one after the other, and
//! 12 ns where several independent ones overlap, as in [`square_roots`]. For public data only: reading and comparing
//! take a time that depends on the number.
//!
//! An element is any of the 256-bit numbers that stand for it, p more or less; only [`Element::normal`] is unique.

use std::ops::{Add, Mul, Neg, Sub};

/// A number modulo p, lowest limb first; not always below p.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element([u64; 4]);

/// 2^256 modulo p: what a carry out of the highest limb is worth.
const FOLD: u64 = 0x1_0000_03d1;
const P: [u64; 4] = [FOLD.wrapping_neg(), u64::MAX, u64::MAX, u64::MAX];

impl Element {
    pub(crate) const ZERO: Self = Self([0; 4]);
    pub(crate) const ONE: Self = Self([1, 0, 0, 0]);
    pub(crate) const SEVEN: Self = Self([7, 0, 0, 0]);

    /// From limbs, lowest first.
    pub(crate) const fn from_limbs(limbs: [u64; 4]) -> Self {
        Self(limbs)
    }

    /// From 32 bytes, highest first; nothing for p and above.
    pub(crate) fn from_bytes(bytes: &[u8; 32]) -> Option<Self> {
        let limbs = limbs(bytes);
        (!is_p_or_more(&limbs)).then_some(Self(limbs))
    }

    /// The one form below p.
    pub(crate) fn normal(self) -> [u64; 4] {
        if !is_p_or_more(&self.0) {
            return self.0;
        }
        // 2^256 - p is FOLD: adding it and letting the carry go takes p away.
        let (low, carry) = self.0[0].overflowing_add(FOLD);
        debug_assert!(carry, "a number from p on overflows");
        [low, 0, 0, 0]
    }

    pub(crate) fn is_zero(self) -> bool {
        self.0 == [0; 4] || self.0 == P
    }

    pub(crate) fn is_odd(self) -> bool {
        self.normal()[0] & 1 == 1
    }

    #[inline(always)]
    pub(crate) fn square(self) -> Self {
        let a = self.0;
        let mut r = [0; 8];
        // Each product of two different limbs once,
        let carry;
        (r[1], r[2], r[3], r[4]) = {
            let (one, c) = step(0, a[0], a[1], 0);
            let (two, c) = step(0, a[0], a[2], c);
            let (three, c) = step(0, a[0], a[3], c);
            (one, two, three, c)
        };
        (r[3], r[4], r[5]) = {
            let (three, c) = step(r[3], a[1], a[2], 0);
            let (four, c) = step(r[4], a[1], a[3], c);
            (three, four, c)
        };
        (r[5], carry) = step(r[5], a[2], a[3], 0);
        r[6] = carry;
        // all of it doubled,
        for limb in (1..8).rev() {
            r[limb] = r[limb] << 1 | r[limb - 1] >> 63;
        }
        // and each limb's own square.
        let mut carry = 0;
        for limb in 0..4 {
            let square = u128::from(a[limb]) * u128::from(a[limb]);
            let low = u128::from(r[2 * limb]) + u128::from(square as u64) + carry;
            let high = u128::from(r[2 * limb + 1]) + (square >> 64) + (low >> 64);
            (r[2 * limb], r[2 * limb + 1]) = (low as u64, high as u64);
            carry = high >> 64;
        }
        fold(&r)
    }

    /// Squared so many times.
    fn squared(self, times: usize) -> Self {
        (0..times).fold(self, |value, _| value.square())
    }

    pub(crate) fn double(self) -> Self {
        self + self
    }

    /// `1 / self`; zero for zero. Fermat's theorem, through the runs of ones in p - 2.
    pub(crate) fn inverse(self) -> Self {
        let [x2, x22, x223] = run_of_ones([self]).map(|[run]| run);
        let value = x223.squared(23) * x22;
        let value = value.squared(5) * self;
        let value = value.squared(3) * x2;
        value.squared(2) * self
    }
}

/// For each value the root that is itself a square, if there is a root. Several at once take little longer than one,
/// since each step of one fills the time another has to wait.
pub(crate) fn square_roots<const N: usize>(values: [Element; N]) -> [Option<Element>; N] {
    let [x2, x22, x223] = run_of_ones(values);
    let roots = multiply(&squared(x223, 23), &x22);
    let roots = squared(multiply(&squared(roots, 6), &x2), 2);
    std::array::from_fn(|n| (roots[n].square() - values[n]).is_zero().then_some(roots[n]))
}

/// The values to the powers of 2, 22 and 223 ones in binary, of which both p - 2 and (p + 1)/4 are made.
fn run_of_ones<const N: usize>(x1: [Element; N]) -> [[Element; N]; 3] {
    let x2 = multiply(&squared(x1, 1), &x1);
    let x3 = multiply(&squared(x2, 1), &x1);
    let x6 = multiply(&squared(x3, 3), &x3);
    let x9 = multiply(&squared(x6, 3), &x3);
    let x11 = multiply(&squared(x9, 2), &x2);
    let x22 = multiply(&squared(x11, 11), &x11);
    let x44 = multiply(&squared(x22, 22), &x22);
    let x88 = multiply(&squared(x44, 44), &x44);
    let x176 = multiply(&squared(x88, 88), &x88);
    let x220 = multiply(&squared(x176, 44), &x44);
    let x223 = multiply(&squared(x220, 3), &x3);
    [x2, x22, x223]
}

fn squared<const N: usize>(mut values: [Element; N], times: usize) -> [Element; N] {
    for _ in 0..times {
        values = values.map(Element::square);
    }
    values
}

fn multiply<const N: usize>(one: &[Element; N], other: &[Element; N]) -> [Element; N] {
    std::array::from_fn(|n| one[n] * other[n])
}

impl Mul for Element {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        let mut product = [0; 8];
        for low in 0..4 {
            let mut carry = 0;
            for high in 0..4 {
                (product[low + high], carry) = step(product[low + high], self.0[low], other.0[high], carry);
            }
            product[low + 4] = carry;
        }
        fold(&product)
    }
}

impl Add for Element {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let (mut sum, mut carry) = ([0; 4], 0);
        for (limb, (a, b)) in self.0.into_iter().zip(other.0).enumerate() {
            (sum[limb], carry) = step(a, b, 1, carry);
        }
        fold_carry(sum, carry)
    }
}

impl Sub for Element {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        let (difference, borrow) = subtract(&self.0, &other.0);
        let (difference, borrow) = subtract(&difference, &[u64::from(borrow) * FOLD, 0, 0, 0]);
        // A second borrow leaves a number so high that taking FOLD from its lowest limb cannot borrow again.
        let [low, rest @ ..] = difference;
        let [one, two, three] = rest;
        Self([low.wrapping_sub(u64::from(borrow) * FOLD), one, two, three])
    }
}

impl Neg for Element {
    type Output = Self;

    fn neg(self) -> Self {
        Self::ZERO - self
    }
}

#[inline(always)]
fn subtract(one: &[u64; 4], other: &[u64; 4]) -> ([u64; 4], bool) {
    let (mut difference, mut borrow) = ([0; 4], false);
    for limb in 0..4 {
        let (partial, first) = one[limb].overflowing_sub(other[limb]);
        let (full, second) = partial.overflowing_sub(u64::from(borrow));
        (difference[limb], borrow) = (full, first | second);
    }
    (difference, borrow)
}

/// `sum + one · other + carry` as low and high half; cannot overflow.
#[inline(always)]
fn step(sum: u64, one: u64, other: u64, carry: u64) -> (u64, u64) {
    let value = u128::from(sum) + u128::from(one) * u128::from(other) + u128::from(carry);
    (value as u64, (value >> 64) as u64)
}

/// 512 bits to 256: the upper half counts FOLD times.
#[inline(always)]
fn fold(product: &[u64; 8]) -> Element {
    let (mut sum, mut carry) = ([0; 4], 0);
    for limb in 0..4 {
        (sum[limb], carry) = step(product[limb], product[limb + 4], FOLD, carry);
    }
    fold_carry(sum, carry)
}

/// 256 bits and a carry of at most 34 bits: it counts FOLD times, which may carry once more, but then what is left is
/// so small that the last addition stays in the two lowest limbs.
#[inline(always)]
fn fold_carry(sum: [u64; 4], carry: u64) -> Element {
    let folded = u128::from(carry) * u128::from(FOLD);
    let mut value = u128::from(sum[0]) + u128::from(folded as u64);
    let low = value as u64;
    value = u128::from(sum[1]) + (folded >> 64) + (value >> 64);
    let one = value as u64;
    value = u128::from(sum[2]) + (value >> 64);
    let two = value as u64;
    value = u128::from(sum[3]) + (value >> 64);
    let (low, carry) = low.overflowing_add((value >> 64) as u64 * FOLD);
    Element([low, one.wrapping_add(u64::from(carry)), two, value as u64])
}

fn limbs(bytes: &[u8; 32]) -> [u64; 4] {
    std::array::from_fn(|limb| u64::from_be_bytes(bytes[24 - 8 * limb..32 - 8 * limb].try_into().expect("8 bytes")))
}

fn is_p_or_more(limbs: &[u64; 4]) -> bool {
    limbs[0] >= P[0] && limbs[1] & limbs[2] & limbs[3] == u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sha256_of;
    use k256::{FieldBytes, FieldElement};

    fn theirs(value: Element) -> FieldElement {
        let bytes: Vec<u8> = value.normal().iter().rev().flat_map(|limb| limb.to_be_bytes()).collect();
        let bytes: [u8; 32] = bytes.try_into().unwrap();
        FieldElement::from_bytes(&FieldBytes::from(bytes)).unwrap()
    }

    /// Numbers at the edges, where carries run through, and many others.
    fn values() -> Vec<Element> {
        let edge = |low: u64, rest: u64| Element([low, rest, rest, rest]);
        let mut values: Vec<Element> =
            [0, 1, 2, 7, FOLD - 1, FOLD, FOLD + 1, P[0] - 1, P[0], P[0] + 1, u64::MAX - 1, u64::MAX]
                .into_iter()
                .flat_map(|low| [edge(low, 0), edge(low, u64::MAX)])
                .collect();
        values.extend((0..40u32).map(|seed| Element(limbs(&sha256_of(&[&seed.to_le_bytes()])))));
        values
    }

    #[test]
    fn arithmetic_agrees_with_another_field() {
        let check = |ours: Element, other: FieldElement| assert_eq!(theirs(ours), other.normalize());
        for a in values() {
            check(-a, theirs(a).negate(1));
            check(a.square(), theirs(a).square());
            check(a.double(), theirs(a).double());
            let inverse: Option<FieldElement> = theirs(a).invert().into();
            check(a.inverse(), inverse.unwrap_or(FieldElement::ZERO));
            assert_eq!(a.is_zero(), bool::from(theirs(a).is_zero()));
            assert_eq!(a.is_odd(), bool::from(theirs(a).is_odd()));
            let root: Option<FieldElement> = theirs(a).sqrt().into();
            let [ours, again] = square_roots([a, a]);
            assert_eq!(ours.map(theirs), root.map(|root| root.normalize()));
            assert_eq!(again.map(theirs), ours.map(theirs));
            for b in values() {
                check(a * b, theirs(a) * theirs(b));
                check(a + b, theirs(a) + theirs(b));
                check(a - b, theirs(a) + theirs(b).negate(1));
            }
        }
    }

    #[test]
    fn numbers_from_p_on_are_not_read() {
        assert!(Element::from_bytes(&[0xff; 32]).is_none());
        assert!(Element::from_bytes(&[0x7f; 32]).is_some());
    }
}
