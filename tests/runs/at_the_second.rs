//! Whatever ends by time, by height or by round ends neither earlier nor later: each at the instant before, at its instant and at
//! the one after. The instants are those of the contract.

use crate::pool::Bench;
use dposlab::{
    actors::{Event, NodeId, SimTime},
    protocol::{
        Arktoshi, Height, SignedTransaction, Timestamp, Transaction,
        crypto::sha256,
        transaction::{Expiration, TransactionBuilder},
    },
    scenario::{Scenario, StageKind},
    sim::{NetworkEvent, Observer, SeedTree},
};
use std::{
    path::Path,
    sync::{Arc, Mutex},
};

const FEE: u64 = 10_000_000;
const BLOCKTIME: u32 = 8;
const SECRET: [u8; 32] = [9; 32];

fn to(bench: &Bench) -> dposlab::protocol::Address {
    bench.keys(0).public().address(23)
}

fn transfer(bench: &Bench) -> TransactionBuilder {
    Transaction::transfer(to(bench), Arktoshi::coins(1))
}

/// The outcome of handing one in: its error, with the message.
fn refused(bench: &mut Bench, transaction: &Arc<SignedTransaction>) -> Option<(String, String)> {
    let submission = bench.submit(std::slice::from_ref(transaction));
    let error = submission.errors.into_iter().next().map(|(_, why)| (why.code().to_owned(), why.to_string()));
    assert_eq!(submission.accept.len(), usize::from(error.is_none()));
    error
}

fn grown(height: u32) -> Bench {
    let mut bench = Bench::new(|rules| rules.ledger.minimum_lock_expiration = false);
    while bench.tip.height().0 < height {
        bench.forge(Vec::new());
    }
    bench
}

/// A transfer of version 2 is not taken from the height before its last one on, leaves the pool when the chain is that high, and
/// is in no block of that height. Source: consensus.md 3.4, 5.1 row 5, 5.6.
#[test]
fn a_transfer_expires_at_its_height() {
    const TIP: u32 = 9;
    for expiration in [0, TIP - 1, TIP, TIP + 1, TIP + 2, TIP + 3] {
        let mut bench = grown(TIP);
        let sent = bench.sign(transfer(&bench).expiration(expiration), 1, 1, FEE);
        let message =
            format!("Transaction {} is expired since {} blocks.", sent.id(), i64::from(TIP) - i64::from(expiration));
        let wanted = (expiration != 0 && expiration <= TIP + 1).then(|| ("ERR_EXPIRED".to_owned(), message));
        assert_eq!(refused(&mut bench, &sent), wanted, "at {expiration}");
        let forged = bench.try_forge(vec![sent]);
        assert_eq!(forged.is_ok(), expiration == 0 || expiration > TIP + 1, "in block {}: {expiration}", TIP + 1);
    }
    let mut bench = grown(TIP);
    let (sent, later) = (bench.sign(transfer(&bench).expiration(TIP + 3), 1, 1, FEE), bench.transfer(1, 2, FEE));
    assert_eq!(refused(&mut bench, &sent).or(refused(&mut bench, &later)), None);
    for (height, pending) in [(TIP + 1, true), (TIP + 2, true), (TIP + 3, false)] {
        bench.forge(Vec::new());
        assert_eq!(bench.tip.height(), Height(height));
        bench.chosen();
        let expired = bench.events.iter().filter_map(|event| match event {
            Event::PoolExpired(one) => Some(one.id()),
            _ => None,
        });
        let wanted = if pending { vec![] } else { vec![later.id(), sent.id()] };
        assert_eq!(expired.collect::<Vec<_>>(), wanted, "at {height}, the highest nonce first");
    }
}

