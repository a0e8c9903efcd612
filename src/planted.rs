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

/// Whether a fault is in force here; `false` in a build without planted faults.
#[cfg(any(test, feature = "planted"))]
macro_rules! planted {
    ($fault:ident) => {
        $crate::planted::is_planted($crate::planted::Planted::$fault)
    };
}

/// Whether a fault is in force here; `false` in a build without planted faults.
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
        /// What [`plant`] says on this thread; `None` without one.
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
        ShuffleEveryPlace: "the shuffle passes over no place",
        RoundOneBlockEarly: "a round is made one block before its time",
        RoundNotRenewed: "a new round keeps the members of the old one",
        RankingOfParent: "the last block of a round does not count for the ranking",
        ResignedStaysActive: "resigned delegates are ranked and made active",
        ResignedKeepsRank: "resigned delegates keep their old rank",
        ResignationBelowLimit: "one delegate more may resign than the next round can spare",
        SlotOwnerUnchecked: "anybody may forge in any slot",
        MissedSlotsMiscounted: "of missed slots the first is counted for nobody",
        // What a block pays.
        RewardUnchecked: "a block may pay itself any reward",
        RewardDoubled: "the forger is credited twice the reward",
        FeesBurnt: "the forger is not credited the fees",
        SupplyForgotten: "the reward is not added to the supply",
        StatisticsWithoutFees: "fees are missing in the forger's statistics",
        // What a transaction does.
        FeeNotCharged: "senders pay no fee",
        BalanceUnchecked: "senders may spend more than they have",
        NonceUnchecked: "any nonce will do",
        PaymentTwice: "the last payment of a multipayment is credited twice",
        SecondSignatureUnchecked: "the second signature is not looked at",
        MultiSignatureOneLess: "one signature less than agreed will do",
        UsernameTwice: "a username may be registered again",
        VoteTwice: "a voter may vote again without taking the first vote back",
        VoteForResigned: "resigned delegates may be voted for",
        IpfsTwice: "a multihash may be registered again",
        BusinessTwice: "a business may be registered again",
        BridgechainTwice: "a bridgechain's genesis hash may be registered again",
        // Vote weights.
        WeightWithoutTransferIn: "what a voter receives does not weigh",
        WeightWithoutTransferOut: "what a voter spends goes on weighing",
        WeightWithoutPayments: "what a voter receives, by whatever means, does not weigh",
        WeightWithoutLocked: "locked coin does not weigh",
        WeightOfClaimedLock: "claimed coin goes on weighing for the lock's owner",
        WeightOfUnvoteFee: "taking a vote back leaves the fee in the weight",
        WeightWithoutForging: "what a forger earns does not weigh for its vote",
        // Locks.
        LockClaimedTwice: "a claimed lock stays open",
        LockClaimedLate: "an expired lock can be claimed",
        LockRefundedEarly: "a lock can be refunded before it expires",
        LockSecretUnchecked: "a lock can be claimed with any secret",
        LockedBalanceKept: "a claimed or refunded lock still counts as locked",
        // What a block says.
        BlockIdFromSignature: "a block's id leaves out its signature",
        BlockSignatureUnchecked: "a block's signature is not looked at",
        TransactionSignatureUnchecked: "signatures of transactions are not looked at",
        PayloadHashUnchecked: "a block's payload hash is not looked at",
        SumsUnchecked: "a block's sums are not looked at",
        ExpiredTransactionForged: "a block may hold expired transactions",
        // Pools.
        PoolKeepsForged: "forged transactions stay in the pool",
        PoolTakesNonceGap: "pools do not look at nonces",
        PoolOverfull: "a full pool takes one more",
        PoolForgetsSilently: "what a full pool drops leaves a gap behind",
        PoolOrderByFeeAlone: "transactions are forged by fee, whatever their nonces",
        PoolLosesReverted: "transactions of reverted blocks do not come back",
        // Delegates and peers.
        ForgesTwice: "a delegate forges twice in its slot",
        ForgesOutOfTurn: "a delegate takes the slot after its own too",
        QuorumIgnored: "a delegate forges without a quorum",
        RollbackOneTooDeep: "a rollback goes one block below the common one",
        BlockNotPassedOn: "every second block is not passed on",
        FutureBlockTaken: "blocks of slots that have not begun are taken",
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

    /// Whether a fault is in force on this thread.
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
