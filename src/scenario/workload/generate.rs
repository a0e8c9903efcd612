//! A generator: its wallets are funded first. Then they send transactions by the mix and at the rate, or as the rows of a file
//! specify.

use super::{
    Arrivals, Generate, Kind, SourceContext,
    make::{LazyPair, Maker, OpenLock, Sender, holds_up},
    trace::{Recipient, TraceRow},
};
use crate::{
    actors::{Choices, NodeId, SimTime, Submission, message::Transactions},
    ledger::{
        Link, State,
        codec::{LoadError, Loader, Save, Saver, saved},
    },
    protocol::{
        Address, Arktoshi, KeyPair, Nonce, PrivateKey, SignedTransaction, Transaction, TransactionId,
        transaction::Payment,
    },
    sim::source::{Poll, Source},
};
use rand::{Rng, seq::SliceRandom};
use rand_distr::{Distribution as _, Exp};
use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

/// The number of wallets that one transaction funds.
const FUNDED_AT_ONCE: usize = 64;
/// The time between two checks whether the wallets are funded, or whether the network accepts transactions of version 2. A slot, if that
/// is shorter.
const PATIENCE: Duration = Duration::from_secs(8);
/// The largest number of pending transactions of one sender. It is below the limit of pools, because not all of them reach a block at
/// once.
const PENDING_LIMIT: u64 = 40;
/// The number of slots after which a transaction that is on no chain is given up, with the later ones of its sender.
const GIVEN_UP_AFTER: u32 = 60;
/// The number of senders that are tried for a transaction.
const TRIES: usize = 8;
/// The draws of a transaction: its type, the senders that are tried, the content, and the time until the next one.
const KIND: u64 = 1;
const SENDERS: u64 = 2;
const TRIED: u64 = 3;
const GAP: u64 = 4;
/// The parts of a transaction that are drawn separately.
const AMOUNT: u64 = 1;
const FEE: u64 = 2;
const VENDOR_FIELD: u64 = 3;

/// Makes transactions of every type.
#[derive(Clone)]
pub(crate) struct Generator {
    network: SourceContext,
    plan: Generate,
    /// The rows of a recorded load, one for each transaction.
    rows: Option<Arc<[TraceRow]>>,
    choices: Choices,
    senders: Vec<(Sender, Pending)>,
    /// The numbers of all senders, ascending.
    order: Vec<usize>,
    locks: Vec<OpenLock>,
    mix: Vec<(Kind, f64)>,
    funding: Funding,
    /// The instant the next transaction is due.
    due: Option<SimTime>,
    /// The number of the last transaction that was due.
    number: u64,
}

/// The wallets of a generator. Deriving their keys takes longer than everything else, so it is done when the run is planned.
#[derive(Clone)]
pub(crate) struct Wallets {
    /// The key pair of each wallet, and the private key of its second pair.
    keys: Arc<[(KeyPair, PrivateKey)]>,
    choices: Choices,
}

impl Wallets {
    /// Makes the wallets of a generator.
    pub fn new(network: &SourceContext, plan: &Generate) -> Self {
        let mut random = network.seeds.stream("generate");
        let crypto = network.tree.config().crypto;
        let mut draw = || loop {
            if let Ok(key) = PrivateKey::new(random.random()) {
                return key;
            }
        };
        let keys = (0..plan.wallets).map(|_| (KeyPair::new(draw(), crypto), draw())).collect();
        Self { keys, choices: network.seeds.choices("transactions") }
    }
}

/// The pending transactions of a sender.
#[derive(Clone, Copy, Default)]
struct Pending {
    /// The last nonce used.
    nonce: u64,
    /// Nothing more is sent before the chain has that nonce.
    held_up: bool,
    /// The time at which the last one was submitted.
    last: SimTime,
    /// The id of the last one that was submitted.
    id: Option<TransactionId>,
}

#[derive(Clone, Copy)]
enum Funding {
    NotYet,
    Asked,
    Done,
}

