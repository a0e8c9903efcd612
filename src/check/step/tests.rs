//! The power of the model: a state with one wrong value is found out, for each value that a wallet, a delegate or a list
//! of the state has.

mod finality;
mod votes;

use super::{BlockStep, check_step, whole_state};
use crate::{
    ledger::{
        Balance, BlockTree, Link, State, Wallet,
        codec::{Loader, Save, Saver},
        wallet::{Bridgechain, Business, DelegateAttributes, Lock},
    },
    protocol::{Arktoshi, Height, PublicKey, Timestamp, transaction::Expiration},
    scenario::Scenario,
    sim::{SeedTree, stage::inline::InlineStage},
};
use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};

/// A chain on which every type of transaction stands, with all that it can say.
fn rich_chain() -> (Arc<BlockTree>, Vec<Arc<Link>>) {
    let mut text = "version = 1\nrounds = 12\n[network]\ndelegates = 4\nstandby = 2\nreward = 7\n\
                    [[network.milestones]]\nheight = 9\nreward = 5\ndelegates = 5\n"
        .to_owned();
    let all = "members = [\"name\", \"website\", \"vat\", \"repository\"]\n";
    let chain = "members = [\"repository\", \"asset-repository\", \"seed-nodes\", \"ports\"]\n";
    let mut act = |height: u32, by: &str, does: &str, more: &str| {
        text += &format!("[[action]]\nheight = {height}\nby = \"{by}\"\ndoes = \"{does}\"\n{more}");
    };
    act(3, "account_1", "business", &format!("name = \"b\"\n{all}"));
    act(3, "account_2", "ipfs", "name = \"one\"\n");
    act(3, "account_3", "lock", "name = \"l\"\nto = \"account_4\"\namount = 5\nblocks = 3\nvendor_field = \"v\"\n");
    act(3, "account_3", "lock", "name = \"m\"\nto = \"account_4\"\namount = 9\nby_time = true\nvendor_field = \"v\"\n");
    act(3, "account_3", "lock", "name = \"n\"\nto = \"account_4\"\namount = 9\nblocks = 30\nvendor_field = \"v\"\n");
    act(3, "account_5", "second-signature", "");
    act(3, "account_6", "share", "name = \"s-3-of-5\"\nsigners = [4, 1, 0, 2, 3]\n");
    act(3, "account_7", "register", "name = \"newcomer\"\n");
    act(3, "account_8", "vote", "to = \"genesis_2\"\n");
    act(4, "account_6", "transfer", "to = \"shared_s-3-of-5\"\namount = 100000000000\n");
    act(5, "account_1", "bridgechain", &format!("name = \"c\"\n{chain}"));
    act(5, "account_1", "bridgechain", "name = \"d\"\n");
    act(5, "account_2", "ipfs", "name = \"two\"\n");
    act(6, "shared_s-3-of-5", "transfer", "to = \"account_9\"\nsigners = [3, 1, 4]\n");
    act(6, "account_4", "claim", "name = \"l\"\n");
    act(6, "account_5", "multi-payment", "to = \"account_4\"\npayments = 5\namount = 500\n");
    act(7, "account_1", "update-business", &format!("name = \"b\"\n{all}"));
    act(8, "account_1", "update-bridgechain", &format!("name = \"c\"\n{chain}"));
    act(9, "account_8", "unvote", "to = \"genesis_2\"\n");
    act(9, "account_1", "resign-bridgechain", "name = \"d\"\n");
    act(10, "account_1", "resign-bridgechain", "name = \"c\"\n");
    act(11, "account_1", "resign-business", "");
    act(12, "genesis_6", "resign", "");
    act(24, "account_3", "refund", "name = \"m\"\n");
    played(&text)
}

/// The tree of a scenario of this text, and its chain after 40 slots, the genesis block first.
fn played(text: &str) -> (Arc<BlockTree>, Vec<Arc<Link>>) {
    played_for(40, text)
}

/// The tree of a scenario of this text, and its chain after some slots, the genesis block first.
fn played_for(slots: u64, text: &str) -> (Arc<BlockTree>, Vec<Arc<Link>>) {
    let scenario = Scenario::parse(text, Path::new("step.toml")).expect("the test writes a scenario");
    let seeds = SeedTree::new(1);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let mut stage = InlineStage::new(&plan, Vec::new());
    stage.run_until(plan.start + Duration::from_secs(8 * slots));
    let tip = stage.world().best().clone();
    let mut chain: Vec<_> = std::iter::successors(Some(tip), |link| link.parent()).collect();
    chain.reverse();
    (plan.tree.clone(), chain)
}

