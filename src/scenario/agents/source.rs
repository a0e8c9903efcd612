//! Carries out the decisions of agents: submits votes, and payments of delegates, as signed transactions to nodes.
//!
//! A change of a vote is two transactions, since one takes a vote back and another one votes: the second follows once the first is on the
//! chain. A voter of several votes changes them one after the other: it casts a missing vote while it has room for one, and takes back a
//! vote otherwise. A transaction that is on no chain after [`PATIENCE`] blocks is submitted again, with the same nonce and so the same
//! id, so that nothing is paid twice.

use super::{
    Candidate, Offer, Sight,
    payments::{self, AT_ONCE, PaymentQueue},
    plan::AgentGroup,
};
use crate::{
    actors::{Choices, NodeId, SimTime, message::Transactions},
    ledger::{
        BlockTree, Link, State, Wallet,
        codec::{LoadError, Loader, Save, Saver, saved},
    },
    protocol::{
        Address, Arktoshi, Height, KeyPair, Kind, Nonce, PublicKey, SignedTransaction, Slot, Transaction, Vote,
        transaction::TransactionBuilder,
    },
    sim::source::{Poll, Source},
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The time into a slot at which agents look at the chain. The block of the slot before has arrived then, and the block of this slot
/// is not forged yet.
const INTO_SLOT: Duration = Duration::from_millis(300);
/// The number of blocks after which a transaction that is on no chain is submitted again.
pub(super) const PATIENCE: u32 = 120;

/// The votes of a voter that are on their way to the chain.
#[derive(Clone, Default)]
pub(crate) struct VoteChange {
    /// The delegate of each vote that the voter is to have.
    pub wanted: Vec<PublicKey>,
    /// The nonce of the transaction that was submitted last, or 0 before the first one.
    nonce: u64,
    /// The height of the chain when it was submitted.
    sent: u32,
}

/// The votes under way, by group and voter.
#[derive(Clone, Default)]
pub(crate) struct VotesUnderWay(BTreeMap<(u32, u32), VoteChange>);

impl VotesUnderWay {
    pub fn of_voter(&self, group: u32, voter: u32) -> Option<&VoteChange> {
        self.0.get(&(group, voter))
    }

    pub fn of_group(&self, group: u32) -> impl Iterator<Item = (u32, &VoteChange)> {
        self.0.range((group, 0)..=(group, u32::MAX)).map(|((_, voter), vote)| (*voter, vote))
    }
}

/// The source that submits the decisions of all groups of a run.
#[derive(Clone)]
pub(crate) struct AgentSource {
    tree: Arc<BlockTree>,
    groups: Arc<[AgentGroup]>,
    /// The draws of each group.
    choices: Vec<Choices>,
    /// The last round for which agents have decided.
    round: u32,
    /// The number of round ends at which agents have decided.
    decisions: u32,
    votes: VotesUnderWay,
    /// The payment queues by group and delegate.
    queues: Vec<Vec<PaymentQueue>>,
}

impl AgentSource {
    /// Agents of a run that begins on this block.
    pub fn new(tree: Arc<BlockTree>, tip: &Arc<Link>, groups: Arc<[AgentGroup]>) -> Self {
        let round = tree.schedule().at(tip.height().next()).round.0;
        let applied = tree.applied(tip);
        let queues =
            |group: &AgentGroup| group.payers.iter().map(|payer| PaymentQueue::new(payer, &applied.state)).collect();
        Self {
            choices: groups.iter().map(|group| group.choices).collect(),
            queues: groups.iter().map(queues).collect(),
            round,
            decisions: 0,
            votes: VotesUnderWay::default(),
            tree,
            groups,
        }
    }

    /// Decides at the end of a round.
    fn decide(&mut self, tip: &Arc<Link>, state: &State, first: Height) {
        let end = tip.ancestor(Height(first.0 - 1)).expect("the round has begun");
        let missed = end.round_end().map_or(&[][..], |end| &end.missed);
        let groups = self.groups.clone();
        payments::count(&groups, &mut self.queues, &self.tree, &end);
        let reward = self.tree.config().milestones.at(first).reward;
        let mut candidates = candidates(state, &self.terms());
        let sight = |candidates, group| self.sight(group, state, missed, reward, candidates);
        let offers: Vec<Offer> =
            (0..groups.len()).map(|group| groups[group].agents.policy.offer(&sight(&candidates, group))).collect();
        for (group, offer) in groups.iter().zip(&offers) {
            for candidate in candidates.iter_mut().filter(|one| group.delegates.contains(&one.key)) {
                candidate.offer = *offer;
            }
        }
        let rule = self.tree.rules().ledger.votes;
        for (index, group) in groups.iter().enumerate() {
            let choices = group.agents.policy.votes(&self.sight(index, state, missed, reward, &candidates));
            for choice in choices.iter().filter(|choice| (choice.voter as usize) < group.voters.len()) {
                // The transaction that is under way keeps its nonce: the next one waits for it.
                let vote = self.votes.0.entry((index as u32, choice.voter)).or_default();
                vote.wanted = choice.allowed(rule);
            }
        }
        self.decisions += 1;
        for ((group, queues), offer) in groups.iter().zip(&mut self.queues).zip(offers) {
            if self.decisions.is_multiple_of(group.agents.pay_rounds) {
                payments::pay(group, queues, offer, &self.tree, state);
            }
        }
    }

    /// The rounds between payments, and the sum paid so far \[arktoshi\], of each delegate of agents.
    fn terms(&self) -> BTreeMap<PublicKey, (u32, u64)> {
        let of_group = |(group, queues): (&AgentGroup, &Vec<PaymentQueue>)| {
            let terms = queues.iter().map(|queue| (group.agents.pay_rounds, queue.paid));
            group.delegates.iter().copied().zip(terms.collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        self.groups.iter().zip(&self.queues).flat_map(of_group).collect()
    }

    fn sight<'a>(
        &'a self,
        group: usize,
        state: &'a State,
        missed: &'a [PublicKey],
        reward: Arktoshi,
        candidates: &'a [Candidate],
    ) -> Sight<'a> {
        Sight {
            round: self.round,
            is_first: self.decisions == 0,
            state,
            missed,
            reward,
            candidates,
            group: group as u32,
            members: &self.groups[group],
            rule: self.tree.rules().ledger.votes,
            under_way: &self.votes,
            choices: self.choices[group],
        }
    }

    /// Returns the transactions to submit now, by node.
    fn due(&mut self, height: Height, state: &State) -> Vec<(NodeId, Transactions)> {
        let byte = self.tree.config().network.pub_key_hash;
        let mut due: BTreeMap<NodeId, Vec<Arc<SignedTransaction>>> = BTreeMap::new();
        for (group, queues) in self.groups.iter().zip(&mut self.queues) {
            for (payer, queue) in group.payers.iter().zip(queues).filter(|(_, queue)| !queue.is_empty()) {
                let nonce = nonce(state.wallet(&payer.address));
                due.entry(payer.node).or_default().extend(queue.due(height.0, nonce, payer, byte));
            }
        }
        let fee = self.tree.config().milestones.at(height.next()).fees.get(Kind::Vote).value();
        let (groups, most) = (&self.groups, self.tree.rules().ledger.votes.most as usize);
        self.votes.0.retain(|(group, voter), vote| {
            let group = &groups[*group as usize];
            let one = &group.voters[*voter as usize];
            let wallet = state.wallet(&one.address);
            let on_chain: Vec<PublicKey> = wallet.into_iter().flat_map(|wallet| wallet.votes()).collect();
            let (surplus, lacking) = (without(&on_chain, &vote.wanted), without(&vote.wanted, &on_chain));
            let nonce = nonce(wallet);
            // The voter waits for a transaction under way, so that it does not undo the vote later.
            let waits = vote.nonce > nonce && height.0.saturating_sub(vote.sent) < PATIENCE;
            let next = match (lacking.first(), surplus.first()) {
                (Some(new), _) if on_chain.len() < most => Vote::For(*new),
                (_, Some(old)) => Vote::Against(*old),
                _ => return waits,
            };
            if !waits {
                // A voter that cannot pay both transactions of a change begins none.
                let transactions = (surplus.len() + lacking.len()).min(2) as u64;
                if balance(state, &one.address) < transactions * fee {
                    return false;
                }
                (vote.nonce, vote.sent) = (nonce + 1, height.0);
                let signed = signed(Transaction::vote(next), nonce + 1, &one.keys, byte);
                // A voter always uses the same node: at another one, a later nonce could arrive before an earlier one.
                due.entry(group.nodes[*voter as usize % group.nodes.len()]).or_default().push(signed);
            }
            true
        });
        due.into_iter()
            .flat_map(|(node, all)| all.chunks(AT_ONCE).map(|part| (node, part.into())).collect::<Vec<_>>())
            .collect()
    }
}

pub(super) fn signed(builder: TransactionBuilder, nonce: u64, keys: &KeyPair, byte: u8) -> Arc<SignedTransaction> {
    Arc::new(builder.network(byte).nonce(Nonce(nonce)).sign(keys))
}

fn nonce(wallet: Option<&Arc<Wallet>>) -> u64 {
    wallet.map_or(0, |wallet| wallet.nonce.0)
}

pub(super) fn balance(state: &State, address: &Address) -> u64 {
    state.wallet(address).map_or(0, |wallet| wallet.balance.or_zero())
}

/// The votes of the first list that are not in the second one. A delegate can come several times in each.
fn without(votes: &[PublicKey], others: &[PublicKey]) -> Vec<PublicKey> {
    let mut others = others.to_vec();
    let is_left = |vote: &&PublicKey| match others.iter().position(|other| other == *vote) {
        Some(place) => {
            others.swap_remove(place);
            false
        }
        None => true,
    };
    votes.iter().filter(is_left).copied().collect()
}

/// The delegates of a state, which offer nothing, with the terms of those that have agents.
fn candidates(state: &State, terms: &BTreeMap<PublicKey, (u32, u64)>) -> Vec<Candidate> {
    let active = &state.round().members;
    let candidate = |wallet: &Arc<Wallet>| {
        let (delegate, key) = (wallet.delegate.as_ref().filter(|delegate| !delegate.resigned)?, wallet.public_key?);
        let (pay_rounds, paid) = terms.get(&key).copied().unwrap_or((1, 0));
        Some(Candidate {
            key,
            username: delegate.username.clone(),
            weight: delegate.vote_balance.or_zero(),
            balance: wallet.balance.or_zero(),
            is_active: active.iter().any(|member| member.public_key == key),
            produced: delegate.produced_blocks,
            missed: delegate.missed_blocks,
            offer: Offer::Share(0.0),
            pay_rounds,
            paid,
        })
    };
    let mut all: Vec<Candidate> = state.delegates().filter_map(candidate).collect();
    all.sort_by(|a, b| b.weight.cmp(&a.weight).then(a.key.cmp(&b.key)));
    all
}

impl Source for AgentSource {
    fn poll(&mut self, now: SimTime, tip: &Arc<Link>) -> Poll {
        let tree = self.tree.clone();
        let slots = tree.slots();
        let again = Some(SimTime::from_seconds(slots.start(Slot(slots.slot(now.seconds()).0 + 1))) + INTO_SLOT);
        if !tree.config().milestones.at(tip.height()).aip11 {
            return Poll { again, ..Poll::default() };
        }
        let (applied, position) = (tree.applied(tip), tree.schedule().at(tip.height().next()));
        if position.round.0 > self.round {
            self.round = position.round.0;
            self.decide(tip, &applied.state, position.first);
        }
        Poll { submissions: self.due(tip.height(), &applied.state), again, ..Poll::default() }
    }

    fn save(&self, out: &mut Saver) {
        let Self { tree: _, groups: _, choices, round, decisions, votes, queues } = self;
        choices.save(out);
        round.save(out);
        decisions.save(out);
        votes.save(out);
        queues.save(out);
    }

    fn go_on(&mut self, from: &mut Loader) -> Result<(), LoadError> {
        self.choices = Save::load(from)?;
        self.round = Save::load(from)?;
        self.decisions = Save::load(from)?;
        self.votes = Save::load(from)?;
        self.queues = Save::load(from)?;
        Ok(())
    }

    fn draw_anew(&mut self, choices: Choices) {
        self.choices = (0..self.groups.len() as u64).map(|group| choices.of(group)).collect();
    }
}

saved!(struct VoteChange { wanted, nonce, sent });
saved!(struct VotesUnderWay(votes));
