//! Shared by the modules: the built binary, the shipped scenarios, and a run of one.

use dposlab::{
    actors::{Event, NodeId, SimTime},
    check::{
        search::{Networks, Search, Summary},
        swarm::{Frame, ModelledRuns},
        wakers::{Stuck, stuck},
    },
    protocol::{Height, crypto::CryptoMode},
    report::Rounds,
    scenario::{Outcome, Scenario, StageKind},
    sim::{Observer, Outlook, SeedTree},
};
use flate2::read::GzDecoder;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    env, fs,
    io::{self, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Output},
    sync::{Arc, Mutex, atomic::AtomicBool},
};

/// The binary under test.
pub fn dposlab() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dposlab"));
    command.current_dir(root());
    command
}

/// Runs the binary with arguments and waits for its end.
pub fn run(arguments: &[&str]) -> Output {
    dposlab().args(arguments).output().expect("the binary was built for this test")
}

/// Ctrl-C.
pub fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).expect("it is still there");
}

/// The folder of the package.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of recordings: `tests/data/recordings`, or `recordings` in the folder that `DPOSLAB_TEST_DATA` names.
pub fn recordings() -> PathBuf {
    env::var_os("DPOSLAB_TEST_DATA").map_or_else(|| root().join("tests/data"), PathBuf::from).join("recordings")
}

/// Holds the table of a page of docs/ against what a command printed; `rewrite` is the variable with which it is written anew.
pub fn hold_table(page: &str, table: &str, rewrite: &str) {
    hold_part(page, "the table", table, rewrite);
}

/// The same for a part of a page that has a name of its own.
pub fn hold_part(page: &str, name: &str, table: &str, rewrite: &str) {
    let (file, begin, end) =
        (root().join(page), format!("<!-- {name} begins -->\n\n"), format!("\n<!-- {name} ends -->"));
    let text = fs::read_to_string(&file).expect("it is there");
    let (head, rest) = text.split_once(&begin).expect("it has the table's begin");
    let (old, tail) = rest.split_once(&end).expect("it has the table's end");
    match env::var_os(rewrite) {
        Some(_) => fs::write(&file, format!("{head}{begin}{table}{end}{tail}")).expect("it can be written"),
        None => assert_eq!(old, table, "{rewrite}=1 writes it anew"),
    }
}

/// Searches `runs` runs from a seed on, on networks with `delegates` delegates or a drawn number of them, under rules as a scenario file
/// has them.
pub fn search_rules(rules: &str, delegates: Option<u32>, seed: u64, runs: u64) -> Summary {
    search(Frame { delegates, ..Frame::default() }, rules, seed, runs)
}

/// Searches around a scenario, or draws networks.
pub fn search_around(base: Option<Scenario>, rules: &str, seed: u64, runs: u64) -> Summary {
    search(Frame { base, ..Frame::default() }, rules, seed, runs)
}

fn search(frame: Frame, rules: &str, seed: u64, runs: u64) -> Summary {
    let rules = rules.parse().expect("the test writes TOML");
    let (crypto, behaviour) = (Some(CryptoMode::Modelled), ModelledRuns::Never);
    let frame = Frame { rules, crypto, behaviour, ..frame };
    Search { frame, runs, seed, part: None, jobs: 2, guided: false }.run(
        &Networks::default(),
        &AtomicBool::new(false),
        |_| {},
    )
}

/// A recorded file's text. The file may be compressed, with `.gz` behind its name.
pub fn recording(name: &str) -> String {
    let file = recordings().join(name);
    let text =
        if file.exists() { fs::read_to_string(file) } else { inflated(&recordings().join(format!("{name}.gz"))) };
    text.unwrap_or_else(|why| panic!("{name}, with .gz or without, in {}: {why}", recordings().display()))
}

fn inflated(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    GzDecoder::new(fs::File::open(file)?).read_to_string(&mut text)?;
    Ok(text)
}

/// All shipped scenarios, by name.
pub fn scenarios() -> Vec<PathBuf> {
    let folder = fs::read_dir(root().join("scenarios")).expect("scenarios are shipped");
    let mut files: Vec<PathBuf> = folder
        .map(|entry| entry.expect("the folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
}

/// One of them.
pub fn scenario(name: &str) -> Scenario {
    Scenario::load(&root().join("scenarios").join(format!("{name}.toml"))).expect("it is shipped and valid")
}

/// Holds what the actors of a run wait for against what is to come.
#[derive(Clone, Default)]
pub struct Onlooker(Arc<Mutex<Looks>>);

#[derive(Default)]
struct Looks {
    count: usize,
    stuck: Vec<Stuck>,
}

impl Onlooker {
    /// The phases that nothing to come ended, at any look.
    pub fn stuck(&self) -> Vec<String> {
        let looks = self.0.lock().expect("nobody panics");
        assert!(looks.count > 0, "nobody looked");
        looks.stuck.iter().map(|stuck| format!("{}: {stuck}", stuck.node)).collect()
    }
}

impl Observer for Onlooker {
    fn observe(&mut self, _: SimTime, _: NodeId, _: &Event) {}

    fn look(&mut self, outlook: &Outlook<'_>) {
        let mut looks = self.0.lock().expect("nobody panics");
        looks.count += 1;
        // A phase that does not end is seen at every look.
        let new: Vec<Stuck> =
            stuck(outlook).into_iter().filter(|one| looks.stuck.iter().all(|known| !known.is_same(one))).collect();
        looks.stuck.extend(new);
    }

    fn looks(&self) -> bool {
        true
    }
}

/// Plays a scenario to its end.
pub fn play(scenario: &Scenario, seed: u64, stage: StageKind) -> (Rounds, Outcome) {
    let seeds = SeedTree::new(seed);
    let testnet = scenario.testnet(seeds);
    let plan = scenario.plan(&testnet, seeds);
    let rounds = Rounds::new(&plan);
    let observers: Vec<Box<dyn Observer>> = vec![Box::new(rounds.clone())];
    let outcome = scenario.play(&plan, stage, observers, |_: Height| {}).expect("no actor dies");
    (rounds, outcome)
}
