//! Each code a pool refuses with, its words, and what leaves a pool otherwise. Source: consensus.md 5.1, 5.2, 5.6, 5.7.

use crate::pool::{Bench, FEE, codes};
use dposlab::{
    actors::{Event, Submission},
    ledger::BlockRejected,
    protocol::{
        Arktoshi, Milestones, NetworkConfig, Nonce, SignedTransaction, Timestamp, Transaction, Vote,
        crypto::sha256,
        transaction::{Expiration, TransactionBuilder},
    },
};
use indexmap::IndexMap;
use std::sync::Arc;

/// Code and message of the only refusal.
fn refusal(submission: &Submission) -> (&'static str, String) {
    let [(_, error)] = &submission.errors[..] else { panic!("one refusal, not {submission:?}") };
    (error.code(), error.to_string())
}

fn one(bench: &mut Bench, transaction: Arc<SignedTransaction>) -> (&'static str, String) {
    refusal(&bench.submit(&[transaction]))
}

fn dear(bench: &Bench, builder: TransactionBuilder, account: usize, nonce: u64) -> Arc<SignedTransaction> {
    bench.sign(builder, account, nonce, Arktoshi::coins(50).value())
}

fn milestone_at(network: &mut NetworkConfig, change: serde_json::Value) {
    let mut list: Vec<_> = network.milestones.all().iter().map(|one| one.json.clone()).collect();
    list.push(change);
    network.milestones = Milestones::from_json(&list.into()).expect("a valid change");
}

#[test]
fn what_is_wrong_by_itself_is_refused_in_these_words() {
    let mut bench = Bench::new(|_| {});
    let home = bench.keys(0).public().address(23);
    let elsewhere = bench.keys(0).public().address(30);
    let abroad = bench.sign(Transaction::transfer(home, Arktoshi::coins(1)).network(30), 1, 1, FEE);
    let expected = ("ERR_WRONG_NETWORK", "Transaction network '30' does not match 'undefined'".to_owned());
    assert_eq!(one(&mut bench, abroad), expected);
    let to_abroad = bench.sign(Transaction::transfer(elsewhere, Arktoshi::coins(1)).network(23), 1, 1, FEE);
    let message = format!("Recipient {elsewhere} is not on the same network: 23");
    assert_eq!(one(&mut bench, to_abroad), ("ERR_INVALID_RECIPIENT", message));
    let expired = bench.sign(Transaction::transfer(home, Arktoshi::coins(1)).expiration(3), 1, 1, FEE);
    let message = format!("Transaction {} is expired since -1 blocks.", expired.id());
    assert_eq!(one(&mut bench, expired), ("ERR_EXPIRED", message));
    let nothing = bench.sign(Transaction::transfer(home, Arktoshi::ZERO), 1, 1, FEE);
    assert_eq!(one(&mut bench, nothing).0, "ERR_TRANSACTION_SCHEMA");
    let unknown = bench.transfer(1, 1, FEE).id();
    let claim = bench.sign(Transaction::htlc_claim(unknown, [1; 32]), 1, 1, 0);
    let message = format!("The associated lock transaction id \"{unknown}\" was not found.");
    assert_eq!(one(&mut bench, claim), ("ERR_HTLCLOCKNOTFOUND", message));
    let cheap = bench.transfer(1, 1, 1);
    let message = "The fee is too low to broadcast and accept the transaction".to_owned();
    assert_eq!(one(&mut bench, cheap), ("ERR_LOW_FEE", message));
}

/// The pool leaves 10,240 bytes of a block to its header. Source: consensus.md 5.1.
#[test]
fn a_transaction_may_fill_the_room_of_a_block_to_the_byte() {
    let size = Bench::new(|_| {}).transfer(1, 1, FEE).size();
    let with_room = |bytes: usize| {
        let change = |network: &mut NetworkConfig| {
            let mut list: Vec<_> = network.milestones.all().iter().map(|one| one.json.clone()).collect();
            list.iter_mut().for_each(|one| one["block"]["maxPayload"] = (10_240 + bytes).into());
            network.milestones = Milestones::from_json(&list.into()).expect("a valid change");
        };
        let mut bench = Bench::of_network(change, |_| {});
        bench.forge(Vec::new());
        let transfer = bench.transfer(1, 1, FEE);
        assert_eq!(transfer.size(), size);
        codes(&bench.submit(&[transfer]))
    };
    assert_eq!(with_room(size), [""; 0]);
    assert_eq!(with_room(size - 1), ["ERR_TOO_LARGE"]);
}

