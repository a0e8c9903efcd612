//! Sources of transactions: generators of signed transactions of every type, recorded loads, fixed lists, recorded chains, and the
//! clients of faults (spam, floods, vote swings, resignations).

mod blocks;
mod clients;
mod draw;
mod generate;
mod lengths;
mod make;
mod trace;

use super::{
    Scenario,
    testnet::{Decoder, Testnet},
};
use crate::{
    actors::{NodeId, PoolError},
    files::{self, CHAIN_LIMIT},
    ledger::{BlockTree, Link},
    protocol::{Kind, PublicKey, crypto::sha256},
    sim::{
        Fault, Names, Plan, PlannedSource, SeedTree, Source, Trigger, entry_names,
        fault::{ByClients, Nodes},
        source::{MakeSource, Tally},
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, io,
    path::{Path, PathBuf},
    sync::Arc,
};

pub use draw::Amounts;
pub use lengths::{LengthSpan, Lengths, MeanLength};

/// The largest number of wallets of a generator.
pub(super) const WALLETS_LIMIT: u32 = 10_000;

/// Transactions handed in, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Workload {
    /// The origin of the transactions, with its parameters.
    #[serde(flatten)]
    pub kind: WorkloadKind,
    /// The beginning; the start of the run, if absent.
    #[serde(default)]
    pub from: Trigger,
    /// The end; none, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Trigger>,
}

/// The origin of the transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// Drawn from the seed.
    Generate(Generate),
    /// One for each row of a file, at its time.
    Trace(Trace),
    /// As listed, in this order.
    List(List),
    /// The transactions of a chain in a file, each at the time of its block.
    Chain(Chain),
}

/// Transactions drawn from the seed: each sender signs what its wallet on the chain allows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Generate {
    /// Transactions a second, on average.
    pub per_second: f64,
    /// The spacing of arrivals: random or even.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Wallets that send; each is funded by one of the network's accounts first.
    #[serde(default = "ten")]
    pub wallets: u32,
    /// The coins that each wallet is funded with.
    #[serde(default = "thousand")]
    pub funding: u32,
    /// The share of each type, in any unit; transfers only, if empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mix: BTreeMap<Kind, f64>,
    /// The amount sent, in coins.
    #[serde(default)]
    pub amount: Amounts,
    /// The fee, as a multiple of the type's static fee.
    #[serde(default = "Amounts::one")]
    pub fee: Amounts,
    /// The bytes of the vendor field of types that have one. If absent, one transfer of ten has a short one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor_field: Option<Lengths>,
    /// The nodes at which they are handed in, each at one of them at random; all nodes, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Nodes>,
}

/// Transactions of a recorded load. The parts that a row leaves out are drawn as in [`Generate`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// A CSV file with the column `seconds`, the times after the beginning of the workload in ascending order, and any of `kind`, `sender`,
    /// `recipient`, `amount` and `vendor_field`; relative to the working directory.
    pub file: String,
    /// Wallets that send; if absent, one for each sender that the file names, or ten if it names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wallets: Option<u32>,
    /// The coins that each wallet is funded with.
    #[serde(default = "thousand")]
    pub funding: u32,
    /// The share of each type, in any unit; transfers only, if empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub mix: BTreeMap<Kind, f64>,
    /// The amount sent, in coins.
    #[serde(default)]
    pub amount: Amounts,
    /// The fee, as a multiple of the type's static fee.
    #[serde(default = "Amounts::one")]
    pub fee: Amounts,
    /// The bytes of the vendor field of types that have one. If absent, one transfer of ten has a short one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vendor_field: Option<Lengths>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Nodes>,
    #[serde(skip)]
    pub(super) copy: FileCopy,
}

/// The spacing of arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// As independent clients would: exponential gaps.
    #[default]
    Poisson,
    Even,
}

/// Transactions as listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// Wire bytes in hex.
    pub transactions: Vec<String>,
    pub per_second: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Nodes>,
}

/// The transactions of a recorded chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// One block a line, as `dposlab up --chain` reads it; relative to the working directory.
    pub file: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Nodes>,
    #[serde(skip)]
    pub(super) copy: FileCopy,
}

/// The copy that is read in place of a file. It is not part of a scenario's meaning, so `==` and `Debug` ignore it.
#[derive(Clone, Default)]
pub(super) struct FileCopy(pub(super) Option<PathBuf>);

impl FileCopy {
    /// The path from which `file` is read.
    fn place<'a>(&'a self, file: &'a str) -> &'a Path {
        self.0.as_deref().unwrap_or(Path::new(file))
    }
}

impl PartialEq for FileCopy {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for FileCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("_")
    }
}

fn ten() -> u32 {
    10
}

fn thousand() -> u32 {
    1_000
}

/// The parts of the network that a source works with.
#[derive(Clone)]
struct SourceContext {
    tree: Arc<BlockTree>,
    testnet: Arc<Testnet>,
    seeds: SeedTree,
    /// The nodes to which transactions are submitted, at least one.
    nodes: Arc<[NodeId]>,
}

