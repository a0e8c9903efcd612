//! The services of a peer to its own pool and delegate. Source: consensus.md 2.1, 2.2, 5.1, 6.

use super::{Case, ModelContext, limits::Endpoint, state::PeerModel};
use crate::{
    actors::{
        Message, NodeId, Role,
        message::{RoundView, Transactions},
    },
    check::conduct,
    ledger::Link,
};
use std::{collections::BTreeSet, sync::Arc};

impl PeerModel {
    /// Judges a message from another actor of the node.
    pub(super) fn told(&mut self, case: &mut Case<'_>, message: &Message) {
        match message {
            Message::RoundRequest => {
                let view = case.left.take_own(Role::Delegate, |message| match message {
                    Message::Round(view) => Some(view),
                    _ => None,
                });
                let holds = view.is_some_and(|view| self.is_round(case.known, view));
                case.report.judge(&conduct::ROUND_TOLD, holds, || format!("it answered its delegate {view:?}"));
            }
            Message::NetworkStateRequest => self.pings_before_forging(case),
            Message::ForgingTransactionsRequest => {
                let tip = case.left.take_own(Role::Pool, |message| match message {
                    Message::ChooseTransactions { tip } => Some(tip),
                    _ => None,
                });
                let holds = tip.is_some_and(|tip| tip.is(&self.tip));
                case.report.judge(&conduct::TO_POOL, holds, || format!("it asked its pool to choose on {tip:?}"));
            }
            Message::Forged(block) => self.block_forged(case, block),
            Message::WakeUp => self.forger_wakes(case),
            Message::Broadcast(transactions) => self.broadcasts(case, transactions),
            _ => {}
        }
    }

    pub(super) fn is_round(&self, known: &ModelContext, view: &RoundView) -> bool {
        let header = &self.tip.block().header;
        view.tip == self.tip.id()
            && view.tip_height == self.tip.height()
            && view.tip_slot == known.tree.slots().slot(header.timestamp)
            && *view.round == **known.tree.applied(&self.tip).state.round()
    }

    /// Judges that the peer passes transactions to its pool, with the tip. Returns true if it did.
    pub(super) fn hands_in(&self, case: &mut Case<'_>, given: &Transactions, sure: bool) -> bool {
        let add = case.left.take_own(Role::Pool, |message| match message {
            Message::AddTransactions(add) => Some(add),
            _ => None,
        });
        let holds = match add {
            None => !sure,
            Some(add) => {
                let same = add.transactions.iter().map(|one| one.id()).eq(given.iter().map(|one| one.id()));
                same && add.tip.is(&self.tip)
            }
        };
        case.report.judge(&conduct::TO_POOL, holds, || {
            format!(
                "it heard of {} transactions and gave its pool {}",
                given.len(),
                add.map_or(0, |add| add.transactions.len())
            )
        });
        add.is_some()
    }

    pub(super) fn broadcasts(&mut self, case: &mut Case<'_>, transactions: &Transactions) {
        let to: Vec<NodeId> = case.left.take_all_to(|to, message| match message {
            Message::Transactions(sent)
                if sent.iter().map(|one| one.id()).eq(transactions.iter().map(|one| one.id())) =>
            {
                Some(to)
            }
            _ => None,
        });
        let full =
            self.peers.numbers().filter(|peer| self.calls.may_be_full(case.step.local, *peer, Endpoint::Transactions));
        let (held, wanted) = (full.count(), self.peers.len().min(20));
        let distinct: BTreeSet<NodeId> = to.iter().copied().collect();
        let peers = distinct.iter().all(|node| self.peers.has(*node));
        let holds = distinct.len() == to.len() && peers && to.len() <= wanted && to.len() + held >= wanted;
        case.report.judge(&conduct::BATCHED, holds || self.peers.unsure, || {
            format!(
                "it sent {} transactions to {to:?}, of {} peers {wanted} should get them",
                transactions.len(),
                self.peers.len()
            )
        });
        to.iter().for_each(|node| self.calls.note(case.step.local, *node, Endpoint::Transactions));
    }

    pub(super) fn tells_round(&self, case: &mut Case<'_>, tip: &Arc<Link>) {
        let view = case.left.take_own(Role::Delegate, |message| match message {
            Message::RoundChanged(view) => Some(view),
            _ => None,
        });
        let holds = view.is_some_and(|view| {
            view.tip == tip.id()
                && view.tip_height == tip.height()
                && *view.round == **case.known.tree.applied(tip).state.round()
        });
        case.report
            .judge(&conduct::ROUND_TOLD, holds, || format!("the round changed and it told its delegate {view:?}"));
    }
}
