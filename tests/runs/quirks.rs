//! Every quirk of the reference that is about state or pool, on and off. Source: consensus.md 8.

use crate::pool::{Bench, FEE, codes};
use dposlab::{
    actors::{Effect, Event, Message, message::AddTransactions},
    ledger::{
        Balance, BlockRejected, Rules, Scratch,
        round::{Member, Turns},
        rules::{MissedBlocks, Shuffle},
    },
    protocol::{
        Arktoshi, Height, KeyPair, Nonce, PublicKey, SignedTransaction, Slot, Timestamp, Transaction, Vote,
        crypto::{CryptoMode::Real, sha256},
        keys::multisignature_key,
        transaction::{Expiration, TransactionBuilder},
    },
};
use std::{collections::BTreeMap, sync::Arc};

const SECRET: [u8; 32] = [9; 32];

fn short_locks(rules: &mut Rules) {
    rules.ledger.minimum_lock_expiration = false;
}

fn coins(value: u64) -> Arktoshi {
    Arktoshi::coins(value)
}

fn address(bench: &Bench, account: usize) -> dposlab::protocol::Address {
    bench.keys(account).public().address(23)
}

fn delegate(bench: &Bench, index: usize) -> PublicKey {
    *bench.testnet.delegates[index].keys.public()
}

fn weight(bench: &Bench, index: usize) -> Balance {
    let state = &bench.tree.applied(&bench.tip).state;
    state.delegate_of(&delegate(bench, index)).expect("a genesis delegate").vote_balance
}

fn lock(bench: &Bench, from: usize, to: usize, amount: u64, last: u32, nonce: u64) -> Arc<SignedTransaction> {
    let expiration = Expiration::BlockHeight(last);
    let builder = Transaction::htlc_lock(address(bench, to), coins(amount), sha256(&SECRET), expiration);
    bench.sign(builder, from, nonce, FEE)
}

/// Signed by a delegate of the genesis block.
fn by_delegate(bench: &Bench, index: usize, builder: TransactionBuilder, nonce: u64) -> Arc<SignedTransaction> {
    Arc::new(builder.nonce(Nonce(nonce)).fee(coins(25)).sign(&bench.testnet.delegates[index].keys))
}

fn ids(transactions: &[Arc<SignedTransaction>]) -> Vec<String> {
    transactions.iter().map(|transaction| transaction.id().to_string()).collect()
}

/// Q1.
#[test]
fn the_coin_of_a_claimed_lock_weighs_for_its_recipient_or_for_the_claimant() {
    for on in [false, true] {
        let mut bench = Bench::new(|rules| {
            short_locks(rules);
            rules.ledger.claim_weighs_for_claimant = on;
        });
        // 1 locks for 2, 3 claims; they vote for delegates 1, 2 and 3.
        let vote = |bench: &Bench, n: usize| bench.sign(Transaction::vote(Vote::For(delegate(bench, n))), n, 1, FEE);
        bench.forge((1..=3).map(|account| vote(&bench, account)).collect());
        let locked = lock(&bench, 1, 2, 500, 100, 2);
        bench.forge(vec![locked.clone()]);
        let balance = |bench: &Bench| {
            let state = &bench.tree.applied(&bench.tip).state;
            state.wallet(&address(bench, 2)).expect("an account").balance
        };
        let (before, coin) = ([1, 2, 3].map(|n| weight(&bench, n)), balance(&bench));
        bench.forge(vec![bench.sign(Transaction::htlc_claim(locked.id(), SECRET), 3, 2, 0)]);
        let after = [1, 2, 3].map(|n| weight(&bench, n));
        assert_eq!(balance(&bench) - coin, Balance::from(coins(500)), "whoever claims, the recipient has it");
        let (nothing, all) = (Balance::ZERO, Balance::from(coins(500)));
        let expected = if on { [nothing - all, nothing, all] } else { [nothing - all, all, nothing] };
        let changes: Vec<Balance> = before.iter().zip(after).map(|(before, after)| after - *before).collect();
        // The forger of the last block votes for itself, but blocks bring no reward here and the claim is free.
        assert_eq!(changes, expected, "on: {on}");
    }
}