#[test]
fn what_is_pending_is_not_taken_again_though_its_id_is_not_remembered() {
    let mut bench = Bench::new(|rules| rules.pool.recent_ids = 0);
    let transfer = bench.transfer(1, 1, FEE);
    let both = bench.submit(&[transfer.clone(), transfer.clone()]);
    assert_eq!((both.accept.len(), codes(&both).len()), (1, 0), "twice in one request is once");
    let message = format!("Duplicate transaction {}", transfer.id());
    assert_eq!(one(&mut bench, transfer), ("ERR_DUPLICATE", message));
}

#[test]
fn types_that_are_not_in_force_are_refused_by_number() {
    let off = serde_json::json!({ "height": 3, "htlcEnabled": false });
    let mut bench = Bench::of_network(|network| milestone_at(network, off), |_| {});
    bench.forge(Vec::new());
    bench.forge(Vec::new());
    let (home, expiration) = (bench.keys(0).public().address(23), Expiration::BlockHeight(100));
    let lock = bench.sign(Transaction::htlc_lock(home, Arktoshi::coins(1), [1; 32], expiration), 1, 1, FEE);
    let message = "Transaction type Core/8 is deactivated.".to_owned();
    assert_eq!(one(&mut bench, lock.clone()), ("ERR_UNKNOWN", message));
    let refused = bench.try_forge(vec![lock]).expect_err("nor may it be forged").to_string();
    assert!(refused.contains("Core/8"), "{refused}");
}

#[test]
fn version_one_is_not_taken_from_the_future_nor_when_it_is_old() {
    let mut bench = Bench::at_genesis(|_| {});
    let now = bench.tip.block().header.timestamp.0 + bench.late;
    let home = bench.keys(0).public().address(23);
    let at = |bench: &Bench, time, account: usize| {
        let transfer = Transaction::transfer(home, Arktoshi::coins(1)).version_one(Timestamp(time));
        Arc::new(transfer.sign(bench.keys(account)))
    };
    let early = at(&bench, now + 3_601, 1);
    let message = format!("Transaction {} is 3601 seconds in the future", early.id());
    assert_eq!(one(&mut bench, early), ("ERR_FROM_FUTURE", message));
    let just = at(&bench, now + 3_600, 1);
    let later = at(&bench, now + 3_600, 1);
    assert_eq!(bench.submit(std::slice::from_ref(&just)).accept.len(), 1);
    assert_eq!(just.id(), later.id());
    // 2,700 slots later, though not one block has come.
    bench.late += 3_600 + 2_700 * 8 - 1;
    assert_eq!(bench.chosen().len(), 1);
    bench.late += 1;
    assert!(bench.chosen().is_empty());
    assert!(bench.events.iter().any(|event| matches!(event, Event::PoolExpired(one) if one.id() == just.id())));
    let old = at(&bench, now + 3_600, 2);
    assert_eq!(one(&mut bench, old).0, "ERR_EXPIRED");
}

#[test]
fn one_pending_of_a_kind_is_enough() {
    let mut bench = Bench::new(|rules| rules.ledger.minimum_lock_expiration = false);
    let delegate = *bench.testnet.delegates[0].keys.public();
    let sender = *bench.keys(1).public();
    let vote = bench.sign(Transaction::vote(Vote::For(delegate)), 1, 1, FEE);
    let unvote = bench.sign(Transaction::vote(Vote::Against(delegate)), 1, 2, FEE);
    bench.submit(&[vote]);
    let message = format!("Sender {sender} already has a transaction of type 'Vote' in the pool");
    assert_eq!(one(&mut bench, unvote), ("ERR_PENDING", message));

    let [first, second] = [2, 3].map(|account| dear(&bench, Transaction::delegate_registration("same"), account, 1));
    let both = bench.submit(&[first.clone(), second]);
    assert_eq!(codes(&both), ["ERR_CONFLICT", "ERR_CONFLICT"]);
    let words = "Multiple delegate registrations for \"same\" in transaction payload";
    assert_eq!(both.errors[0].1.to_string(), words);
    bench.forge(Vec::new());
    bench.submit(&[first]);
    let late = dear(&bench, Transaction::delegate_registration("same"), 4, 1);
    let message = "Delegate registration for \"same\" already in the pool".to_owned();
    assert_eq!(one(&mut bench, late), ("ERR_PENDING", message));

    let expiration = Expiration::BlockHeight(100);
    let home = bench.keys(0).public().address(23);
    let lock = bench.sign(Transaction::htlc_lock(home, Arktoshi::coins(1), sha256(&[9; 32]), expiration), 5, 1, FEE);
    bench.forge(vec![lock.clone()]);
    let [claim, again] = [6, 7].map(|account| bench.sign(Transaction::htlc_claim(lock.id(), [9; 32]), account, 1, 0));
    bench.submit(&[claim]);
    let message = format!("HtlcClaim for \"{}\" already in the pool", lock.id());
    assert_eq!(one(&mut bench, again), ("ERR_PENDING", message));
}

