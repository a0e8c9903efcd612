//! A wallet and its attributes. Source: consensus.md 4.1.

use super::Balance;
use crate::protocol::{Address, Block, Nonce, PublicKey};
use std::sync::Arc;

/// All the chain knows of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wallet {
    /// Its place in the order in which the chain first named addresses, from 0.
    pub first_seen: u32,
    pub address: Address,
    /// `None` while the wallet is cold: it has only received.
    pub public_key: Option<PublicKey>,
    pub balance: Balance,
    /// Number of transactions sent.
    pub nonce: Nonce,
    /// The delegate voted for.
    pub vote: Option<PublicKey>,
    pub second_public_key: Option<PublicKey>,
    pub delegate: Option<Arc<DelegateAttributes>>,
}

impl Wallet {
    /// An empty, cold wallet.
    pub fn cold(address: Address, first_seen: u32) -> Self {
        Self {
            first_seen,
            address,
            public_key: None,
            balance: Balance::ZERO,
            nonce: Nonce(0),
            vote: None,
            second_public_key: None,
            delegate: None,
        }
    }

    /// The username, if the wallet is a delegate, resigned or not.
    pub fn username(&self) -> Option<&str> {
        self.delegate.as_deref().map(|delegate| &*delegate.username)
    }

    /// What the wallet adds to the vote weight of the delegate it votes for: balance plus locked balance.
    pub fn weight(&self) -> Balance {
        self.balance
    }

    pub(super) fn delegate_mut(&mut self) -> Option<&mut DelegateAttributes> {
        self.delegate.as_mut().map(Arc::make_mut)
    }
}

/// What a delegate has beside its wallet. Source: consensus.md 1.6.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelegateAttributes {
    pub username: Arc<str>,
    pub vote_balance: Balance,
    pub forged_fees: Balance,
    pub forged_rewards: Balance,
    pub produced_blocks: u32,
    /// Slots the delegate owned and left empty.
    pub missed_blocks: u32,
    /// 1 is the heaviest; renewed at every round boundary, `None` before the first one and once resigned.
    pub rank: Option<u32>,
    /// The last round the delegate was active in.
    pub round: u32,
    pub resigned: bool,
    pub last_block: Option<LastBlock>,
}

impl DelegateAttributes {
    pub(super) fn new(username: Arc<str>) -> Self {
        Self {
            username,
            vote_balance: Balance::ZERO,
            forged_fees: Balance::ZERO,
            forged_rewards: Balance::ZERO,
            produced_blocks: 0,
            missed_blocks: 0,
            rank: None,
            round: 0,
            resigned: false,
            last_block: None,
        }
    }
}

/// The last block a delegate forged on this chain; equal by id.
#[derive(Clone, Debug)]
pub struct LastBlock(pub Arc<Block>);

impl PartialEq for LastBlock {
    fn eq(&self, other: &Self) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for LastBlock {}
