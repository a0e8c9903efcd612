//! Deeds of clients: small stories whose parts fall into one run.

use super::{Draw, near_boundary, some_of};
use crate::scenario::{Action, Deed, Member, Wrong, section::NetworkSection};
use rand::{
    Rng,
    seq::{IndexedRandom, SliceRandom},
};

/// The generator of clients' actions.
pub(super) struct Actions<'a> {
    draw: &'a mut Draw,
    delegates: u32,
    nodes: u32,
    last: u32,
    told: u32,
    /// Heights at a round's end and at the next one's beginning, if stories begin there by preference.
    boundaries: Vec<u32>,
}

impl<'a> Actions<'a> {
    /// Makes a generator of stories that begin at heights up to `last`. In one network of four, half of the stories begin where a round
    /// ends.
    pub(super) fn new(draw: &'a mut Draw, network: &NetworkSection, last: u32) -> Self {
        let delegates = network.delegates + network.standby;
        let boundaries = if draw.random_ratio(1, 4) { near_boundary(network, last) } else { Vec::new() };
        Self { draw, delegates, nodes: network.nodes(), last, told: 0, boundaries }
    }

    /// Draws `count` deeds or a few more, by height.
    pub(super) fn draw(mut self, count: usize) -> Vec<Action> {
        let mut actions = Vec::new();
        while actions.len() < count {
            let story = self.story();
            // Stories share the code that makes actions, so an action may have parameters that its deed lacks.
            actions.extend(story.into_iter().map(Action::without_idle));
        }
        actions.sort_by_key(|action| action.height);
        actions
    }

    fn account(&mut self) -> String {
        format!("account_{}", self.draw.random_range(1..=10))
    }

    fn delegate(&mut self) -> String {
        format!("genesis_{}", self.draw.random_range(1..=self.delegates))
    }

    fn anybody(&mut self) -> String {
        if self.draw.random_ratio(1, 4) { self.delegate() } else { self.account() }
    }

    fn amount(&mut self) -> Option<u64> {
        let coins = *[1, 100, 50_000, 400_000, 1_500_000].choose(self.draw).unwrap_or(&1);
        Some(coins * 100_000_000)
    }

    /// One action at about this height, wrong now and then.
    fn at(&mut self, height: u32, by: &str, does: Deed) -> Action {
        let node = self.draw.random_range(0..self.nodes);
        let wrong = self.draw.random_ratio(1, 12).then(|| {
            *[Wrong::NonceAhead, Wrong::NonceUsed, Wrong::Overspent, Wrong::Forged]
                .choose(self.draw)
                .unwrap_or(&Wrong::Forged)
        });
        let fee = match does {
            Deed::Claim | Deed::Refund => None,
            _ => self.draw.random_ratio(1, 3).then(|| self.draw.random_range(500_000..=30_000_000_u64)),
        };
        // Registrations cost more than any of these fees by their size alone.
        let fee = fee
            .filter(|_| matches!(does, Deed::Transfer | Deed::Vote | Deed::Unvote | Deed::MultiPayment | Deed::Lock));
        Action { height, node, by: by.to_owned(), does, wrong, fee, ..Action::default() }
    }

    fn later(&mut self, height: u32, most: u32) -> u32 {
        height + self.draw.random_range(0..=most)
    }

    fn start(&mut self) -> u32 {
        let anywhere = self.draw.random_range(3..=self.last.max(4));
        match self.boundaries.choose(self.draw) {
            Some(near) if self.draw.random_bool(0.5) => (*near).max(3),
            _ => anywhere,
        }
    }

    fn story(&mut self) -> Vec<Action> {
        self.told += 1;
        let name = format!("n{}", self.told);
        // The first blocks take transactions of the old version only.
        let start = self.start();
        let (one, two) = (self.anybody(), self.anybody());
        match self.draw.random_range(0..15) {
            0..=2 => self.payments(start, &one, &two),
            3 | 4 => self.votes(start, &one),
            5 => self.new_delegate(start, &one, &name),
            6 => self.resignation(start),
            7 | 8 => self.lock(start, &one, &two, &name),
            9 => self.second_key(start, &one),
            10 | 14 => self.shared(start, &one, &name),
            11 => self.hash(start, &one, &two, &name),
            12 => self.business(start, &one, &name),
            _ => self.batch(start, &one, &two),
        }
    }

    fn payments(&mut self, start: u32, one: &str, two: &str) -> Vec<Action> {
        let does = if self.draw.random_bool(0.6) { Deed::Transfer } else { Deed::MultiPayment };
        let first = Action { to: Some(two.to_owned()), amount: self.amount(), ..self.at(start, one, does) };
        let first = Action { payments: self.payments_in_one(does), vendor_field: self.text(), ..first };
        let expires = self.draw.random_ratio(1, 6).then_some(Wrong::Expired).filter(|_| does == Deed::Transfer);
        let second = self.at(start, two, Deed::Transfer);
        vec![first, Action { to: Some(one.to_owned()), wrong: expires.or(second.wrong), ..second }]
    }

