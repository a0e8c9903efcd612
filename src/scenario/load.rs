//! Reading a scenario: its file, the files it includes, the values replaced from outside.
//!
//! All of it becomes one table ([`Sources::read`]), which is read as a whole. If that fails, [`culprit`] finds the key, and
//! [`Sources::place`] finds the file and line that it came from, or the value that replaced it.

mod culprit;
pub(crate) mod files;
mod lists;
mod sources;

use super::{
    Override, Scenario, ScenarioError,
    mistake::Mistake,
    path::{join, split},
};
use crate::sim::Fault;
use culprit::deserialize;
use files::ScenarioFiles;
pub(super) use lists::cells;
use sources::{NO_FILES, Sources};
use std::path::Path;
use toml::{Table, Value};

impl Scenario {
    /// Reads and checks a file and what it includes.
    ///
    /// # Errors
    /// A file cannot be read, is not TOML of this format, or names what does not exist.
    pub fn load(file: &Path) -> Result<Self, ScenarioError> {
        load(file, None, &[], None)
    }

    /// Reads a file, replaces values in it, and checks the result.
    ///
    /// # Errors
    /// As [`Scenario::load`]. If a replaced value is at fault, the error names it instead of a line.
    pub fn load_with(file: &Path, overrides: &[Override]) -> Result<Self, ScenarioError> {
        load(file, None, overrides, None)
    }

    /// As [`Scenario::load_with`], with files that are already read. Only the files that the scenario names are still read.
    ///
    /// # Errors
    /// As [`Scenario::load_with`].
    pub fn load_from(files: &ScenarioFiles, overrides: &[Override]) -> Result<Self, ScenarioError> {
        finish(Sources::given(&files.texts), &files.file, None, overrides, |scenario| files.redirect(scenario))
    }

    /// As [`Scenario::load_with`], with the text of a file. Errors name `file`.
    ///
    /// # Errors
    /// As [`Scenario::load_with`].
    pub fn parse_with(text: &str, file: &Path, overrides: &[Override]) -> Result<Self, ScenarioError> {
        load(file, Some(text), overrides, None)
    }

    /// As [`Scenario::parse_with`], with a text that came from elsewhere. It may name no other files of this machine than `files`,
    /// which are not read for it.
    ///
    /// # Errors
    /// As [`Scenario::load_with`], or the text names another file.
    pub fn parse_foreign(
        text: &str,
        file: &Path,
        overrides: &[Override],
        files: &[&str],
    ) -> Result<Self, ScenarioError> {
        load(file, Some(text), overrides, Some(files))
    }

    /// Parses and checks the text of a file. Errors name `file`.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn parse(text: &str, file: &Path) -> Result<Self, ScenarioError> {
        load(file, Some(text), &[], None)
    }
}

/// Reads the scenario of a file, whose text may be given. It may name any file, or only those of `files`.
fn load(
    file: &Path,
    text: Option<&str>,
    overrides: &[Override],
    files: Option<&[&str]>,
) -> Result<Scenario, ScenarioError> {
    let sources = if files.is_some() { Sources::alone() } else { Sources::default() };
    finish(sources, file, text, overrides, |scenario| files.map_or(Ok(()), |files| check_named(scenario, files)))
}

/// Reads the table of these sources as a scenario and checks it. Before the check, `named` handles the files that it names.
fn finish(
    mut sources: Sources<'_>,
    file: &Path,
    text: Option<&str>,
    overrides: &[Override],
    named: impl FnOnce(&mut Scenario) -> Result<(), Mistake>,
) -> Result<Scenario, ScenarioError> {
    let mut table = sources.read(file, text)?;
    for set in overrides {
        set.apply(&mut table).map_err(|source| ScenarioError::Unfitting { file: file.to_path_buf(), source })?;
    }
    let refused = |sources: &Sources<'_>, Mistake { key, found, allowed }: Mistake| {
        let place = sources.place(&split(&key), file, overrides);
        ScenarioError::NotAllowed { place, key, found, allowed }
    };
    lists::check_read(&mut table).map_err(|mistake| refused(&sources, mistake))?;
    let mut scenario: Scenario = match deserialize(&table) {
        Ok(scenario) => scenario,
        Err((path, message)) => {
            let key = Some(join(&path)).filter(|key| !key.is_empty());
            return Err(ScenarioError::Malformed { place: sources.place(&path, file, overrides), key, message });
        }
    };
    named(&mut scenario).and_then(|()| scenario.check()).map_err(|mistake| refused(&sources, mistake))?;
    Ok(scenario)
}

/// Checks that a scenario names no other files than these. Opening another file would reveal whether it exists.
fn check_named(scenario: &Scenario, files: &[&str]) -> Result<(), Mistake> {
    // Only a replaced value leads here: a text that includes files is refused earlier.
    if let [first, ..] = &*scenario.include {
        let (key, found) = ("include".to_owned(), format!("'{first}'"));
        return Err(Mistake { key, found, allowed: NO_FILES.to_owned() });
    }
    for (index, workload) in scenario.workloads.iter().enumerate() {
        if let Some(file) = workload.kind.file().filter(|file| !files.contains(file)) {
            let (key, found) = (format!("workload[{index}].file"), format!("'{file}'"));
            return Err(Mistake { key, found, allowed: NO_FILES.to_owned() });
        }
    }
    Ok(())
}

