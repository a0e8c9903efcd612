//! The kinds of faults: one row for each, with all that is known of it.
//!
//! A new kind is a row of this table, and parameters in `parameters.rs` if no others fit. The compiler then asks what
//! happens when it begins (`sim::world::faults`). The minimiser, the tests of each kind, the schema, the description of the
//! API and the error messages follow from the row.

use super::{
    facts::{Facts, Lasting, Timing},
    parameters::{
        Censor, ClockSkew, Crash, DelayMessages, DropMessages, DuplicateMessages, Eclipse, ForgeInvalid,
        ForgeOutOfTurn, Heal, LateForging, LieAboutTip, LowFeeFlood, Offline, Parameters, Partition, Restart, Slow,
        SomeDelegates, SomeNodes, SpamPool, SpareForger, VoteSwing, Withhold,
    },
    rounds::Rounds,
    said::Said,
    who::Nodes,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The clients that carry out a fault.
#[derive(Clone, Copy, Debug)]
pub enum ByClients<'a> {
    Spammers(&'a SpamPool),
    Flooders(&'a LowFeeFlood),
    Voters(&'a VoteSwing),
    /// The delegates themselves.
    Delegates(&'a SomeDelegates),
}

impl ByClients<'_> {
    /// They pay from funded accounts.
    pub fn need_accounts(self) -> bool {
        match self {
            Self::Spammers(_) | Self::Flooders(_) | Self::Voters(_) => true,
            Self::Delegates(_) => false,
        }
    }
}

/// Declares the kinds: the name of each in a file, its parameters, the clients that carry it out if any do, its facts, and an
/// example of its parameters in a network of five delegates.
macro_rules! kinds {
    (@by $parameters:ident) => { None };
    (@by $parameters:ident $clients:ident) => { Some(ByClients::$clients($parameters)) };
    ($($(#[$doc:meta])* $name:literal => $variant:ident($type:ty) $(by $clients:ident)?, $facts:expr, $example:literal;)*) => {
        /// A fault. Each kind has a name, its `kind` in a file.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind")]
        pub enum FaultKind {
            $($(#[$doc])* #[serde(rename = $name)] $variant($type),)*
        }

        impl FaultKind {
            /// The names of all kinds, in the order of the declaration.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// An example of each kind, in the order of the declaration: a table in TOML.
            pub const EXAMPLES: &'static [&'static str] = &[$(concat!("kind = '", $name, "'\n", $example)),*];

            /// The name of this kind.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)*
                }
            }

            /// Returns the facts about this kind.
            pub fn facts(&self) -> Facts {
                match self {
                    $(Self::$variant(_) => const { $facts },)*
                }
            }

            /// The clients that carry it out; `None` if the world does.
            pub fn by_clients(&self) -> Option<ByClients<'_>> {
                match self {
                    $(Self::$variant(_parameters) => kinds!(@by _parameters $($clients)?),)*
                }
            }

            fn parameters(&self) -> &dyn Parameters {
                match self {
                    $(Self::$variant(parameters) => parameters,)*
                }
            }

            fn parameters_mut(&mut self) -> &mut dyn Parameters {
                match self {
                    $(Self::$variant(parameters) => parameters,)*
                }
            }
        }
    };
}

kinds! {
    // Between nodes.
    /// Groups of nodes that cannot reach each other.
    "partition" => Partition(Partition), Facts::NETWORK, "groups = [[0, 1], ['genesis_3', 3, 4]]";
    /// Ends every partition, isolation and eclipse in force.
    "heal" => Heal(Heal), Facts { lasting: Lasting::Mending, ..Facts::NETWORK.at_once() }, "";
    /// Nodes that can reach nobody and cannot be reached.
    "isolate" => Isolate(SomeNodes), Facts::NETWORK, "nodes = [4]";
    /// Nodes that are connected to chosen others only.
    "eclipse" => Eclipse(Eclipse), Facts::NETWORK, "victims = [1]\nattackers = [2]";
    /// Messages that never arrive.
    "drop" => Drop(DropMessages), Facts::NETWORK, "messages = ['block']\nchance = 0.1";
    /// Messages that take longer.
    "delay" => Delay(DelayMessages), Facts::NETWORK, "by_ms = 300\njitter_ms = 50\nreceivers = [2]";
    /// Messages that arrive several times.
    "duplicate" => Duplicate(DuplicateMessages), Facts { holds_up: false, ..Facts::NETWORK },
        "copies = 2\nwithin_ms = 100";

    // At a node.
    /// Nodes that stop without a word; when the fault ends they start again from the chain they had stored.
    "crash" => Crash(Crash), Facts::BREACH, "nodes = [3]\nkeep_pool = false";
    /// Nodes that stop and start again at once.
    "restart" => Restart(Restart), Facts::BREACH.at_once(), "nodes = [2]";
    /// Nodes that stand still: what reaches them meanwhile waits.
    "pause" => Pause(SomeNodes), Facts::BREACH.timed(Timing::Stopped), "nodes = [1]";
    /// Nodes that take their time over everything they hear.
    "slow" => Slow(Slow), Facts::BREACH.timed(Timing::Wrong), "nodes = [1]\nstep_ms = 20";
    /// Nodes whose clocks are wrong.
    "clock-skew" => ClockSkew(ClockSkew), Facts::BREACH.timed(Timing::Wrong),
        "nodes = [2]\noffset_ms = -700\ndrift_ppm = 50";

    // By a delegate, its relay or its pool.
    /// Delegates that do not forge; their nodes go on relaying.
    "offline" => Offline(Offline), Facts::OMISSION, "delegates = [0]";
    /// Delegates that forge later in their slot than they could.
    "late-forging" => LateForging(LateForging), Facts::IRREGULAR, "delegates = [1]\nby_ms = 900";
    /// Delegates whose relays keep their blocks back.
    "withhold" => Withhold(Withhold), Facts::IRREGULAR, "delegates = [2]\nrelease_ms = 4000";
    /// Delegates that make two blocks in one slot, one for each half of their peers.
    "double-forge" => DoubleForge(SomeDelegates), Facts::IRREGULAR, "delegates = [3]";
    /// Nodes that forge with the keys of delegates, too, each with a pool and a view of its own: a spare node that its operator
    /// left on. Equal pools give the same block, because signatures are deterministic; others give two blocks in one slot.
    "spare-forger" => SpareForger(SpareForger), Facts::PAIRED, "delegates = [3]\nnodes = [4]";
    /// Delegates that forge in slots of others.
    "forge-out-of-turn" => ForgeOutOfTurn(ForgeOutOfTurn), Facts::IRREGULAR, "delegates = [4]\nevery = 3";
    /// Delegates whose blocks break one rule.
    "forge-invalid" => ForgeInvalid(ForgeInvalid), Facts::IRREGULAR, "delegates = [0]\nerror = 'reward'";
    /// Delegates that leave a sender's transactions out of their blocks.
    "censor" => Censor(Censor), Facts::OMISSION, "delegates = [1]\nsender = 'account_2'";
    /// Nodes that take no transactions.
    "refuse-transactions" => RefuseTransactions(SomeNodes), Facts::OMISSION, "nodes = [2]";
    /// Nodes that claim another tip than they stand on when they are asked for it.
    "lie-about-tip" => LieAboutTip(LieAboutTip), Facts::BREACH, "nodes = [3]\nby = 2";

    // By clients.
    /// Worthless transactions by the dozen: unfunded senders, gaps in nonces, signatures that do not hold.
    "spam-pool" => SpamPool(SpamPool) by Spammers, Facts::CLIENTS, "per_second = 0.5";
    /// Valid transactions that pay the least fee that is let in.
    "low-fee-flood" => LowFeeFlood(LowFeeFlood) by Flooders, Facts::CLIENTS, "per_second = 0.5\nnodes = [0, 1]";
    /// Voters who change sides together, timed so that it counts for the next round or just not.
    "vote-swing" => VoteSwing(VoteSwing) by Voters, Facts::CLIENTS,
        "voters = 3\ndelegate = 'genesis_2'\nround = 9\nblock = 'first'";
    /// Delegates who resign together.
    "mass-resignation" => MassResignation(SomeDelegates) by Delegates, Facts::CLIENTS, "delegates = [4]";
}

impl FaultKind {
    /// The nodes it names, each list under its key in a file.
    pub fn nodes(&self) -> Vec<(&'static str, &Nodes)> {
        self.parameters().nodes()
    }

    /// [`FaultKind::nodes`], to be changed; in the same order.
    pub fn nodes_mut(&mut self) -> Vec<(&'static str, &mut Nodes)> {
        self.parameters_mut().nodes_mut()
    }

    /// Returns its statements beside its lists of nodes, each under its key in a file; under none if it is one as a whole.
    pub fn said(&self) -> Vec<(&'static str, Said<'_>)> {
        self.parameters().said()
    }

    /// The delegates that it switches off by rounds, and in which.
    pub fn by_rounds(&self) -> Option<(&Nodes, &Rounds)> {
        let Self::Offline(offline) = self else { return None };
        offline.rounds.as_ref().map(|rounds| (&offline.delegates, rounds))
    }

    /// The accounts and delegates that it names beside its lists, by name or address.
    pub fn parties(&self) -> impl Iterator<Item = &str> {
        self.said().into_iter().filter_map(|(_, said)| match said {
            Said::Delegate(name) | Said::Party(name) => Some(name),
            Said::Number(..)
            | Said::Part(_)
            | Said::Rate(_)
            | Said::Amount(_)
            | Said::Rounds(_)
            | Said::LaterRound(_)
            | Said::Accounts(_)
            | Said::Clash { .. } => None,
        })
    }

    /// The same kind with one node less in one of its lists, in each possible way. A list keeps at least one node.
    pub fn with_fewer_nodes(&self) -> Vec<Self> {
        let lists = self.nodes().into_iter().enumerate().filter_map(|(which, (_, nodes))| match nodes {
            Nodes::List(list) if list.len() > 1 => Some((which, list.len())),
            Nodes::List(_) | Nodes::Span(_) | Nodes::Share(_) => None,
        });
        let all = lists.flat_map(|(which, count)| (0..count).map(move |gone| (which, gone)));
        all.map(|(which, gone)| self.without(which, gone)).collect()
    }

    /// Without one node of one of its lists.
    fn without(&self, which: usize, gone: usize) -> Self {
        let mut fewer = self.clone();
        if let (_, Nodes::List(list)) = &mut fewer.nodes_mut()[which] {
            list.remove(gone);
        }
        fewer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_an_example_of_itself() {
        for (name, text) in FaultKind::NAMES.iter().zip(FaultKind::EXAMPLES) {
            let kind: FaultKind = toml::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(kind.name(), *name);
            let (nodes, mut changed) = (kind.nodes().len(), kind.clone());
            assert_eq!(changed.nodes_mut().len(), nodes, "{name}");
        }
    }

    #[test]
    fn one_node_less_is_taken_from_each_list() {
        let text = "kind = 'partition'\ngroups = [[0, 1], [2], [3, 4]]";
        let kind: FaultKind = toml::from_str(text).expect("it is a kind");
        let fewer = kind.with_fewer_nodes();
        assert_eq!(fewer.len(), 4);
        assert!(fewer.iter().all(|one| one.nodes().iter().all(|(_, nodes)| **nodes != Nodes::List(Vec::new()))));
    }
}