#[test]
fn of_two_who_register_a_shared_wallet_one_is_chosen_for_a_block() {
    let mut bench = Bench::new(|_| {});
    let people = [0, 1].map(|account| bench.keys(account).clone());
    let keys: Vec<_> = people.iter().map(|keys| *keys.public()).collect();
    let register = |account| {
        let builder = Transaction::multi_signature(2, keys.clone()).nonce(Nonce(1)).fee(Arktoshi::coins(50));
        let signed =
            people.iter().enumerate().fold(builder.sender(*bench.keys(account).public()), |signed, (index, who)| {
                signed.multi_sign(index as u8, who)
            });
        Arc::new(signed.sign(bench.keys(account)).finish())
    };
    let [first, second] = [2, 3].map(register);
    assert_eq!(bench.submit(&[first.clone(), second]).accept.len(), 2, "each follows from the chain");
    assert_eq!(bench.chosen(), [first]);
}

/// Of each lock one claim and one refund may wait: neither looks at the other, nor at those of other locks.
#[test]
fn one_claim_and_one_refund_of_a_lock_may_wait() {
    let mut bench = Bench::new(|rules| {
        rules.ledger.minimum_lock_expiration = false;
        rules.pool.refund_rule_reads_wrong_field = false;
    });
    let home = bench.keys(0).public().address(23);
    let lock = |bench: &Bench, owner| {
        let builder = Transaction::htlc_lock(home, Arktoshi::coins(1), sha256(&[9; 32]), Expiration::BlockHeight(6));
        bench.sign(builder, owner, 1, FEE)
    };
    let locks = [1, 2].map(|owner| lock(&bench, owner));
    bench.forge(locks.to_vec());
    let claim =
        |bench: &Bench, lock: usize, who| bench.sign(Transaction::htlc_claim(locks[lock].id(), [9; 32]), who, 1, 0);
    let refund = |bench: &Bench, lock: usize, who| bench.sign(Transaction::htlc_refund(locks[lock].id()), who, 1, 0);
    let pending =
        |name: &str, lock: usize| ("ERR_PENDING", format!("{name} for \"{}\" already in the pool", locks[lock].id()));
    for (number, lock) in [(0, 0), (1, 1)] {
        let [first, again] = [3, 4].map(|who| claim(&bench, lock, who + 2 * number));
        assert_eq!(bench.submit(&[first]).accept.len(), 1, "the first claim of {lock}");
        assert_eq!(one(&mut bench, again), pending("HtlcClaim", lock));
    }
    // Now they have expired, and the claims still wait.
    (0..3).for_each(|_| bench.forge(Vec::new()));
    for (number, lock) in [(0, 0), (1, 1)] {
        let [first, again] = [7, 8].map(|who| refund(&bench, lock, (who + 2 * number) % 10));
        assert_eq!(bench.submit(&[first]).accept.len(), 1, "the first refund of {lock}");
        assert_eq!(one(&mut bench, again), pending("HtlcRefund", lock));
    }
}

