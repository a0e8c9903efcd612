//! The lists of settled blocks when their folder is damaged: whoever opens it, or asks, is told or gets the right answer.

use super::{
    asked::{Asked, Words, operations},
    context,
    history::{Network, change},
    settled::Kept,
};
use crate::support::get;
use dposlab::{
    actors::NodeId,
    api::{Dialect, Older, Shelf, View},
    ledger::settled_chain::{SettledChain, SettledError},
    sim::SeedTree,
};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};
use rand::Rng;
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Requests of each route.
const REQUESTS: usize = 2;
/// Flipped bytes and cuts of each file.
const PLACES: usize = 3;

/// A chain whose older blocks have settled, with requests and their answers.
struct Testnet {
    network: Network,
    wanted: Vec<(Asked, u16, Vec<u8>)>,
}

/// The outcome of asking.
#[derive(Debug, PartialEq)]
enum Found {
    /// All answers were right.
    Right,
    /// The shelf was made anew.
    Rebuilt,
    /// An answer was refused, since what it needs cannot be read.
    Named,
}

impl Testnet {
    fn new(is_reversed: bool) -> Self {
        let mut network = Network::settling();
        let changes = prop::collection::vec(change(), 120).new_tree(&mut TestRunner::deterministic());
        let mut changes = changes.expect("a value").current();
        if is_reversed {
            changes.reverse();
        }
        for change in changes {
            network.change(&change, |_| {});
        }
        let top = network.settling.as_ref().expect("it settles").top();
        assert!(top > 20, "too few blocks have settled: {top}");
        let fresh = context(&network.fresh(0), Dialect::Documented);
        let (mut words, mut random) = (Words::default(), SeedTree::new(3).stream("requests"));
        words.learn(&fresh);
        let mut wanted = Vec::new();
        for operation in operations(&fresh) {
            for _ in 0..REQUESTS {
                let asked = operation.draw(&words, &mut random);
                let answered = asked.of(&fresh);
                wanted.push((asked, answered.status, answered.reply.body.to_vec()));
            }
        }
        Self { network, wanted }
    }

    fn kept(&self) -> &Arc<Kept> {
        &self.network.settling.as_ref().expect("it settles").kept
    }

    fn open(&self, folder: &Path) -> (Shelf, bool) {
        let byte = self.network.play.testnet.config.network.pub_key_hash;
        let mut told = Vec::new();
        let tell = |height, top| told.push((height, top));
        let opened = Shelf::open_and_tell(folder, Some(&**self.kept()), byte, tell);
        let (shelf, shelved) = opened.expect("it is rebuilt where it must be");
        let top = self.kept().top();
        let heights = told.iter().map(|(height, _)| height.0);
        assert!(heights.is_sorted() && told.iter().all(|(_, of)| *of == top), "{told:?} of {top}");
        assert_eq!(told.last().map(|(height, _)| *height), (shelved.taken_in > 0).then_some(top), "the end is told");
        (shelf, shelved.rebuilt.is_some())
    }

    /// Opens the folder and asks everything.
    fn ask(&self, folder: &Path) -> Found {
        let (shelf, is_rebuilt) = self.open(folder);
        self.answers(shelf).unwrap_or(if is_rebuilt { Found::Rebuilt } else { Found::Right })
    }

    /// The first node's API, which reads what has settled from a shelf.
    fn view(&self, shelf: Arc<Shelf>) -> View {
        let network = &self.network;
        let (tree, tip) = (network.play.tree.clone(), network.tips[0].clone());
        View::with_older(NodeId(0), tree, tip, network.now, Some(shelf as Arc<dyn Older>))
    }

    /// Asks everything. `None` if all answers were right.
    fn answers(&self, shelf: Shelf) -> Option<Found> {
        let network = &self.network;
        let shelf = Arc::new(shelf);
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.view(shelf)));
        // The host of the view gets an error that unwinds, not a panic.
        let Ok(view) = read.map_err(|unwound| assert!(unwound.is::<SettledError>())) else {
            return Some(Found::Named);
        };
        let view = network.told(view.with_neighbours((0..3).map(NodeId)), 0);
        let context = context(&view, Dialect::Documented);
        for (asked, status, body) in &self.wanted {
            let answered = asked.of(&context);
            if answered.status == 500 && *status != 500 {
                return Some(Found::Named);
            }
            assert_eq!((answered.status, &*answered.reply.body), (*status, &**body), "{asked:?}");
        }
        None
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("it is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).expect("it is in it"));
        fs::create_dir_all(target.parent().expect("a file has one")).expect("a folder");
        fs::copy(&file, &target).expect("it can be copied");
    }
}

#[test]
fn no_damage_to_the_lists_of_settled_blocks_gives_a_wrong_answer() {
    let testnet = Testnet::new(false);
    let mut random = SeedTree::new(1).stream("damage");
    // All of it in the journal, then in files that are read in place, too.
    for is_flushed in [false, true] {
        let room = tempfile::tempdir().expect("a folder");
        let whole = room.path().join("whole");
        let (shelf, _) = testnet.open(&whole);
        if is_flushed {
            shelf.flush().expect("it can be written");
        }
        drop(shelf);
        assert_eq!(testnet.ask(&whole), Found::Right);
        damage(&testnet, &whole, room.path(), &mut random);
        let missing = room.path().join("missing");
        assert_eq!(testnet.ask(&missing), Found::Right, "taken in from the settled blocks");
    }
}