/// Reads a fault from JSON, by the rules of a scenario file. Does not check the names in it.
///
/// # Errors
/// The value is no fault. The message names the key.
pub(crate) fn fault(json: &serde_json::Value) -> Result<Fault, String> {
    let fault = match Value::try_from(json) {
        Ok(Value::Table(fault)) => fault,
        Ok(_) => return Err("found no object, allowed is a fault: an object with a 'kind'".to_owned()),
        Err(why) => return Err(format!("found a value that no fault has: {why}")),
    };
    let mut table = Table::new();
    table.insert("version".to_owned(), 1.into());
    table.insert("rounds".to_owned(), 1.into());
    table.insert("fault".to_owned(), vec![Value::Table(fault)].into());
    match deserialize(&table) {
        Ok(mut scenario) => scenario.faults.pop().ok_or_else(|| "found no fault".to_owned()),
        Err((path, message)) => Err(match path.get(2..).map(join).filter(|key| !key.is_empty()) {
            Some(key) => format!("key '{key}': {message}"),
            None => message,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::Latency;

    fn set(text: &str, sets: &[&str]) -> Result<Scenario, String> {
        let sets: Vec<Override> = sets.iter().map(|set| set.parse().expect("well formed")).collect();
        Scenario::parse_with(text, Path::new("s.toml"), &sets).map_err(|error| error.to_string())
    }

    fn error(text: &str) -> String {
        set(text, &[]).expect_err("it is no scenario")
    }

    fn fault(lines: &str) -> String {
        error(&format!("version = 1\nrounds = 3\n[[fault]]\nkind = \"heal\"\n\n[[fault]]\n{lines}"))
    }

    #[test]
    fn an_error_names_the_line_the_key_and_what_is_allowed() {
        assert_eq!(error("version = 2\nrounds = 3"), "s.toml:1: key 'version': found 2, allowed is 1");
        assert_eq!(error("version = 1\nrounds = 0"), "s.toml:2: key 'rounds': found 0, allowed is 1 to 100000");
        let unknown = error("version = 1\nrounds = 3\nround = 4");
        assert!(unknown.starts_with("s.toml:3: key 'round': unknown field `round`, expected one of"), "{unknown}");
        let wrong = error("version = 1\nrounds = \"three\"");
        assert!(wrong.starts_with("s.toml:2: key 'rounds': invalid type: string \"three\""), "{wrong}");
        assert_eq!(error("version = 1\n"), "s.toml: missing field `rounds`");
        assert!(!error("version = 1\nrounds = [").contains('\n'));
    }

    #[test]
    fn an_error_in_a_fault_names_its_line_too() {
        let kind = fault("kind = \"offlin\"\n");
        assert!(kind.starts_with("s.toml:7: key 'fault[1].kind': unknown variant `offlin`"), "{kind}");
        assert!(kind.contains("`offline`") && kind.contains("`mass-resignation`"), "{kind}");
        let name = fault("kind = \"offline\"\nrounds = 2\ndelegates = [\"genesis_3\", \"bob\"]\n");
        let expected = "s.toml:9: key 'fault[1].delegates': found 'bob', allowed is 'genesis_1' to 'genesis_51'";
        assert_eq!(name, expected);
        let missing = fault("kind = \"delay\"\nmessages = [\"block\"]\n");
        assert_eq!(missing, "s.toml:6: key 'fault[1]': missing field `by_ms`");
        let wrong = fault("kind = \"slow\"\nstep_ms = 5\nnodes = 7\n");
        assert!(wrong.starts_with("s.toml:9: key 'fault[1].nodes': expected a list of nodes"), "{wrong}");
        let extra = fault("kind = \"isolate\"\nnodes = [1]\nuntill = { round = 2 }\n");
        let allowed = "expected one of `from`, `kind`, `nodes`, `until`";
        assert_eq!(extra, format!("s.toml:9: key 'fault[1].untill': unknown field `untill`, {allowed}"));
        let message = fault("kind = \"drop\"\nmessages = [\"block\", \"blok\"]\n");
        assert!(message.starts_with("s.toml:8: key 'fault[1].messages[1]': unknown variant `blok`"), "{message}");
        let moment = fault("kind = \"heal\"\nfrom = { after = 3 }\n");
        assert!(
            moment.starts_with("s.toml:8: key 'fault[1].from': found after, allowed is start, seconds"),
            "{moment}"
        );
        let chance = fault("kind = \"drop\"\nchance = 1.5\n");
        assert_eq!(chance, "s.toml:8: key 'fault[1].chance': found 1.5, allowed is 0 to 1");
    }

    #[test]
    fn an_error_in_network_rules_or_an_assertion_names_what_there_is() {
        let network = |lines: &str| error(&format!("version = 1\nrounds = 3\n[network]\n{lines}"));
        let latency = network("latency = { min_ms = 5 }\n");
        assert_eq!(latency, "s.toml:4: key 'network.latency': missing field `max_ms` of a `uniform` latency");
        let normal = network("latency = { distribution = \"normal\", mean_ms = 5, sigma = 1 }\n");
        assert!(normal.starts_with("s.toml:4: key 'network.latency"), "{normal}");
        let lost = network("loss = 2\n");
        assert_eq!(lost, "s.toml:4: key 'network.loss': found 2, allowed is 0 to 1");
        let inside = network("delegates = 4\nmilestones = [{ height = 7, delegates = 3 }]\n");
        let allowed = "found 7, allowed is a multiple of 4 after 1, where a round begins";
        assert!(inside.ends_with(&format!("key 'network.milestones[0].height': {allowed}")), "{inside}");
        let many = network("delegates = 4\nmilestones = [{ height = 9, delegates = 5 }]\n");
        assert!(many.ends_with("'network.milestones[0].delegates': found 5, allowed is 1 to 4"), "{many}");
        let unknown = network("losss = 0.1\n");
        assert!(
            unknown.starts_with("s.toml:4: key 'network.losss': unknown field `losss`, expected one of"),
            "{unknown}"
        );
        assert!(unknown.contains("`delegates`") && unknown.contains("`loss`"), "{unknown}");
        let clock = network("clocks = { offset = 1 }\n");
        assert!(clock.ends_with("unknown field `offset`, expected one of `drift_ppm`, `offset_ms`"), "{clock}");
        let mix = error("version = 1\nrounds = 3\n[[workload]]\nkind = \"chain\"\nfile = \"x\"\nper_second = 1\n");
        assert!(mix.ends_with("`per_second`, expected one of `file`, `from`, `kind`, `nodes`, `until`"), "{mix}");
        let list =
            error("version = 1\nrounds = 3\n[[workload]]\nkind = \"list\"\nper_second = 1\ntransactions = [\"00\"]\n");
        assert!(list.contains("key 'workload[0].transactions[0]': found '00': "), "{list}");
        assert!(list.ends_with("allowed is the bytes of a transaction in hex"), "{list}");
        let rule = error("version = 1\nrounds = 3\n[rules]\nnode.wakeup = 3\n");
        assert!(rule.starts_with("s.toml:4: key 'rules.node.wakeup': found no such rule, allowed is"), "{rule}");
        let assertion = |lines: &str| error(&format!("version = 1\nrounds = 3\n[[assert]]\n{lines}"));
        let metric = assertion("always = \"hight > 3\"\n");
        assert!(metric.starts_with("s.toml:4: key 'assert[0].always': found 'hight > 3', allowed is"), "{metric}");
        assert!(metric.contains("rollback-depth") && metric.contains("'converged'"), "{metric}");
        let two = assertion("always = \"converged\"\nfinally = \"converged\"\n");
        assert!(two.starts_with("s.toml:3: key 'assert[0]': found 2 claims, allowed is exactly one"), "{two}");
    }

    #[test]
    fn a_replaced_value_is_checked_like_one_in_the_file() {
        let file = "version = 1\nrounds = 3\n";
        let changed = set(file, &["network.latency={ min_ms = 1, max_ms = 300 }", "rounds=4"]).expect("allowed");
        assert_eq!((changed.network.model.latency, changed.rounds), (Latency::uniform(1, 300), 4));
        let wrong = set(file, &["rounds=0"]).expect_err("no rounds");
        assert_eq!(wrong, "s.toml with 'rounds=0': key 'rounds': found 0, allowed is 1 to 100000");
        let unknown = set(file, &["network.lots=0.1"]).expect_err("no such key");
        assert!(unknown.starts_with("s.toml with 'network.lots=0.1': key 'network.lots': unknown field"), "{unknown}");
        let own = set("version = 1\nrounds = 3\nx = 1\n", &["rounds=4"]).expect_err("the file's own mistake");
        assert!(own.starts_with("s.toml:3: key 'x'"), "{own}");
    }

    #[test]
    fn a_path_is_no_deeper_than_a_scenario() {
        let deep = format!("{}=1", vec!["a"; 50_000].join("."));
        let why = deep.parse::<Override>().expect_err("it is too deep").to_string();
        assert_eq!(why, format!("'{}...' is no path: allowed are 32 keys and indexes", "a.".repeat(20)));
        assert!(format!("a{}=1", "[0]".repeat(50_000)).parse::<Override>().is_err());
    }

    #[test]
    fn a_scenario_s_own_text_is_the_same_scenario() {
        let text = "version = 1\nrounds = 3\n[network]\nregions = { shares = [1], latency_ms = [[4]] }\n[rules]\nquorum_percent = 50\n\
                    [[fault]]\nkind = \"partition\"\nshare = { share = 0.5, of = \"vote-weight\" }\nfrom = { height = 60 }\n\
                    until = { after = 12.5 }\n[[assert]]\nalways = \"height >= 1\"\n";
        let scenario = set(text, &[]).expect("it is a scenario");
        assert_eq!(set(&scenario.to_toml(), &[]).expect("its own text"), scenario);
    }
}