/// A change of a wallet, if it has what would be changed.
type Tamper = fn(&mut Wallet) -> Option<()>;

fn delegate(wallet: &mut Wallet) -> Option<&mut DelegateAttributes> {
    wallet.delegate.as_mut().map(Arc::make_mut)
}

fn business(wallet: &mut Wallet) -> Option<&mut Business> {
    wallet.business.as_mut().map(Arc::make_mut)
}

fn bridgechain(wallet: &mut Wallet) -> Option<&mut Bridgechain> {
    business(wallet)?.bridgechains.values_mut().next()
}

fn lock(wallet: &mut Wallet) -> Option<&mut Lock> {
    Arc::make_mut(wallet.htlc.as_mut()?).locks.values_mut().next()
}

fn key() -> PublicKey {
    PublicKey::from_bytes([2; 33])
}

/// Each value of a wallet made wrong, and the judge's words for it.
#[expect(clippy::unit_arg, reason = "each is one expression, which says what is changed")]
const TAMPERS: [(&str, Tamper); 49] = [
    ("balance of", |wallet| Some(wallet.balance += Arktoshi::coins(1))),
    ("nonce of", |wallet| Some(wallet.nonce.0 += 1)),
    ("public key of", |wallet| wallet.public_key.take().map(drop)),
    ("vote of", |wallet| wallet.vote.take().map(drop)),
    ("vote of", |wallet| wallet.vote.is_none().then(|| wallet.vote = Some(key()))),
    ("second public key of", |wallet| wallet.second_public_key.take().map(drop)),
    ("second public key of", |wallet| wallet.second_public_key.as_mut().map(|second| *second = key())),
    ("multiSignature of", |wallet| wallet.multi_signature.take().map(drop)),
    ("multiSignature of", |wallet| Some(Arc::make_mut(wallet.multi_signature.as_mut()?).min += 1)),
    ("multiSignature of", |wallet| Some(Arc::make_mut(wallet.multi_signature.as_mut()?).public_keys.swap(0, 1))),
    ("delegate.username of", |wallet| Some(delegate(wallet)?.username = "another".into())),
    ("delegate.username of", |wallet| Some(delegate(wallet)?.registered += 1)),
    ("delegate.resigned of", |wallet| delegate(wallet).map(|one| one.resigned = !one.resigned)),
    ("weight of", |wallet| Some(delegate(wallet)?.vote_balance += Arktoshi::coins(1))),
    ("forged fees of", |wallet| Some(delegate(wallet)?.forged_fees += Arktoshi::coins(1))),
    ("forged rewards of", |wallet| Some(delegate(wallet)?.forged_rewards += Arktoshi::coins(1))),
    ("produced blocks of", |wallet| Some(delegate(wallet)?.produced_blocks += 1)),
    ("missed blocks of", |wallet| Some(delegate(wallet)?.missed_blocks += 1)),
    ("rank of", |wallet| Some(*delegate(wallet)?.rank.as_mut()? += 1)),
    ("last round of", |wallet| Some(delegate(wallet)?.round += 1)),
    ("last block of", |wallet| delegate(wallet)?.last_block.take().map(drop)),
    ("locked balance of", |wallet| Some(Arc::make_mut(wallet.htlc.as_mut()?).locked_balance += Arktoshi::coins(1))),
    ("coin in open locks of", |wallet| {
        let locks = &mut Arc::make_mut(wallet.htlc.as_mut()?).locks;
        locks.pop_first().map(drop)
    }),
    ("coin in open locks of", |wallet| Some(lock(wallet)?.amount = Arktoshi::coins(3))),
    ("htlc.locks of", |wallet| {
        let own = wallet.address;
        Some(lock(wallet)?.recipient = own)
    }),
    ("htlc.locks of", |wallet| lock(wallet).map(|lock| lock.timestamp = Timestamp(lock.timestamp.0 + 1))),
    ("htlc.locks of", |wallet| lock(wallet)?.vendor_field.take().map(drop)),
    ("htlc.locks of", |wallet| Some(lock(wallet)?.secret_hash[31] ^= 1)),
    ("htlc.locks of", |wallet| Some(lock(wallet)?.expiration = Expiration::BlockHeight(1_000))),
    ("htlc.locks of", |wallet| Some(lock(wallet)?.expiration = Expiration::EpochTime(1_000))),
    ("ipfs.hashes of", |wallet| Arc::make_mut(wallet.ipfs.as_mut()?).pop().map(drop)),
    ("ipfs.hashes of", |wallet| {
        let hashes = Arc::make_mut(wallet.ipfs.as_mut()?);
        (hashes.len() > 1).then(|| hashes.swap(0, 1))
    }),
    ("business of", |wallet| wallet.business.take().map(drop)),
    ("business.name of", |wallet| Some(business(wallet)?.name.push('x'))),
    ("business.website of", |wallet| Some(business(wallet)?.website.push('x'))),
    ("business.vat of", |wallet| business(wallet)?.vat.take().map(drop)),
    ("business.repository of", |wallet| business(wallet)?.repository.take().map(drop)),
    ("business.resigned of", |wallet| business(wallet).map(|one| one.resigned = !one.resigned)),
    ("business.bridgechains of", |wallet| business(wallet)?.bridgechains.pop().map(drop)),
    ("business.bridgechains of", |wallet| {
        let chains = &mut business(wallet)?.bridgechains;
        (chains.len() > 1).then(|| chains.reverse())
    }),
    ("bridgechain.genesisHash of", |wallet| Some(bridgechain(wallet)?.genesis_hash[0] ^= 1)),
    ("bridgechain.name of", |wallet| Some(bridgechain(wallet)?.name.push('x'))),
    ("bridgechain.seedNodes of", |wallet| Some(bridgechain(wallet)?.seed_nodes.push("9.9.9.9".to_owned()))),
    ("bridgechain.bridgechainRepository of", |wallet| Some(bridgechain(wallet)?.repository.push('x'))),
    ("bridgechain.bridgechainAssetRepository of", |wallet| bridgechain(wallet)?.asset_repository.take().map(drop)),
    ("bridgechain.ports of", |wallet| Some(*bridgechain(wallet)?.ports.values_mut().next()? += 1)),
    ("bridgechain.ports of", |wallet| {
        let ports = &mut bridgechain(wallet)?.ports;
        (ports.len() > 1).then(|| ports.reverse())
    }),
    ("bridgechain.resigned of", |wallet| bridgechain(wallet).map(|one| one.resigned = !one.resigned)),
    ("weight of", |wallet| Some(delegate(wallet)?.vote_balance = Balance::ZERO - Arktoshi::coins(1))),
];