/// Q2.
#[test]
fn two_resignations_where_one_fits_are_chosen_both_or_one() {
    for on in [false, true] {
        let mut bench = Bench::new(|rules| rules.pool.resignations_counted_on_chain = on);
        let sixth = bench.sign(Transaction::delegate_registration("sixth"), 1, 1, coins(25).value());
        bench.forge(vec![sixth]);
        let resign = |index| by_delegate(&bench, index, Transaction::delegate_resignation(), 3);
        let both = [resign(0), resign(1)];
        assert_eq!(bench.submit(&both).accept.len(), 2);
        let chosen = bench.chosen();
        assert_eq!(chosen.len(), if on { 2 } else { 1 });
        let block = bench.try_forge(chosen);
        match block {
            Err(BlockRejected::NotApplicable { source, .. }) if on => {
                assert!(source.to_string().contains("not enough delegates"), "{source}");
            }
            other => assert!(other.is_ok() && !on, "{other:?}"),
        }
    }
}

/// Q3.
#[test]
fn a_hash_that_another_has_registered_meanwhile_is_chosen_or_not() {
    for on in [false, true] {
        let mut bench = Bench::new(|rules| rules.pool.ipfs_hashes_seen_of_delegates = on);
        let hash = [vec![0x12, 0x20], vec![3; 32]].concat();
        let ipfs = |bench: &Bench, account| bench.sign(Transaction::ipfs(hash.clone()), account, 1, 500_000_000);
        let pending = ipfs(&bench, 1);
        assert_eq!(bench.submit(std::slice::from_ref(&pending)).accept.len(), 1);
        let other = ipfs(&bench, 2);
        bench.forge(vec![other]);
        let chosen = bench.chosen();
        assert_eq!(ids(&chosen), if on { vec![pending.id().to_string()] } else { Vec::new() });
        assert_eq!(bench.try_forge(chosen).is_err(), on, "the block holds a hash that is taken");
    }
}

/// Q4.
#[test]
fn transactions_of_a_block_that_does_not_apply_are_lost_or_stay() {
    for on in [false, true] {
        let mut bench = Bench::new(|rules| rules.pool.refused_block_takes_transactions = on);
        let (held, free) = (bench.transfer(1, 1, FEE), bench.transfer(2, 1, FEE));
        bench.submit(&[held.clone(), free.clone()]);
        let bad = bench.sign(Transaction::delegate_resignation(), 3, 1, coins(25).value());
        let block = bench.block(0, vec![held.clone(), bad]);
        let refused = bench.tree.extend(&bench.tip, &block).expect_err("no delegate resigns");
        assert!(matches!(refused, BlockRejected::NotApplicable { .. }), "{refused}");
        bench.tell(Message::BlockNotApplied { tip: bench.tip.clone(), block });
        let left = ids(&bench.chosen());
        assert_eq!(left.contains(&held.id().to_string()), !on);
        assert!(left.contains(&free.id().to_string()));
    }
}

/// Q12.
#[test]
fn a_second_refund_stumbles_over_a_pending_one_or_not() {
    for on in [false, true] {
        let mut bench = Bench::new(|rules| {
            short_locks(rules);
            rules.pool.refund_rule_reads_wrong_field = on;
        });
        let locks = [lock(&bench, 1, 2, 5, 4, 1), lock(&bench, 1, 2, 6, 4, 2)];
        bench.forge(locks.to_vec());
        bench.forge(Vec::new());
        let refund = |bench: &Bench, which: usize, account| {
            bench.sign(Transaction::htlc_refund(locks[which].id()), account, 1, 0)
        };
        let first = refund(&bench, 0, 3);
        assert_eq!(bench.submit(&[first]).accept.len(), 1);
        let other = refund(&bench, 1, 4);
        let answer = bench.submit(&[other]);
        let same = refund(&bench, 0, 5);
        let same = bench.submit(&[same]);
        if on {
            assert_eq!((codes(&answer), codes(&same)), (vec!["ERR_UNKNOWN"], vec!["ERR_UNKNOWN"]));
            assert!(answer.errors[0].1.to_string().contains("of undefined"));
        } else {
            assert_eq!((answer.accept.len(), codes(&same)), (1, vec!["ERR_PENDING"]));
            let message = same.errors[0].1.to_string();
            assert_eq!(message, format!("HtlcRefund for \"{}\" already in the pool", locks[0].id()));
        }
    }
}

