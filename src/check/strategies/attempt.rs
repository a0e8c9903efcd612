//! A transaction of any of the 17 types, valid or not.

use crate::protocol::{Arktoshi, Kind};
use proptest::prelude::*;

/// An attempted transaction. Numbers choose among the existing things and wrap around.
#[derive(Clone, Debug)]
pub enum Attempt {
    /// A transfer.
    Transfer {
        /// The recipient: one of the senders, or the last shared wallet.
        to: usize,
        /// The amount in arktoshi.
        amount: u64,
    },
    /// The registration of a second key, the same one for every sender.
    SecondSignature,
    /// The registration of a delegate.
    Register {
        /// The number in the username `name_0`, `name_1`, …
        name: u8,
    },
    /// A vote for a delegate.
    Vote {
        /// The index among the registered delegates, ascending by username.
        delegate: usize,
    },
    /// The withdrawal of a vote.
    Unvote {
        /// The index among the registered delegates, ascending by username.
        delegate: usize,
    },
    /// A wallet of three participants; with a signature too few if it is not whole.
    MultiSignature {
        /// The first of three senders in a row that participate.
        first: usize,
        /// The number of signatures that the wallet requires, from 1 to 3.
        min: u8,
        /// True if all three participants sign the registration, false if two do.
        whole: bool,
    },
    /// A transfer from the last shared wallet, signed by the first `signers` of its participants.
    SpendTogether {
        /// The recipient: one of the senders, or the last shared wallet.
        to: usize,
        /// The amount in arktoshi.
        amount: u64,
        /// The number of participants that sign, from 1 to 3.
        signers: usize,
    },
    /// The registration of an IPFS multihash.
    Ipfs {
        /// The byte that the 32 bytes of the hash repeat.
        hash: u8,
    },
    /// A payment to two recipients.
    MultiPayment {
        /// The recipients, each one of the senders or the last shared wallet.
        to: [usize; 2],
        /// The amounts in arktoshi, in the order of the recipients.
        amounts: [u64; 2],
    },
    /// The resignation of the sender as a delegate.
    Resign,
    /// A lock with its duration in blocks; below 1 it is expired when it is made.
    Lock {
        /// The recipient: one of the senders, or the last shared wallet.
        to: usize,
        /// The amount in arktoshi.
        amount: u64,
        /// The duration in blocks above the tip's height.
        blocks: i8,
    },
    /// The claim of a lock.
    Claim {
        /// The index among the locks made so far. Without any, the id is one that no lock has.
        lock: usize,
        /// True if the secret is that of the locks.
        right: bool,
    },
    /// The refund of a lock.
    Refund {
        /// The index among the locks made so far. Without any, the id is one that no lock has.
        lock: usize,
    },
    /// The registration of a business.
    Business {
        /// The number in the name `Acme 0`, `Acme 1`, …
        name: u8,
    },
    /// A new name for the business of the sender.
    UpdateBusiness {
        /// The number in the new name `Acme 0 Ltd`, `Acme 1 Ltd`, …
        name: u8,
    },
    /// The resignation of the business of the sender.
    ResignBusiness,
    /// The registration of a bridgechain.
    Bridgechain {
        /// The number in the name `Chain 0`, `Chain 1`, …
        name: u8,
        /// The byte that the genesis hash repeats.
        hash: u8,
        /// False if the name of the port is no package name, which a rule of the state forbids.
        good_port: bool,
    },
    /// New ports for a bridgechain of the sender.
    UpdateBridgechain {
        /// The byte that the genesis hash repeats.
        hash: u8,
        /// False if the name of the port is no package name, which a rule of the state forbids.
        good_port: bool,
    },
    /// The resignation of a bridgechain of the sender.
    ResignBridgechain {
        /// The byte that the genesis hash repeats.
        hash: u8,
    },
}

impl Attempt {
    /// Returns true if it is about a business or its bridgechains.
    pub(super) fn is_business(&self) -> bool {
        matches!(
            self,
            Self::Business { .. }
                | Self::UpdateBusiness { .. }
                | Self::ResignBusiness
                | Self::Bridgechain { .. }
                | Self::UpdateBridgechain { .. }
                | Self::ResignBridgechain { .. }
        )
    }

