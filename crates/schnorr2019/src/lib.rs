//! Schnorr signatures over secp256k1 as the 2019 draft has them, which is not BIP340: R has the Y that is a square, the
//! challenge is over the key's 33 bytes, and the nonce is SHA256 of private key and digest. Source: protocol.md 2.2.
//!
//! [`verify`] verifies one signature, [`verify_batch`] many in less than half the time. Verifying is for public data only:
//! the time it takes depends on the numbers.
//!
//! ```
//! use schnorr2019::{Item, sign, verify, verify_batch};
//! use secp256k1::{Secp256k1, SecretKey};
//!
//! let secret = SecretKey::from_byte_array([7; 32]).expect("in range");
//! let public = secret.public_key(&Secp256k1::signing_only()).serialize();
//! let item = |number: u8| Item { hash: [number; 32], signature: sign(&[number; 32], &secret), public };
//! let mut items: Vec<Item> = (0..20).map(item).collect();
//! assert!(verify(&items[3].hash, &items[3].signature, &public));
//! assert!(verify_batch(&items));
//! items[3].hash = [99; 32];
//! assert!(!verify_batch(&items));
//! ```
#![forbid(unsafe_code)]

mod batch;
mod curve_point;
mod field;
mod multiscalar;
mod residue;

use field::{Element, square_roots};
use k256::{
    ProjectivePoint, Scalar, U256,
    elliptic_curve::{PrimeField, ops::Reduce, sec1::FromEncodedPoint, sec1::ToEncodedPoint},
};
use secp256k1::{
    All, Message, Secp256k1, SecretKey,
    ecdsa::{RecoverableSignature, RecoveryId},
};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// The tables of libsecp256k1, made once.
static CURVE: LazyLock<Secp256k1<All>> = LazyLock::new(Secp256k1::new);

/// Signs a digest: `R.x ‖ s`, 64 bytes, the same every time.
pub fn sign(hash: &[u8; 32], secret: &SecretKey) -> [u8; 64] {
    let public = secret.public_key(&CURVE).serialize();
    let private = secret.secret_bytes();
    let secret = scalar_of(&private);
    let nonce = scalar_of(&sha256_of(&[&private, hash]));
    let point = SecretKey::from_byte_array(nonce.to_bytes().into()).expect("no hash is known that is 0 or the order");
    let point = point.public_key(&CURVE).serialize_uncompressed();
    let (r, y) = (half(&point[1..]), half(&point[33..]));
    let nonce = if is_square(&y) { nonce } else { -nonce };
    let s = nonce + challenge(&r, &public, hash) * secret;
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&r);
    signature[32..].copy_from_slice(&s.to_bytes());
    signature
}

/// Returns true if a signature holds; false too for another length, numbers out of range and keys off the curve.
pub fn verify(hash: &[u8; 32], signature: &[u8], public: &[u8; 33]) -> bool {
    let Some((r, s)) = split(signature) else { return false };
    let challenge = challenge(&r, public, hash);
    let Some(point) = combine(&s, &challenge, public) else { return false };
    point[..32] == r && is_square(&half(&point[32..]))
}

/// One signature of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// The digest that was signed.
    pub hash: [u8; 32],
    pub signature: [u8; 64],
    /// The signer's key, compressed.
    pub public: [u8; 33],
}

/// Returns true if all signatures hold: the same answer as asking one by one, in less than half the time for a full block.
///
/// Each signature says `s·G - e·A - R = 0`, where R is known from its x because its y must be a square. Their sum with
/// random coefficients is zero only if all are, but for a chance of 2^-128. The coefficients come from a hash of the
/// whole batch, so they are the same in every run and nobody can choose signatures to suit them.
pub fn verify_batch(items: &[Item]) -> bool {
    let one_by_one = || items.iter().all(|item| verify(&item.hash, &item.signature, &item.public));
    if items.len() < SMALLEST_BATCH {
        return one_by_one();
    }
    batch::holds(items).unwrap_or_else(one_by_one)
}

/// Below this one by one is faster.
const SMALLEST_BATCH: usize = 8;

/// The two halves, if the first is a field element's bytes and the second a scalar.
fn split(signature: &[u8]) -> Option<([u8; 32], Scalar)> {
    let r: [u8; 32] = signature.get(..32)?.try_into().expect("the slice has 32 bytes");
    let s: [u8; 32] = signature.get(32..)?.try_into().ok()?;
    Element::from_bytes(&r)?;
    Some((r, Option::from(Scalar::from_repr(s.into()))?))
}

/// X and Y of `s·G - e·A`, or nothing for a key off the curve and for infinity.
fn combine(s: &Scalar, e: &Scalar, public: &[u8; 33]) -> Option<[u8; 64]> {
    if bool::from(s.is_zero()) || bool::from(e.is_zero()) {
        return combine_slowly(s, e, public);
    }
    recover(s, e, public).or_else(|| combine_slowly(s, e, public))
}

