//! A scenario's assertions, judged with the invariants of this room.

use super::{
    Behaviour, CONDUCT, INVARIANTS, STEP_INVARIANTS, Watch, check_all,
    conduct::{self, is_modelled},
    liveness::{is_liveness, liveness, untimely},
};
use crate::{
    actors::{ActorId, Event, NodeId, SimTime},
    ledger::{BlockTree, Link},
    protocol::BlockId,
    scenario::{Judge, Scenario, assertion::Condition, judge::Expert},
    sim::{Act, NetworkEvent, Observer, Outlook, Plan},
};
use std::{collections::BTreeMap, sync::Arc};

/// The judge of a scenario's run under a plan. The assertion `invariants` covers all invariants of chains and steps.
/// An invariant of a node's conduct must be asserted by its name.
///
/// # Errors
/// An assertion names an unknown invariant; the error lists the known ones. Or it asserts liveness, and a fault of the scenario has no
/// known end, or the network is never whole.
pub fn judge(scenario: &Scenario, plan: &Plan) -> Result<Judge, String> {
    let (mut asked, mut asked_conduct, mut looks) = (false, false, false);
    for (index, assertion) in scenario.assertions.iter().enumerate() {
        let Ok(claim) = assertion.claim() else { continue };
        for part in claim.condition().parts() {
            let Condition::Invariants(name) = part else { continue };
            asked = true;
            asked_conduct |= name.as_ref().is_some_and(|name| is_modelled(name));
            looks |= name.as_ref().is_some_and(|name| name == conduct::WAKER.name);
            if let Some(name) = name.as_ref().filter(|name| names().all(|known| known != name.as_str())) {
                let known: Vec<&str> = names().collect();
                return Err(format!(
                    "key 'assert[{index}]': found invariant '{name}', allowed is, in double quotes beside another condition, {}",
                    known.join("; ")
                ));
            }
            if let Some(name) = name.as_ref().filter(|name| is_liveness(name) && liveness(scenario).is_none()) {
                return Err(format!(
                    "key 'assert[{index}]': found invariant '{name}' beside a fault without an end at a time, allowed is \
                     until = {{ seconds = … }} in every fault"
                ));
            }
        }
    }
    let expert = asked.then(|| {
        let watch = Watch::of(scenario, plan, liveness(scenario));
        let behaviour = asked_conduct.then(|| Behaviour::new(plan, &untimely(scenario)));
        Box::new(Witness { watch, behaviour, looks, checked: BTreeMap::new() }) as Box<dyn Expert>
    });
    Ok(Judge::new(scenario, plan, expert))
}

/// The names of all invariants that can be asserted.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let chain = INVARIANTS.iter().map(|invariant| invariant.name);
    let step = STEP_INVARIANTS.iter().map(|invariant| invariant.name);
    chain.chain(step).chain(CONDUCT.iter().map(|conduct| conduct.name))
}

/// The watchers of a run, and the last result of each asserted invariant of whole chains.
struct Witness {
    watch: Watch,
    /// The model of nodes, if an assertion is about conduct.
    behaviour: Option<Behaviour>,
    /// True if an assertion names the invariant of missing wake-ups, which needs the outlook of the world.
    looks: bool,
    checked: BTreeMap<Option<String>, (BlockId, Result<(), String>)>,
}

impl Expert for Witness {
    fn check(&mut self, now: SimTime, tree: &BlockTree, tip: &Arc<Link>, name: Option<&str>) -> Result<(), String> {
        self.watch.seen().look_until(now);
        let is_meant = |found: &str| match name {
            Some(name) => found == name,
            None => STEP_INVARIANTS.iter().any(|invariant| invariant.name == found),
        };
        if let Some(behaviour) = &self.behaviour {
            behaviour.tell(&mut self.watch.seen());
        }
        if let Some(finding) = self.watch.seen().findings().iter().find(|finding| is_meant(finding.invariant)) {
            return Err(finding.to_string());
        }
        let key = name.map(str::to_owned);
        if let Some((_, result)) = self.checked.get(&key).filter(|(id, _)| *id == tip.id()) {
            return result.clone();
        }
        let result = match (name, INVARIANTS.iter().find(|invariant| Some(invariant.name) == name)) {
            (None, _) => check_all(tree, tip),
            (_, Some(invariant)) => invariant.check(tree, tip),
            (Some(_), None) => Ok(()),
        };
        let result = result.map_err(|violation| violation.to_string());
        self.checked.insert(key, (tip.id(), result.clone()));
        result
    }

    fn apart(&self) -> Box<dyn Expert> {
        let behaviour = self.behaviour.as_ref().map(Behaviour::apart);
        Box::new(Self { watch: self.watch.apart(), behaviour, looks: self.looks, checked: self.checked.clone() })
    }
}

impl Observer for Witness {
    fn observe(&mut self, now: SimTime, node: NodeId, event: &Event) {
        self.watch.observe(now, node, event);
        if let Some(behaviour) = &mut self.behaviour {
            behaviour.observe(now, node, event);
        }
    }

    fn observe_network(&mut self, now: SimTime, event: &NetworkEvent<'_>) {
        self.watch.observe_network(now, event);
    }

    fn restless(&mut self, now: SimTime) {
        self.watch.restless(now);
    }

    fn observe_act(&mut self, now: SimTime, actor: ActorId, act: &Act<'_>) {
        if let Some(behaviour) = &mut self.behaviour {
            behaviour.observe_act(now, actor, act);
        }
    }

    fn rest(&mut self) {
        if let Some(behaviour) = &mut self.behaviour {
            behaviour.rest();
        }
    }

    fn wants_acts(&self) -> bool {
        self.behaviour.is_some()
    }

    fn look(&mut self, outlook: &Outlook<'_>) {
        self.watch.look(outlook);
    }

    fn looks(&self) -> bool {
        self.looks
    }
}
