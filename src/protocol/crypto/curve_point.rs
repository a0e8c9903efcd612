//! Points of the curve as pairs of field elements, with the few operations that checking many signatures needs.
//!
//! For public data only. Field elements are left in the lazy form of the library between operations: sums grow a
//! "magnitude" that a multiplication brings back to 1, and each line below keeps it within what the library allows.

use crate::protocol::PublicKey;
use k256::{FieldBytes, FieldElement};

/// A point other than infinity.
#[derive(Clone, Copy)]
pub(super) struct Affine {
    x: FieldElement,
    y: FieldElement,
}

impl Affine {
    /// A place holder that is no point.
    pub(super) const NOWHERE: Self = Self { x: FieldElement::ZERO, y: FieldElement::ZERO };

    pub(super) fn generator() -> Self {
        let generator = secp256k1::constants::GENERATOR_X;
        let y = element(&secp256k1::constants::GENERATOR_Y).expect("a constant below p");
        Self { x: element(&generator).expect("a constant below p"), y }
    }

    /// The point of a compressed key; nothing if it is off the curve.
    pub(super) fn of_key(key: &PublicKey) -> Option<Self> {
        let [sign @ (2 | 3), x @ ..] = key.as_bytes() else { return None };
        let x = element(x)?;
        let y = root(&x)?.normalize();
        Some(Self { x, y: if bool::from(y.is_odd()) == (*sign == 3) { y } else { y.negate(1).normalize() } })
    }

    /// The point with this x whose y is a square; nothing if there is none.
    pub(super) fn with_square_y(x: &[u8; 32]) -> Option<Self> {
        let x = element(x)?;
        root(&x).map(|y| Self { x, y: y.normalize() })
    }

    pub(super) fn negated(&self) -> Self {
        Self { x: self.x, y: self.y.negate(1).normalize_weak() }
    }

    /// λ times the point.
    pub(super) fn endomorphism(&self) -> Self {
        Self { x: self.x * beta(), y: self.y }
    }

    /// `other.x - self.x`, zero for equal and opposite points.
    pub(super) fn x_difference(&self, other: &Self) -> FieldElement {
        other.x + self.x.negate(1)
    }

    /// The sum, given the inverse of [`Self::x_difference`].
    pub(super) fn add(&self, other: &Self, inverse: &FieldElement) -> Self {
        let slope = (other.y + self.y.negate(1)) * inverse;
        let x = (slope.square() + (self.x + other.x).negate(2)).normalize_weak();
        let y = (slope * (self.x + x.negate(1)) + self.y.negate(1)).normalize_weak();
        Self { x, y }
    }
}

/// `x = X/Z²`, `y = Y/Z³`; infinity has `Z = 0`.
#[derive(Clone, Copy)]
pub(super) struct Jacobian {
    x: FieldElement,
    y: FieldElement,
    z: FieldElement,
}

impl Jacobian {
    pub(super) const INFINITY: Self = Self { x: FieldElement::ONE, y: FieldElement::ONE, z: FieldElement::ZERO };

    pub(super) fn is_infinity(&self) -> bool {
        self.z.normalizes_to_zero().into()
    }

    /// Twice the point; there is no point of order two.
    pub(super) fn double(&self) -> Self {
        let squared = self.y.square();
        let shared = (self.x * squared).mul_single(4).normalize_weak();
        let slope = self.x.square().mul_single(3).normalize_weak();
        let x = (slope.square() + shared.double().negate(2)).normalize_weak();
        let fourth = squared.square().mul_single(8).normalize_weak();
        let y = (slope * (shared + x.negate(1)) + fourth.negate(1)).normalize_weak();
        Self { x, y, z: (self.y * self.z).double().normalize_weak() }
    }

    pub(super) fn add_affine(&self, other: &Affine) -> Self {
        if self.is_infinity() {
            return Self { x: other.x, y: other.y, z: FieldElement::ONE };
        }
        let square = self.z.square();
        self.add_scaled(self.x, self.y, other.x * square, other.y * square * self.z, self.z)
    }

    pub(super) fn add(&self, other: &Self) -> Self {
        if self.is_infinity() {
            return *other;
        }
        if other.is_infinity() {
            return *self;
        }
        let (here, there) = (self.z.square(), other.z.square());
        let (x1, x2) = (self.x * there, other.x * here);
        let (y1, y2) = (self.y * there * other.z, other.y * here * self.z);
        self.add_scaled(x1, y1, x2, y2, self.z * other.z)
    }

    /// The sum of two points brought to one denominator `z`.
    fn add_scaled(
        &self,
        x1: FieldElement,
        y1: FieldElement,
        x2: FieldElement,
        y2: FieldElement,
        z: FieldElement,
    ) -> Self {
        let run = (x2 + x1.negate(1)).normalize_weak();
        let rise = (y2 + y1.negate(1)).normalize_weak();
        if bool::from(run.normalizes_to_zero()) {
            return if bool::from(rise.normalizes_to_zero()) { self.double() } else { Self::INFINITY };
        }
        let square = run.square();
        let cube = run * square;
        let shared = x1 * square;
        let x = (rise.square() + cube.negate(1) + shared.double().negate(2)).normalize_weak();
        let y = (rise * (shared + x.negate(1)) + (y1 * cube).negate(1)).normalize_weak();
        Self { x, y, z: z * run }
    }
}

/// The element of 32 bytes; nothing for p and above.
pub(super) fn element(bytes: &[u8; 32]) -> Option<FieldElement> {
    Option::from(FieldElement::from_bytes(&FieldBytes::from(*bytes)))
}

/// The root of `x³ + 7` that is itself a square.
fn root(x: &FieldElement) -> Option<FieldElement> {
    Option::from((x.square() * x + FieldElement::from_u64(7)).normalize_weak().sqrt())
}

/// A cube root of 1 modulo p: multiplying x by it multiplies the point by λ.
fn beta() -> FieldElement {
    const BETA: [u8; 32] = *b"\x7a\xe9\x6a\x2b\x65\x7c\x07\x10\x6e\x64\x47\x9e\xac\x34\x34\xe9\
        \x9c\xf0\x49\x75\x12\xf5\x89\x95\xc1\x39\x6c\x28\x71\x95\x01\xee";
    element(&BETA).expect("a constant below p")
}