/// The states after a block in which one wallet was tampered with, of those that the block changed or of the others.
fn tampered(before: &State, after: &State, touched: bool, tamper: Tamper) -> Vec<State> {
    let changed: BTreeSet<_> = after.wallets_changed_since(before).into_iter().map(|one| one.address).collect();
    let addresses = after.wallets().map(|wallet| wallet.address).filter(|one| changed.contains(one) == touched);
    let state = |address| {
        let mut state = after.clone();
        tamper(state.tampered(address)).map(|()| state)
    };
    addresses.filter_map(state).take(1).collect()
}

#[test]
fn the_chain_itself_holds_and_has_every_type() {
    let (tree, chain) = rich_chain();
    let mut kinds = BTreeSet::new();
    for link in &chain {
        check_step(&tree, link, &tree.applied(link).state).expect("nothing is wrong with it");
        kinds.extend(link.block().transactions.iter().map(|transaction| transaction.kind()));
    }
    assert_eq!(kinds.len(), 17, "{kinds:?}");
}

/// A state as it is read again from its bytes.
fn read_again(tree: &Arc<BlockTree>, state: &State) -> State {
    let mut out = Saver::new(tree);
    state.save(&mut out);
    let mut from = Loader::new(out.finish().0.into(), tree, Arc::new([]));
    let read = State::load(&mut from).expect("it was written");
    from.finish().expect("nothing is left");
    read
}

/// The orders of what a business registered: maps are equal in any order.
fn orders(wallet: &Arc<Wallet>) -> Vec<(&[u8; 32], Vec<&String>)> {
    let chains = wallet.business.iter().flat_map(|business| &business.bridgechains);
    chains.map(|(hash, chain)| (hash, chain.ports.keys().collect())).collect()
}

