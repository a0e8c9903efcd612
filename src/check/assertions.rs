//! A scenario's assertions, judged with the invariants of this room.

use super::{INVARIANTS, check_all};
use crate::{
    ledger::{BlockTree, Link},
    scenario::{
        Judge, Scenario,
        assertion::{Claim, Condition},
    },
    sim::Plan,
};
use std::sync::Arc;

/// The judge of a scenario's run under a plan.
///
/// # Errors
/// An assertion names an invariant that there is not: which one, and which there are.
pub fn judge(scenario: &Scenario, plan: &Plan) -> Result<Judge, String> {
    for (index, assertion) in scenario.assertions.iter().enumerate() {
        let Ok(claim) = assertion.claim() else { continue };
        let (Claim::Always(condition)
        | Claim::Sometimes(condition)
        | Claim::Eventually(condition)
        | Claim::Finally(condition)) = claim;
        if let Condition::Invariants(Some(name)) = condition
            && !INVARIANTS.iter().any(|invariant| invariant.name == name)
        {
            let known: Vec<&str> = INVARIANTS.iter().map(|invariant| invariant.name).collect();
            return Err(format!("key 'assert[{index}]': found invariant '{name}', allowed is {}", known.join("; ")));
        }
    }
    Ok(Judge::new(scenario, plan, check))
}

fn check(tree: &BlockTree, tip: &Arc<Link>, name: Option<&str>) -> Result<(), String> {
    let result = match INVARIANTS.iter().find(|invariant| Some(invariant.name) == name) {
        Some(invariant) => invariant.check(tree, tip),
        None => check_all(tree, tip),
    };
    result.map_err(|violation| violation.to_string())
}
