//! Faults for a live run: they are read, checked against the run, and given the clients that carry them out.

use super::{
    ground::{Ground, Usernames},
    load,
    mistake::Mistake,
    run::with_addresses,
    testnet::Testnet,
    workload::Stand,
};
use crate::{
    ledger::Link,
    sim::{
        Fault, Names, Plan,
        fault::{AddedFault, ByClients, MakeClients},
    },
};
use serde_json::Value;
use std::sync::Arc;

/// The last round that a fault of a live run can name: no chain gets there.
const ROUNDS_LIMIT: u32 = 1_000_000_000;

/// Accepts faults for one run.
#[derive(Clone)]
pub struct FaultDesk(Arc<RunContext>);

/// The things that faults of the run can name, and those that their clients are made with.
struct RunContext {
    plan: Plan,
    names: Names,
    usernames: Vec<String>,
    testnet: Arc<Testnet>,
}

impl FaultDesk {
    /// The desk of a run of this plan, on a network with these accounts.
    pub fn new(plan: &Plan, testnet: Testnet) -> Self {
        let names = plan.names();
        let usernames = names.delegates().map(str::to_owned).collect();
        Self(Arc::new(RunContext { plan: plan.clone(), names, usernames, testnet: Arc::new(testnet) }))
    }

    /// Reads a fault.
    ///
    /// # Errors
    /// The JSON is no fault, or names something that does not exist. The message names the key, the value found and the allowed values.
    pub fn read(&self, json: &Value) -> Result<AddedFault, String> {
        self.admit(load::fault(json)?)
    }

    /// Checks a fault and adds the clients that carry it out.
    ///
    /// # Errors
    /// As [`FaultDesk::read`].
    pub fn admit(&self, fault: Fault) -> Result<AddedFault, String> {
        self.check(&fault).map_err(|Mistake { key, found, allowed }| {
            let key = key.trim_start_matches("fault").trim_start_matches('.');
            let place = if key.is_empty() { String::new() } else { format!("key '{key}': ") };
            format!("{place}found {found}, allowed is {allowed}")
        })?;
        let fault = with_addresses(&fault, &self.0.testnet);
        let clients = fault.kind.by_clients().map(|_| self.clients(fault.clone()));
        Ok(AddedFault { fault, clients })
    }

    fn check(&self, fault: &Fault) -> Result<(), Mistake> {
        let RunContext { plan, usernames, testnet, .. } = &*self.0;
        let accounts = testnet.accounts.len() as u32;
        if accounts == 0 && fault.kind.by_clients().is_some_and(ByClients::need_accounts) {
            let allowed = "a kind that needs no funded accounts: a loaded network has none";
            return Err(Mistake::new("fault.kind", format!("'{}'", fault.kind.name()), allowed));
        }
        let ground = Ground {
            nodes: plan.nodes.len() as u32,
            forgers: plan.nodes.iter().filter(|node| node.forger.is_some()).count() as u32,
            usernames: Usernames::Listed(usernames),
            accounts,
            faults: plan.faults.len() as u32,
            rounds: ROUNDS_LIMIT,
            last_height: u32::MAX,
        };
        ground.check_fault("fault", fault)
    }

