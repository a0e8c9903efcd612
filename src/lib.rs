//! A delegated-proof-of-stake network in one process: a deterministic simulator and an instant testnet.
//!
//! **Simulate a network and read its chain.** A run is a function of its scenario and its seed.
//!
//! ```
//! use dposlab::{Fault, Simulation, fault::{FaultKind, NodeRef, Nodes, Offline, Trigger}};
//!
//! let delegates = Nodes::List(vec![NodeRef::Delegate("genesis_3".to_owned())]);
//! let offline = Fault { from: Trigger::Round(2), ..Fault::new(FaultKind::Offline(Offline { delegates, rounds: None })) };
//! let mut run = Simulation::builder().delegates(5).rounds(4).seed(7).fault(offline).build()?;
//! run.always("the others miss no slot", |network| {
//!     let state = network.state();
//!     let mut delegates = state.delegates().filter_map(|wallet| wallet.delegate.as_ref());
//!     delegates.all(|delegate| delegate.missed_blocks == 0 || &*delegate.username == "genesis_3")
//! });
//! let played = run.play()?;
//! assert_eq!((played.height.0, played.slots), (20, 22));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **A property test that finds something.** proptest draws networks, faults and behaviours and shrinks what fails; the smallest run is
//! left as a scenario file, which `dposlab run` and `dposlab explain` take.
//!
//! ```
//! # #[cfg(feature = "proptest")] {
//! use dposlab::{Assertion, strategies::simulations};
//! use proptest::prelude::*;
//!
//! let file = std::env::temp_dir().join("dposlab-a-slot-is-missed.toml");
//! let (config, drawn) = (ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }, simulations(4..=7, 4));
//! let found = proptest::test_runner::TestRunner::new(config).run(&drawn, |builder| {
//!     builder.assertion(Assertion::always("missed < 1")).counterexample(&file).build()?.play()?;
//!     Ok(())
//! });
//! let why = found.unwrap_err().to_string();
//! assert!(why.contains("always missed < 1: does not hold") && why.contains("dposlab run"), "{why}");
//! # }
//! ```
//!
//! **Bytes of the protocol**: make, sign, serialise, read and verify a transaction.
//!
//! ```
//! use dposlab::{Arktoshi, CryptoMode::Real, KeyPair, Nonce, Transaction};
//!
//! let keys = KeyPair::from_passphrase("spec sender", Real);
//! let recipient = KeyPair::from_passphrase("spec recipient", Real).public().address(23);
//! let transfer = Transaction::transfer(recipient, Arktoshi::coins(1)).nonce(Nonce(7)).vendor_field("hi").sign(&keys);
//! assert!(transfer.verified(Real));
//! assert_eq!(transfer.to_json()["recipientId"], "AUKZWXcVmdpv9XBeqXQS5AQr2dRhjKxARH");
//! assert_eq!(transfer.bytes()[..3], [0xff, 2, 23]);
//! ```
//!
//! # Stability
//!
//! The names on this page, and those of [`agents`], [`fault`], [`strategy`] and `strategies`, are for users: a change that breaks one raises the
//! version. The modules below are public because the program, its tests and its benches name them. They are not in this documentation,
//! and any version may change them.
//!
//! # Features
//!
//! `cli` is the whole program with its API and reports, `proptest` is `strategies`. Both are on by default. Without them the library
//! simulates, checks, and reads and writes bytes, and needs about half the packages.
//!
//! # The rooms
//!
//! Each names only those below it:
//!
//! ```text
//! cli                the commands
//! api, check, report what the world sees, what must hold, what a run leaves behind
//! scenario           what a run is
//! sim                when things happen
//! actors             what each party does
//! ledger             what a chain means
//! protocol           what bytes mean
//! statistics         what many observations say: numbers alone, beside the others
//! files              which files of others are read, and how much of them: beside the others, too
//! drawing            what pages draw with: scripts and styles, beside the others, too
//! ```
#![cfg_attr(doc, deny(missing_docs))]
#![forbid(unsafe_code)]