/// Saves and loads the changing state of a client: the nodes to which it submits, and these fields. The other fields stay as they
/// were made. Every field must be named.
macro_rules! goes_on {
    ($($changes:ident),* $(; $($stays:ident),*)?) => {
        fn save(&self, out: &mut $crate::ledger::codec::Saver) {
            let Self { network, $($changes,)* $($($stays: _,)*)? } = self;
            $crate::ledger::codec::Save::save(&network.nodes, out);
            $($crate::ledger::codec::Save::save($changes, out);)*
        }

        fn go_on(
            &mut self,
            from: &mut $crate::ledger::codec::Loader,
        ) -> Result<(), $crate::ledger::codec::LoadError> {
            self.network.nodes = $crate::ledger::codec::Save::load(from)?;
            $(self.$changes = $crate::ledger::codec::Save::load(from)?;)*
            Ok(())
        }
    };
}
use goes_on;

impl Workload {
    pub(super) fn nodes(&self) -> Option<&Nodes> {
        match &self.kind {
            WorkloadKind::Generate(generate) => generate.nodes.as_ref(),
            WorkloadKind::Trace(trace) => trace.nodes.as_ref(),
            WorkloadKind::List(list) => list.nodes.as_ref(),
            WorkloadKind::Chain(chain) => chain.nodes.as_ref(),
        }
    }
}

impl WorkloadKind {
    /// The file that it names.
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::Trace(trace) => Some(&trace.file),
            Self::Chain(chain) => Some(&chain.file),
            Self::Generate(_) | Self::List(_) => None,
        }
    }

    /// The file that is read: that file, or its copy.
    fn place(&self) -> Option<&Path> {
        match self {
            Self::Trace(Trace { file, copy, .. }) | Self::Chain(Chain { file, copy, .. }) => Some(copy.place(file)),
            Self::Generate(_) | Self::List(_) => None,
        }
    }

    /// Redirects the reading of its file to a copy.
    pub(super) fn read_copy(&mut self, copy: PathBuf) {
        match self {
            Self::Trace(trace) => trace.copy.0 = Some(copy),
            Self::Chain(chain) => chain.copy.0 = Some(copy),
            Self::Generate(_) | Self::List(_) => {}
        }
    }
}

impl Chain {
    /// Checks that its file is a chain of blocks whose transactions decode.
    pub(super) fn check(&self, decoder: &Decoder) -> Result<(), String> {
        blocks::check(self.place(), |bytes| decoder.check(bytes))
    }

    /// The file that is read.
    fn place(&self) -> &Path {
        self.copy.place(&self.file)
    }
}

/// Returns the names of all files that scenarios name, with the digests of the bytes that are read, a line for each file.
///
/// # Errors
/// A file cannot be read.
pub fn digests_of_files<'a>(scenarios: impl IntoIterator<Item = &'a Scenario>) -> Result<String, (PathBuf, io::Error)> {
    let workloads = scenarios.into_iter().flat_map(|scenario| &scenario.workloads);
    let places: BTreeMap<&str, &Path> =
        workloads.filter_map(|workload| Some((workload.kind.file()?, workload.kind.place()?))).collect();
    let line = |(name, place): (&str, &Path)| {
        let bytes = files::read(place, CHAIN_LIMIT).map_err(|why| (place.to_path_buf(), why))?;
        Ok(format!("{name}: {}\n", hex::encode(sha256(&bytes))))
    };
    places.into_iter().map(line).collect()
}

