//! ECDSA over a digest: RFC 6979 nonces, low S, strict DER. Source: protocol.md 2.1.

use super::{CryptoMode, curve, mode};
use crate::protocol::{KeyPair, PublicKey};
use secp256k1::{Message, ecdsa::Signature};

/// An error in the structure of a DER signature, which makes it unreadable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DerError {
    #[error("Invalid signature. DER signature has {found} bytes, allowed are 8 to 72")]
    Length { found: usize },
    #[error("Invalid signature. DER tag at byte {at} is {found:#04x}, allowed is {allowed:#04x}")]
    Tag { at: usize, found: u8, allowed: u8 },
    #[error("Invalid signature. DER length at byte {at} is {found}, {available} bytes are there")]
    Overrun { at: usize, found: u8, available: usize },
}

/// The signature in DER, 70 to 72 bytes and rarely less; the same every time.
pub fn sign(hash: &[u8; 32], keys: &KeyPair) -> Vec<u8> {
    if keys.crypto().is_modelled() {
        return modelled(&mode::model(hash, keys.public().as_bytes()));
    }
    let signature = curve().sign_ecdsa(Message::from_digest(*hash), &keys.private().to_secret());
    signature.serialize_der().to_vec()
}

/// Returns true if a signature is valid. An unreadable one is not; see [`check`] to tell the two apart.
pub fn verify(hash: &[u8; 32], signature: &[u8], public: &PublicKey, crypto: CryptoMode) -> bool {
    check(hash, signature, public, crypto).unwrap_or(false)
}

/// Returns true if a signature is valid. Returns false also for a key off the curve, a high S, and numbers that are padded, negative or
/// followed by bytes. Fails only if the DER structure itself is inconsistent.
pub fn check(hash: &[u8; 32], signature: &[u8], public: &PublicKey, crypto: CryptoMode) -> Result<bool, DerError> {
    let (r, s) = split(signature)?;
    if crypto.is_modelled() {
        return Ok(signature == modelled(&mode::model(hash, public.as_bytes())));
    }
    if !is_strict(signature, r, s) {
        return Ok(false);
    }
    let (Ok(signature), Some(key)) = (Signature::from_der(signature), public.to_point()) else {
        return Ok(false);
    };
    Ok(curve().verify_ecdsa(Message::from_digest(*hash), &signature, &key).is_ok())
}

/// A model as R and as S, in DER.
fn modelled(model: &[u8; 32]) -> Vec<u8> {
    let number: Vec<u8> = [0x02, 32].into_iter().chain(*model).collect();
    [0x30, 68].into_iter().chain(number.iter().copied()).chain(number.iter().copied()).collect()
}

/// Checks that the bytes have the structure of a DER signature. [`check`] fails without it.
pub fn check_structure(signature: &[u8]) -> Result<(), DerError> {
    split(signature).map(|_| ())
}

/// The bytes of R and S.
fn split(der: &[u8]) -> Result<(&[u8], &[u8]), DerError> {
    if der.len() < 8 || der.len() > 72 {
        return Err(DerError::Length { found: der.len() });
    }
    expect_tag(der, 0, 0x30)?;
    let r = integer(der, 2)?;
    let s = integer(der, 4 + r.len())?;
    Ok((r, s))
}

fn integer(der: &[u8], at: usize) -> Result<&[u8], DerError> {
    expect_tag(der, at, 0x02)?;
    let found = der.get(at + 1).copied().unwrap_or(0);
    let available = der.len().saturating_sub(at + 2);
    match der.get(at + 2..at + 2 + usize::from(found)) {
        Some(bytes) if !bytes.is_empty() => Ok(bytes),
        _ => Err(DerError::Overrun { at: at + 1, found, available }),
    }
}

fn expect_tag(der: &[u8], at: usize, allowed: u8) -> Result<(), DerError> {
    let found = der.get(at).copied().unwrap_or(0);
    if found == allowed { Ok(()) } else { Err(DerError::Tag { at, found, allowed }) }
}

/// BIP66: lengths that add up, positive numbers, no padding.
fn is_strict(der: &[u8], r: &[u8], s: &[u8]) -> bool {
    let plain = |number: &[u8]| number[0] < 0x80 && (number.len() == 1 || number[0] != 0 || number[1] >= 0x80);
    der.len() == 6 + r.len() + s.len() && usize::from(der[1]) == der.len() - 2 && plain(r) && plain(s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::crypto::sha256;

    const REAL: CryptoMode = CryptoMode::Real;

    #[test]
    fn the_contract_example_is_reproduced_and_holds() {
        let keys = KeyPair::from_passphrase("spec sender", REAL);
        let signature = sign(&sha256(b"hello"), &keys);
        assert_eq!(
            hex::encode(&signature),
            "30440220474a1884a532fbbcfa528f8211ecbd92882fe1dbdf3fae00f50ae1f779c67bf902205bce9f797725531123e50547015b6336418ffabbf57c3510c5586b4eb12572c5"
        );
        assert!(verify(&sha256(b"hello"), &signature, keys.public(), REAL));
        assert!(!verify(&sha256(b"hullo"), &signature, keys.public(), REAL));
    }

    #[test]
    fn padding_and_trailing_bytes_are_false_and_nonsense_is_an_error() {
        let keys = KeyPair::from_passphrase("spec sender", REAL);
        let hash = sha256(b"hello");
        let signature = sign(&hash, &keys);
        let mut trailing = signature.clone();
        trailing.push(0);
        assert_eq!(check(&hash, &trailing, keys.public(), REAL), Ok(false));
        let mut padded = signature.clone();
        padded.insert(4, 0);
        padded[1] += 1;
        padded[3] += 1;
        assert_eq!(check(&hash, &padded, keys.public(), REAL), Ok(false));
        assert!(check(&hash, &[0x31; 70], keys.public(), REAL).is_err());
        assert!(check(&hash, &signature[..40], keys.public(), REAL).is_err());
        assert!(check(&hash, &[], keys.public(), REAL).is_err());
        let shortest = [0x30, 6, 2, 1, 1, 2, 1, 1];
        assert_eq!(check_structure(&shortest), Ok(()));
        assert_eq!(check_structure(&shortest[..7]), Err(DerError::Length { found: 7 }));
        assert!(check_structure(&[&[0x30, 71], &[0; 71][..]].concat()).is_err());
    }

    #[test]
    fn models_look_like_signatures_and_hold_for_one_key() {
        let modelled = CryptoMode::Modelled;
        let [keys, other] = ["spec sender", "another"].map(|text| KeyPair::from_passphrase(text, modelled));
        for number in 0..100_u8 {
            let hash = sha256(&[number]);
            let signature = sign(&hash, &keys);
            assert_eq!(check(&hash, &signature, keys.public(), modelled), Ok(true));
            assert_eq!(check(&hash, &signature, other.public(), modelled), Ok(false));
            // The stand-in for a number has 32 bytes and needs no sign: the curve's order is greater.
            let (r, s) = split(&signature).expect("its structure is that of DER");
            assert!(r == s && r.len() == 32 && (1..=0x7f).contains(&r[0]), "{r:?}");
            assert!(!verify(&hash, &signature, keys.public(), REAL));
        }
    }
}