/// Q13.
#[test]
fn the_second_search_for_one_to_give_way_compares_fees_or_fees_with_nonces() {
    for on in [false, true] {
        let mut bench = Bench::new(|rules| {
            rules.pool.max_transactions = 103;
            rules.pool.eviction_compares_fee_with_nonce = on;
        });
        // None of the hundred cheapest is its sender's last.
        let many: Vec<_> = (1..=101).map(|nonce| bench.transfer(1, nonce, FEE)).collect();
        let (last, other) = (bench.transfer(1, 102, FEE + 100), bench.transfer(2, 1, FEE + 5));
        for batch in many.chunks(40).chain([&[last][..], &[other.clone()][..]]) {
            assert_eq!(bench.submit(batch).accept.len(), batch.len());
        }
        let newcomer = bench.transfer(3, 1, FEE + 50);
        let answer = bench.submit(std::slice::from_ref(&newcomer));
        if on {
            assert_eq!(
                codes(&answer),
                ["ERR_POOL_FULL"],
                "no fee is below nonce 102: the first sender's last is sought out"
            );
            assert!(answer.errors[0].1.to_string().ends_with(&(FEE + 100).to_string()));
        } else {
            assert_eq!(answer.accept, [newcomer.id()]);
            assert!(
                !bench.pool.pending().any(|pending| pending.id() == other.id()),
                "the cheaper of the two lasts went"
            );
        }
    }
}

/// Q14.
#[test]
fn a_refused_one_is_remembered_until_the_next_block_or_not() {
    for (remembered, again) in [(10_000, "ERR_DUPLICATE"), (0, "ERR_APPLY")] {
        let mut bench = Bench::new(|rules| rules.pool.recent_ids = remembered);
        let gap = bench.transfer(1, 3, FEE);
        assert_eq!(codes(&bench.submit(std::slice::from_ref(&gap))), ["ERR_APPLY"]);
        assert_eq!(codes(&bench.submit(&[gap])), [again]);
    }
    let mut bench = Bench::new(|rules| rules.pool.recent_ids = 1);
    let gaps = [bench.transfer(1, 3, FEE), bench.transfer(1, 4, FEE)];
    bench.submit(&gaps);
    assert_eq!(codes(&bench.submit(&gaps)), ["ERR_APPLY", "ERR_APPLY"], "the older of the two is forgotten each time");
}

/// Q15.
#[test]
fn two_of_a_kind_in_one_request_pass_or_not() {
    for on in [false, true] {
        let mut bench = Bench::new(|rules| {
            rules.pool.checks_precede_adding = on;
            rules.pool.max_transactions_per_sender = 1;
        });
        let key = delegate(&bench, 0);
        let votes = [Transaction::vote(Vote::For(key)), Transaction::vote(Vote::Against(key))];
        let [vote, unvote] = [(0, 1), (1, 2)].map(|(n, nonce)| bench.sign(votes[n].clone(), 1, nonce, FEE));
        let answer = bench.submit(&[vote, unvote.clone()]);
        if on {
            assert_eq!(answer.accept.len(), 2, "{answer:?}");
        } else {
            assert_eq!((answer.accept.len(), answer.excess), (1, vec![unvote.id()]));
        }
    }
    let mut bench = Bench::new(|rules| rules.pool.checks_precede_adding = false);
    let key = delegate(&bench, 0);
    let vote = bench.sign(Transaction::vote(Vote::For(key)), 1, 1, FEE);
    let unvote = bench.sign(Transaction::vote(Vote::Against(key)), 1, 2, FEE);
    assert_eq!(codes(&bench.submit(&[vote, unvote])), ["ERR_PENDING"]);
}

