//! Questions of other nodes to a peer, and its answers. Source: consensus.md 3.5, 6.

use super::{
    Case, ModelContext,
    limits::Endpoint,
    state::{PeerModel, message_is_push, name},
};
use crate::{
    actors::{Message, NodeId},
    check::conduct,
    protocol::{BlockId, Height},
};
use std::collections::BTreeSet;

impl PeerModel {
    pub(super) fn hears_call(&mut self, case: &mut Case<'_>, from: NodeId, endpoint: Endpoint, message: &Message) {
        let limited = case.known.rules().node.rate_limits;
        let sure = self.callers.call(case.step.local, from, endpoint) || !limited;
        let cut =
            case.left.take_to(|to, message| (to == from && matches!(message, Message::HungUp)).then_some(())).is_some();
        case.report.judge(&conduct::LIMITED, !(cut && sure), || {
            format!("it hung up on {from}, which was within its limits with a call of {endpoint:?}")
        });
        if cut {
            return;
        }
        let heard = self.answers(case, from, message, sure);
        match message {
            Message::Block(block) => self.block_pushed(case, block, sure),
            Message::Transactions(transactions) if !self.hands_in(case, transactions, sure) => return,
            _ => {}
        }
        let shut_out = limited && self.callers.is_shut_out(case.step.local, from);
        case.report.judge(&conduct::LIMITED, !(shut_out && heard) || message_is_push(message), || {
            format!("it answered {from}, which had broken the limit of all calls within the last minute")
        });
        if heard && limited && case.known.timely[self.id.0 as usize] {
            let within = self.callers.heard(case.step.local, from, endpoint);
            case.report.judge(&conduct::LIMITED, within || message_is_push(message), || {
                format!("it answered {from} more than twice as often as {endpoint:?} allows")
            });
        }
        self.meets(case, from, sure);
    }

    /// Returns true if a question was answered. A question that was certainly heard has to be answered.
    pub(super) fn answers(&self, case: &mut Case<'_>, from: NodeId, question: &Message, sure: bool) -> bool {
        let answer = case.left.take_to(|to, message| {
            let fits = matches!(
                (question, message),
                (Message::StatusRequest, Message::Status { .. })
                    | (Message::BlocksRequest { .. }, Message::Blocks { .. })
                    | (Message::CommonBlocksRequest { .. }, Message::CommonBlocks { .. })
                    | (Message::PeersRequest, Message::Peers(_))
            );
            (to == from && fits).then_some(message)
        });
        if message_is_push(question) {
            return true;
        }
        let Some(answer) = answer else {
            case.report.judge(&conduct::ANSWERED, !sure, || format!("it did not answer {} of {from}", name(question)));
            return false;
        };
        let wrong = self.wrong_answer(case.known, question, answer);
        case.report.judge(&conduct::ANSWERED, wrong.is_none(), || {
            format!("it answered {} of {from} wrong: {}", name(question), wrong.unwrap_or_default())
        });
        true
    }

    pub(super) fn wrong_answer(&self, known: &ModelContext, question: &Message, answer: &Message) -> Option<String> {
        match (question, answer) {
            (_, Message::Status { tip }) if tip.id != self.tip.id() => {
                Some(format!("it stands on {:?} and said {} at height {}", self.tip, tip.id, tip.header.height))
            }
            (Message::BlocksRequest { inquiry, above, limit, .. }, Message::Blocks { inquiry: of, height, blocks }) => {
                let last = self.tip.height().0.min(above.0.saturating_add((*limit).min(400)));
                let wanted = (above.0.saturating_add(1)..=last)
                    .filter_map(|height| self.tip.ancestor(Height(height)).map(|link| link.id()));
                let fits =
                    inquiry == of && *height == self.tip.height() && wanted.eq(blocks.iter().map(|block| block.id));
                (!fits).then(|| {
                    let heights: Vec<u32> = blocks.iter().map(|block| block.header.height.0).collect();
                    format!("asked for {limit} above {above}, at height {}, it gave {heights:?}", self.tip.height())
                })
            }
            (Message::CommonBlocksRequest { inquiry, ids }, Message::CommonBlocks { inquiry: of, height, common }) => {
                let own = |height: Height| self.tip.ancestor(height).map(|link| link.id());
                let heights = |id: &BlockId| {
                    let height = known.tree.link(id)?.height();
                    (own(height) == Some(*id)).then_some(height)
                };
                let highest =
                    ids.iter().filter_map(|id| heights(id).map(|height| (height, *id))).max_by_key(|(h, _)| *h);
                let wanted = highest.map(|(_, id)| id);
                let fits = inquiry == of && *height == self.tip.height() && wanted == common.as_deref().copied();
                (!fits).then(|| format!("it said {common:?} is the highest common block, and {wanted:?} is"))
            }
            (_, Message::Peers(list)) => {
                let said: BTreeSet<NodeId> = list.iter().copied().filter(|node| *node != self.id).collect();
                let wanted: BTreeSet<NodeId> = self.peers.numbers().collect();
                (said != wanted && !self.peers.unsure).then(|| format!("it named {said:?} and has {wanted:?}"))
            }
            _ => None,
        }
    }
}