impl Scenario {
    /// The files that it names and that are read when it is played.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.workloads.iter().filter_map(|workload| workload.kind.file())
    }

    /// Returns the text that identifies it: its TOML, and the digests of the files that it names. The digests are missing if a file was
    /// removed since the scenario was checked.
    pub fn identity(&self) -> String {
        self.to_toml() + &digests_of_files([self]).unwrap_or_default()
    }

    /// Returns a note for each workload of which transactions broke the schema, in the last run of its plan.
    pub fn notes_of_run(&self, plan: &Plan) -> Vec<String> {
        let note = |(index, source): (usize, &PlannedSource)| {
            let counts = source.tally.counts();
            let (refused, submitted) = (counts.refused.get(PoolError::SCHEMA)?, counts.submitted);
            Some(format!(
                "workload[{index}]: {refused} of {submitted} transactions do not decode at the height of the chain ({})",
                PoolError::SCHEMA
            ))
        };
        plan.sources.iter().take(self.workloads.len()).enumerate().filter_map(note).collect()
    }

    /// Returns true if clients submit transactions while it is played.
    pub fn has_clients(&self) -> bool {
        let by_clients = |fault: &Fault| fault.kind.by_clients().is_some();
        !self.workloads.is_empty()
            || !self.actions.is_empty()
            || !self.agents.is_empty()
            || self.faults.iter().any(by_clients)
    }

    /// The sources of a plan: those of the workloads, then those of faults that clients carry out, then that of the agents. Also returns
    /// the delegates of each group of agents.
    pub(super) fn sources(&self, plan: &Plan, testnet: &Testnet) -> (Vec<PlannedSource>, Vec<BTreeSet<PublicKey>>) {
        let (names, testnet) = (plan.names(), Arc::new(testnet.clone()));
        let stand = Stand { plan, names: &names, testnet: &testnet, tip: &plan.tip };
        let workloads = self.workloads.iter().enumerate().map(|(index, workload)| {
            let name = stand.name("workload", workload, &self.workloads[..index]);
            let network = stand.network(&name, workload.nodes());
            let make: MakeSource = match workload.kind.clone() {
                WorkloadKind::Generate(generate) => {
                    let wallets = generate::Wallets::new(&network, &generate);
                    source(network, (generate, wallets, None), generate::Generator::new)
                }
                WorkloadKind::Trace(trace) => {
                    // The file was read when the scenario was checked. If it has been removed since, the run goes on without it.
                    let rows = trace.rows().unwrap_or_default();
                    let generate = trace.generate(&rows);
                    let wallets = generate::Wallets::new(&network, &generate);
                    source(network, (generate, wallets, Some(rows.rows)), generate::Generator::new)
                }
                WorkloadKind::List(list) => source(network, list, blocks::ListSource::new),
                WorkloadKind::Chain(chain) => source(network, chain, blocks::ChainSource::new),
            };
            planned(workload.from.clone(), workload.until.clone(), None, name, make)
        });
        let faults =
            self.faults.iter().enumerate().filter_map(|(index, fault)| stand.clients(&self.faults[..index], fault));
        let groups = stand.groups(&self.agents);
        let delegates = groups.iter().map(|group| group.delegates.iter().copied().collect()).collect();
        (workloads.chain(faults).chain(stand.agents(groups)).collect(), delegates)
    }
}

/// The parts of a run from which sources are made.
pub(super) struct Stand<'a> {
    pub plan: &'a Plan,
    pub names: &'a Names,
    pub testnet: &'a Arc<Testnet>,
    /// The block after which vote weights are read.
    pub tip: &'a Arc<Link>,
}

impl Stand<'_> {
    fn network(&self, name: &str, nodes: Option<&Nodes>) -> SourceContext {
        let plan = self.plan;
        let nodes = self.nodes(nodes);
        // Each source draws from streams of its own.
        let seeds = SeedTree::new(u64::from_le_bytes(plan.seeds.bytes(name)[..8].try_into().expect("8 of 32 bytes")));
        SourceContext { tree: plan.tree.clone(), testnet: self.testnet.clone(), seeds, nodes: nodes.into() }
    }

    /// The named nodes, to which clients submit, or all nodes if none are named.
    pub(super) fn nodes(&self, nodes: Option<&Nodes>) -> Vec<NodeId> {
        let resolved = nodes.map(|nodes| self.names.resolve(nodes, self.tip)).filter(|nodes| !nodes.is_empty());
        resolved.unwrap_or_else(|| (0..self.plan.nodes.len() as u32).map(NodeId).collect())
    }

    /// The name of the draws of an entry that follows the entries `before`.
    fn name<T: Serialize>(&self, what: &str, entry: &T, before: &[T]) -> String {
        format!("{what}/{}", entry_names::name(entry, before))
    }

    /// The source of a fault that follows the faults `before`, if clients carry it out.
    pub fn clients(&self, before: &[Fault], fault: &Fault) -> Option<PlannedSource> {
        let name = self.name("fault", fault, before);
        let network = |nodes: Option<&Nodes>| self.network(&name, nodes);
        let make: MakeSource = match fault.kind.by_clients()? {
            ByClients::Spammers(spam) => source(network(spam.nodes.as_ref()), spam.clone(), clients::Spammer::new),
            ByClients::Flooders(flood) => source(network(flood.nodes.as_ref()), flood.clone(), clients::Flooder::new),
            ByClients::Voters(swing) => source(network(None), swing.clone(), clients::Swing::new),
            ByClients::Delegates(some) => {
                let who = self.names.resolve(&some.delegates, self.tip);
                source(network(None), who, clients::Resignations::new)
            }
        };
        Some(planned(fault.from.clone(), fault.until.clone(), Some(before.len()), name, make))
    }
}

fn source<P, S>(network: SourceContext, parameters: P, make: fn(SourceContext, P) -> S) -> MakeSource
where
    P: Clone + Send + Sync + 'static,
    S: Source + 'static,
{
    Arc::new(move || Box::new(make(network.clone(), parameters.clone())))
}

pub(super) fn planned(
    from: Trigger,
    until: Option<Trigger>,
    fault: Option<usize>,
    name: String,
    make: MakeSource,
) -> PlannedSource {
    PlannedSource { from, until, fault, name, make, tally: Tally::default() }
}