/// Q16.
#[test]
fn one_that_is_too_large_ends_its_request_or_not() {
    for on in [false, true] {
        let mut bench = Bench::of_network(
            |network| {
                let mut list: Vec<_> = network.milestones.all().iter().map(|one| one.json.clone()).collect();
                list.iter_mut().for_each(|one| one["block"]["maxPayload"] = 12_000.into());
                network.milestones = dposlab::protocol::Milestones::from_json(&list.into()).expect("still valid");
            },
            |rules| rules.pool.too_large_ends_request = on,
        );
        bench.forge(Vec::new());
        let pay = dposlab::protocol::transaction::Payment { recipient: address(&bench, 0), amount: coins(1) };
        let large = bench.sign(Transaction::multi_payment(vec![pay; 100]), 1, 1, 100_000_000);
        let (before, behind) = (bench.transfer(2, 1, FEE), bench.transfer(3, 1, FEE));
        let answer = bench.submit(&[before.clone(), large.clone(), behind.clone()]);
        assert_eq!(codes(&answer), ["ERR_TOO_LARGE"]);
        let message = format!("Transaction {} is larger than {} bytes.", large.id(), 12_000 - 10_240);
        assert_eq!(answer.errors[0].1.to_string(), message);
        assert_eq!(answer.accept, if on { vec![before.id()] } else { vec![before.id(), behind.id()] });
        assert!(answer.excess.is_empty());
    }
}

/// Q19.
#[test]
fn fees_are_charged_for_half_the_bytes_or_all() {
    for (on, least) in [(true, 178_000), (false, 256_000)] {
        let mut bench = Bench::new(|rules| rules.pool.fees_count_half_size = on);
        let (enough, less) = (bench.transfer(1, 1, least), bench.transfer(2, 1, least - 1));
        let answer = bench.submit(&[enough.clone(), less]);
        assert_eq!((answer.accept.as_slice(), codes(&answer)), ([enough.id()].as_slice(), vec!["ERR_LOW_FEE"]));
    }
}

/// Q20.
#[test]
fn a_pending_second_key_blocks_its_sender_or_must_sign_already() {
    for on in [false, true] {
        let mut bench = Bench::new(|rules| rules.pool.pending_second_key_blocks_sender = on);
        let second = KeyPair::from_passphrase("a second key", Real);
        let registration = bench.sign(Transaction::second_signature(*second.public()), 1, 1, 500_000_000);
        bench.submit(std::slice::from_ref(&registration));
        let signed = Arc::new(SignedTransaction::clone(&bench.transfer(1, 2, FEE)).second_sign(&second));
        let answer = bench.submit(std::slice::from_ref(&signed));
        assert_eq!(codes(&answer).is_empty(), !on);
        let unsigned = bench.transfer(1, if on { 2 } else { 3 }, FEE + 1);
        let message = bench.submit(&[unsigned]).errors[0].1.to_string();
        let expected = if on { "does not allow second signatures" } else { "second signature could not be verified" };
        assert!(message.contains(expected), "{message}");
        // A block may hold both.
        bench.forge(vec![registration, signed]);
    }
}

/// Q21: the registration of a wallet of two keys, one of which must sign; the other one's signature is not its own.
#[test]
fn a_registration_needs_as_many_good_signatures_as_a_spend_or_all() {
    for on in [false, true] {
        let mut bench = Bench::new(|rules| rules.ledger.registration_checks_only_min = on);
        let keys = [bench.keys(1).clone(), bench.keys(2).clone()];
        let publics = keys.iter().map(|keys| *keys.public()).collect();
        let builder = Transaction::multi_signature(1, publics).nonce(Nonce(1)).fee(coins(15));
        let unsigned = builder.sender(*bench.keys(3).public()).multi_sign(0, &keys[0]).multi_sign(1, bench.keys(4));
        let registration = Arc::new(unsigned.sign(bench.keys(3)).finish());
        let outcome = bench.try_forge(vec![registration]).map_err(|why| why.to_string());
        match outcome {
            Ok(()) => assert!(on),
            Err(why) => assert!(!on && why.contains("multi signature could not be verified"), "{why}"),
        }
    }
}