    /// Payments of a multipayment; two, as a rule.
    fn payments_in_one(&mut self, does: Deed) -> u32 {
        let many = does == Deed::MultiPayment && self.draw.random_ratio(1, 3);
        if many { *[3, 7, 64, 256].choose(self.draw).unwrap_or(&3) } else { 0 }
    }

    fn text(&mut self) -> Option<String> {
        let text = *["", "", "", "for the bread", "\u{1f980} ümläut", "\u{0}\t\""].choose(self.draw).unwrap_or(&"");
        Some(text.to_owned()).filter(|text| !text.is_empty())
    }

    fn votes(&mut self, start: u32, one: &str) -> Vec<Action> {
        let (first, second) = (self.delegate(), self.delegate());
        let mut actions = Vec::new();
        let mut height = start;
        for (does, to) in [(Deed::Vote, &first), (Deed::Unvote, &first), (Deed::Vote, &second)] {
            if self.draw.random_ratio(3, 4) {
                actions.push(Action { to: Some(to.clone()), ..self.at(height, one, does) });
            }
            height = self.later(height, 6);
        }
        actions
    }

    fn new_delegate(&mut self, start: u32, one: &str, name: &str) -> Vec<Action> {
        let taken = self.draw.random_ratio(1, 4);
        let name = if taken { "genesis_1".to_owned() } else { name.to_owned() };
        let mut actions = vec![Action { name: Some(name.clone()), ..self.at(start, one, Deed::Register) }];
        let mut height = self.later(start, 5);
        for _ in 0..self.draw.random_range(0..=3) {
            let voter = self.account();
            actions.push(Action { to: Some(one.to_owned()), ..self.at(height, &voter, Deed::Vote) });
        }
        if self.draw.random_bool(0.3) {
            let other = self.account();
            actions.push(Action { name: Some(name), ..self.at(height, &other, Deed::Register) });
        }
        height = self.later(height, 10);
        if self.draw.random_bool(0.3) {
            actions.push(self.at(height, one, Deed::Resign));
        }
        actions
    }

    /// Delegates resign together, and are voted for afterwards.
    fn resignation(&mut self, start: u32) -> Vec<Action> {
        let mut actions = Vec::new();
        for _ in 0..self.draw.random_range(1..=3) {
            let delegate = self.delegate();
            let resigns = self.at(start, &delegate, Deed::Resign);
            actions.push(Action { wrong: None, ..resigns });
            let (height, voter) = (self.later(start, 8), self.account());
            actions.push(Action { to: Some(delegate), ..self.at(height, &voter, Deed::Vote) });
        }
        actions
    }

    /// A lock that is then claimed or refunded: in time or not, by the right account or another, with the right
    /// secret or another.
    fn lock(&mut self, start: u32, one: &str, two: &str, name: &str) -> Vec<Action> {
        let lasts = self.draw.random_range(0..=10);
        let lock = self.at(start, one, Deed::Lock);
        let (amount, by_time, vendor_field) = (self.amount(), self.draw.random_ratio(1, 3), self.text());
        let (to, named) = (Some(two.to_owned()), Some(name.to_owned()));
        let lock =
            Action { to, amount, name: named.clone(), blocks: lasts, by_time, vendor_field, wrong: None, ..lock };
        let mut actions = vec![lock];
        for _ in 0..self.draw.random_range(1..=3) {
            let does = if self.draw.random_bool(0.6) { Deed::Claim } else { Deed::Refund };
            let (height, by) = (self.later(start + 2, self.delegates + 14), self.anybody());
            let wrong = self.draw.random_ratio(1, 4).then_some(Wrong::WrongSecret).filter(|_| does == Deed::Claim);
            actions.push(Action { name: named.clone(), wrong, ..self.at(height, &by, does) });
        }
        actions
    }

    fn second_key(&mut self, start: u32, one: &str) -> Vec<Action> {
        let mut actions = vec![Action { wrong: None, ..self.at(start, one, Deed::SecondSignature) }];
        for _ in 0..3 {
            let (height, to) = (self.later(start, 8), self.account());
            let wrong = self.draw.random_bool(0.4).then_some(Wrong::NoSecondSignature);
            let does = if self.draw.random_ratio(1, 3) { Deed::MultiPayment } else { Deed::Transfer };
            let payments = self.payments_in_one(does);
            actions.push(Action { to: Some(to), wrong, payments, ..self.at(height, one, does) });
        }
        actions
    }