// `cargo doc` compiles the rooms as private modules. Then the documentation consists of the names that this file re-exports. rustc demands
// a comment on each of them, and on their fields, variants and methods. A hidden module would be exempt from that.
#[cfg(doc)]
mod actors;
#[cfg(not(doc))]
pub mod actors;
#[cfg(all(doc, feature = "cli"))]
mod api;
#[cfg(all(not(doc), feature = "cli"))]
pub mod api;
#[cfg(doc)]
mod check;
#[cfg(not(doc))]
pub mod check;
#[cfg(all(doc, feature = "cli"))]
mod cli;
#[cfg(all(not(doc), feature = "cli"))]
pub mod cli;
#[cfg(all(doc, feature = "cli"))]
mod drawing;
#[cfg(all(not(doc), feature = "cli"))]
pub mod drawing;
#[cfg(doc)]
mod files;
#[cfg(not(doc))]
pub mod files;
#[cfg(doc)]
mod ledger;
#[cfg(not(doc))]
pub mod ledger;
#[cfg(doc)]
mod protocol;
#[cfg(not(doc))]
pub mod protocol;
#[cfg(all(doc, feature = "cli"))]
mod report;
#[cfg(all(not(doc), feature = "cli"))]
pub mod report;
#[cfg(doc)]
mod scenario;
#[cfg(not(doc))]
pub mod scenario;
#[cfg(doc)]
mod sim;
#[cfg(not(doc))]
pub mod sim;
#[cfg(doc)]
mod statistics;
#[cfg(not(doc))]
pub mod statistics;
#[cfg(doc)]
mod threads;
#[cfg(not(doc))]
pub mod threads;

pub use actors::{Event, NodeId, SimTime};
pub use check::{
    Finding, Simulation, Sometimes, Violation, check_all,
    simulation::{BrokenProperty, Builder, Counterexample, SimulationResult, SlotEnd},
};
pub use ledger::{BlockTree, Link, Rules, State, Wallet, rules::Gossip};
pub use protocol::{
    Address, Arktoshi, Block, BlockId, Height, KeyPair, Kind, Milestones, Network, NetworkConfig, Nonce, PublicKey,
    RoundNumber, SignedTransaction, Slot, Transaction, TransactionContext, TransactionId, Vote, crypto::CryptoMode,
};
pub use scenario::{
    Account, Action, Assertion, Deed, Ended, NamedDelegate, Outcome, Scenario, ScenarioError, StageKind, StallRule,
    Testnet, Verdict,
    section::{Change, NetworkSection},
    vote_weights::VoteWeights,
    workload::{Workload, WorkloadKind},
};
pub use sim::{
    Digest, Fault, Latency, NetworkModel, Observer, Plan, SeedTree,
    network::{
        AccessRate, ByClass, Classes, Clocks, Compact, CompactNodes, LinkLatency, MissingShare, Overhead, Regions,
        Reordering, Sharing, Topology,
    },
    processor::{Processor, ProcessorPlan, WorkTime},
};

/// Faults of a run: their kinds, their parameters, and when they begin and end.
pub mod fault {
    pub use crate::sim::fault::{
        Boundary, ClockSkew, Crash, DelayMessages, DropMessages, DuplicateMessages, Durations, Eclipse, EventKind,
        EventTrigger, ExponentialTime, FaultKind, Heal, LogNormalTime, LowFeeFlood, MessageKind, Messages, NodeChurn,
        NodeRef, NodeSpan, Nodes, Offline, Partition, Restart, Rounds, Share, ShareOf, Slow, SomeDelegates, SomeNodes,
        SpamPool, Span, Trigger, UniformTime, VoteSwing, WeibullTime,
    };
}

/// Voters and delegates that decide at the ends of rounds: the shipped policies, and the parts of one of your own
/// (`examples/policy.rs`).
pub mod agents {
    pub use crate::{
        ledger::rules::{VoteRule, VoteShare},
        scenario::{
            agents::{
                Agents, Apathy, BestPayer, Candidate, Cartel, Choice, Churn, Offer, PlannedPolicy, Policy, Sight,
                VoteBuying, register,
            },
            workload::Amounts,
        },
        sim::fault::BoundedValue,
    };
}

/// Strategies of actors against the protocol: the shipped ones, and the parts of one of your own
/// (`examples/strategy.rs`).
pub mod strategy {
    pub use crate::{
        actors::{Actor, ActorId, Behaviour, Effect, Input, Message, Role, behaviour::Step},
        sim::{
            fault::{BoundedValue, Facts},
            strategy::{
                Censor, Coalition, DoubleForge, EclipseAnswers, FalseClaim, ForgeInvalid, ForgeOutOfTurn, InvalidBlock,
                LateForging, LieAboutTip, RefuseTransactions, Setting, SpareForger, Strategy, Withhold, WithholdAhead,
                register,
            },
        },
    };
}

/// Values for property tests, drawn and shrunk by proptest: simulations, networks, faults, behaviours, and blocks of transactions.
#[cfg(feature = "proptest")]
pub mod strategies {
    pub use crate::check::strategies::{
        Attempt, Flaw, Play, Stage, Try, attempt, behaviours, faults, models, networks, simulations, stage, stages,
    };
}

/// The snippets of the README, of docs/library.md and of docs/property-tests.md, compiled and run with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../docs/library.md")]
#[doc = include_str!("../docs/property-tests.md")]
struct Readme;