#[test]
fn businesses_and_bridgechains_wait_for_one_another() {
    let mut bench = Bench::new(|_| {});
    let business = || Transaction::business_registration("Acme Inc", "https://acme.io", None, None);
    let (first, second) = (dear(&bench, business(), 1, 1), dear(&bench, business(), 1, 2));
    bench.submit(std::slice::from_ref(&first));
    let message = "Business registration for \"[object Object]\" already in the pool".to_owned();
    assert_eq!(one(&mut bench, second), ("ERR_PENDING", message));
    let hash = [7; 32];
    let ports = IndexMap::from([("@arkecosystem/core-api".to_owned(), 4_003)]);
    let seeds = vec!["1.2.3.4".to_owned()];
    let chain = Transaction::bridgechain_registration("Chain", seeds, hash, "https://a.io/r", None, ports);
    let chain = dear(&bench, chain, 1, 2);
    bench.forge(vec![first, chain]);
    let update = |name: &str| Transaction::business_update(Some(name.to_owned()), None, None, None);
    let (first, second) = (dear(&bench, update("Acme Ltd"), 1, 3), dear(&bench, update("Acme Corp"), 1, 4));
    assert_eq!(bench.submit(&[first]).accept.len(), 1);
    assert_eq!(one(&mut bench, second).1, "Business update for \"[object Object]\" already in the pool");
    // The chain's reasons come after those of the pool: a business with a live bridgechain.
    let leave = dear(&bench, Transaction::business_resignation(), 1, 4);
    let refused = one(&mut bench, leave);
    assert!(refused.0 == "ERR_APPLY" && refused.1.contains("bridgechain(s) are not resigned"), "{refused:?}");
    let resign = |nonce| dear(&bench, Transaction::bridgechain_resignation(hash), 1, nonce);
    let (first, second) = (resign(4), resign(5));
    assert_eq!(bench.submit(&[first]).accept.len(), 1);
    let message = format!("Bridgechain resignation for bridgechainId \"{}\" already in the pool", hex::encode(hash));
    assert_eq!(one(&mut bench, second), ("ERR_PENDING", message));
    // The sender's wallet in the pool has the pending resignation applied: now the business may follow.
    let leave = dear(&bench, Transaction::business_resignation(), 1, 5);
    assert_eq!(bench.submit(&[leave]).accept.len(), 1);
    let unknown = dear(&bench, Transaction::business_resignation(), 2, 1);
    assert!(one(&mut bench, unknown).1.contains("wallet is not a business"));
}

#[test]
fn what_has_resigned_is_not_updated() {
    let mut bench = Bench::new(|_| {});
    let (hash, seeds) = ([7; 32], vec!["1.2.3.4".to_owned()]);
    let ports = IndexMap::from([("@arkecosystem/core-api".to_owned(), 4_003)]);
    let business = Transaction::business_registration("Acme Inc", "https://acme.io", None, None);
    let chain = Transaction::bridgechain_registration("Chain", seeds.clone(), hash, "https://a.io/r", None, ports);
    let begun = vec![dear(&bench, business, 1, 1), dear(&bench, chain, 1, 2)];
    bench.forge(begun);
    let update = |bench: &Bench, nonce| {
        dear(bench, Transaction::bridgechain_update(hash, Some(seeds.clone()), None, None, None), 1, nonce)
    };
    let first = update(&bench, 3);
    assert_eq!(bench.submit(&[first]).accept.len(), 1);
    let resignation = dear(&bench, Transaction::bridgechain_resignation(hash), 1, 3);
    bench.forge(vec![resignation]);
    let refused = bench.try_forge(vec![update(&bench, 4)]).expect_err("it has resigned").to_string();
    assert!(refused.contains("bridgechain is resigned"), "{refused}");
}

#[test]
fn a_lock_outlasts_a_round_in_seconds_as_in_blocks() {
    let mut bench = Bench::new(|_| {});
    let tip = bench.tip.block().header.clone();
    let home = bench.keys(0).public().address(23);
    let lock = |bench: &Bench, expiration| {
        let builder = Transaction::htlc_lock(home, Arktoshi::coins(1), [1; 32], expiration);
        bench.sign(builder, 1, 1, FEE)
    };
    // Five delegates, eight seconds each.
    for (last, taken) in [(40, false), (41, true)] {
        let lock = lock(&bench, Expiration::EpochTime(tip.timestamp.0 + last));
        assert_eq!(bench.try_forge(vec![lock]).is_ok(), taken, "{last} seconds");
    }
    let mut bench = Bench::new(|_| {});
    for (last, taken) in [(5, false), (6, true)] {
        let lock = lock(&bench, Expiration::BlockHeight(tip.height.0 + last));
        assert_eq!(bench.try_forge(vec![lock]).is_ok(), taken, "{last} blocks");
    }
}