/// A transaction of version 1 expires by its age in slots, however many blocks came, and may be an hour early. Source:
/// consensus.md 5.1 row 4, 5.1 row 5, 5.6.
#[test]
fn version_one_expires_at_its_age() {
    const AGE: u32 = 2_700;
    let bench = || {
        let mut bench = Bench::at_genesis(|_| {});
        // So that there is a time before which it can have been made.
        bench.late = 40_000;
        bench
    };
    let at = |bench: &Bench, seconds: i64, account: usize| {
        let now = bench.tip.block().header.timestamp.0 + bench.late;
        let made = Timestamp(u32::try_from(i64::from(now) + seconds).expect("after genesis"));
        Arc::new(transfer(bench).version_one(made).sign(bench.keys(account)))
    };
    let code = |seconds: i64| {
        let mut bench = bench();
        let sent = at(&bench, seconds, 1);
        refused(&mut bench, &sent)
    };
    let slots = |slots: u32| -i64::from(slots * BLOCKTIME);
    for (seconds, wanted) in [
        (3_599, None),
        (3_600, None),
        (3_601, Some("ERR_FROM_FUTURE")),
        (slots(AGE - 1) + 1, None),
        // One slot younger than its age: E is the next block's height.
        (slots(AGE - 1), Some("ERR_EXPIRED")),
        (slots(AGE - 1) - 1, Some("ERR_EXPIRED")),
    ] {
        assert_eq!(code(seconds).as_ref().map(|(code, _)| &**code), wanted, "made {seconds} s from now");
    }
    assert!(code(slots(AGE - 1)).is_some_and(|(_, message)| message.ends_with("is expired since -1 blocks.")));
    assert!(code(slots(AGE + 5)).is_some_and(|(_, message)| message.ends_with("is expired since 5 blocks.")));
    // It stays for another slot once it is there.
    let mut bench = bench();
    let sent = at(&bench, 0, 1);
    assert_eq!(refused(&mut bench, &sent), None);
    let made = bench.late;
    for (age, pending) in [(AGE * BLOCKTIME - 1, true), (AGE * BLOCKTIME, false)] {
        bench.late = made + age;
        bench.chosen();
        let is_of_it = |event: &Event| matches!(event, Event::PoolExpired(one) if one.id() == sent.id());
        assert_eq!(!bench.events.iter().any(is_of_it), pending, "after {age} s");
    }
}

/// A lock is claimed while `value` lies after the block before, and refunded from then on; its making goes by the same block.
/// Source: consensus.md 4.5.
#[test]
fn a_lock_expires_with_the_block_of_its_second_or_height() {
    const TIP: u32 = 12;
    for by_height in [true, false] {
        for offset in [-2_i64, -1, 0, 1, 2, 8] {
            let mut bench = grown(4);
            let end = grown(TIP).tip.block().header.timestamp;
            let value = if by_height { i64::from(TIP) } else { i64::from(end.0) } + offset;
            let value = u32::try_from(value).expect("it is after genesis");
            let expiration = if by_height { Expiration::BlockHeight(value) } else { Expiration::EpochTime(value) };
            let lock = Transaction::htlc_lock(to(&bench), Arktoshi::coins(1), sha256(&SECRET), expiration);
            let lock = bench.sign(lock, 1, 1, FEE);
            bench.forge(vec![lock.clone()]);
            while bench.tip.height().0 < TIP {
                bench.forge(Vec::new());
            }
            assert_eq!(bench.tip.block().header.timestamp, end);
            let claim = bench.sign(Transaction::htlc_claim(lock.id(), SECRET), 0, 1, 0);
            let refund = bench.sign(Transaction::htlc_refund(lock.id()), 1, 2, 0);
            let (expired, what) = (offset <= 0, format!("by height {by_height}, {offset:+}"));
            let not_yet = "did not expire yet";
            let over = "lock transaction expired";
            for (transaction, taken, why) in [(&claim, !expired, over), (&refund, expired, not_yet)] {
                let message = refused(&mut bench, transaction).map(|(_, message)| message);
                assert_eq!(message.is_none(), taken, "{what}: {message:?}");
                assert!(message.is_none_or(|message| message.contains(why)), "{what}");
                let tip = bench.tip.clone();
                let forged = bench.try_forge(vec![transaction.clone()]).map_err(|why| why.to_string());
                assert_eq!(forged.is_ok(), taken, "{what}: {forged:?}");
                bench.tip = tip;
            }
            // Without a minimum a lock must outlast the block before, no more.
            let late = Transaction::htlc_lock(to(&bench), Arktoshi::coins(1), sha256(&SECRET), expiration);
            let late = bench.sign(late, 2, 1, FEE);
            assert_eq!(bench.try_forge(vec![late]).is_ok(), !expired, "{what}: made as it ends");
        }
    }
}