/// Q21.
#[test]
fn a_multisignature_wallet_spends_in_the_block_that_registers_it_or_not() {
    for on in [false, true] {
        let mut bench = Bench::new(|rules| rules.ledger.multi_signature_waits_for_block = on);
        let keys = [bench.keys(1).clone(), bench.keys(2).clone()];
        let publics: Vec<PublicKey> = keys.iter().map(|keys| *keys.public()).collect();
        let wallet = multisignature_key(2, &publics).expect("keys on the curve");
        let fund = Transaction::transfer(wallet.address(23), coins(100));
        bench.forge(vec![bench.sign(fund, 3, 1, FEE)]);
        let sign_all = |builder: TransactionBuilder, sender| {
            builder.sender(sender).multi_sign(0, &keys[0]).multi_sign(1, &keys[1])
        };
        let registration = Transaction::multi_signature(2, publics.clone()).nonce(Nonce(2)).fee(coins(15));
        let registration = sign_all(registration, *bench.keys(3).public()).sign(bench.keys(3)).finish();
        let spend = || Transaction::transfer(address(&bench, 4), coins(1)).nonce(Nonce(1)).fee(coins(1));
        let half_signed = spend().sender(wallet).multi_sign(0, &keys[0]).finish();
        let spend = sign_all(spend(), wallet).finish();
        let refused = bench.try_forge(vec![Arc::new(registration.clone()), Arc::new(half_signed)]);
        assert!(matches!(refused, Err(BlockRejected::NotVerified { .. })), "one of two signatures: {refused:?}");
        let outcome = bench.try_forge(vec![Arc::new(registration.clone()), Arc::new(spend.clone())]);
        match outcome {
            Err(BlockRejected::NotVerified { .. }) => {
                assert!(on);
                bench.forge(vec![Arc::new(registration)]);
                bench.forge(vec![Arc::new(spend)]);
            }
            other => assert!(other.is_ok() && !on, "{other:?}"),
        }
    }
}

/// Q22.
#[test]
fn a_claim_of_an_unknown_lock_fails_by_name_or_by_accident() {
    for (on, text) in [(false, "HTLC lock transaction could not be found"), (true, "of undefined")] {
        let mut bench = Bench::new(|rules| rules.ledger.unknown_lock_is_type_error = on);
        let lock = bench.transfer(1, 1, FEE).id();
        let claim = bench.sign(Transaction::htlc_claim(lock, SECRET), 2, 1, 0);
        let refused = bench.try_forge(vec![claim]).expect_err("there is no lock").to_string();
        assert!(refused.contains(text), "{refused}");
    }
}

/// Q23: the owner has locked all it has, somebody refunds, the owner spends.
#[test]
fn a_forger_sees_refunded_coin_in_the_same_block_or_not() {
    for on in [false, true] {
        let mut bench = Bench::new(short_locks);
        let locked = lock(&bench, 1, 2, 999_999, 3, 1);
        bench.forge(vec![locked.clone()]);
        let refund = bench.sign(Transaction::htlc_refund(locked.id()), 3, 1, 0);
        let spend = bench.sign(Transaction::transfer(address(&bench, 4), coins(500_000)), 1, 2, FEE);
        let mut rules = Rules::reference().pool;
        rules.refunded_coin_hidden_from_forger = on;
        let (applied, terms) = (bench.tree.applied(&bench.tip), bench.tree.terms(bench.tip.height()));
        let mut scratch = Scratch::new(&applied.state, &rules);
        let now = bench.tip.block().header.timestamp;
        scratch.try_apply(&refund, now, &terms).expect("the lock has expired");
        let spent = scratch.try_apply(&spend, now, &terms);
        assert_eq!(spent.is_err(), on, "{spent:?}");
        bench.forge(vec![refund, spend]);
    }
}

/// Q24.
#[test]
fn a_round_is_shuffled_as_the_rules_say() {
    let order = |shuffle| {
        let bench = Bench::at_genesis(|rules| rules.ledger.shuffle = shuffle);
        bench.tree.applied(&bench.tip).state.round().turns.clone()
    };
    assert_eq!(order(Shuffle::Reference), Turns::Order(vec![0, 4, 3, 2, 1]));
    assert_eq!(order(Shuffle::EveryPlace), Turns::Order(vec![0, 1, 3, 2, 4]));
    assert_eq!(order(Shuffle::Ranking), Turns::Order(vec![0, 1, 2, 3, 4]));
}