/// The model holds for it, so it says the same of every wallet and list; and the next block makes the same of it.
#[test]
fn a_state_is_the_same_when_it_is_read_again() {
    let (tree, chain) = rich_chain();
    for link in &chain {
        let (state, again) = (&tree.applied(link).state, read_again(&tree, &tree.applied(link).state));
        check_step(&tree, link, &again).unwrap_or_else(|why| panic!("{link:?}: {why}"));
        assert!(again.wallets().eq(state.wallets()), "{link:?}");
        assert_eq!(format!("{:?}", again.round()), format!("{:?}", state.round()));
        assert_eq!((again.supply(), again.transactions()), (state.supply(), state.transactions()));
        assert_eq!(read_again(&tree, &again).wallets().len(), state.wallets().len());
    }
    let with = tree.applied(chain.last().expect("it has blocks"));
    for (place, (said, tamper)) in TAMPERS.into_iter().enumerate() {
        for state in tampered(&with.state, &with.state, false, tamper) {
            let again = read_again(&tree, &state);
            let orders = |state: &State| format!("{:?}", state.wallets().map(orders).collect::<Vec<_>>());
            let is_same = |other: &State| again.wallets().eq(other.wallets()) && orders(&again) == orders(other);
            assert!(is_same(&state) && !is_same(&with.state), "{place}: {said}");
        }
    }
}

/// Once in a wallet that the block touches, once in one that it does not.
#[test]
fn each_wrong_value_of_a_wallet_is_found() {
    let (tree, chain) = rich_chain();
    for (place, (said, tamper)) in TAMPERS.into_iter().enumerate() {
        let mut found = 0;
        for touched in [true, false] {
            let states = chain.iter().skip(1).flat_map(|link| {
                let before = tree.applied(&link.parent().expect("it is not genesis"));
                let after = tree.applied(link);
                tampered(&before.state, &after.state, touched, tamper).into_iter().map(move |state| (link, state))
            });
            for (link, state) in states.take(6) {
                let violation = check_step(&tree, link, &state).expect_err(&format!("{place}: {said}, at {link:?}"));
                let expected = violation.what.contains(said) || !touched || said.starts_with("vote");
                assert!(expected, "{place}: {said}: {violation}");
                found += 1;
            }
        }
        assert!(found > 0, "{place}: no wallet has it: {said}");
    }
}

/// The state at the end of a round says that nothing was touched, and lies.
#[test]
fn a_wrong_value_in_a_wallet_that_is_said_to_be_untouched_is_found_at_the_end_of_the_round() {
    let (tree, chain) = rich_chain();
    for (place, (said, tamper)) in TAMPERS.into_iter().enumerate() {
        let mut found = 0;
        for link in chain.iter().skip(1).filter(|link| link.round_end().is_some()) {
            let parent = link.parent().expect("it is not genesis");
            let (before, after) = (tree.applied(&parent), tree.applied(link));
            for state in tampered(&before.state, &after.state, false, tamper) {
                let true_changes = after.state.wallets_changed_since(&before.state).into_iter();
                let changed = true_changes.map(|one| (&**one, None)).collect();
                let (before, after, block) = (&before.state, &state, link.block());
                let step = BlockStep { tree: &tree, link, parent: &parent, block, before, after, changed };
                whole_state::untouched(&step).expect_err(&format!("{place}: {said}, at {link:?}"));
                found += 1;
            }
        }
        let at_a_delegate = ["weight", "rank", "last", "forged", "produced", "missed", "delegate"];
        let may_be_touched = at_a_delegate.iter().any(|what| said.starts_with(what)) || place < 5;
        assert!(found > 0 || may_be_touched, "{place}: no wallet has it: {said}");
    }
}

#[test]
fn each_list_that_names_what_no_wallet_has_is_found() {
    let (tree, chain) = rich_chain();
    let link = chain.iter().rev().find(|link| link.round_end().is_some()).expect("a round has ended");
    let after = tree.applied(link);
    let somebody = after.state.wallets().next().expect("genesis names some").address;
    for (list, state) in ["usernames", "resigned", "locks", "hashes", "businesses"]
        .into_iter()
        .zip(after.state.with_false_lists(somebody))
    {
        let violation = check_step(&tree, link, &state).expect_err(list);
        assert!(violation.what.contains(list), "{list}: {violation}");
    }
    assert!(link.height() > Height(9), "the number of delegates has changed before");
}