    fn clients(&self, fault: Fault) -> MakeClients {
        let known = self.0.clone();
        Arc::new(move |before: &[Fault], tip: &Arc<Link>| {
            let RunContext { plan, names, testnet, .. } = &*known;
            let stand = Stand { plan, names, testnet, tip };
            stand.clients(before, &fault).expect("it was found to be clients' doing before")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        actors::SimTime,
        protocol::{Slot, crypto::CryptoMode},
        scenario::testnet::rules_for,
        sim::{NodePlan, SeedTree, strategy::Censor},
    };
    use serde_json::json;

    fn desk(accounts: bool) -> FaultDesk {
        let seeds = SeedTree::new(3);
        let mut testnet = Testnet::generate(seeds, 5, CryptoMode::Real);
        let tree = testnet.tree(rules_for(5)).expect("as many delegates as it wants");
        let forgers = testnet.delegates.iter().map(|delegate| Some(delegate.keys.clone()));
        let nodes = forgers.map(|forger| NodePlan { forger }).collect();
        let start = SimTime::from_seconds(tree.slots().start(Slot(1)));
        let plan = Plan::new(tree.clone(), tree.genesis().clone(), nodes, seeds, start);
        if !accounts {
            testnet.accounts.clear();
        }
        FaultDesk::new(&plan, testnet)
    }

    #[test]
    fn a_fault_is_refused_by_key_with_what_was_found_and_what_is_allowed() {
        let desk = desk(true);
        let wrong = |json: Value| desk.read(&json).map(drop).expect_err("it is no fault");
        let unknown = wrong(json!({"kind": "partitoin"}));
        assert!(
            unknown.starts_with("key 'kind': unknown variant `partitoin`, expected one of `partition`"),
            "{unknown}"
        );
        assert_eq!(wrong(json!({"kind": "crash", "nodes": [1, 9]})), "key 'nodes': found 9, allowed is 0 to 4");
        assert_eq!(
            wrong(json!({"kind": "offline", "delegates": ["genesis_6"]})),
            "key 'delegates': found 'genesis_6', allowed is 'genesis_1' to 'genesis_5'"
        );
        assert_eq!(
            wrong(json!({"kind": "partition", "share": {"share": 1.5}})),
            "key 'share.share': found 1.5, allowed is 0 to 1"
        );
        assert_eq!(wrong(json!({"kind": "partition"})), "found neither, allowed is groups or share");
        assert_eq!(wrong(json!({"kind": "delay"})), "missing field `by_ms`");
        let extra = wrong(json!({"kind": "heal", "untill": "start"}));
        assert!(extra.starts_with("key 'untill': unknown field `untill`, expected one of `from`"), "{extra}");
        let after = wrong(json!({"kind": "heal", "from": {"after": 3}}));
        assert!(after.starts_with("key 'from': found after, allowed is start, seconds"), "{after}");
        let party = wrong(json!({"kind": "censor", "delegates": [0], "sender": "account_11"}));
        assert!(
            party.starts_with("key 'sender': found 'account_11', allowed is an address, 'account_1' to"),
            "{party}"
        );
        for none in [json!(null), json!([]), json!("heal"), json!({"kind": null}), json!({})] {
            assert!(desk.read(&none).is_err(), "{none}");
        }
    }

    #[test]
    fn clients_need_funded_accounts() {
        let spam = json!({"kind": "spam-pool", "per_second": 1});
        assert!(desk(true).read(&spam).expect("it is a fault").clients.is_some());
        let refused = desk(false).read(&spam).map(drop).expect_err("no account can send");
        assert!(refused.starts_with("key 'kind': found 'spam-pool', allowed is a kind that needs no"), "{refused}");
        let resignation = json!({"kind": "mass-resignation", "delegates": [0]});
        assert!(desk(false).read(&resignation).expect("delegates have keys").clients.is_some());
        let censor = json!({"kind": "censor", "delegates": [0], "sender": "account_1"});
        let fault = desk(true).read(&censor).expect("it is a fault").fault;
        let censor = fault.kind.strategy::<Censor>().expect("it is one");
        assert!(censor.sender.len() == 34, "the account's address: {}", censor.sender);
    }

    #[test]
    fn client_faults_that_say_the_same_draw_apart() {
        let desk = desk(true);
        let tip = desk.0.plan.tip.clone();
        let added = |per_second: f64| {
            desk.read(&json!({ "kind": "spam-pool", "per_second": per_second })).expect("it is a fault")
        };
        let (one, other) = (added(1.0), added(2.0));
        let first = |before: &[Fault], added: &AddedFault| {
            let make = added.clients.as_ref().expect("clients do it");
            let mut source = (make(before, &tip).make)();
            source.poll(SimTime::from_micros(1), &tip).submissions[0].1[0].id()
        };
        assert_ne!(first(&[], &one), first(std::slice::from_ref(&one.fault), &other));
    }
}
