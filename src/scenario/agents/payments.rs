//! The payments of delegates to their voters: promised ones, and ones on their way to the chain.

use super::{
    Offer,
    plan::{AgentGroup, PayingDelegate},
    source::{PATIENCE, balance, signed},
};
use crate::{
    ledger::{BlockTree, Link, State, codec::saved},
    protocol::{
        Address, Arktoshi, Asset, Height, Kind, PublicKey, SignedTransaction, Transaction, transaction::Payment,
    },
};
use std::{
    collections::{BTreeMap, VecDeque},
    iter,
    sync::Arc,
};

/// The largest number of transactions in one request, which is the limit of a public API, and of pending ones of a delegate.
pub(super) const AT_ONCE: usize = 40;
/// The largest number of payments in one transaction.
const PAYMENTS: usize = 64;

/// The payments of a delegate that are not on the chain yet.
#[derive(Clone, Default)]
pub(super) struct PaymentQueue {
    /// The recipients and amounts of each transaction \[arktoshi\].
    queue: VecDeque<Vec<(Address, u64)>>,
    /// The number of these that were handed in, from the first one on.
    sent: u32,
    /// The delegate's nonce on the chain before the first of these.
    nonce: u64,
    /// The height of the chain since which the queue waits for the first of these.
    since: u32,
    /// The rewards and fees that earlier payments have shared \[arktoshi\].
    shared: u64,
    /// The sum that the delegate has sent to others, as the chain shows \[arktoshi\].
    pub paid: u64,
}

impl PaymentQueue {
    /// An empty queue of a delegate that shares its income from now on.
    pub fn new(delegate: &PayingDelegate, state: &State) -> Self {
        Self { shared: income(state, &delegate.address), ..Self::default() }
    }

    /// Returns true if no payment is on its way.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the payments to submit now. `on_chain` is the delegate's nonce on the chain.
    pub fn due(
        &mut self,
        height: u32,
        on_chain: u64,
        delegate: &PayingDelegate,
        byte: u8,
    ) -> Vec<Arc<SignedTransaction>> {
        while self.sent > 0 && self.nonce < on_chain {
            self.queue.pop_front();
            self.sent -= 1;
            self.nonce += 1;
            self.since = height;
        }
        if self.sent == 0 || height.saturating_sub(self.since) >= PATIENCE {
            (self.sent, self.nonce, self.since) = (0, on_chain, height);
        }
        let until = self.queue.len().min(AT_ONCE);
        let new = (self.sent as usize..until).map(|place| {
            let part = self.queue[place].iter().map(|(recipient, amount)| Payment {
                amount: Arktoshi::new(*amount).unwrap_or(Arktoshi::MAX),
                recipient: *recipient,
            });
            let part: Vec<Payment> = part.collect();
            let builder = match part[..] {
                [Payment { amount, recipient }] => Transaction::transfer(recipient, amount),
                _ => Transaction::multi_payment(part),
            };
            signed(builder, self.nonce + place as u64 + 1, &delegate.keys, byte)
        });
        let new = new.collect();
        self.sent = until as u32;
        new
    }

    /// Queues the payments that an offer promises to these voters, each with the balance behind its votes. `fee` is the fee of a
    /// transaction \[arktoshi\].
    fn promise(&mut self, mut voters: Vec<(Address, u64)>, offer: Offer, fee: u64, delegate: &Address, state: &State) {
        let earned = income(state, delegate);
        let fees = fee * (self.queue.len() + voters.len().div_ceil(PAYMENTS)) as u64;
        let queued: u64 = self.queue.iter().flatten().map(|(_, amount)| amount).sum();
        // The delegate never promises more than it has, because a payment without cover would block the later ones.
        let mut left = balance(state, delegate).saturating_sub(queued + fees);
        match offer {
            Offer::Share(share) => {
                let pool = (earned.saturating_sub(self.shared) as f64 * share).min(left as f64);
                let weight: f64 = voters.iter().map(|(_, balance)| *balance as f64).sum();
                for (_, balance) in &mut voters {
                    *balance = (pool * (*balance as f64 / weight.max(1.0))) as u64;
                }
            }
            Offer::Each(price) => {
                for (_, amount) in &mut voters {
                    *amount = if left >= price.value() { price.value() } else { 0 };
                    left -= *amount;
                }
            }
        }
        self.shared = earned;
        voters.retain(|(_, amount)| *amount > 0);
        self.queue.extend(voters.chunks(PAYMENTS).map(<[_]>::to_vec));
    }
}

/// Queues the payments of a group's delegates to those who vote for them now.
pub(super) fn pay(group: &AgentGroup, queues: &mut [PaymentQueue], offer: Offer, tree: &BlockTree, state: &State) {
    if group.payers.is_empty() {
        return;
    }
    let fee = tree.config().milestones.at(state.height().next()).fees.get(Kind::MultiPayment).value();
    let mut voters: BTreeMap<PublicKey, Vec<(Address, u64)>> =
        group.delegates.iter().map(|key| (*key, Vec::new())).collect();
    for wallet in state.wallets() {
        let balance = tree.rules().ledger.votes.weight_of(wallet.balance).or_zero();
        for vote in wallet.votes() {
            match voters.get_mut(&vote).map(|of| (of.last().copied(), of)) {
                // Another vote of the same wallet.
                Some((Some((voter, sum)), of)) if voter == wallet.address => {
                    of.pop();
                    of.push((voter, sum + balance));
                }
                Some((_, of)) => of.push((wallet.address, balance)),
                None => {}
            }
        }
    }
    for ((key, PayingDelegate { address, .. }), queue) in group.delegates.iter().zip(&group.payers).zip(queues) {
        let mut own = voters.remove(key).unwrap_or_default();
        own.retain(|(voter, _)| voter != address);
        queue.promise(own, offer, fee, address, state);
    }
}

/// Counts the payments in the blocks of the round that ends in this one.
pub(super) fn count(groups: &[AgentGroup], queues: &mut [Vec<PaymentQueue>], tree: &BlockTree, end: &Arc<Link>) {
    let mut of_delegate: BTreeMap<Address, &mut PaymentQueue> = BTreeMap::new();
    for (group, queues) in groups.iter().zip(queues) {
        of_delegate.extend(group.payers.iter().map(|payer| payer.address).zip(queues));
    }
    if of_delegate.is_empty() {
        return;
    }
    let first = tree.schedule().at(end.height()).first.max(Height(2));
    let blocks = iter::successors(Some(end.clone()), |link| link.parent());
    for link in blocks.take_while(|link| link.height() >= first) {
        for transaction in &link.block().transactions {
            if let Some(queue) = of_delegate.get_mut(&transaction.sender_address()) {
                queue.paid += sent(transaction);
            }
        }
    }
}

/// All that a delegate has earned by forging \[arktoshi\].
fn income(state: &State, delegate: &Address) -> u64 {
    let delegate = state.wallet(delegate).and_then(|wallet| wallet.delegate.as_ref());
    delegate.map_or(0, |delegate| (delegate.forged_rewards + delegate.forged_fees).or_zero())
}

/// The sum that a transaction sends to others \[arktoshi\].
fn sent(transaction: &SignedTransaction) -> u64 {
    match transaction.asset() {
        Asset::MultiPayment { payments } => payments.iter().map(|payment| payment.amount.value()).sum(),
        _ => transaction.amount().value(),
    }
}

saved!(struct PaymentQueue { queue, sent, nonce, since, shared, paid });
