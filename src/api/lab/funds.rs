//! Payments from a testnet's funded accounts, by real transactions that these sign: transfers, and multipayments for several payments
//! at once. The last accounts pay first, so that tests that use the first ones are not disturbed.
//!
//! Nonces and balances are read from the chain's newest block and the pool together, one request at a time. Another user of the same
//! accounts may still be faster. A transaction that is refused for this reason is signed anew.

use crate::{
    actors::Submission,
    api::{
        http::error::ApiError,
        view::{Head, View},
    },
    ledger::{BlockTree, apply::cost, rules::PoolRules},
    protocol::{
        Address, Arktoshi, KeyPair, Nonce, SignedTransaction, Transaction, TransactionId,
        crypto::CryptoMode,
        transaction::{Asset, Payment},
    },
    scenario::{Account, testnet::secret},
    sim::{LiveHandle, SeedTree},
};
use std::{
    collections::{BTreeSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};
use tokio::sync::Mutex;

/// The largest number of payments in one multipayment. The milestone may allow fewer.
const PART: usize = 100;
/// The coin that an account keeps back for each transaction: more than any fee.
const RESERVE: Arktoshi = Arktoshi::coins(1);
/// The number of times that a refused transaction is signed anew.
const ATTEMPTS: u32 = 5;

/// The accounts whose keys are known.
pub struct Funds {
    accounts: Vec<Account>,
    seeds: SeedTree,
    /// Fresh accounts made so far.
    made: AtomicU32,
    /// One request at a time.
    turn: Mutex<()>,
}

/// A new account.
pub struct Fresh {
    pub passphrase: String,
    pub keys: KeyPair,
    pub address: Address,
}

/// An account that pays.
struct Purse<'f> {
    keys: &'f KeyPair,
    nonce: Nonce,
    /// The balance [arktoshi], without everything pending.
    there: i128,
    /// The number of further transactions that a pool accepts from the account.
    room: usize,
}

impl Funds {
    /// The funds of these accounts. The keys of new accounts are drawn from `seeds`.
    pub fn new(accounts: Vec<Account>, seeds: SeedTree) -> Self {
        Self { accounts, seeds, made: AtomicU32::new(0), turn: Mutex::new(()) }
    }

    /// A copy with the same accounts, for a network that diverges from now on.
    #[must_use]
    pub fn apart(&self) -> Self {
        let made = AtomicU32::new(self.made.load(Ordering::Relaxed));
        Self { accounts: self.accounts.clone(), seeds: self.seeds, made, turn: Mutex::new(()) }
    }

    /// The accounts.
    pub fn accounts(&self) -> &[Account] {
        &self.accounts
    }

    /// Makes all payments, and returns the ids of the transactions.
    ///
    /// # Errors
    /// The accounts have less than the amount, or the pool refuses transactions. It may have accepted others before, such as those that
    /// filled it. Then the message names them.
    pub async fn pay(
        &self,
        (view, live): (&View, &LiveHandle),
        payments: Vec<Payment>,
    ) -> Result<Vec<TransactionId>, ApiError> {
        let _turn = self.turn.lock().await;
        self.pay_in_turn((view, live), payments).await
    }

    /// Creates `count` new accounts and pays `balance` to each.
    ///
    /// # Errors
    /// As [`Funds::pay`]; no account is made then.
    pub async fn open(
        &self,
        (view, live): (&View, &LiveHandle),
        count: u32,
        balance: Arktoshi,
    ) -> Result<(Vec<Fresh>, Vec<TransactionId>), ApiError> {
        let _turn = self.turn.lock().await;
        let config = view.tree().config();
        let (byte, crypto) = (config.network.pub_key_hash, config.crypto);
        let made = self.made(&view.head(), byte, crypto);
        let fresh: Vec<Fresh> = (made + 1..=made.saturating_add(count))
            .map(|number| {
                let (passphrase, keys) = self.fresh(number, crypto);
                Fresh { passphrase, address: keys.public().address(byte), keys }
            })
            .collect();
        let payments = fresh.iter().map(|fresh| Payment { amount: balance, recipient: fresh.address });
        let ids = self.pay_in_turn((view, live), payments.collect()).await?;
        self.made.store(made + count, Ordering::Relaxed);
        Ok((fresh, ids))
    }

