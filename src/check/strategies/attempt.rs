//! A transaction of any of the 17 types, valid or not.

use crate::protocol::{Arktoshi, Kind};
use proptest::prelude::*;

/// An attempted transaction. Numbers choose among the existing things and wrap around.
#[derive(Clone, Debug)]
pub enum Attempt {
    Transfer {
        to: usize,
        amount: u64,
    },
    SecondSignature,
    Register {
        name: u8,
    },
    Vote {
        delegate: usize,
    },
    Unvote {
        delegate: usize,
    },
    /// A wallet of three participants; with a signature too few if it is not whole.
    MultiSignature {
        first: usize,
        min: u8,
        whole: bool,
    },
    /// A transfer from the last shared wallet, signed by the first `signers` of its participants.
    SpendTogether {
        to: usize,
        amount: u64,
        signers: usize,
    },
    Ipfs {
        hash: u8,
    },
    MultiPayment {
        to: [usize; 2],
        amounts: [u64; 2],
    },
    Resign,
    /// A lock with its duration in blocks; below 1 it is expired when it is made.
    Lock {
        to: usize,
        amount: u64,
        blocks: i8,
    },
    Claim {
        lock: usize,
        right: bool,
    },
    Refund {
        lock: usize,
    },
    Business {
        name: u8,
    },
    UpdateBusiness {
        name: u8,
    },
    ResignBusiness,
    Bridgechain {
        name: u8,
        hash: u8,
        good_port: bool,
    },
    UpdateBridgechain {
        hash: u8,
        good_port: bool,
    },
    ResignBridgechain {
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