/// What was told of faults, and of blocks as the network first had them.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Told>>);

#[derive(Default)]
struct Told {
    /// Fault, whether it began, and when in microseconds.
    faults: Vec<(usize, bool, u64)>,
    /// When the first node had a block of each height, from 2 on.
    heights: Vec<u64>,
}

impl Observer for Log {
    fn observe(&mut self, now: SimTime, _: NodeId, event: &Event) {
        let mut told = self.0.lock().expect("nobody panics with it");
        if let Event::BlockApplied(link) = event
            && link.height().0 as usize == told.heights.len() + 2
        {
            told.heights.push(now.micros());
        }
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        let (index, began) = match event {
            NetworkEvent::FaultBegan { index, .. } => (*index, true),
            NetworkEvent::FaultEnded { index, .. } => (*index, false),
            _ => return,
        };
        self.0.lock().expect("nobody panics with it").faults.push((index, began, now.micros()));
    }
}

/// A fault begins and ends at the very instant of its trigger: a round begins with the block before its first one.
#[test]
fn faults_begin_and_end_at_the_instant_of_their_triggers() {
    let second = |second: u64| (second + 8) * 1_000_000;
    let triggers = |log: &Told| {
        let height = |height: usize| log.heights[height - 2];
        vec![
            ("{ height-at-any = 11 }", height(11)),
            ("{ height-at-any = 12 }", height(12)),
            // Rounds of five: 11 is the first block of round 3.
            ("{ round-at-any = 3 }", height(10)),
            ("{ round-at-any = 4 }", height(15)),
            ("{ slot = 10 }", 80 * 1_000_000),
            ("{ slot = 11 }", 88 * 1_000_000),
            ("{ seconds = 80 }", second(80)),
            ("{ seconds = 80.000001 }", second(80) + 1),
        ]
    };
    let names: Vec<&str> = {
        let heights = vec![0; 40];
        triggers(&Told { heights, ..Told::default() }).into_iter().map(|(name, _)| name).collect()
    };
    let mut text = "version = 1\nrounds = 6\ncrypto = \"modelled\"\n[network]\ndelegates = 5\n".to_owned();
    for name in &names {
        text += &format!(
            "[[fault]]\nkind = \"refuse-transactions\"\nnodes = [0]\nfrom = {name}\nuntil = {{ after = 8 }}\n"
        );
        text += &format!("[[fault]]\nkind = \"refuse-transactions\"\nnodes = [0]\nuntil = {name}\n");
    }
    let scenario = Scenario::parse(&text, Path::new("triggers")).unwrap_or_else(|why| panic!("{why}"));
    let (seeds, log) = (SeedTree::new(7), Log::default());
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    scenario.play(&plan, StageKind::Inline, vec![Box::new(log.clone())], |_| {}).expect("no actor dies");
    let told = log.0.lock().expect("nobody panics with it");
    for (index, (name, instant)) in triggers(&told).into_iter().enumerate() {
        let (from, until) = (2 * index, 2 * index + 1);
        let found: Vec<_> = told.faults.iter().filter(|(fault, ..)| [from, until].contains(fault)).copied().collect();
        let mut wanted = vec![
            (until, true, 8_000_000),
            (from, true, instant),
            (until, false, instant),
            (from, false, instant + 8_000_000),
        ];
        wanted.sort_by_key(|(fault, began, at)| (*at, *fault, *began));
        let mut found = found;
        found.sort_by_key(|(fault, began, at)| (*at, *fault, *began));
        assert_eq!(found, wanted, "{name}");
    }
}
