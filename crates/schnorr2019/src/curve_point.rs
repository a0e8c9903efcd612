//! Points of the curve as pairs of field elements, with the few operations that checking many signatures needs.
//! For public data only.

use crate::field::{Element, square_roots};

/// A point other than infinity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Affine {
    x: Element,
    y: Element,
}

/// A point whose y is not computed yet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Compressed<'a> {
    /// A key of 33 bytes, which says whether y is odd.
    Key(&'a [u8; 33]),
    /// The x of a point whose y is a square.
    SquareY(&'a [u8; 32]),
}

/// A cube root of 1 modulo p: multiplying x by it multiplies the point by a cube root of 1 modulo the group order.
const BETA: Element =
    Element::from_limbs([0xc139_6c28_7195_01ee, 0x9cf0_4975_12f5_8995, 0x6e64_479e_ac34_34e9, 0x7ae9_6a2b_657c_0710]);

impl Affine {
    /// A place holder that is no point.
    pub(crate) const NOWHERE: Self = Self { x: Element::ZERO, y: Element::ZERO };

    pub(crate) fn generator() -> Self {
        let read = |bytes| Element::from_bytes(bytes).expect("a constant below p");
        Self { x: read(&secp256k1::constants::GENERATOR_X), y: read(&secp256k1::constants::GENERATOR_Y) }
    }

    /// The points, several at once because their roots are faster together; nothing where one is off the curve.
    pub(crate) fn decompress<const N: usize>(points: [Compressed<'_>; N]) -> Option<[Self; N]> {
        let mut xs = [Element::ZERO; N];
        for (x, point) in xs.iter_mut().zip(&points) {
            *x = Element::from_bytes(point.x())?;
        }
        let roots = square_roots(xs.map(|x| x.square() * x + Element::SEVEN));
        let mut found = [Self::NOWHERE; N];
        for n in 0..N {
            found[n] = Self { x: xs[n], y: points[n].choose(roots[n]?)? };
        }
        Some(found)
    }

    pub(crate) fn negated(&self) -> Self {
        Self { x: self.x, y: -self.y }
    }

    /// λ times the point.
    pub(crate) fn endomorphism(&self) -> Self {
        Self { x: self.x * BETA, y: self.y }
    }

    /// `other.x - self.x`, zero for equal and opposite points.
    pub(crate) fn x_difference(&self, other: &Self) -> Element {
        other.x - self.x
    }

    /// The sum, given the inverse of [`Self::x_difference`].
    #[inline(always)]
    pub(crate) fn add(&self, other: &Self, inverse: Element) -> Self {
        let slope = (other.y - self.y) * inverse;
        let x = slope.square() - self.x - other.x;
        Self { x, y: slope * (self.x - x) - self.y }
    }
}

impl Compressed<'_> {
    fn x(&self) -> &[u8; 32] {
        match self {
            Self::Key(key) => key.last_chunk().expect("33 bytes less the first"),
            Self::SquareY(x) => x,
        }
    }

    /// This root or the other one; nothing if the key says neither odd nor even.
    fn choose(&self, square_root: Element) -> Option<Element> {
        match self {
            Self::Key([sign @ (2 | 3), ..]) if square_root.is_odd() == (*sign == 3) => Some(square_root),
            Self::Key([2 | 3, ..]) => Some(-square_root),
            Self::Key(_) => None,
            Self::SquareY(_) => Some(square_root),
        }
    }
}

/// `x = X/Z²`, `y = Y/Z³`; infinity has `Z = 0`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Jacobian {
    x: Element,
    y: Element,
    z: Element,
}

impl Jacobian {
    pub(crate) const INFINITY: Self = Self { x: Element::ONE, y: Element::ONE, z: Element::ZERO };

    pub(crate) fn is_infinity(&self) -> bool {
        self.z.is_zero()
    }

    /// Twice the point; there is no point of order two.
    pub(crate) fn double(&self) -> Self {
        let squared = self.y.square();
        let shared = (self.x * squared).double().double();
        let x_squared = self.x.square();
        let slope = x_squared.double() + x_squared;
        let x = slope.square() - shared.double();
        let y = slope * (shared - x) - squared.square().double().double().double();
        Self { x, y, z: (self.y * self.z).double() }
    }

    pub(crate) fn add_affine(&self, other: &Affine) -> Self {
        if self.is_infinity() {
            return Self { x: other.x, y: other.y, z: Element::ONE };
        }
        let square = self.z.square();
        self.add_scaled(self.x, self.y, other.x * square, other.y * square * self.z, self.z)
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
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
    #[inline(always)]
    fn add_scaled(&self, x1: Element, y1: Element, x2: Element, y2: Element, z: Element) -> Self {
        let (run, rise) = (x2 - x1, y2 - y1);
        if run.is_zero() {
            return if rise.is_zero() { self.double() } else { Self::INFINITY };
        }
        let square = run.square();
        let (cube, shared) = (run * square, x1 * square);
        let x = rise.square() - cube - shared.double();
        Self { x, y: rise * (shared - x) - y1 * cube, z: z * run }
    }
}
