//! Splitting the bytes behind the body into signatures. Their lengths are not on the wire. Source: protocol.md 3.8.

use super::{BytesError, IndexedSignature, Rule, SchemaError, TransactionError};
use crate::protocol::crypto::ecdsa;

/// The bytes after the body.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Signatures<'a> {
    pub signature: Option<&'a [u8]>,
    pub second_signature: Option<&'a [u8]>,
    pub signatures: Vec<IndexedSignature>,
}

/// The signatures of a tail that begins at byte `at`.
pub(super) fn split(tail: &[u8], version: u8, at: usize) -> Result<Signatures<'_>, TransactionError> {
    if version == 2 && is_schnorr(tail.len()) { schnorr(tail, at) } else { der(tail, at) }
}

/// Returns true if a length is one that Schnorr signatures and indexed signatures can have.
///
/// The reference takes remainders of possibly negative numbers, so 63 (-65 after a take of 128) counts too; such a
/// tail is then found too short.
fn is_schnorr(length: usize) -> bool {
    let length = length as i64;
    matches!(length, 64 | 128) || [0, 64, 128].iter().any(|taken| (length - taken) % 65 == 0)
}

fn schnorr(tail: &[u8], at: usize) -> Result<Signatures<'_>, TransactionError> {
    let mut rest = tail;
    let signature = take_schnorr(&mut rest, "signature", at)?;
    let second_at = at + tail.len() - rest.len();
    let second_signature = take_schnorr(&mut rest, "secondSignature", second_at)?;
    let parts = rest.chunks_exact(65);
    if !parts.remainder().is_empty() {
        return Err(BytesError::SignatureLeft { left: rest.len() }.into());
    }
    let mut signatures: Vec<IndexedSignature> = Vec::with_capacity(parts.len().min(16));
    for part in parts {
        if signatures.iter().any(|before| before.index == part[0]) {
            return Err(TransactionError::DuplicateParticipant);
        }
        signatures.push(IndexedSignature { index: part[0], signature: part[1..].try_into().expect("65 less 1") });
    }
    Ok(Signatures { signature, second_signature, signatures })
}

fn take_schnorr<'a>(rest: &mut &'a [u8], field: &'static str, at: usize) -> Result<Option<&'a [u8]>, BytesError> {
    let length = rest.len();
    if length == 0 || (!length.is_multiple_of(64) && length.is_multiple_of(65)) {
        return Ok(None);
    }
    let (signature, after) =
        rest.split_at_checked(64).ok_or(BytesError::Truncated { field, at, needed: 64, available: length })?;
    *rest = after;
    Ok(Some(signature))
}

fn der(tail: &[u8], at: usize) -> Result<Signatures<'_>, TransactionError> {
    let mut rest = tail;
    let signature = take_der(&mut rest, "signature", at)?;
    // The reference verifies the first signature while it reads, and fails there, before it reads the second.
    signature.map_or(Ok(()), |signature| ecdsa::check_structure(signature).map_err(BytesError::from))?;
    let second_at = at + tail.len() - rest.len();
    let second_signature = match rest.first() {
        Some(0xff) | None => None,
        Some(_) => take_der(&mut rest, "secondSignature", second_at)?,
    };
    match rest.first() {
        None => Ok(Signatures { signature, second_signature, signatures: Vec::new() }),
        // The form of old multisignature wallets: to the reference one long text where a list is due.
        Some(0xff) => Err(SchemaError::new("signatures", "bytes after 0xff", Rule::Array).into()),
        Some(_) => Err(BytesError::SignatureLeft { left: rest.len() }.into()),
    }
}

fn take_der<'a>(rest: &mut &'a [u8], field: &'static str, at: usize) -> Result<Option<&'a [u8]>, BytesError> {
    if rest.is_empty() {
        return Ok(None);
    }
    let needed = rest.get(1).map_or(2, |length| usize::from(*length) + 2);
    let truncated = BytesError::Truncated { field, at, needed, available: rest.len() };
    let (signature, after) = rest.split_at_checked(needed).ok_or(truncated)?;
    *rest = after;
    Ok(Some(signature))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(tail: usize) -> Option<(bool, bool, usize)> {
        let mut bytes: Vec<u8> = vec![1; tail];
        // Distinct indexes wherever an indexed signature may begin.
        (0..tail).for_each(|at| bytes[at] = (at / 65) as u8);
        let found = split(&bytes, 2, 0).ok()?;
        Some((found.signature.is_some(), found.second_signature.is_some(), found.signatures.len()))
    }

    #[test]
    fn lengths_decide_what_schnorr_tails_hold() {
        assert_eq!(lengths(0), Some((false, false, 0)));
        assert_eq!(lengths(64), Some((true, false, 0)));
        assert_eq!(lengths(65), Some((false, false, 1)));
        assert_eq!(lengths(128), Some((true, true, 0)));
        assert_eq!(lengths(64 + 3 * 65), Some((true, false, 3)));
        assert_eq!(lengths(128 + 65), Some((true, true, 1)));
        assert_eq!(lengths(63), None);
        assert_eq!(lengths(66), None);
    }

    #[test]
    fn a_repeated_index_is_refused() {
        assert_eq!(split(&[7; 130], 2, 0), Err(TransactionError::DuplicateParticipant));
    }
}
