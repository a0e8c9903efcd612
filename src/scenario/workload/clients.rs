//! The clients of faults: spam, a flood, a vote swing, resignations.

use super::{
    SourceContext,
    generate::{nonce, one},
    goes_on,
};
use crate::{
    actors::{Choices, NodeId, SimTime, message::Transactions},
    ledger::Link,
    protocol::{Arktoshi, KeyPair, Nonce, PublicKey, RoundNumber, SignedTransaction, Slot, Transaction, Vote},
    sim::{
        fault::{Boundary, LowFeeFlood, SpamPool, VoteSwing},
        source::{Poll, Source},
    },
};
use rand::Rng;
use std::{sync::Arc, time::Duration};

/// The largest number of transactions in one request, which is the limit of a public API.
const AT_ONCE: usize = 40;
/// The time into a slot at which a swing submits its votes: before the earliest moment at which the slot's block is forged.
const INTO_SLOT: Duration = Duration::from_millis(300);

/// Worthless transactions of three kinds in turn: from an empty wallet, with a gap before the nonce, and with an invalid
/// signature.
#[derive(Clone)]
pub(crate) struct Spammer {
    network: SourceContext,
    plan: SpamPool,
    choices: Choices,
    made: usize,
}

/// Transfers of the accounts that pay the lowest fee that pools accept.
#[derive(Clone)]
pub(crate) struct Flooder {
    network: SourceContext,
    plan: LowFeeFlood,
    /// The last nonce each account has used.
    nonces: Vec<u64>,
    made: usize,
}

/// Accounts that change sides in the same block.
#[derive(Clone)]
pub(crate) struct Swing {
    network: SourceContext,
    plan: VoteSwing,
    done: bool,
}

/// Delegates that resign together.
#[derive(Clone)]
pub(crate) struct Resignations {
    network: SourceContext,
    who: Vec<NodeId>,
}

impl Spammer {
    pub fn new(network: SourceContext, plan: SpamPool) -> Self {
        Self { choices: network.seeds.choices("spam"), network, plan, made: 0 }
    }

    fn worthless(&mut self) -> Option<SignedTransaction> {
        let byte = self.network.tree.config().network.pub_key_hash;
        let accounts = &self.network.testnet.accounts;
        let account = &accounts[self.made % accounts.len()].keys;
        let mut random = self.choices.at(&[self.made as u64]);
        let amount = Arktoshi::new(1 + random.random_range(0..1_000_000))?;
        let transfer = Transaction::transfer(account.public().address(byte), amount).network(byte);
        Some(match self.made % 3 {
            0 => transfer.sign(&KeyPair::from_private(random.random(), self.network.tree.config().crypto).ok()?),
            1 => transfer.nonce(Nonce(1_000_000 + self.made as u64)).sign(account),
            _ => {
                let mut content = transfer.nonce(Nonce(1)).sign(account).into_transaction();
                let last = content.signature.as_mut()?.last_mut()?;
                *last ^= 1;
                SignedTransaction::new(content)
            }
        })
    }
}

impl Source for Spammer {
    fn poll(&mut self, now: SimTime, _: &Arc<Link>) -> Poll {
        let node = self.network.nodes[self.made % self.network.nodes.len()];
        let made = self.worthless();
        self.made += 1;
        let submissions = made.into_iter().map(|made| (node, one(made))).collect();
        let again = Some(now + Duration::from_secs_f64(1.0 / self.plan.per_second));
        Poll { submissions, again, ..Poll::default() }
    }

    goes_on!(choices, made; plan);

    fn draw_anew(&mut self, choices: Choices) {
        self.choices = choices;
    }
}

impl Flooder {
    pub fn new(network: SourceContext, plan: LowFeeFlood) -> Self {
        Self { nonces: vec![0; network.testnet.accounts.len()], network, plan, made: 0 }
    }
}