impl Generator {
    /// A generator that has done nothing yet.
    pub fn new(network: SourceContext, (plan, wallets, rows): (Generate, Wallets, Option<Arc<[TraceRow]>>)) -> Self {
        let (byte, crypto) = (network.tree.config().network.pub_key_hash, network.tree.config().crypto);
        let sender = |(number, (keys, second)): (u32, &(KeyPair, PrivateKey))| {
            let (keys, second) = (keys.clone(), second.clone());
            let second: LazyPair = Arc::new(LazyLock::new(Box::new(move || KeyPair::new(second, crypto))));
            let address = keys.address(byte);
            (Sender { keys, address, second, number, made: 0 }, Pending::default())
        };
        let senders = (0..).zip(&*wallets.keys).map(sender).collect();
        let mix = match plan.mix.is_empty() {
            true => vec![(Kind::Transfer, 1.0)],
            false => plan.mix.iter().map(|(kind, share)| (*kind, *share)).collect(),
        };
        Self {
            network,
            choices: wallets.choices,
            order: (0..plan.wallets as usize).collect(),
            plan,
            rows,
            senders,
            locks: Vec::new(),
            mix,
            funding: Funding::NotYet,
            due: None,
            number: 0,
        }
    }

    /// The transactions that fund the wallets. Each account funds its part of them, at one node.
    fn fund(&mut self, state: &State) -> Vec<(NodeId, Transactions)> {
        let byte = self.network.tree.config().network.pub_key_hash;
        let amount = Arktoshi::coins(self.plan.funding.into());
        let payments: Vec<Payment> =
            self.senders.iter().map(|(sender, _)| Payment { amount, recipient: sender.address }).collect();
        let accounts = self.network.testnet.accounts.clone();
        let mut nonces: Vec<u64> = accounts.iter().map(|account| nonce(state, &account.address)).collect();
        let mut handed_in = Vec::new();
        for (index, part) in payments.chunks(FUNDED_AT_ONCE).enumerate() {
            let (account, nonce) = (&accounts[index % accounts.len()], &mut nonces[index % accounts.len()]);
            *nonce += 1;
            let builder = match part {
                [Payment { amount, recipient }] => Transaction::transfer(*recipient, *amount),
                part => Transaction::multi_payment(part.to_vec()),
            };
            let signed = builder.network(byte).nonce(Nonce(*nonce)).sign(&account.keys);
            // An account always uses the same node: at another one, a later nonce could arrive before an earlier one.
            let node = index % accounts.len() % self.network.nodes.len();
            handed_in.push((self.network.nodes[node], one(signed)));
        }
        handed_in
    }

    /// The transactions due by now.
    fn next_ones(&mut self, now: SimTime, state: &State) -> Vec<(NodeId, Transactions)> {
        let mut handed_in = Vec::new();
        while let Some(due) = self.due.filter(|due| *due <= now) {
            handed_in.extend(self.next_one(now, state));
            self.due = self.gap().map(|gap| due + gap);
        }
        handed_in
    }

    fn next_one(&mut self, now: SimTime, state: &State) -> Option<(NodeId, Transactions)> {
        self.number += 1;
        let row = self.rows.as_ref().and_then(|rows| rows.get(self.number as usize - 1)).cloned();
        let kind = row.as_ref().and_then(|row| row.kind).unwrap_or_else(|| self.draw_kind());
        let (some, count) = match row.as_ref().and_then(|row| row.sender) {
            Some(sender) => ([sender as usize; TRIES], 1),
            None => self.some_senders(),
        };
        let mut some = some.into_iter().take(count);
        let (index, made) =
            some.find_map(|index| Some((index, self.made_by(index, kind, row.as_ref(), now, state)?)))?;
        // A sender always uses the same node: at another one, a later nonce could arrive before an earlier one.
        Some((self.network.nodes[index % self.network.nodes.len()], one(made)))
    }