/// Q24: version 2 is allowed from height 2 on.
#[test]
fn rules_on_transactions_bind_a_block_late_or_at_once() {
    for on in [false, true] {
        let mut bench = Bench::at_genesis(|rules| rules.ledger.transaction_rules_lag = on);
        let (one, two) = (
            Transaction::transfer(address(&bench, 0), coins(1)).version_one(Timestamp(1)).sign(bench.keys(1)),
            bench.transfer(2, 1, FEE),
        );
        assert_eq!(bench.try_forge(vec![Arc::new(one)]).is_ok(), on);
        let mut bench = Bench::at_genesis(|rules| rules.ledger.transaction_rules_lag = on);
        assert_eq!(bench.submit(std::slice::from_ref(&two)).accept.len(), usize::from(!on));
        assert_eq!(bench.try_forge(vec![two]).is_ok(), !on);
    }
}

/// Q25: eviction.
#[test]
fn one_that_gives_way_goes_in_silence_or_by_id() {
    for on in [false, true] {
        let mut bench = Bench::new(|rules| {
            rules.pool.max_transactions = 1;
            rules.pool.uneven_removal_events = on;
        });
        let (cheap, dear) = (bench.transfer(1, 1, FEE), bench.transfer(2, 1, FEE + 1));
        bench.submit(std::slice::from_ref(&cheap));
        bench.submit(&[dear]);
        let evicted =
            bench.events.iter().any(|event| matches!(event, Event::PoolEvicted(one) if one.id() == cheap.id()));
        let removed = bench.events.iter().any(|event| matches!(event, Event::PoolRemoved(id) if *id == cheap.id()));
        assert_eq!((evicted, removed), (on, !on));
    }
}

/// Q26.
#[test]
fn a_message_with_one_refusal_is_sent_on_in_part_or_not_at_all() {
    for on in [false, true] {
        let mut bench = Bench::new(|rules| rules.pool.refusal_stops_relay = on);
        let (good, bad) = (bench.transfer(1, 1, FEE), bench.transfer(2, 7, FEE));
        let message = |bench: &Bench, transactions: &[Arc<SignedTransaction>]| {
            let add = AddTransactions { tip: bench.tip.clone(), transactions: transactions.into(), request: None };
            Message::AddTransactions(add.into())
        };
        let mixed = message(&bench, &[good.clone(), bad]);
        let sent_on = |effects: Vec<Effect>| -> Vec<String> {
            let sent = effects.into_iter().find_map(|effect| match effect {
                Effect::Send { message: Message::Broadcast(sent), .. } => Some(ids(&sent)),
                _ => None,
            });
            sent.unwrap_or_default()
        };
        let sent = sent_on(bench.tell(mixed));
        assert_eq!(sent, if on { Vec::new() } else { vec![good.id().to_string()] });
        let whole = bench.transfer(3, 1, FEE);
        let alone = message(&bench, std::slice::from_ref(&whole));
        assert_eq!(sent_on(bench.tell(alone)), [whole.id().to_string()]);
    }
}

/// A lottery leaves slots without an owner, and gives others several: each of them misses an empty slot, and its next slot is the first that
/// it owns.
#[test]
fn all_owners_of_an_empty_slot_in_a_lottery_miss_it() {
    let mut bench = Bench::at_genesis(|rules| rules.ledger.shuffle = Shuffle::Lottery(800_000));
    let round = |bench: &Bench| bench.tree.applied(&bench.tip).state.round().clone();
    let slot_of = |bench: &Bench| bench.tree.slots().slot(bench.tip.block().header.timestamp);
    let (mut expected, mut shared) = (BTreeMap::<PublicKey, u32>::new(), 0);
    for _ in 0..40 {
        let (round, tip) = (round(&bench), slot_of(&bench));
        let slots = |from: u32| (from..).map(Slot);
        for member in &round.members {
            let own = slots(tip.0 + 1).find(|slot| round.owns(*slot, &member.public_key));
            assert_eq!(round.next_slot_of(&member.public_key, Slot(tip.0 + 1)), own);
        }
        let next = slots(tip.0 + 4).find(|slot| round.owner(*slot).is_some()).expect("four of five have an owner");
        for slot in (tip.0 + 1..next.0).map(Slot) {
            // The gap after genesis counts for no delegate.
            let is_counted = |member: &&Member| tip.0 > 0 && round.owns(slot, &member.public_key);
            let owners: Vec<_> = round.members.iter().filter(is_counted).collect();
            shared += u32::from(owners.len() > 1);
            owners.iter().for_each(|owner| *expected.entry(owner.public_key).or_default() += 1);
        }
        let empty = next.0 - tip.0 - 1;
        bench.tip = bench.tree.extend(&bench.tip, &bench.block(empty, Vec::new())).expect("its forger owns the slot");
    }
    assert!(shared > 20, "{shared} empty slots with several owners");
    let state = bench.tree.applied(&bench.tip).state.clone();
    for wallet in state.delegates() {
        let (key, delegate) = (wallet.public_key.expect("it has forged"), wallet.delegate.as_ref().expect("it is one"));
        assert_eq!(delegate.missed_blocks, expected.get(&key).copied().unwrap_or_default(), "{key}");
    }
}