impl Source for Flooder {
    fn poll(&mut self, now: SimTime, tip: &Arc<Link>) -> Poll {
        let again = Some(now + Duration::from_secs_f64(1.0 / self.plan.per_second));
        let tree = &self.network.tree;
        if !tree.config().milestones.at(tip.height()).aip11 {
            return Poll { again, ..Poll::default() };
        }
        let (byte, index) = (tree.config().network.pub_key_hash, self.made % self.nonces.len());
        let account = &self.network.testnet.accounts[index];
        let used = &mut self.nonces[index];
        *used = nonce(&tree.applied(tip).state, &account.address).max(*used) + 1;
        let amount = Arktoshi::new(1).expect("one is an amount");
        let transfer = Transaction::transfer(account.address, amount).network(byte).nonce(Nonce(*used));
        let rate = tree.rules().pool.dynamic_fees.as_ref().map(|fees| fees.min_fee_pool);
        let fee = match (self.plan.fee, rate) {
            (Some(fee), _) => Arktoshi::new(fee),
            (None, Some(rate)) => Some(tree.rules().pool.least_fee(&transfer.clone().sign(&account.keys), rate)),
            (None, None) => None,
        };
        let signed = match fee {
            Some(fee) => transfer.fee(fee).sign(&account.keys),
            None => transfer.sign(&account.keys),
        };
        let node = self.network.nodes[self.made % self.network.nodes.len()];
        self.made += 1;
        Poll { submissions: vec![(node, one(signed))], again, ..Poll::default() }
    }

    goes_on!(nonces, made; plan);
}

impl Swing {
    pub fn new(network: SourceContext, plan: VoteSwing) -> Self {
        Self { network, plan, done: false }
    }

    fn votes(&self, tip: &Arc<Link>) -> Vec<(NodeId, Transactions)> {
        let tree = &self.network.tree;
        let (byte, applied) = (tree.config().network.pub_key_hash, tree.applied(tip));
        let state = &applied.state;
        let target = state.wallet_by_username(&self.plan.delegate).and_then(|wallet| wallet.public_key);
        let Some(target) = target else { return Vec::new() };
        let accounts = self.network.testnet.accounts.iter().take(self.plan.voters as usize);
        let votes: Vec<Arc<SignedTransaction>> = accounts
            .flat_map(|account| {
                let (keys, mut nonce) = (&account.keys, nonce(state, &account.address));
                let wallet = state.wallet(&keys.public().address(byte));
                let old: Vec<PublicKey> = wallet.into_iter().flat_map(|wallet| wallet.votes()).collect();
                let has_room = old.len() < tree.rules().ledger.votes.most as usize && !old.contains(&target);
                // Only one vote of a sender can be pending. A voter that must take a vote back first cannot vote in the same block.
                let vote = if has_room { Vote::For(target) } else { Vote::Against(old[0]) };
                nonce += 1;
                let signed = Transaction::vote(vote).network(byte).nonce(Nonce(nonce)).sign(keys);
                Some(Arc::new(signed))
            })
            .collect();
        // Every node gets them, so that the next forger has them in any case.
        let nodes = self.network.nodes.iter();
        nodes.flat_map(|node| votes.chunks(AT_ONCE).map(|part| (*node, part.into()))).collect()
    }
}

impl Source for Swing {
    fn poll(&mut self, now: SimTime, tip: &Arc<Link>) -> Poll {
        let tree = &self.network.tree;
        let slots = tree.slots();
        let next = SimTime::from_seconds(slots.start(Slot(slots.slot(now.seconds()).0 + 1))) + INTO_SLOT;
        let position = tree.schedule().at(tip.height().next());
        let wanted = match self.plan.block {
            Boundary::First => position.first,
            Boundary::Last => position.last(),
        };
        if self.done || position.round != RoundNumber(self.plan.round) || tip.height().next() != wanted {
            return Poll { again: (!self.done).then_some(next), ..Poll::default() };
        }
        self.done = true;
        Poll { submissions: self.votes(tip), ..Poll::default() }
    }

    goes_on!(done; plan);
}

impl Resignations {
    pub fn new(network: SourceContext, who: Vec<NodeId>) -> Self {
        Self { network, who }
    }
}

impl Source for Resignations {
    /// Submits each resignation to the delegate's own node, all at one instant.
    fn poll(&mut self, _: SimTime, tip: &Arc<Link>) -> Poll {
        let tree = &self.network.tree;
        let (byte, applied) = (tree.config().network.pub_key_hash, tree.applied(tip));
        let resign = |node: &NodeId| {
            let keys = &self.network.testnet.delegates.get(node.0 as usize)?.keys;
            let nonce = Nonce(nonce(&applied.state, &keys.public().address(byte)) + 1);
            Some((*node, one(Transaction::delegate_resignation().network(byte).nonce(nonce).sign(keys))))
        };
        Poll { submissions: self.who.iter().filter_map(resign).collect(), ..Poll::default() }
    }

    goes_on!(who);
}