    /// Draws the numbers of up to [`TRIES`] senders without repetition. Also returns how many there are.
    fn some_senders(&mut self) -> ([usize; TRIES], usize) {
        let (drawn, _) = self.order.partial_shuffle(&mut self.choices.at(&[self.number, SENDERS]), TRIES);
        let (mut some, count) = ([0; TRIES], drawn.len());
        some[..count].copy_from_slice(drawn);
        // The shuffle exchanged numbers only between the places of the drawn ones and the last places, so this restores the order.
        for place in some[..count].iter().copied().chain(self.order.len() - count..self.order.len()) {
            self.order[place] = place;
        }
        (some, count)
    }

    fn made_by(
        &mut self,
        index: usize,
        kind: Kind,
        row: Option<&TraceRow>,
        now: SimTime,
        state: &State,
    ) -> Option<SignedTransaction> {
        let tried = [self.number, TRIED, index as u64];
        let [number, what, sender] = tried;
        let amount = self.plan.amount.draw(&mut self.choices.at(&[number, what, sender, AMOUNT])) * 1e8;
        let fee = self.plan.fee.draw(&mut self.choices.at(&[number, what, sender, FEE]));
        let amount = row
            .and_then(|row| row.amount)
            .unwrap_or_else(|| Arktoshi::new((amount as u64).max(1)).unwrap_or(Arktoshi::MAX));
        let lengths = self.plan.vendor_field.as_ref();
        let drawn = || Some(lengths?.draw(&mut self.choices.at(&[number, what, sender, VENDOR_FIELD])));
        let vendor_field = row.and_then(|row| row.vendor_field).or_else(drawn);
        let byte = self.network.tree.config().network.pub_key_hash;
        let recipient = row.and_then(|row| row.recipient).map(|recipient| match recipient {
            Recipient::Wallet(wallet) => self.senders[wallet as usize].0.address,
            Recipient::Address(hash) => {
                let mut address = [byte; 21];
                address[1..].copy_from_slice(&hash);
                Address::from_bytes(address)
            }
        });
        let given_up_after = self.slot() * GIVEN_UP_AFTER;
        let (sender, pending) = &mut self.senders[index];
        let wallet = state.wallet(&sender.address);
        let on_chain = wallet.map_or(0, |wallet| wallet.nonce.0);
        if pending.nonce <= on_chain || now.since(pending.last) > given_up_after {
            // The generator no longer waits for the nonce of the last one, whether or not a block takes it.
            *pending = Pending { nonce: on_chain, held_up: false, last: pending.last, id: None };
        }
        let waiting = pending.nonce - on_chain;
        if pending.held_up || waiting >= PENDING_LIMIT || (holds_up(kind) && waiting > 0) {
            return None;
        }
        let mut maker = Maker {
            network: &self.network,
            state,
            random: self.choices.at(&tried),
            locks: &mut self.locks,
            amount,
            recipient,
            vendor_field,
            fee,
        };
        let made = maker.make(kind, sender, wallet?, pending.nonce + 1)?;
        let (nonce, held_up) = (pending.nonce + 1, holds_up(kind));
        *pending = Pending { nonce, held_up, last: now, id: Some(made.id()) };
        Some(made)
    }

    fn draw_kind(&mut self) -> Kind {
        let mut place =
            self.choices.at(&[self.number, KIND]).random_range(0.0..self.mix.iter().map(|(_, share)| share).sum());
        for (kind, share) in &self.mix {
            if place < *share {
                return *kind;
            }
            place -= share;
        }
        self.mix[self.mix.len() - 1].0
    }

