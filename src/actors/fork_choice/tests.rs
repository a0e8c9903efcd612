//! All splits of a network into two chains of one height, enumerated: one delegate on each node, all of them reachable. A split is dead
//! if neither side forges, and neither goes back.

use super::{Chain, ForkChoice, Look, Stance, Strength, of};
use crate::{
    actors::{
        message::{NetworkState, NetworkStatus},
        peer::VerificationResult,
    },
    ledger::{Rules, rules::ForkChoiceRule},
    protocol::{BlockId, Height},
};

const TIP: Height = Height(107);
const COMMON: Height = Height(100);

/// The decisions of a node with `with` others on its chain and `apart` on another one: whether it forges, and whether it leaves its
/// chain.
fn node(choice: &dyn ForkChoice, with: usize, apart: usize, own: u64, his: u64) -> (bool, bool) {
    let rules = Rules::reference();
    let verified = |highest_common| VerificationResult { my_height: TIP, his_height: TIP, highest_common };
    let strength = Strength { agreed: Height::GENESIS, height: TIP, id: None };
    let chain = Chain { strength, parting: (BlockId::Numeric(own), BlockId::Numeric(his)) };
    let near = Stance { verified: verified(TIP), chain: None };
    let far = Stance { verified: verified(COMMON), chain: Some(chain) };
    let peers = std::iter::repeat_n(near, with).chain(std::iter::repeat_n(far, apart)).collect();
    let look = Look { own: strength, last_final: Height::GENESIS, peers, rules: &rules.node };
    let seen = NetworkState {
        status: NetworkStatus::Default,
        height: TIP,
        tip: BlockId::Numeric(1),
        reached: (with + apart) as u32,
        in_quorum: with as u32,
        level: with as u32,
        over_height: 0,
        forked: apart as u32,
    };
    (choice.may_forge(&seen, (with + apart + 1) as u32, &rules), choice.goes_back_to(&look).is_some())
}

/// The dead splits of n nodes: the sizes of the smaller side.
fn dead(rule: ForkChoiceRule, nodes: usize) -> Vec<usize> {
    let stands = |with, apart, own, his| node(of(rule), with, apart, own, his) == (false, false);
    let is_dead = |size: &usize| stands(size - 1, nodes - size, 1, 2) && stands(nodes - size - 1, *size, 2, 1);
    (1..=nodes / 2).filter(is_dead).collect()
}

#[test]
fn every_even_network_has_one_dead_split_under_4432_and_solar() {
    for nodes in 3..=101 {
        let halves = if nodes % 2 == 0 { vec![nodes / 2] } else { Vec::new() };
        assert_eq!(dead(ForkChoiceRule::Ark4432, nodes), halves, "{nodes}");
        assert_eq!(dead(ForkChoiceRule::Solar, nodes), halves, "{nodes}");
    }
}

#[test]
fn no_split_is_dead_under_the_reference_or_with_the_tie_broken() {
    for nodes in 3..=101 {
        assert_eq!(dead(ForkChoiceRule::Reference, nodes), Vec::<usize>::new(), "{nodes}");
        assert_eq!(dead(ForkChoiceRule::SolarTieBroken, nodes), Vec::<usize>::new(), "{nodes}");
    }
}

/// One side of a tie yields, and not both: they would only change places.
#[test]
fn of_two_halves_one_yields() {
    let choice = of(ForkChoiceRule::SolarTieBroken);
    for half in 2..=50 {
        let (first, second) = (node(choice, half - 1, half, 1, 2), node(choice, half - 1, half, 2, 1));
        assert_eq!((first, second), ((false, false), (false, true)), "{half}");
    }
}

/// On a sparse network a node of the reference can be between the two: it neither forges nor leaves.
#[test]
fn a_peer_s_dead_zone_lies_between_half_and_two_thirds() {
    for (peers, on_its_chain) in [(7, 4), (10, 6)] {
        for with in 0..=peers {
            let is_dead = node(of(ForkChoiceRule::Reference), with, peers - with, 1, 2) == (false, false);
            assert_eq!(is_dead, with == on_its_chain, "{with} of {peers}");
        }
    }
}

/// As text 99 comes before 100, so the lower of two groups is looked at first.
#[test]
fn ark_3_sorts_heights_as_text() {
    let rules = Rules::reference();
    let verified = |highest_common| VerificationResult { my_height: TIP, his_height: TIP, highest_common };
    let stance = |common| Stance { verified: verified(Height(common)), chain: None };
    let own = Strength { agreed: Height::GENESIS, height: TIP, id: None };
    let look = Look {
        own,
        last_final: Height::GENESIS,
        peers: [99, 99, 99, 99, 99, 100, 100].map(stance).to_vec(),
        rules: &rules.node,
    };
    // Two of 100 are more than the node alone, and five of 99 more than three: the first of them decides.
    assert_eq!(of(ForkChoiceRule::Ark4432).goes_back_to(&look), Some(Height(99)));
    let look = Look {
        own,
        last_final: Height::GENESIS,
        peers: [99, 99, 99, 100, 100].map(stance).to_vec(),
        rules: &rules.node,
    };
    assert_eq!(of(ForkChoiceRule::Ark4432).goes_back_to(&look), Some(Height(100)));
}

#[test]
fn the_stronger_chain_has_more_agreed_then_more_blocks_then_the_smaller_id() {
    let strength = |agreed, height, id| Strength { agreed: Height(agreed), height: Height(height), id };
    let (small, large) = (Some(BlockId::Numeric(1)), Some(BlockId::Numeric(2)));
    assert!(strength(9, 20, None) > strength(8, 30, None));
    assert!(strength(9, 21, None) > strength(9, 20, None));
    assert!(strength(9, 20, None) == strength(9, 20, None));
    assert!(strength(9, 20, small) > strength(9, 20, large) && strength(9, 20, large) < strength(9, 20, small));
    assert!(strength(9, 20, small) < strength(9, 21, large));
}

/// A chain that parts below what is final is no choice, however strong; the next one is.
#[test]
fn the_longest_chain_is_sought_above_what_is_final() {
    let rules = Rules::reference();
    let stance = |common, height| {
        let verified =
            VerificationResult { my_height: TIP, his_height: Height(height), highest_common: Height(common) };
        let strength = Strength { agreed: Height::GENESIS, height: Height(height), id: None };
        Stance { verified, chain: Some(Chain { strength, parting: (BlockId::Numeric(1), BlockId::Numeric(2)) }) }
    };
    let own = Strength { agreed: Height::GENESIS, height: TIP, id: None };
    let target = |last_final| {
        let peers = [stance(90, 120), stance(100, 110), stance(103, 107)].to_vec();
        of(ForkChoiceRule::LongestChain).goes_back_to(&Look {
            own,
            last_final: Height(last_final),
            peers,
            rules: &rules.node,
        })
    };
    assert_eq!([90, 91, 100, 101].map(target), [Some(Height(90)), Some(Height(100)), Some(Height(100)), None]);
}
