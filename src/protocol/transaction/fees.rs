//! Static fees. Source: protocol.md 3.9. Dynamic ones depend on a pool's policy; [`SignedTransaction::bytes`] and
//! [`StaticFees::dynamic`] give the formula its inputs.

use super::{Asset, Kind, SignedTransaction, Transaction};
use crate::protocol::Arktoshi;

/// The static fee of every kind: the constants, unless a milestone says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticFees([Arktoshi; Kind::ALL.len()]);

impl Default for StaticFees {
    fn default() -> Self {
        Self(Kind::ALL.map(|kind| kind.module().static_fee()))
    }
}

impl StaticFees {
    /// The fee of a kind as the tables have it; a multisignature registration pays it several times, see [`Self::of`].
    pub fn get(&self, kind: Kind) -> Arktoshi {
        self.0[kind as usize]
    }

    /// The static fee of a transaction: the fee of its kind, times participants + 1 for a multisignature registration.
    pub fn of(&self, transaction: &Transaction) -> Arktoshi {
        self.of_asset(&transaction.asset)
    }

    pub(super) fn of_asset(&self, asset: &Asset) -> Arktoshi {
        let fee = self.get(asset.kind());
        let times = match asset {
            Asset::MultiSignature { public_keys: keys, .. } | Asset::MultiSignatureLegacy { keysgroup: keys, .. } => {
                keys.len() as u64 + 1
            }
            _ => 1,
        };
        fee.value().checked_mul(times).and_then(Arktoshi::new).unwrap_or(Arktoshi::MAX)
    }

    pub(in crate::protocol) fn set(&mut self, kind: Kind, fee: Arktoshi) {
        self.0[kind as usize] = fee;
    }

    /// The dynamic fee: `(addon + half the wire bytes, rounded up) × fee per byte`; saturates at the largest amount.
    pub fn dynamic(transaction: &SignedTransaction, addon_bytes: u64, per_byte: Arktoshi) -> Arktoshi {
        let size = addon_bytes.saturating_add(transaction.size().div_ceil(2) as u64);
        size.checked_mul(per_byte.value()).and_then(Arktoshi::new).unwrap_or(Arktoshi::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{KeyPair, crypto::CryptoMode};

    #[test]
    fn a_multisignature_registration_pays_for_each_participant_and_once_more() {
        let key = *KeyPair::from_passphrase("ms one", CryptoMode::Real).public();
        let fees = StaticFees::default();
        let asset = Asset::MultiSignature { min: 1, public_keys: vec![key] };
        assert_eq!(fees.of_asset(&asset), Arktoshi::coins(10));
        assert_eq!(fees.of_asset(&Asset::DelegateResignation), Arktoshi::coins(25));
    }
}