    /// The number of new accounts made so far. It includes accounts that the chain or the pool knows from before the process began.
    fn made(&self, head: &Head, byte: u8, crypto: CryptoMode) -> u32 {
        let pending: Vec<Payment> = head.pending().ordered().iter().flat_map(|one| payments_of(one)).collect();
        let is_known = |number: &u32| {
            let address = self.fresh(*number, crypto).1.public().address(byte);
            head.state().wallet(&address).is_some() || pending.iter().any(|payment| payment.recipient == address)
        };
        let made = self.made.load(Ordering::Relaxed);
        let known = (made + 1..).take_while(is_known).count();
        made.saturating_add(u32::try_from(known).unwrap_or(u32::MAX))
    }

    /// Passphrase and keys of a fresh account, numbered from 1 on.
    fn fresh(&self, number: u32, crypto: CryptoMode) -> (String, KeyPair) {
        secret(self.seeds, &format!("keys/lab/{number}"), crypto)
    }

    async fn pay_in_turn(
        &self,
        (view, live): (&View, &LiveHandle),
        payments: Vec<Payment>,
    ) -> Result<Vec<TransactionId>, ApiError> {
        let (mut left, mut ids, mut refused, mut tried) = (payments, Vec::new(), None, BTreeSet::new());
        for _ in 0..ATTEMPTS {
            let transactions = match self.sign(&view.head(), view.tree(), &left) {
                Ok(transactions) => transactions,
                Err(error) if ids.is_empty() => return Err(error),
                Err(error) => {
                    refused = Some(error.to_string());
                    break;
                }
            };
            // The pool refuses a transaction that it has seen before.
            if transactions.iter().filter(|transaction| tried.insert(transaction.id())).count() == 0 {
                break;
            }
            for transaction in &transactions {
                transaction.verified(view.tree().config().crypto);
            }
            let submitted = live.submit(view.node(), transactions.clone().into()).await?;
            ids.extend(&submitted.accept);
            left = transactions
                .iter()
                .filter(|transaction| !submitted.accept.contains(&transaction.id()))
                .flat_map(|transaction| payments_of(transaction))
                .collect();
            if left.is_empty() {
                return Ok(ids);
            }
            refused = refused.or_else(|| why_refused(&submitted));
        }
        let refused = refused.unwrap_or_else(|| "too many of them are pending".to_owned());
        let taken = match ids.as_slice() {
            [] => "no recipient is paid".to_owned(),
            ids => format!(
                "recipients of these transactions are paid: {}",
                ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            ),
        };
        Err(ApiError::Conflict(format!(
            "the pool does not take the transactions of the funded accounts: {refused}; {taken}"
        )))
    }

    /// Signs transactions for all payments, from the coin that the accounts have after all pending transactions.
    fn sign(
        &self,
        head: &Head,
        tree: &BlockTree,
        payments: &[Payment],
    ) -> Result<Vec<Arc<SignedTransaction>>, ApiError> {
        if self.accounts.is_empty() {
            let why =
                "no account's passphrase is known: the network was loaded, and its coin is in the hands of others";
            return Err(ApiError::Conflict(why.to_owned()));
        }
        let milestone = tree.config().milestones.at(head.height());
        if !milestone.aip11 {
            return Err(ApiError::Conflict(format!(
                "the chain is at height {}, where transactions of version 2 are not taken yet: let a block be forged first",
                head.height()
            )));
        }
        let (limit, byte) = (milestone.multi_payment_limit.min(PART), tree.config().network.pub_key_hash);
        let pool = &tree.rules().pool;
        let purses: Vec<Purse<'_>> =
            self.accounts.iter().rev().filter_map(|account| purse(account, head, pool)).collect();
        let funds: i128 = purses.iter().map(|purse| (purse.there - i128::from(RESERVE.value())).max(0)).sum();
        let mut left: VecDeque<Payment> = payments.iter().cloned().collect();
        let mut signed = Vec::new();
        for mut purse in purses {
            while purse.room > 0
                && let Some(part) = purse.part(&mut left, limit)
            {
                purse.room -= 1;
                let transaction = purse.sign(part, byte, tree);
                purse.there -= cost(&transaction).0;
                purse.nonce = purse.nonce.next();
                signed.push(Arc::new(transaction));
            }
        }
        if left.is_empty() {
            return Ok(signed);
        }
        let asked: i128 = payments.iter().map(|payment| i128::from(payment.amount.value())).sum();
        if asked <= funds {
            return Err(ApiError::Conflict(format!(
                "the funded accounts have as many transactions pending as the pool takes of them, {} of each \
                 (rules.pool.max_transactions_per_sender): let blocks be forged first",
                pool.max_transactions_per_sender
            )));
        }
        Err(ApiError::Unprocessable(format!(
            "{asked} arktoshi were asked for, and the funded accounts have {funds} besides fees"
        )))
    }
}