    /// The time until the next transaction is due; `None` after the last row of a file.
    fn gap(&self) -> Option<Duration> {
        if let Some(rows) = &self.rows {
            let next = self.number as usize;
            let before = next.checked_sub(1).map_or(Some(Duration::ZERO), |before| Some(rows.get(before)?.at))?;
            return Some(rows.get(next)?.at.saturating_sub(before));
        }
        let seconds = match self.plan.arrivals {
            Arrivals::Even => 1.0 / self.plan.per_second,
            Arrivals::Poisson => Exp::new(self.plan.per_second)
                .expect("the rate was checked to be positive")
                .sample(&mut self.choices.at(&[self.number, GAP])),
        };
        Some(Duration::from_secs_f64(seconds.clamp(1e-6, 1e9)))
    }

    /// The length of a slot.
    fn slot(&self) -> Duration {
        Duration::from_secs(self.network.tree.slots().blocktime().into())
    }

    fn is_funded(&self, state: &State) -> bool {
        self.senders.iter().all(|(sender, _)| state.wallet(&sender.address).is_some())
    }
}

impl Source for Generator {
    fn poll(&mut self, now: SimTime, tip: &Arc<Link>) -> Poll {
        let tree = self.network.tree.clone();
        let applied = tree.applied(tip);
        let state = &applied.state;
        let again = Some(now + PATIENCE.min(self.slot()));
        let later = |submissions| Poll { submissions, again, ..Poll::default() };
        // The times of a file count from the beginning of the workload, regardless of the time that the funding takes.
        if self.rows.is_some() && self.number == 0 && self.due.is_none() {
            self.due = self.gap().map(|gap| now + gap);
        }
        if !tree.config().milestones.at(tip.height()).aip11 {
            return later(Vec::new());
        }
        match self.funding {
            Funding::NotYet => {
                self.funding = Funding::Asked;
                return later(self.fund(state));
            }
            Funding::Asked if !self.is_funded(state) => return later(Vec::new()),
            Funding::Asked => {
                self.funding = Funding::Done;
                if self.rows.is_none() {
                    self.due = self.gap().map(|gap| now + gap);
                }
            }
            Funding::Done => {}
        }
        let submissions = self.next_ones(now, state);
        Poll { submissions, again: self.due, ..Poll::default() }
    }

    /// Frees the nonce of a refused transaction.
    fn answered(&mut self, _: SimTime, submission: &Submission) {
        for (id, _) in &submission.errors {
            if let Some((_, pending)) = self.senders.iter_mut().find(|(_, pending)| pending.id == Some(*id)) {
                *pending = Pending { nonce: pending.nonce - 1, held_up: false, last: pending.last, id: None };
            }
        }
    }

    fn save(&self, out: &mut Saver) {
        // Between draws, the order is always as it was made.
        let Self { network, plan: _, rows: _, choices, senders, order: _, locks, mix: _, funding, due, number } = self;
        network.nodes.save(out);
        choices.save(out);
        locks.save(out);
        funding.save(out);
        due.save(out);
        number.save(out);
        for (Sender { keys: _, address: _, second: _, number: _, made }, pending) in senders {
            made.save(out);
            pending.save(out);
        }
    }

    fn go_on(&mut self, from: &mut Loader) -> Result<(), LoadError> {
        self.network.nodes = Save::load(from)?;
        self.choices = Save::load(from)?;
        self.locks = Save::load(from)?;
        self.funding = Save::load(from)?;
        self.due = Save::load(from)?;
        self.number = Save::load(from)?;
        for (sender, pending) in &mut self.senders {
            (sender.made, *pending) = Save::load(from)?;
        }
        Ok(())
    }

    fn draw_anew(&mut self, choices: Choices) {
        self.choices = choices;
    }
}

/// The nonce of a wallet on the chain.
pub(crate) fn nonce(state: &State, address: &Address) -> u64 {
    state.wallet(address).map_or(0, |wallet| wallet.nonce.0)
}

/// A submission of one transaction.
pub(crate) fn one(transaction: SignedTransaction) -> Transactions {
    Arc::new([Arc::new(transaction)])
}

saved!(struct Pending { nonce, held_up, last, id });
saved!(enum Funding { 0 NotYet, 1 Asked, 2 Done });
saved!(struct OpenLock { id, secret });