fn damage(testnet: &Testnet, whole: &Path, room: &Path, random: &mut impl Rng) {
    let (mut count, mut noticed) = (0, 0);
    for file in files(whole) {
        let name = file.strip_prefix(whole).expect("it is in it").to_owned();
        let bytes = fs::read(&file).expect("it can be read");
        // Where a file is longer than what is in it, the rest is zeros.
        let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let mut variants = vec![None];
        for _ in 0..PLACES.min(length) {
            let at = random.random_range(0..length);
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << random.random_range(0..8);
            variants.extend([Some(flipped), Some(bytes[..at].to_vec())]);
        }
        for variant in variants {
            let damaged = room.join(format!("damaged-{count}"));
            copy(whole, &damaged);
            match &variant {
                Some(bytes) => fs::write(damaged.join(&name), bytes).expect("it can be written"),
                None => fs::remove_file(damaged.join(&name)).expect("it is there"),
            }
            let found = testnet.ask(&damaged);
            noticed += usize::from(found != Found::Right);
            if found == Found::Named {
                assert_eq!(testnet.ask(&damaged), Found::Rebuilt, "the next start makes it anew: {name:?}");
            }
            fs::remove_dir_all(&damaged).expect("it is there");
            count += 1;
        }
    }
    // Blocks that the journal lacks are taken in again without a message.
    assert!(noticed * 4 > count, "much of the damage is noticed: {noticed} of {count}");
}

/// The run went back, and goes on in another way.
#[test]
fn lists_of_another_chain_are_made_anew() {
    let (one, other) = (Testnet::new(false), Testnet::new(true));
    let room = tempfile::tempdir().expect("a folder");
    assert_eq!(one.ask(room.path()), Found::Right);
    assert_eq!(other.ask(room.path()), Found::Rebuilt);
    // Where nothing had settled at the start, it shows when blocks settle.
    let byte = one.network.play.testnet.config.network.pub_key_hash;
    let (shelf, shelved) = Shelf::open(room.path(), None, byte).expect("it is whole");
    assert_eq!((shelf.top().0, shelved.rebuilt), (other.kept().top().0, None));
    assert_eq!(one.answers(shelf), None);
}

/// A reader is in the middle of a list when the run goes back below what has settled, and blocks of another chain settle.
#[test]
fn no_answer_is_of_two_chains() {
    let (one, other) = (Testnet::new(false), Testnet::new(true));
    let (tip, top) = (other.network.tips[0].clone(), other.kept().top());
    let accounts = &one.network.play.testnet.accounts;
    let wallet = accounts.last().expect("ten").address;
    let delegate = &one.network.play.testnet.delegates[0].username;
    let lists = [
        "/api/blocks?limit=100".to_owned(),
        "/api/transactions?limit=100".to_owned(),
        format!("/api/wallets/{wallet}/transactions?limit=100"),
        format!("/api/delegates/{delegate}/blocks?limit=100"),
    ];
    for list in lists {
        for reads in [0, 2] {
            let room = tempfile::tempdir().expect("a folder");
            let (shelf, _) = one.open(room.path());
            let shelf = Arc::new(shelf);
            let context_of_view = || context(&one.view(shelf.clone()), Dialect::Documented);
            let undisturbed = get(&context_of_view(), &list);
            assert_eq!(undisturbed.status, 200, "{list}: {}", undisturbed.body);
            let context = context_of_view();
            let (tip, of_other) = (tip.clone(), shelf.clone());
            one.kept().after_reads(reads, move || {
                let at = |height| tip.ancestor(height).expect("it has settled there");
                of_other.extend(top, &at).expect("it is another chain");
            });
            let answered = get(&context, &list);
            assert!(!one.kept().waits(), "{list}: more blocks are read than {reads}");
            assert_eq!(answered.status, 500, "{list} after {reads} blocks: {}", answered.body);
        }
    }
}

/// A block that a reader reads of a chain that the run has left is kept for nobody.
#[test]
fn a_block_of_a_chain_that_was_left_is_not_at_hand() {
    let (one, other) = (Testnet::new(false), Testnet::new(true));
    let room = tempfile::tempdir().expect("a folder");
    let (shelf, _) = one.open(room.path());
    let height = one.kept().top().min(other.kept().top());
    let link_of = |testnet: &Testnet| testnet.kept().link(height).expect("it is in memory").expect("it has settled");
    let left = link_of(&other);
    assert_ne!(left.id(), link_of(&one).id());
    let read = shelf.with(left.clone()).expect("the shelf is whole");
    assert_eq!(read.link().id(), left.id());
    assert!(shelf.at_hand(height).is_none());
    shelf.with(link_of(&one)).expect("the shelf is whole");
    assert_eq!(shelf.at_hand(height).map(|entry| entry.link().id()), Some(link_of(&one).id()));
}