    /// A shared wallet, made and used by owners in any order, enough of them or not.
    fn shared(&mut self, start: u32, one: &str, name: &str) -> Vec<Action> {
        let thresholds = [(2, 3), (2, 3), (1, 1), (1, 2), (2, 2), (3, 5), (4, 4), (2, 16)];
        let (min, count) = *thresholds.choose(self.draw).unwrap_or(&(2, 3));
        let name = if (min, count) == (2, 3) { name.to_owned() } else { format!("{name}-{min}-of-{count}") };
        let shared = format!("shared_{name}");
        let signers = if self.draw.random_bool(0.5) { self.owners(count, count) } else { Vec::new() };
        let makes = Action { name: Some(name), signers, wrong: None, ..self.at(start, one, Deed::Share) };
        let funds = self.at(start, one, Deed::Transfer);
        let funds = Action { to: Some(shared.clone()), amount: Some(100_000_000_000), wrong: None, fee: None, ..funds };
        let mut actions = vec![makes, funds];
        for _ in 0..3 {
            let (height, to) = (self.later(start + 2, 8), self.account());
            let wrong = self.draw.random_bool(0.4).then_some(Wrong::OneSignatureLess);
            let signers = match self.draw.random_range(0..8) {
                0..=2 => Vec::new(),
                3..=5 => self.owners(count, min),
                // More than needed.
                6 => self.owners(count, count),
                // One of them twice.
                _ => vec![0; usize::from(min.max(2))],
            };
            let does = *[Deed::Transfer, Deed::Transfer, Deed::MultiPayment, Deed::Vote, Deed::Ipfs, Deed::Business]
                .choose(self.draw)
                .unwrap_or(&Deed::Transfer);
            let to = if does == Deed::Vote { self.delegate() } else { to };
            let name = Some(format!("{shared}-{height}"));
            actions.push(Action { to: Some(to), name, wrong, signers, ..self.at(height, &shared, does) });
        }
        actions
    }

    /// Draws `count` of a wallet's owners, in any order.
    fn owners(&mut self, of: u8, count: u8) -> Vec<u8> {
        let mut all: Vec<u8> = (0..of).collect();
        all.shuffle(self.draw);
        all.truncate(usize::from(count));
        all
    }

    fn hash(&mut self, start: u32, one: &str, two: &str, name: &str) -> Vec<Action> {
        let height = self.later(start, 3);
        let first = Action { name: Some(name.to_owned()), ..self.at(start, one, Deed::Ipfs) };
        vec![first, Action { name: Some(name.to_owned()), ..self.at(height, two, Deed::Ipfs) }]
    }

    fn business(&mut self, start: u32, one: &str, name: &str) -> Vec<Action> {
        let deeds = [
            (Deed::Business, ""),
            (Deed::Bridgechain, ""),
            (Deed::UpdateBridgechain, ""),
            (Deed::Business, ""),
            // Another name for the same chain, and another chain.
            (Deed::Bridgechain, "-again"),
            (Deed::Bridgechain, "-other"),
            (Deed::UpdateBusiness, ""),
            (Deed::UpdateBridgechain, "-other"),
            (Deed::ResignBridgechain, ""),
            (Deed::UpdateBridgechain, ""),
            (Deed::ResignBridgechain, "-other"),
            (Deed::ResignBusiness, ""),
            (Deed::UpdateBusiness, ""),
        ];
        let mut actions = Vec::new();
        let mut height = start;
        for (does, suffix) in deeds {
            let all = match does {
                Deed::Business | Deed::UpdateBusiness => Member::OF_BUSINESS,
                _ => Member::OF_BRIDGECHAIN,
            };
            let members = if self.draw.random_bool(0.7) { some_of(self.draw, &all, all.len()) } else { Vec::new() };
            if self.draw.random_ratio(4, 5) {
                let name = Some(format!("{name}{suffix}"));
                actions.push(Action { name, members, wrong: None, ..self.at(height, one, does) });
            }
            height = self.later(height, 3);
        }
        actions
    }

    /// Many transactions at once at one node, from two senders, some with low fees.
    fn batch(&mut self, start: u32, one: &str, two: &str) -> Vec<Action> {
        let node = self.draw.random_range(0..self.nodes);
        let count = self.draw.random_range(3..=25);
        let mut actions = Vec::new();
        for index in 0..count {
            let (by, to) = if index % 3 == 0 { (two, one) } else { (one, two) };
            let does = if self.draw.random_ratio(1, 8) { Deed::Vote } else { Deed::Transfer };
            let to = if does == Deed::Vote { self.delegate() } else { to.to_owned() };
            let fee = Some(self.draw.random_range(500_000..=20_000_000_u64));
            actions.push(Action { node, to: Some(to), fee, wrong: None, ..self.at(start, by, does) });
        }
        actions
    }
}
