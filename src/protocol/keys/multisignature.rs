//! The public key that identifies a multisignature wallet. Source: protocol.md 1.1.

use super::{KeyPair, PublicKey};
use crate::protocol::crypto::CryptoMode;
use std::sync::OnceLock;

/// The reason why keys and a minimum give no wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MultiSignatureError {
    #[error("The multi signature asset is invalid. The minimum is {min}, allowed are 1 to {keys}, the number of keys")]
    Minimum { min: u8, keys: usize },
    #[error("Invalid public key. {0} is not a point of the curve")]
    OffCurve(PublicKey),
    #[error("Invalid public key. The keys cancel one another out: their sum is not a key")]
    Infinity,
}

/// The sum of all keys and of the key of the passphrase `"02"` (the minimum in two hex digits). The order of the keys
/// does not matter here; it does for the indexes in signatures.
pub fn derive(min: u8, keys: &[PublicKey]) -> Result<PublicKey, MultiSignatureError> {
    if min < 1 || usize::from(min) > keys.len() {
        return Err(MultiSignatureError::Minimum { min, keys: keys.len() });
    }
    let points = keys
        .iter()
        .map(|key| key.to_point().ok_or(MultiSignatureError::OffCurve(*key)))
        .collect::<Result<Vec<_>, _>>()?;
    let sum = secp256k1::PublicKey::combine_keys(&points.iter().chain([of_minimum(min)]).collect::<Vec<_>>());
    sum.map(|sum| PublicKey::from_bytes(sum.serialize())).map_err(|_| MultiSignatureError::Infinity)
}

/// The point of a minimum's key, computed once in a process.
fn of_minimum(min: u8) -> &'static secp256k1::PublicKey {
    static POINTS: [OnceLock<secp256k1::PublicKey>; 256] = [const { OnceLock::new() }; 256];
    POINTS[usize::from(min)].get_or_init(|| {
        let key = *KeyPair::from_passphrase(&format!("{min:02x}"), CryptoMode::Real).public();
        key.to_point().expect("the key of a passphrase is on the curve")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_contract_example_is_reproduced_in_any_order() {
        let mut keys =
            ["ms one", "ms two", "ms three"].map(|text| *KeyPair::from_passphrase(text, CryptoMode::Real).public());
        let wallet = derive(2, &keys).unwrap();
        assert_eq!(wallet.to_string(), "02de409a6d19c23e77555e8bf01ca454695b33ca892ca0e5cbc018a3257469b2f0");
        assert_eq!(wallet.address(23).to_string(), "AXpzVLRZYEWD6araDEPcXYAtWWHwBjQHwP");
        keys.reverse();
        assert_eq!(derive(2, &keys), Ok(wallet));
    }

    #[test]
    fn impossible_minimums_and_points_are_refused() {
        let key = *KeyPair::from_passphrase("ms one", CryptoMode::Real).public();
        assert_eq!(derive(0, &[key]), Err(MultiSignatureError::Minimum { min: 0, keys: 1 }));
        assert_eq!(derive(2, &[key]), Err(MultiSignatureError::Minimum { min: 2, keys: 1 }));
        let off = PublicKey::from_bytes([0xff; 33]);
        assert_eq!(derive(1, &[off]), Err(MultiSignatureError::OffCurve(off)));
    }
}