    /// Its type.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Transfer { .. } | Self::SpendTogether { .. } => Kind::Transfer,
            Self::SecondSignature => Kind::SecondSignature,
            Self::Register { .. } => Kind::DelegateRegistration,
            Self::Vote { .. } | Self::Unvote { .. } => Kind::Vote,
            Self::MultiSignature { .. } => Kind::MultiSignature,
            Self::Ipfs { .. } => Kind::Ipfs,
            Self::MultiPayment { .. } => Kind::MultiPayment,
            Self::Resign => Kind::DelegateResignation,
            Self::Lock { .. } => Kind::HtlcLock,
            Self::Claim { .. } => Kind::HtlcClaim,
            Self::Refund { .. } => Kind::HtlcRefund,
            Self::Business { .. } => Kind::BusinessRegistration,
            Self::UpdateBusiness { .. } => Kind::BusinessUpdate,
            Self::ResignBusiness => Kind::BusinessResignation,
            Self::Bridgechain { .. } => Kind::BridgechainRegistration,
            Self::UpdateBridgechain { .. } => Kind::BridgechainUpdate,
            Self::ResignBridgechain { .. } => Kind::BridgechainResignation,
        }
    }
}

/// Any attempt; those that others build on come more often.
pub fn attempt() -> impl Strategy<Value = Attempt> {
    prop_oneof![4 => money(), 4 => voting(), 3 => locks(), 5 => businesses(), 2 => keys()]
}

/// From one arktoshi to twice the initial balance of an account.
fn amount() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![1..1_000_000_000u64, 1..=Arktoshi::coins(2_000_000).value()]
}

fn money() -> impl Strategy<Value = Attempt> {
    prop_oneof![
        3 => (any::<usize>(), amount()).prop_map(|(to, amount)| Attempt::Transfer { to, amount }),
        1 => (any::<[usize; 2]>(), [1..100u64, 1..1_000_000_000_000u64])
            .prop_map(|(to, amounts)| Attempt::MultiPayment { to, amounts }),
        1 => (0..3u8).prop_map(|hash| Attempt::Ipfs { hash }),
    ]
}

fn voting() -> impl Strategy<Value = Attempt> {
    prop_oneof![
        3 => any::<usize>().prop_map(|delegate| Attempt::Vote { delegate }),
        2 => any::<usize>().prop_map(|delegate| Attempt::Unvote { delegate }),
        2 => (0..4u8).prop_map(|name| Attempt::Register { name }),
        1 => Just(Attempt::Resign),
    ]
}

fn locks() -> impl Strategy<Value = Attempt> {
    prop_oneof![
        2 => (any::<usize>(), amount(), -1..6i8).prop_map(|(to, amount, blocks)| Attempt::Lock { to, amount, blocks }),
        2 => (any::<usize>(), any::<bool>()).prop_map(|(lock, right)| Attempt::Claim { lock, right }),
        2 => any::<usize>().prop_map(|lock| Attempt::Refund { lock }),
    ]
}

fn businesses() -> impl Strategy<Value = Attempt> {
    prop_oneof![
        3 => (0..3u8).prop_map(|name| Attempt::Business { name }),
        1 => (0..3u8).prop_map(|name| Attempt::UpdateBusiness { name }),
        1 => Just(Attempt::ResignBusiness),
        3 => (0..3u8, 0..3u8, prop::bool::weighted(0.9))
            .prop_map(|(name, hash, good_port)| Attempt::Bridgechain { name, hash, good_port }),
        1 => (0..3u8, prop::bool::weighted(0.8))
            .prop_map(|(hash, good_port)| Attempt::UpdateBridgechain { hash, good_port }),
        1 => (0..3u8).prop_map(|hash| Attempt::ResignBridgechain { hash }),
    ]
}

fn keys() -> impl Strategy<Value = Attempt> {
    prop_oneof![
        1 => Just(Attempt::SecondSignature),
        2 => (any::<usize>(), 1..4u8, prop::bool::weighted(0.8))
            .prop_map(|(first, min, whole)| Attempt::MultiSignature { first, min, whole }),
        2 => (any::<usize>(), 1..1_000_000_000u64, 1..4usize)
            .prop_map(|(to, amount, signers)| Attempt::SpendTogether { to, amount, signers }),
    ]
}