#[test]
fn a_listed_block_still_follows_another() {
    let mut bench = Bench::at_genesis(|_| {});
    let second = bench.block(0, Vec::new());
    bench.forge(Vec::new());
    let third = bench.block(0, Vec::new());
    let listed = Bench::of_network(
        |network| {
            network.exceptions.blocks.extend([second.id, third.id]);
            network.exceptions.blocks_transactions.extend([(second.id, Vec::new()), (third.id, Vec::new())]);
        },
        |_| {},
    );
    let refused = listed.tree.extend(&listed.tip, &third).expect_err("the second is missing");
    assert!(matches!(refused, BlockRejected::NotChained { .. }), "{refused}");
    let tip = listed.tree.extend(&listed.tip, &second).expect("it follows");
    assert!(listed.tree.extend(&tip, &third).is_ok());
}

#[test]
fn a_milestone_purges_what_its_schema_refuses() {
    let short = serde_json::json!({ "height": 4, "vendorFieldLength": 8 });
    for even in [false, true] {
        let mut bench = Bench::of_network(
            |network| milestone_at(network, short.clone()),
            |rules| {
                rules.pool.uneven_removal_events = !even;
            },
        );
        bench.forge(Vec::new());
        let home = bench.keys(0).public().address(23);
        let wordy = Transaction::transfer(home, Arktoshi::coins(1)).vendor_field("more than eight bytes");
        let transactions = [
            bench.transfer(1, 1, FEE),
            bench.sign(wordy, 1, 2, FEE),
            bench.transfer(1, 3, FEE),
            bench.transfer(2, 1, FEE),
        ];
        assert_eq!(bench.submit(&transactions).accept.len(), 4);
        bench.forge(Vec::new());
        assert_eq!(bench.chosen().len(), 4, "height 3");
        bench.forge(Vec::new());
        let left: Vec<_> = bench.chosen().iter().map(|one| one.id()).collect();
        assert_eq!(left, [&transactions[0], &transactions[3]].map(|one| one.id()), "height 4");
        let gone: Vec<_> = bench
            .events
            .iter()
            .filter_map(|event| match event {
                Event::PoolPurged(one) => Some((one.id(), true)),
                Event::PoolRemoved(id) => Some((*id, false)),
                _ => None,
            })
            .collect();
        // The last of the sender's goes first.
        assert_eq!(gone, [(transactions[2].id(), !even), (transactions[1].id(), !even)]);
    }
}

#[test]
fn income_counts_once_a_block_has_brought_it() {
    let mut bench = Bench::new(|_| {});
    let rich = bench.keys(2).public().address(23);
    let all = bench.sign(Transaction::transfer(rich, Arktoshi::coins(900_000)), 1, 1, FEE);
    let more = |bench: &Bench, nonce| {
        let home = bench.keys(0).public().address(23);
        bench.sign(Transaction::transfer(home, Arktoshi::coins(900_000)), 2, nonce, FEE)
    };
    let (first, second) = (more(&bench, 1), more(&bench, 2));
    assert_eq!(bench.submit(&[all.clone(), first]).accept.len(), 2);
    let refused = one(&mut bench, second.clone());
    assert_eq!(refused, ("ERR_APPLY", "Insufficient balance in the wallet.".to_owned()));
    bench.forge(vec![all]);
    assert_eq!(bench.submit(&[second]).accept.len(), 1, "the recipient's wallet in the pool was credited");
}

#[test]
fn a_rollback_tells_watchers_what_the_pool_holds_now() {
    let mut bench = Bench::new(|_| {});
    let (confirmed, pending) = (bench.transfer(1, 1, FEE), bench.transfer(2, 1, FEE));
    bench.submit(&[confirmed.clone(), pending]);
    let before = bench.tip.clone();
    bench.forge(vec![confirmed.clone()]);
    bench.chosen();
    bench.tip = before;
    bench.chosen();
    let replaced = bench.events.iter().find_map(|event| match event {
        Event::PoolReplaced(pending) => Some(pending.iter().map(|one| one.id()).collect::<Vec<_>>()),
        _ => None,
    });
    assert_eq!(replaced, Some(vec![confirmed.id()]));
}
