//! Faults planted on purpose, to measure whether the checker finds them. They exist in tests and with the feature
//! `planted` only; without it every place below is the constant `false`, and nothing of this is compiled.
//!
//! A fault stands in one line at the place of the rule it breaks: `if planted!(FeeNotCharged) { … }`. Two things say which
//! one is in force. [`plant`] says it for one thread, for as long as its value lives; the checker uses this, since a run on
//! the inline stage stays on one thread. The environment variable [`VARIABLE`] says it for the whole process, on every
//! thread that has no [`plant`] of its own; named tests use this, since the API and webhooks run on threads of their own:
//!
//! ```sh
//! DPOSLAB_PLANTED=fees-burnt cargo test --features planted
//! ```
//!
//! The variable is read once, and an unknown name is an error that lists the known ones. A fault is no field of `Rules`,
//! because it is no rule anybody could choose: rules are read from files, compared and written down.

/// The environment variable that names the fault in force in the whole process.
pub(crate) const VARIABLE: &str = "DPOSLAB_PLANTED";

/// True if a fault is in force here; `false` in a build without planted faults.
#[cfg(any(test, feature = "planted"))]
macro_rules! planted {
    ($fault:ident) => {
        $crate::planted::is_planted($crate::planted::Planted::$fault)
    };
}

/// True if a fault is in force here; `false` in a build without planted faults.
#[cfg(not(any(test, feature = "planted")))]
macro_rules! planted {
    ($fault:ident) => {
        false
    };
}

#[cfg(any(test, feature = "planted"))]
#[cfg_attr(
    not(feature = "planted"),
    expect(unused_imports, reason = "the search over all of them is the feature's")
)]
pub(crate) use switch::{Planted, in_process, is_planted, plant};

#[cfg(any(test, feature = "planted"))]
mod switch {
    use super::VARIABLE;
    use std::{cell::Cell, sync::OnceLock};

    thread_local! {
        /// The fault that [`plant`] names on this thread; `None` without one.
        static ON_THREAD: Cell<Option<Option<Planted>>> = const { Cell::new(None) };
    }

    /// Declares the faults with what each breaks, in the words of the table that `dposlab check --planted` prints.
    macro_rules! faults {
        ($($fault:ident: $words:literal,)*) => {
            /// One rule broken.
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub(crate) enum Planted {
                $(#[doc = $words] $fault,)*
            }

            impl Planted {
                /// All of them.
                pub(crate) const ALL: &'static [Self] = &[$(Self::$fault),*];

                /// Its name, in kebab case.
                pub(crate) fn name(self) -> String {
                    let name = match self { $(Self::$fault => stringify!($fault),)* };
                    let mut text = String::new();
                    for letter in name.chars() {
                        if letter.is_ascii_uppercase() && !text.is_empty() {
                            text.push('-');
                        }
                        text.push(letter.to_ascii_lowercase());
                    }
                    text
                }

                /// The rule it breaks, and how.
                #[cfg_attr(not(feature = "planted"), expect(dead_code, reason = "the table of them is the feature's"))]
                pub(crate) fn words(self) -> &'static str {
                    match self { $(Self::$fault => $words,)* }
                }
            }
        };
    }

