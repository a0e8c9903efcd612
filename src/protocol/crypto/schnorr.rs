//! Schnorr signatures of the 2019 draft (not BIP340): square Y, the 33-byte key in the challenge, and the nonce from
//! SHA256 of key and digest. Source: protocol.md 2.2.

use super::{curve, sha256_of};
use crate::protocol::{PrivateKey, PublicKey};
use k256::{
    FieldBytes, FieldElement, ProjectivePoint, Scalar, U256,
    elliptic_curve::{PrimeField, ops::Reduce, point::AffineCoordinates, sec1::FromEncodedPoint, sec1::ToEncodedPoint},
};
use secp256k1::{
    Message,
    ecdsa::{RecoverableSignature, RecoveryId},
};

/// `R.x ‖ s`, 64 bytes; the same every time.
pub fn sign(hash: &[u8; 32], private: &PrivateKey) -> [u8; 64] {
    let secret = scalar_of(private.as_bytes());
    let public = ProjectivePoint::GENERATOR * secret;
    let public: [u8; 33] = compressed(&public);
    let mut nonce = scalar_of(&sha256_of(&[private.as_bytes(), hash]));
    assert!(!bool::from(nonce.is_zero()), "a SHA256 output of 0 or n is not known to exist");
    let point = (ProjectivePoint::GENERATOR * nonce).to_affine();
    let y = uncompressed_y(&point);
    if !is_square(&y) {
        nonce = -nonce;
    }
    let r: [u8; 32] = point.x().into();
    let s = nonce + challenge(&r, &public, hash) * secret;
    let mut signature = [0; 64];
    signature[..32].copy_from_slice(&r);
    signature[32..].copy_from_slice(&s.to_bytes());
    signature
}

/// Whether a signature holds; false too for another length, numbers out of range and keys off the curve.
pub fn verify(hash: &[u8; 32], signature: &[u8], public: &PublicKey) -> bool {
    let Some((r, s)) = split(signature) else { return false };
    let challenge = challenge(&r, public.as_bytes(), hash);
    let Some(point) = combine(&s, &challenge, public) else { return false };
    let (x, y) = point.split_at(32);
    x == r && field_of(y.try_into().expect("32 of 64 bytes")).is_some_and(|y| is_square(&y))
}

/// The two halves, if the first is a field element's bytes and the second a scalar.
fn split(signature: &[u8]) -> Option<([u8; 32], Scalar)> {
    let r: [u8; 32] = signature.get(..32)?.try_into().expect("the slice has 32 bytes");
    let s: [u8; 32] = signature.get(32..)?.try_into().ok()?;
    field_of(&r)?;
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

/// The field element, or nothing for p and above.
fn field_of(bytes: &[u8; 32]) -> Option<FieldElement> {
    Option::from(FieldElement::from_bytes(&FieldBytes::from(*bytes)))
}

/// Whether the element is a quadratic residue modulo p; 0 is not.
fn is_square(value: &FieldElement) -> bool {
    !bool::from(value.is_zero()) && bool::from(value.sqrt().is_some())
}

fn compressed(point: &ProjectivePoint) -> [u8; 33] {
    point.to_affine().to_encoded_point(true).as_bytes().try_into().expect("not infinity, since the scalar is not 0")
}

fn uncompressed_y(point: &k256::AffinePoint) -> FieldElement {
    let encoded = point.to_encoded_point(false);
    let y = encoded.y().expect("not infinity, since the scalar is not 0");
    Option::from(FieldElement::from_bytes(y)).expect("coordinates are below p")
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