/// The same through libsecp256k1, which has a fast double multiplication only behind its key recovery.
///
/// Recovery from a signature `(x, t)` over `z` gives `x^-1 · (t·P - z·G)`, where P is the point with that x. Taking
/// `P = A`, `t = -e·x` and `z = -s·x` leaves `s·G - e·A`. Nothing comes back when A.x is not below the group order
/// (the slow way then decides), when A is off the curve, or when the sum is infinity.
fn recover(s: &Scalar, e: &Scalar, public: &[u8; 33]) -> Option<[u8; 64]> {
    let parity = match public[0] {
        2 => RecoveryId::Zero,
        3 => RecoveryId::One,
        _ => return None,
    };
    let x: [u8; 32] = public[1..].try_into().expect("33 bytes less the first");
    let scalar: Scalar = Option::from(Scalar::from_repr(x.into()))?;
    let mut compact = [0; 64];
    compact[..32].copy_from_slice(&x);
    compact[32..].copy_from_slice(&(-(*e * scalar)).to_bytes());
    let digest: [u8; 32] = (-(*s * scalar)).to_bytes().into();
    let signature = RecoverableSignature::from_compact(&compact, parity).ok()?;
    let point = CURVE.recover_ecdsa(Message::from_digest(digest), &signature).ok()?;
    Some(point.serialize_uncompressed()[1..].try_into().expect("65 bytes less the first"))
}

fn combine_slowly(s: &Scalar, e: &Scalar, public: &[u8; 33]) -> Option<[u8; 64]> {
    let encoded = k256::EncodedPoint::from_bytes(public).ok()?;
    let key: ProjectivePoint = Option::from(ProjectivePoint::from_encoded_point(&encoded))?;
    let point = (ProjectivePoint::GENERATOR * s - key * e).to_affine().to_encoded_point(false);
    point.as_bytes().get(1..)?.try_into().ok()
}

/// `SHA256(r ‖ A ‖ m) mod n`.
fn challenge(r: &[u8; 32], public: &[u8; 33], hash: &[u8; 32]) -> Scalar {
    scalar_of(&sha256_of(&[r, public, hash]))
}

/// SHA256 over several pieces as if they were joined.
fn sha256_of(pieces: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for piece in pieces {
        hash.update(piece);
    }
    hash.finalize().into()
}

fn scalar_of(bytes: &[u8; 32]) -> Scalar {
    <Scalar as Reduce<U256>>::reduce_bytes(&(*bytes).into())
}

/// Returns true if a coordinate is a quadratic residue modulo p; 0 is not.
fn is_square(value: &[u8; 32]) -> bool {
    let has_root = || {
        let value = Element::from_bytes(value).filter(|value| !value.is_zero());
        value.is_some_and(|value| square_roots([value])[0].is_some())
    };
    residue::is_square(value).unwrap_or_else(has_root)
}

/// The first 32 bytes.
fn half(bytes: &[u8]) -> [u8; 32] {
    bytes[..32].try_into().expect("32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The key whose bytes are SHA256 of a text, as a passphrase gives it, and its public key.
    pub(crate) fn keys(text: &str) -> (SecretKey, [u8; 33]) {
        let secret = SecretKey::from_byte_array(sha256_of(&[text.as_bytes()])).expect("a hash in range");
        (secret, secret.public_key(&CURVE).serialize())
    }

    #[test]
    fn the_contract_example_is_reproduced_and_holds() {
        let (secret, public) = keys("spec sender");
        let signature = sign(&sha256_of(&[b"hello"]), &secret);
        assert_eq!(
            hex::encode(signature),
            "860751087016644f468073f4e1f186726c6c678f38219d7affe4092b99e71c6f60da7b1bc115d154e0e0b0656100c689b4626b91a7e7902d1c90cda40bb1cb7e"
        );
        assert!(verify(&sha256_of(&[b"hello"]), &signature, &public));
        assert!(!verify(&sha256_of(&[b"hullo"]), &signature, &public));
    }

    #[test]
    fn both_ways_to_combine_agree() {
        for number in 0..40u8 {
            let (_, public) = keys(&format!("combine {number}"));
            let (s, e) = (scalar_of(&sha256_of(&[&[number, 1]])), scalar_of(&sha256_of(&[&[number, 2]])));
            assert_eq!(recover(&s, &e, &public), combine_slowly(&s, &e, &public));
        }
    }

    #[test]
    fn numbers_out_of_range_and_keys_off_the_curve_are_false() {
        let (secret, public) = keys("spec sender");
        let hash = sha256_of(&[b"hello"]);
        let signature = sign(&hash, &secret);
        assert!(!verify(&hash, &signature[..63], &public));
        assert!(!verify(&hash, &[&signature[..], &[0]].concat(), &public));
        assert!(!verify(&hash, &[0xff; 64], &public));
        assert!(!verify(&hash, &[0; 64], &public));
        let mut off = public;
        off[0] = 5;
        assert!(!verify(&hash, &signature, &off));
    }
}
