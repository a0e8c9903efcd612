//! Agents: groups of voters and delegates, each with a policy that decides at the ends of rounds from the state of the chain.
//!
//! A [`Policy`] holds the parameters of a kind of agents and decides for them. Decisions become signed transactions. Nodes
//! admit, relay and forge these like those of a workload. Scenario files and the schema know every policy that is
//! [registered](register).

mod apathy;
mod best_payer;
mod cartel;
mod churn;
mod payments;
mod plan;
mod sight;
mod source;
mod vote_buying;
mod voter;

pub use apathy::Apathy;
pub use best_payer::BestPayer;
pub use cartel::Cartel;
pub use churn::Churn;
pub use sight::{Candidate, Choice, Offer, Sight};
pub use vote_buying::VoteBuying;

use source::AgentSource;
pub(crate) use voter::Voter;

use super::workload::Amounts;
use crate::sim::fault::{BoundedValue, Nodes, kind_of, schema_of, unknown_kind};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, de::DeserializeOwned};
use serde_json::{Map, Value};
use std::{
    any::Any,
    borrow::Cow,
    fmt,
    sync::{Arc, LazyLock, RwLock},
};

/// The largest number of voters of a group, and of all groups together.
pub(super) const VOTERS_LIMIT: u32 = 10_000;
/// The largest number of coins of the voters of all groups together. Accounts and delegates share the other 15 million.
pub(super) const STAKE_LIMIT: u32 = 110_000_000;
/// The largest number of rounds between two payments.
pub(super) const PAY_ROUNDS_LIMIT: u32 = 100_000;

/// The parameters of agents and how they decide. Its documentation describes it in the schema. It is a value without memory: a decision
/// depends on the parameters and on the [`Sight`] alone, so that a run can be copied, saved and repeated.
pub trait Policy: Clone + fmt::Debug + Serialize + DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// The `kind` in a file.
    const NAME: &'static str;
    /// An example of its parameters, in TOML.
    const EXAMPLE: &'static str;

    /// Its parameters with the values that are allowed, each under its key in a file.
    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        Vec::new()
    }

    /// Returns true if its voters vote for delegates of its groups alone. A file with such voters names such a delegate.
    fn votes_within(&self) -> bool {
        false
    }

    /// The offer of each delegate of the group to its voters, from this round on. The default is the share of its income from the file. A
    /// group does not see the offers of other groups here: every candidate offers nothing.
    fn offer(&self, sight: &Sight<'_>) -> Offer {
        Offer::Share(sight.share())
    }

    /// The voters of the group that change their votes, with the delegates that each votes for then.
    fn votes(&self, sight: &Sight<'_>) -> Vec<Choice>;
}

/// Voters and delegates that decide alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agents {
    /// The policy that decides for them, with its parameters.
    #[serde(flatten)]
    pub policy: PlannedPolicy,
    /// Voters of the group.
    #[serde(default)]
    pub voters: u32,
    /// Coins that these voters have together when the run begins. The genesis block pays them.
    #[serde(default)]
    pub stake: u32,
    /// The distribution of the stake: the part of a voter is proportional to a number drawn from this.
    #[serde(default = "Amounts::one")]
    pub spread: Amounts,
    /// Delegates of the group, each of which makes its offer to all who vote for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegates: Option<Nodes>,
    /// The part of its income that each of these pays its voters, by weight.
    #[serde(default)]
    pub share: f64,
    /// Rounds between two payments.
    #[serde(default = "ten")]
    pub pay_rounds: u32,
    /// The nodes at which voters hand in; all nodes, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Nodes>,
}

fn ten() -> u32 {
    10
}

impl Agents {
    /// The name of this group's draws: its policy, and its number among the groups of that policy. `before` are the groups above it in the
    /// file. So a group keeps its draws when its numbers change.
    pub(super) fn name(&self, before: &[Self]) -> String {
        let kind = self.policy.name();
        format!("agents/{kind}/{}", before.iter().filter(|other| other.policy.name() == kind).count())
    }
}

