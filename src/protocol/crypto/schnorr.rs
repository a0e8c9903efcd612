//! Schnorr signatures of the 2019 draft (not BIP340): square Y, the 33-byte key in the challenge, and the nonce from
//! SHA256 of key and digest. Source: protocol.md 2.2.

mod batch;

use super::{
    curve,
    field::{Element, square_roots},
    mode, residue, sha256_of,
};
use crate::protocol::{PrivateKey, PublicKey};
use k256::{
    ProjectivePoint, Scalar, U256,
    elliptic_curve::{PrimeField, ops::Reduce, sec1::FromEncodedPoint, sec1::ToEncodedPoint},
};
use secp256k1::{
    Message, SecretKey,
    ecdsa::{RecoverableSignature, RecoveryId},
};

/// `R.x ‖ s`, 64 bytes; the same every time.
pub fn sign(hash: &[u8; 32], private: &PrivateKey) -> [u8; 64] {
    if mode::is_modelled() {
        let model = mode::model_by(hash, private);
        let mut signature = [0; 64];
        signature[..32].copy_from_slice(&model);
        signature[32..].copy_from_slice(&model);
        return signature;
    }
    let secret = scalar_of(private.as_bytes());
    let public = private.to_secret().public_key(curve()).serialize();
    let nonce = scalar_of(&sha256_of(&[private.as_bytes(), hash]));
    let point = SecretKey::from_byte_array(nonce.to_bytes().into()).expect("no hash is known that is 0 or the order");
    let point = point.public_key(curve()).serialize_uncompressed();
    let (r, y) = (half(&point[1..]), half(&point[33..]));
    let nonce = if is_square(&y) { nonce } else { -nonce };
    let s = nonce + challenge(&r, &public, hash) * secret;
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&r);
    signature[32..].copy_from_slice(&s.to_bytes());
    signature
}

/// Returns true if a signature holds; false too for another length, numbers out of range and keys off the curve.
pub fn verify(hash: &[u8; 32], signature: &[u8], public: &PublicKey) -> bool {
    if mode::is_modelled() {
        return mode::is_schnorr_model(hash, signature, public);
    }
    let Some((r, s)) = split(signature) else { return false };
    let challenge = challenge(&r, public.as_bytes(), hash);
    let Some(point) = combine(&s, &challenge, public) else { return false };
    point[..32] == r && is_square(&half(&point[32..]))
}

/// One signature of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    pub hash: [u8; 32],
    pub signature: [u8; 64],
    pub public: PublicKey,
}

/// Returns true if all signatures hold: the same answer as asking one by one, in less than half the time for a full block.
///
/// Each signature says `s·G - e·A - R = 0`, where R is known from its x because its y must be a square. Their sum with
/// random coefficients is zero only if all are, but for a chance of 2^-128. The coefficients come from a hash of the
/// whole batch, so they are the same in every run and nobody can choose signatures to suit them.
pub fn verify_batch(items: &[Item]) -> bool {
    if items.len() < SMALLEST_BATCH || mode::is_modelled() {
        return items.iter().all(|item| verify(&item.hash, &item.signature, &item.public));
    }
    match batch::holds(items) {
        Some(verdict) => verdict,
        None => items.iter().all(|item| verify(&item.hash, &item.signature, &item.public)),
    }
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
fn combine(s: &Scalar, e: &Scalar, public: &PublicKey) -> Option<[u8; 64]> {
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
fn recover(s: &Scalar, e: &Scalar, public: &PublicKey) -> Option<[u8; 64]> {
    let bytes = public.as_bytes();
    let parity = match bytes[0] {
        2 => RecoveryId::Zero,
        3 => RecoveryId::One,
        _ => return None,
    };
    let x: [u8; 32] = bytes[1..].try_into().expect("33 bytes less the first");
    let scalar: Scalar = Option::from(Scalar::from_repr(x.into()))?;
    let mut compact = [0; 64];
    compact[..32].copy_from_slice(&x);
    compact[32..].copy_from_slice(&(-(*e * scalar)).to_bytes());
    let digest: [u8; 32] = (-(*s * scalar)).to_bytes().into();
    let signature = RecoverableSignature::from_compact(&compact, parity).ok()?;
    let point = curve().recover_ecdsa(Message::from_digest(digest), &signature).ok()?;
    Some(point.serialize_uncompressed()[1..].try_into().expect("65 bytes less the first"))
}

fn combine_slowly(s: &Scalar, e: &Scalar, public: &PublicKey) -> Option<[u8; 64]> {
    let encoded = k256::EncodedPoint::from_bytes(public.as_bytes()).ok()?;
    let key: ProjectivePoint = Option::from(ProjectivePoint::from_encoded_point(&encoded))?;
    let point = (ProjectivePoint::GENERATOR * s - key * e).to_affine().to_encoded_point(false);
    point.as_bytes().get(1..)?.try_into().ok()
}

/// `SHA256(r ‖ A ‖ m) mod n`.
fn challenge(r: &[u8; 32], public: &[u8; 33], hash: &[u8; 32]) -> Scalar {
    scalar_of(&sha256_of(&[r, public, hash]))
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
    use crate::protocol::{KeyPair, crypto::sha256};

    #[test]
    fn the_contract_example_is_reproduced_and_holds() {
        let keys = KeyPair::from_passphrase("spec sender");
        let signature = sign(&sha256(b"hello"), keys.private());
        assert_eq!(
            hex::encode(signature),
            "860751087016644f468073f4e1f186726c6c678f38219d7affe4092b99e71c6f60da7b1bc115d154e0e0b0656100c689b4626b91a7e7902d1c90cda40bb1cb7e"
        );
        assert!(verify(&sha256(b"hello"), &signature, keys.public()));
        assert!(!verify(&sha256(b"hullo"), &signature, keys.public()));
    }

    #[test]
    fn both_ways_to_combine_agree() {
        for number in 0..40u8 {
            let keys = KeyPair::from_passphrase(&format!("combine {number}"));
            let (s, e) = (scalar_of(&sha256(&[number, 1])), scalar_of(&sha256(&[number, 2])));
            assert_eq!(recover(&s, &e, keys.public()), combine_slowly(&s, &e, keys.public()));
        }
    }

    #[test]
    fn numbers_out_of_range_and_keys_off_the_curve_are_false() {
        let keys = KeyPair::from_passphrase("spec sender");
        let hash = sha256(b"hello");
        let signature = sign(&hash, keys.private());
        assert!(!verify(&hash, &signature[..63], keys.public()));
        assert!(!verify(&hash, &[&signature[..], &[0]].concat(), keys.public()));
        assert!(!verify(&hash, &[0xff; 64], keys.public()));
        assert!(!verify(&hash, &[0; 64], keys.public()));
        let mut off = *keys.public().as_bytes();
        off[0] = 5;
        assert!(!verify(&hash, &signature, &PublicKey::from_bytes(off)));
    }
}