#[test]
fn missed_blocks_count_slots_or_rounds() {
    for (rule, expected) in [(MissedBlocks::Slots, 3), (MissedBlocks::Rounds, 0)] {
        let mut bench = Bench::new(|rules| rules.ledger.missed_blocks = rule);
        bench.tip = bench.tree.extend(&bench.tip, &bench.block(3, Vec::new())).expect("after three empty slots");
        let missed = |bench: &Bench| -> u32 {
            let state = &bench.tree.applied(&bench.tip).state;
            state.delegates().filter_map(|wallet| wallet.delegate.as_ref()).map(|one| one.missed_blocks).sum()
        };
        assert_eq!(missed(&bench), expected);
        // To the end of round 1, of which genesis and four blocks are part.
        while bench.tip.height().0 < 5 {
            bench.forge(Vec::new());
        }
        let first = bench.tree.applied(bench.tree.genesis()).state.round().clone();
        let forgers: Vec<PublicKey> = (2..=5)
            .map(|height| bench.tip.ancestor(Height(height)).expect("it is below").block().header.generator)
            .collect();
        let members = first.members.iter().map(|member| member.public_key);
        let idle: Vec<PublicKey> = members.filter(|member| !forgers.contains(member)).collect();
        assert!(!idle.is_empty(), "four blocks do not do for five delegates");
        assert_eq!(bench.tip.round_end().expect("round 1 ends with block 5").missed, idle);
        assert_eq!(missed(&bench), if rule == MissedBlocks::Rounds { idle.len() as u32 } else { expected });
    }
}

#[test]
fn listed_senders_have_no_quota() {
    let mut bench = Bench::new(|rules| {
        rules.pool.max_transactions_per_sender = 1;
        let testnet = dposlab::scenario::Testnet::generate(dposlab::sim::SeedTree::new(1), 5, Real);
        rules.pool.allowed_senders = vec![*testnet.accounts[1].keys.public()];
    });
    let of = |bench: &Bench, account| [bench.transfer(account, 1, FEE), bench.transfer(account, 2, FEE)];
    for (account, taken) in [(1, 2), (2, 1)] {
        let accepted: usize =
            of(&bench, account).iter().map(|one| bench.submit(std::slice::from_ref(one)).accept.len()).sum();
        assert_eq!(accepted, taken);
    }
}

/// Not in the table of quirks: it follows from sections 3.4 and 5.6 together.
#[test]
fn a_transfer_that_expires_at_the_next_height_is_chosen_or_dropped() {
    for on in [false, true] {
        let mut bench = Bench::new(|rules| rules.pool.chooses_what_expires_next = on);
        let builder = Transaction::transfer(address(&bench, 0), coins(1)).expiration(bench.tip.height().0 + 2);
        let last_chance = bench.sign(builder, 1, 1, FEE);
        assert_eq!(bench.submit(std::slice::from_ref(&last_chance)).accept.len(), 1);
        bench.forge(Vec::new());
        // Whoever forges now, and whenever: the next height stays the same until a block is accepted.
        for _ in 0..3 {
            let chosen = bench.chosen();
            assert_eq!(chosen.len(), usize::from(on));
            let refused = bench.try_forge(chosen).map_err(|why| why.to_string());
            match refused {
                Err(why) => assert!(on && why.contains("expired transaction"), "{why}"),
                Ok(()) => assert!(!on),
            }
        }
    }
}