impl Purse<'_> {
    /// Removes from `left` the payments that fit into one transaction of this account. Splits the last one if needed.
    fn part(&self, left: &mut VecDeque<Payment>, limit: usize) -> Option<Vec<Payment>> {
        let mut room = u64::try_from(self.there - i128::from(RESERVE.value())).unwrap_or(0);
        let mut part = Vec::new();
        while part.len() < limit.max(1)
            && room > 0
            && let Some(next) = left.front_mut()
        {
            let amount = next.amount.value().min(room);
            room -= amount;
            part.push(Payment { amount: arktoshi(amount), recipient: next.recipient });
            next.amount = arktoshi(next.amount.value() - amount);
            if next.amount == Arktoshi::ZERO {
                left.pop_front();
            }
        }
        (!part.is_empty()).then_some(part)
    }

    /// Signs at the static fee, or at the pool's fee for this number of bytes if that is more.
    fn sign(&self, part: Vec<Payment>, byte: u8, tree: &BlockTree) -> SignedTransaction {
        let builder = match &part[..] {
            [Payment { amount, recipient }] => Transaction::transfer(*recipient, *amount),
            _ => Transaction::multi_payment(part),
        };
        let builder = builder.network(byte).nonce(self.nonce);
        let signed = builder.clone().sign(self.keys);
        let pool = &tree.rules().pool;
        let rate = pool.dynamic_fees.as_ref().map(|fees| fees.min_fee_pool.max(fees.min_fee_broadcast));
        match rate.map(|rate| pool.least_fee(&signed, rate)).filter(|least| *least > signed.fee()) {
            Some(least) => builder.fee(least).sign(self.keys),
            None => signed,
        }
    }
}

/// The coin that an account can pay after the newest block and the pool; `None` if paying needs more than one key.
fn purse<'f>(account: &'f Account, head: &Head, pool: &PoolRules) -> Option<Purse<'f>> {
    let wallet = head.state().wallet(&account.address)?;
    if wallet.second_public_key.is_some() || wallet.multi_signature.is_some() {
        return None;
    }
    let (mut nonce, mut there) = (wallet.nonce, wallet.balance.0);
    let is_limited = !pool.allowed_senders.contains(account.keys.public());
    let mut room = if is_limited { pool.max_transactions_per_sender } else { usize::MAX };
    for transaction in head.pending().ordered().iter().filter(|one| one.sender() == account.keys.public()) {
        nonce = nonce.max(transaction.nonce().unwrap_or(nonce));
        there -= cost(transaction).0;
        room = room.saturating_sub(1);
    }
    Some(Purse { keys: &account.keys, nonce: nonce.next(), there, room })
}

fn payments_of(transaction: &SignedTransaction) -> Vec<Payment> {
    match transaction.asset() {
        Asset::MultiPayment { payments } => payments.clone(),
        Asset::Transfer { amount, recipient, .. } => vec![Payment { amount: *amount, recipient: *recipient }],
        _ => Vec::new(),
    }
}

fn why_refused(submission: &Submission) -> Option<String> {
    submission.errors.first().map(|(_, error)| error.to_string())
}

fn arktoshi(amount: u64) -> Arktoshi {
    Arktoshi::new(amount).expect("a part of an amount is one")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purse_of(keys: &KeyPair, coins: i128) -> Purse<'_> {
        Purse { keys, nonce: Nonce(1), there: coins * 100_000_000, room: 300 }
    }

    #[test]
    fn a_payment_is_cut_where_an_account_ends_and_nothing_is_lost() {
        let keys = KeyPair::from_passphrase("purse", CryptoMode::Real);
        let to = |coins| Payment { amount: Arktoshi::coins(coins), recipient: keys.public().address(23) };
        let amounts = |part: Option<Vec<Payment>>| -> Vec<u64> {
            part.into_iter().flatten().map(|payment| payment.amount.value() / 100_000_000).collect()
        };
        let mut left = VecDeque::from([to(3), to(4), to(5)]);
        // One coin is kept back for the fee.
        assert_eq!(amounts(purse_of(&keys, 6).part(&mut left, 100)), [3, 2]);
        assert!(purse_of(&keys, 1).part(&mut left, 100).is_none());
        assert_eq!(amounts(purse_of(&keys, 100).part(&mut left, 1)), [2]);
        assert_eq!(amounts(purse_of(&keys, 100).part(&mut left, 1)), [5]);
        assert!(left.is_empty() && purse_of(&keys, 100).part(&mut left, 1).is_none());
    }
}