    faults! {
        // Rounds and slots.
        TieBroken: "delegates of equal weight are ranked by key descending",
        ShuffleEveryPlace: "the shuffle skips no place",
        RoundOneBlockEarly: "a round is made one block before its time",
        RoundNotRenewed: "a new round keeps the members of the old one",
        RankingOfParent: "the last block of a round does not count for the ranking",
        ResignedStaysActive: "resigned delegates are ranked and made active",
        ResignedKeepsRank: "resigned delegates keep their old rank",
        ResignationBelowLimit: "one more delegate may resign than the next round can spare",
        SlotOwnerUnchecked: "anybody may forge in any slot",
        MissedSlotsMiscounted: "the first of the missed slots is counted for nobody",
        // What a block pays.
        RewardUnchecked: "a block may pay itself any reward",
        RewardDoubled: "the forger is credited twice the reward",
        FeesBurnt: "the forger is not credited the fees",
        SupplyForgotten: "the reward is not added to the supply",
        StatisticsWithoutFees: "fees are missing in the forger's statistics",
        // What a transaction does.
        FeeNotCharged: "senders pay no fee",
        BalanceUnchecked: "senders may spend more than they have",
        NonceUnchecked: "any nonce is accepted",
        PaymentTwice: "the last payment of a multipayment is credited twice",
        SecondSignatureUnchecked: "the second signature is not checked",
        MultiSignatureOneLess: "one signature fewer than agreed is enough",
        UsernameTwice: "a username may be registered again",
        VoteTwice: "a voter may vote again without taking the first vote back",
        VoteForResigned: "resigned delegates may be voted for",
        IpfsTwice: "a multihash may be registered again",
        BusinessTwice: "a business may be registered again",
        BridgechainTwice: "a bridgechain's genesis hash may be registered again",
        // Vote weights.
        WeightWithoutTransferIn: "coin that a voter receives adds no weight",
        WeightWithoutTransferOut: "coin that a voter spends keeps its weight",
        WeightWithoutPayments: "coin that a voter receives by any means adds no weight",
        WeightWithoutLocked: "locked coin adds no weight",
        WeightOfClaimedLock: "claimed coin keeps its weight for the lock's owner",
        WeightOfUnvoteFee: "taking a vote back leaves the fee in the weight",
        WeightWithoutForging: "a forger's earnings add no weight to its vote",
        // Locks.
        LockClaimedTwice: "a claimed lock stays open",
        LockClaimedLate: "an expired lock can be claimed",
        LockRefundedEarly: "a lock can be refunded before it expires",
        LockSecretUnchecked: "a lock can be claimed with any secret",
        LockedBalanceKept: "a claimed or refunded lock still counts as locked",
        // What a block says.
        BlockIdFromSignature: "a block's id leaves out its signature",
        BlockSignatureUnchecked: "a block's signature is not checked",
        TransactionSignatureUnchecked: "signatures of transactions are not checked",
        PayloadHashUnchecked: "a block's payload hash is not checked",
        SumsUnchecked: "a block's sums are not checked",
        ExpiredTransactionForged: "a block may hold expired transactions",
        // Pools.
        PoolKeepsForged: "forged transactions stay in the pool",
        PoolTakesNonceGap: "pools do not check nonces",
        PoolOverfull: "a full pool takes one more",
        PoolForgetsSilently: "a transaction that a full pool drops leaves a gap behind",
        PoolOrderByFeeAlone: "transactions are forged by fee, whatever their nonces",
        PoolLosesReverted: "transactions of reverted blocks do not come back",
        // Delegates and peers.
        ForgesTwice: "a delegate forges twice in its slot",
        ForgesOutOfTurn: "a delegate takes the slot after its own too",
        QuorumIgnored: "a delegate forges without a quorum",
        RollbackOneTooDeep: "a rollback goes one block below the common one",
        BlockNotPassedOn: "every second block is not passed on",
        FutureBlockTaken: "blocks of slots that have not begun are taken",
        // Second set. The ledger.
        ClaimWithinOneDelegateWeighsTwice: "claimed coin keeps its weight for the lock's owner where owner and recipient vote for one delegate: it counts twice there",
        LockAtTheHeightLimitTaken: "a lock may expire at a height one round above the tip exactly, which is one block too early",
        ResignedStandbyKeepsRank: "a resigned delegate loses its rank only if it was active in the round that ends: a standby one that resigns keeps it",
        SupplyByParentsReward: "the first block of a milestone that changes the reward adds the old reward to the supply",
        VoteForgetsLockedCoin: "a vote by a wallet with an open lock leaves the locked coin out of the delegate's weight",
        MissedSlotsOneShortOfRound: "in a gap of a whole round or more the last owner is not counted as missing",
        ForgedTwiceCountsAsIdle: "a member that forges twice in a round, which takes missed slots, counts as one that forged nothing in it",
        RoundWrittenToFirstStandby: "the first delegate that is not active is marked as active in the round",
        ForgerLosesCoinBackToSender: "a forger forgets coin that a sender pays itself, or gets back by its own refund or claim: transactions that spend it later in the same block are dropped",
        RepeatedPaymentWeighsOnce: "only the first of a multipayment's payments to one voter adds weight",
        TransactionSoughtOnFirstForkOnly: "a transaction that is on two forks is found only on the one that had it first: on the other one it counts as not forged, to the pool, to those who check a block and to the API",
        BusinessResignsByLastBridgechain: "a business may resign while a bridgechain lives, if the one registered last has resigned",
        // Second set. The protocol.
        SecondSignatureRememberedForOtherKey: "a second signature once checked is not checked again for another key: it holds for the key that the sender registered on another fork",
        MultiSignatureFeeWithoutRegistrant: "with static fees a multisignature registration costs one part less",
        HalfSizeRoundedDown: "dynamic fees round half of an odd size down: a fee just below the least is enough",
        ShuffleRepeatsAfter256Rounds: "the number of the round that the shuffle begins with wraps: from round 256 on the forging orders are wrong",
        ExpiredAtOwnHeightTaken: "a block may hold a transaction that expires at the block's own height",
        PreviousIdLongOneBlockEarly: "the first block with a long id names its parent by a long id too: on the wire the short one is lost",
        // Second set. Pools.
        RecentIdsSurviveRollback: "the ids handed in since the last block are not forgotten when the chain is rolled back: a transaction refused on the old chain is a duplicate on the new one",
        DroppedLastStaysInPoolWallet: "a transaction that is evicted or expires at the end of a sender's queue stays applied in the sender's pool wallet: if the sender has others pending, its next nonce is refused until a block changes the wallet",
        EvictionTakesOldestOfEquals: "in a full pool, the oldest of those with the lowest fee gives way instead of the newest",
        PoolTakesWhatExpiresNext: "a pool takes a transaction that expires in the next block",
        RefundRuleLooksAtClaims: "a second refund of a lock is taken, and one is refused while a claim of the lock is pending; under rules by which refunds do not stumble",
        PurgeLeavesLaterOnes: "a transaction that a milestone makes invalid leaves the pool without its sender's later transactions, which can no longer be forged",
        ReplayNewestBlockFirst: "after a rollback of several blocks their transactions come back newest block first: a sender with some in two blocks loses the later ones",
        ForgingOrderForgetsSecondPeak: "some transactions of a sender whose queue has two peaks of fees are offered to the forger twice: the second offer fails, and the pool drops the one that is in the block already, then the rest of the sender's",
        // Second set. Peers.
        HaltsCountedAcrossBlocks: "a block that comes in does not end the count of wake-ups in vain: the fourth stall in all, not in a row, causes a health check",
        ChunksStaySmall: "downloads that were cut into small pieces after vain ones stay small: a node that was stranded catches up ten blocks at a time",
        HealthCheckEndsByRollbackOnly: "after a health check that finds nothing wrong there is never another one; a node that halts later waits for one forever",
        HalfForkedIsNotForked: "a node with exactly half of its peers on other chains stays on its own",
        GroupsCountPeersOnOwnChain: "peers that are only behind or ahead count as a group when the rollback's depth is chosen by the largest group",
        FirstPeerNotSoughtFromZero: "the node of the highest number has no first peer: where that one says how far to roll back, the depth is random",
        VerifiedAgainstLaterTip: "a peer whose verification took several steps is compared with the node's tip at the end of it: after a rollback in between, the peer is not seen as forked",
        MissedSlotsCarriedIntoNextRound: "slots missed before the last block of a round count for the next one as well, and cause a health check too early",
        HealthCheckForgetsDroppedPeers: "a health check does not look for the peers that were dropped, so that a node cut off for long asks its own side only",
        RollbackTellsOldRound: "after a rollback into the round before, the delegate hears of the round that was left, and plans by its order",
        ExactlyMinimumPeersIsTooFew: "a relay with exactly the minimum network reach forbids to forge",
        AskedForBlocksOfOldChain: "a peer that is verified after a change of chains is asked for blocks of the old one, if the heights are the same",
        // Second set. Delegates.
        SlotBeforeTheLastOneNotDone: "a delegate whose clock was fast and is set right forges again in slots before the last one it worked on",
        ForgesAtHeightOfRound: "a forger builds on a block that comes in while the relay asks its peers by the id of that block, but not by its height",
        OnlyFirstOfflineSpell: "only the first of several spans of rounds in which a delegate is off counts",
        RunningSlotSkippedAtRoundChange: "a delegate that hears of a new round only when its own slot in it has begun leaves that slot empty: after a late last block, or a rollback",
        // Second set. The simulator and the figures.
        CalledFlagSurvivesCrash: "a slow or paused node that crashes while events wait for it is never called again: once it is back and an event has to wait, it hears nothing more",
        HealEndsOldestCutOnly: "a heal ends only the oldest of several partitions in force",
        ClockSetRightBeyondItsOwn: "a clock that a fault had skewed is exact afterwards, on a network whose clocks are wrong by themselves",
        WinningTipIgnoresHeight: "the lower id wins between two tips with equally many nodes, even if it is that of the lower block",
        LongestHealIsTheLast: "the longest time to one chain is that of the last fault",
        MergedRowsWeighTwice: "where two rows over time become one, the mean pool is weighted wrongly: in runs of more than 2,000 slots",
        ReplacedPoolAddsUp: "the figures add what a pool holds after a rollback or a rebuild to what it held before",
        DepthOfRoundNeverReset: "the deepest rollback of a round is reported for all later rounds as well",
        MissedAtBoundaryCountsForOldRound: "slots missed just before the first block of a round are counted for the round before, and for its order",
        JudgeKeepsEvicted: "for assertions, transactions evicted from a full pool still count as pending",
        // Second set. The API and webhooks.
        ForgedHeightsSurviveRollback: "after a rollback of the observed node, the list of a delegate's blocks holds any delegate's blocks at the heights of those it lost",
        AnswersSurviveRollback: "answers from before a rollback of the observed node are given again until the next block comes in",
        PendingListStaleAfterRemoval: "the list of pending transactions, once asked for, shows transactions that have left the pool until another one enters",
        SearchByAddressesListsTwice: "a search by several addresses lists a transaction between two of them twice, and counts it twice",
        UpdateEnablesWebhook: "a change of a disabled webhook that does not say whether it is enabled enables it",
        RevertedToldInChainOrder: "the transactions of a reverted block are reported first to last, though they were taken back last to first",
        NegativeNumbersBySize: "conditions take the greater of two negative numbers for the lesser",
        FailedDeliveriesStayQueued: "the bytes of deliveries that failed count as waiting forever: a receiver that was down for long gets nothing more",
        // Fresh set.
        RefundWeighsAgain: "a refunded lock adds its coin once more to the weight of the delegate that its owner votes for",
        ResignedWeightFrozen: "the weight of a resigned delegate stays as it was when its voters' coin moves or they unvote",
        PaymentToSelfBurnt: "a payment of a multipayment to its own sender is taken and never credited",
        RoundsCountedByNewSize: "where the number of delegates changes, the rounds before are counted by the new number: all later rounds have wrong numbers and orders",
        VendorFieldCountedInCharacters: "the limit of a vendor field counts characters, not bytes: a text beyond ASCII may be longer than the milestone allows",
        IdWithoutIndexedSignatures: "the id of a version 2 transaction leaves out the signatures of multisignature participants",
        WakeUpLostWhileBusy: "a wake-up that comes while a download, a health check or a recovery runs is not set again: the node never wakes up by itself any more",
        ForkAtOwnHeightIsQuorum: "before forging, a peer on another chain counts as quorum where it stands at the node's own height",
        HealthCheckLostInRunningDiscovery: "a health check that is wanted while a discovery runs never takes place, and none after it",
        PushedBlockKnownByHeight: "a pushed block counts as seen before if the last one passed around had its height, whatever its id",
        SenderQuotaOneTooMany: "a sender may have one transaction more pending than its quota",
        EqualFeeEvicts: "in a full pool, a newcomer of the same fee as the cheapest pushes it out",
        ReplayStopsAtFirstFailure: "after a rollback, the first reverted transaction that no longer fits keeps all later ones out of the pool",
        QuorumHasToBeExceeded: "a share of peers that is exactly the quorum does not suffice to forge",
        CrashEndsPause: "a crash ends the pauses of a node: it runs again when it comes back, though it should still stand still",
        GapAtEndLeftOut: "the longest gap leaves out the slots left empty after the last block of the chain",
        JudgePoolSurvivesCrash: "for assertions, transactions that a node lost from its pool in a crash still count as pending",
        PendingListSurvivesReplacement: "the list of pending transactions keeps showing transactions that a rollback or a rebuild took from the pool",
        MissingFirstWhenDescending: "rows without a value come first in a descending order",
        EnabledWebhookUnheard: "a webhook that a change enables hears nothing while no other one was enabled before",
        // Planted by a third stranger, after the gaps of the earlier ones were closed, of 20.
        UnvoteOfResignedRefused: "a vote for a delegate that has resigned since cannot be taken back",
        OneVouchedForVouchesForAll: "in a block with a transaction of a multisignature wallet that holds, transactions whose own signature is wrong are taken as well",
        BusinessUpdateClearsTheRest: "an update of a business that does not name its VAT number or its repository clears them",
        ForgedInRoundNeverCleared: "blocks of earlier rounds count in the running one: a delegate that forged before is never reported to have missed a whole round",
        MinimumKeyInDecimal: "the key of a multisignature minimum is that of its decimal digits: wallets that ask for ten signatures or more have another address",
        CrowdedByMilestoneBefore: "the first block of a milestone that allows fewer transactions in a block may hold as many as before",
        HangUpLeavesPingWaiting: "the node waits forever for a peer that hangs up without having answered a running ping: no more forging, health checks or recovery",
        HeldBackOnceOnly: "a message held back by the limits that still finds no room a second later is lost",
        FailedNewcomerNeverAskedAgain: "a node that has not answered as a newcomer once is never asked again: one that was cut off or down at that time is no peer any more",
        BlockOfSlotBeforePassedOn: "a block that comes one slot late is passed on all the same",
        RecentIdsSurviveEmptyBlocks: "the ids handed in are not forgotten with a block that holds no transaction: a refused transaction is a duplicate when it comes again",
        PoolWalletMissesIncome: "coin that comes in while a sender has something pending cannot be spent through the pool before the sender's nonce moves on the chain",
        FallbackEvictsSendersFirst: "in a full pool none of whose 100 cheapest is its sender's last, a sender's first gives way instead of a last one",
        FinishedSlotPlansByOldRound: "a delegate that a new round reaches while it works on a slot plans on by the order of the round before",
        SecondCopySkipsTheQueue: "the second copy of a message doubled by chance does not wait for the link's bandwidth",
        WeightsOfOtherForkKept: "the agreement by vote weight keeps the weights of the first fork seen in a round when the winning tip moves to a fork on which the round began otherwise",
        AlwaysHoldsBeforeItsMoment: "an assertion `always` whose moment never came counts as one that held",
        EqualsBehindThePageDropped: "in a long search ordered by a number, equals that belong on the page are left out for older ones",
        CreatedColdToldTwice: "a wallet that two transactions of one block name for the first time is reported twice as created",
        UndeliveredEventsFillInbox: "events that no webhook is posted for count as waiting forever: after 16,384 of them all others are overlooked",
        // Waits that nothing ends.
        WakeUpLostToBlock: "a wake-up that finds that a block has come meanwhile is the last one",
        DownloadNotOverBySilence: "a download whose last missing chunk nobody answers is never over",
        BlocksLostWhileStarting: "blocks that come while a node catches up for the first time are taken for no answer",
        AlarmNotSetAgain: "after an alarm, questions that have five seconds or less left get none",
        RecoveryLeansOnOtherPing: "after a rollback the peers are not asked again while another ping of all peers runs",
        AskedPeersHaveNoDeadline: "peers that are asked for theirs may take forever to answer",
        DiscoveryLostToRunningOne: "a discovery that is due while another one runs is the last that is planned",
        SuspendedForgerSleepsOn: "a delegate that lacks a quorum in its slot sleeps until the next round",
    }

