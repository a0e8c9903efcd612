//! A state as bytes: wallets in the order in which the chain first named them, then each list.

use super::{Applied, State};
use crate::{
    ledger::{
        codec::{LoadError, Loader, Save, Saver, saved, shared},
        votes::LaterVote,
        wallet::{
            Attributes, Bridgechain, Business, DelegateAttributes, Htlc, LastBlock, Lock, MultiSignature,
            SharedAttributes, Wallet,
        },
        wallets::Wallets,
    },
    protocol::{Address, Block, BlockHeader, BlockId, transaction::Expiration},
};
use imbl::OrdMap;
use std::sync::Arc;

saved!(struct Applied { state, senders });
shared!(Applied);

impl Save for State {
    fn save(&self, out: &mut Saver) {
        self.save_with(self.wallets.iter(), out);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        // All states of a network share the numbers of its wallets with genesis.
        let none = from.tree().genesis_applied().state.wallets.none();
        Self::load_on(none, from)
    }
}

impl State {
    /// Saves the state without the wallets that are the same in another one.
    #[cfg(feature = "cli")]
    pub(in crate::ledger) fn save_since(&self, before: &Self, out: &mut Saver) {
        self.save_with(self.wallets_changed_since(before).into_iter(), out);
    }

    /// Reads what [`State::save_since`] has written.
    ///
    /// # Errors
    /// The bytes are none of such a state.
    #[cfg(feature = "cli")]
    pub(in crate::ledger) fn load_since(before: &Self, from: &mut Loader) -> Result<Self, LoadError> {
        Self::load_on(before.wallets.clone(), from)
    }

    fn save_with<'w>(&self, changed: impl ExactSizeIterator<Item = &'w Arc<Wallet>>, out: &mut Saver) {
        let Self {
            height,
            timestamp,
            wallets: _,
            usernames,
            live_delegates,
            locks,
            ipfs,
            businesses,
            round,
            forged_in_round,
            election,
            finality,
            supply,
            transactions,
            network_byte,
        } = self;
        height.save(out);
        timestamp.save(out);
        out.list(changed.len(), changed.map(|wallet| &**wallet));
        save_map(usernames, out);
        live_delegates.save(out);
        save_map(locks, out);
        save_map(ipfs, out);
        out.list(businesses.len(), businesses);
        round.save(out);
        forged_in_round.save(out);
        election.save(out);
        finality.save(out);
        supply.save(out);
        transactions.save(out);
        network_byte.save(out);
    }

    /// Loads a state. Wallets that `from` does not contain are those of `wallets`.
    fn load_on(wallets: Wallets, from: &mut Loader) -> Result<Self, LoadError> {
        Ok(Self {
            height: Save::load(from)?,
            timestamp: Save::load(from)?,
            wallets: load_wallets(wallets, from)?,
            usernames: load_map(from)?,
            live_delegates: Save::load(from)?,
            locks: load_map(from)?,
            ipfs: load_map(from)?,
            businesses: from.list::<Address, _>()?,
            round: Save::load(from)?,
            forged_in_round: Save::load(from)?,
            election: Save::load(from)?,
            finality: Save::load(from)?,
            supply: Save::load(from)?,
            transactions: Save::load(from)?,
            network_byte: Save::load(from)?,
        })
    }
}

fn save_map<K: Save + Ord + Clone, V: Save + Clone>(map: &OrdMap<K, V>, out: &mut Saver) {
    out.number(map.len() as u64);
    for (key, value) in map {
        key.save(out);
        value.save(out);
    }
}

fn load_map<K: Save + Ord + Clone, V: Save + Clone>(from: &mut Loader) -> Result<OrdMap<K, V>, LoadError> {
    from.list::<(K, V), _>()
}

/// Loads wallets into a map. New ones come in the order in which the chain named them.
fn load_wallets(mut wallets: Wallets, from: &mut Loader) -> Result<Wallets, LoadError> {
    for _ in 0..from.length()? {
        let wallet = Wallet::load(from)?;
        let place = wallets.get_mut(wallet.address);
        if wallet.first_seen != place.first_seen {
            return Err(from.wrong("wallet in the order of the chain", wallet.first_seen));
        }
        *place = wallet;
    }
    Ok(wallets)
}

saved!(struct Wallet { first_seen, address, public_key, balance, nonce, attributes });
saved!(struct SharedAttributes(attributes));
saved!(struct LaterVote { delegate, address });
saved!(struct DelegateAttributes {
    username, registered, vote_balance, forged_fees, forged_rewards, produced_blocks, missed_blocks, rank, round, resigned,
    last_block,
});
saved!(struct MultiSignature { min, public_keys });
saved!(struct Htlc { locks, locked_balance });
saved!(struct Lock { amount, recipient, timestamp, vendor_field, secret_hash, expiration });
saved!(enum Expiration { 0 EpochTime(seconds), 1 BlockHeight(height) });
saved!(struct Business { name, website, vat, repository, resigned, bridgechains });
saved!(struct Bridgechain { name, seed_nodes, genesis_hash, repository, asset_repository, ports, resigned });
shared!(Attributes, DelegateAttributes, MultiSignature, Htlc, Business, Vec<LaterVote>, Vec<Vec<u8>>);

/// The byte before a list of several votes. Without a list, 0 for no vote or 1 for one stands there, as in the format before several
/// votes existed.
const SEVERAL: u8 = 2;

impl Save for Attributes {
    fn save(&self, out: &mut Saver) {
        let Self {
            vote,
            vote_address,
            later_votes,
            second_public_key,
            multi_signature,
            delegate,
            htlc,
            ipfs,
            business,
        } = self;
        if let Some(later) = later_votes {
            out.raw(&[SEVERAL]);
            later.save(out);
        }
        vote.save(out);
        vote_address.save(out);
        second_public_key.save(out);
        multi_signature.save(out);
        delegate.save(out);
        htlc.save(out);
        ipfs.save(out);
        business.save(out);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let later_votes = if from.skip(SEVERAL) { Some(Save::load(from)?) } else { None };
        Ok(Self {
            vote: Save::load(from)?,
            vote_address: Save::load(from)?,
            later_votes,
            second_public_key: Save::load(from)?,
            multi_signature: Save::load(from)?,
            delegate: Save::load(from)?,
            htlc: Save::load(from)?,
            ipfs: Save::load(from)?,
            business: Save::load(from)?,
        })
    }
}

/// Saves the whole block, because the reader may have no tree that holds it.
impl Save for LastBlock {
    fn save(&self, out: &mut Saver) {
        let Self(block) = self;
        block.id.save(out);
        block.header.save(out);
        block.transactions.save(out);
    }

    fn load(from: &mut Loader) -> Result<Self, LoadError> {
        let (id, header) = (BlockId::load(from)?, BlockHeader::load(from)?);
        Ok(Self(Arc::new(Block::new(id, header, Vec::load(from)?))))
    }
}