/// A registered policy.
#[derive(Clone, Copy)]
struct PolicyKind {
    name: &'static str,
    read: fn(Value) -> Result<PlannedPolicy, serde_json::Error>,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

impl PolicyKind {
    /// # Panics
    /// The example does not describe the policy.
    fn of<P: Policy>() -> Self {
        if let Err(why) = toml::from_str::<P>(P::EXAMPLE) {
            panic!("the policy '{}': its example is none of it: {why}", P::NAME);
        }
        Self { name: P::NAME, read: |table| P::deserialize(table).map(PlannedPolicy::from), schema: P::json_schema }
    }
}

/// The policies, in the order in which they are listed.
static POLICIES: LazyLock<RwLock<Vec<PolicyKind>>> = LazyLock::new(|| {
    RwLock::new(vec![
        PolicyKind::of::<BestPayer>(),
        PolicyKind::of::<Cartel>(),
        PolicyKind::of::<VoteBuying>(),
        PolicyKind::of::<Apathy>(),
        PolicyKind::of::<Churn>(),
    ])
});

/// All registered policies, in this order.
fn policies() -> Vec<PolicyKind> {
    POLICIES.read().expect("no thread panics while holding it").clone()
}

/// Registers a policy, which scenario files and the schema know from now on. Must be called before anything is read or run.
///
/// # Panics
/// Another policy has this name, or the example does not describe the policy.
pub fn register<P: Policy>() {
    assert!(policies().iter().all(|known| known.name != P::NAME), "the policy '{}' is registered already", P::NAME);
    POLICIES.write().expect("no thread panics while holding it").push(PolicyKind::of::<P>());
}

/// A policy of any kind.
#[derive(Clone)]
pub struct PlannedPolicy(Arc<dyn AnyPolicy>);

/// The operations of every [`Policy`], for use as a trait object.
trait AnyPolicy: fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)>;
    fn votes_within(&self) -> bool;
    fn offer(&self, sight: &Sight<'_>) -> Offer;
    fn votes(&self, sight: &Sight<'_>) -> Vec<Choice>;
    fn table(&self) -> Map<String, Value>;
    fn any(&self) -> &dyn Any;
}

impl<P: Policy> AnyPolicy for P {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        self.bounded_values()
    }

    fn votes_within(&self) -> bool {
        self.votes_within()
    }

    fn offer(&self, sight: &Sight<'_>) -> Offer {
        self.offer(sight)
    }

    fn votes(&self, sight: &Sight<'_>) -> Vec<Choice> {
        self.votes(sight)
    }

    fn table(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(table)) => table,
            other => panic!("the parameters of a policy are a table: {other:?}"),
        }
    }

    fn any(&self) -> &dyn Any {
        self
    }
}

impl PlannedPolicy {
    /// The name of its kind.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Its parameters with the values that are allowed.
    pub fn bounded_values(&self) -> Vec<(&'static str, BoundedValue<'_>)> {
        self.0.bounded_values()
    }

    /// Returns it, if it is of this kind.
    pub fn of<P: Policy>(&self) -> Option<&P> {
        self.0.any().downcast_ref()
    }

    /// Returns true if its voters vote for delegates of its groups alone.
    pub fn votes_within(&self) -> bool {
        self.0.votes_within()
    }

    fn offer(&self, sight: &Sight<'_>) -> Offer {
        self.0.offer(sight)
    }

    fn votes(&self, sight: &Sight<'_>) -> Vec<Choice> {
        self.0.votes(sight)
    }
}

impl<P: Policy> From<P> for PlannedPolicy {
    fn from(policy: P) -> Self {
        Self(Arc::new(policy))
    }
}

impl fmt::Debug for PlannedPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for PlannedPolicy {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.0.table() == other.0.table()
    }
}

impl Serialize for PlannedPolicy {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let kind = [("kind".to_owned(), Value::from(self.name()))];
        to.collect_map(kind.into_iter().chain(self.0.table()))
    }
}

/// Reads a table with a `kind`. The kinds are those that are registered at that time.
impl<'de> Deserialize<'de> for PlannedPolicy {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut table = Map::deserialize(from)?;
        let known = policies();
        let name = kind_of(&table)?;
        let Some(kind) = known.iter().find(|kind| kind.name == name) else {
            let names: Vec<&str> = known.iter().map(|kind| kind.name).collect();
            return Err(unknown_kind(name, &names));
        };
        table.shift_remove("kind");
        (kind.read)(Value::Object(table)).map_err(de::Error::custom)
    }
}

impl JsonSchema for PlannedPolicy {
    fn schema_name() -> Cow<'static, str> {
        "Policy".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let all: Vec<Schema> =
            policies().iter().map(|kind| schema_of(kind.name, (kind.schema)(generator), "")).collect();
        json_schema!({ "description": "A policy. Each has a name, its `kind` in a file.", "oneOf": all })
    }
}