    /// Puts a fault, or none at all, in force on this thread until the value is dropped, whatever the process's is.
    #[must_use = "the fault is in force for as long as this lives"]
    pub(crate) fn plant(fault: Option<Planted>) -> InForce {
        InForce { before: ON_THREAD.replace(Some(fault)) }
    }

    /// A fault in force; restores what was before.
    pub(crate) struct InForce {
        before: Option<Option<Planted>>,
    }

    impl Drop for InForce {
        fn drop(&mut self) {
            ON_THREAD.set(self.before);
        }
    }

    /// Returns true if a fault is in force on this thread.
    ///
    /// # Panics
    /// If [`VARIABLE`] names no fault. The command refuses such a name before; a test has nowhere to return it to.
    pub(crate) fn is_planted(fault: Planted) -> bool {
        let in_force = ON_THREAD.get().unwrap_or_else(|| in_process().unwrap_or_else(|why| panic!("{why}")));
        in_force == Some(fault)
    }

    /// The fault that [`VARIABLE`] puts in force in the whole process; `None` if it is unset or empty.
    ///
    /// # Errors
    /// No fault has that name: the message lists those there are.
    pub(crate) fn in_process() -> Result<Option<Planted>, &'static str> {
        static SAID: OnceLock<Result<Option<Planted>, String>> = OnceLock::new();
        let said = SAID.get_or_init(|| match std::env::var_os(VARIABLE) {
            Some(name) if !name.is_empty() => named(&name.to_string_lossy()).map(Some),
            _ => Ok(None),
        });
        said.as_ref().copied().map_err(String::as_str)
    }

    fn named(name: &str) -> Result<Planted, String> {
        Planted::ALL.iter().copied().find(|fault| fault.name() == name).ok_or_else(|| {
            let known: Vec<_> = Planted::ALL.iter().map(|fault| fault.name()).collect();
            format!("{VARIABLE}: found '{name}', allowed is {}", known.join(", "))
        })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_fault_is_in_force_for_as_long_as_it_is_held() {
            let _none = plant(None);
            assert!(!planted!(FeesBurnt));
            {
                let _outer = plant(Some(Planted::FeesBurnt));
                {
                    let _inner = plant(None);
                    assert!(!planted!(FeesBurnt));
                }
                assert!(planted!(FeesBurnt) && !planted!(TieBroken));
                std::thread::spawn(|| assert_eq!(planted!(FeesBurnt), in_process() == Ok(Some(Planted::FeesBurnt))))
                    .join()
                    .expect("other threads have the process's fault");
            }
            assert!(!planted!(FeesBurnt));
        }

        #[test]
        fn an_unknown_name_is_refused_with_the_known_ones() {
            assert_eq!(named("fees-burnt"), Ok(Planted::FeesBurnt));
            let why = named("FeesBurnt").unwrap_err();
            assert!(why.starts_with("DPOSLAB_PLANTED: found 'FeesBurnt', allowed is tie-broken, "), "{why}");
        }

        #[test]
        fn each_fault_has_a_name_of_its_own() {
            let names: std::collections::BTreeSet<String> = Planted::ALL.iter().map(|fault| fault.name()).collect();
            assert_eq!(names.len(), Planted::ALL.len());
            assert!(names.contains("pool-takes-nonce-gap"));
        }
    }
}
