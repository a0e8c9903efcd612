//! A chain in a file, of any length: it streams, its errors are named, and whatever ends a testnet ends it meanwhile.

use crate::support::{dposlab, interrupt};
use dposlab::{
    actors::{NodeId, SimTime},
    ledger::{
        BlockTree, Link,
        import::{ImportProgress, import, import_and_tell},
    },
    protocol::{Height, Slot},
    scenario::{Scenario, testnet::rules_for},
    sim::{SeedTree, stage::inline::InlineStage},
};
use std::{
    fs::{self, File},
    io::{BufRead, BufReader, BufWriter, Read, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, LazyLock},
};

/// Blocks of the chain, without the genesis block: some batches, and the last is no whole one.
const BLOCKS: u32 = 1_300;

/// The chain of `up --delegates 3 --seed 1`, and its blocks as lines.
struct Chain {
    tree: Arc<BlockTree>,
    lines: Vec<String>,
}

static CHAIN: LazyLock<Chain> = LazyLock::new(|| {
    let text = "version = 1\nrounds = 1\n[network]\ndelegates = 3\ngossip = \"once\"\n";
    let scenario = Scenario::parse(text, Path::new("chain")).expect("it is one");
    let seeds = SeedTree::new(1);
    let plan = scenario.plan(&scenario.testnet(seeds), seeds);
    let mut stage = InlineStage::new(&plan, Vec::new());
    stage.run_until(SimTime::from_seconds(plan.tree.slots().start(Slot(BLOCKS + 1))));
    let tip = stage.world().tips().of(NodeId(0)).clone();
    assert_eq!(tip.height(), Height(BLOCKS + 1));
    let line = |height| {
        let link = tip.ancestor(Height(height)).expect("it is on the chain");
        link.block().to_json(&plan.tree.config().milestones).to_string()
    };
    Chain { tree: plan.tree.clone(), lines: (2..=BLOCKS + 1).map(line).collect() }
});

/// A tree with nothing but the genesis block.
fn fresh() -> BlockTree {
    BlockTree::new(CHAIN.tree.config().clone(), Arc::new(rules_for(3))).expect("it is generated")
}

fn imported(lines: &[String]) -> Result<Arc<Link>, String> {
    import(&fresh(), lines.iter()).map_err(|why| why.to_string())
}

#[test]
fn blocks_that_are_read_ahead_are_put_on_top_in_order_and_told_of() {
    let mut told = Vec::new();
    let tip = import_and_tell(&fresh(), CHAIN.lines.iter(), |imported| told.push(imported)).expect("they follow");
    assert_eq!(tip.height(), Height(BLOCKS + 1));
    let known = CHAIN.tree.link(&tip.id()).expect("it is the same chain");
    assert_eq!(known.height(), tip.height());
    let bytes = CHAIN.lines.iter().map(|line| line.len() as u64 + 1).sum();
    assert_eq!(told.last(), Some(&ImportProgress { bytes, height: tip.height() }));
    assert!(told.iter().filter(|told| told.bytes < bytes).count() >= 2, "{told:?}");
    assert!(told.is_sorted_by_key(|told| (told.bytes, told.height)), "{told:?}");
}

/// In every batch, and first in its batch or last: the line that is wrong is named, and what is behind it is not looked at.
#[test]
fn the_first_wrong_line_is_named_wherever_it_is() {
    for line in [0, 1, 510, 511, 512, 513, 1_023, 1_024, BLOCKS as usize - 1] {
        let wrong = |change: &dyn Fn(&str) -> String| {
            let mut lines = CHAIN.lines.clone();
            lines[line] = change(&lines[line]);
            if let Some(later) = lines.get_mut(line + 1) {
                *later = "neither is this".to_owned();
            }
            imported(&lines).expect_err("it must be refused")
        };
        let (number, height) = (line + 1, line + 2);
        let at = |text: &str| format!("line {number}: {text}");
        let torn = wrong(&|text| text[..80].to_owned());
        assert!(torn.starts_with(&at("not JSON: EOF")), "{torn}");
        let forged = wrong(&|text| {
            let (before, after) = text.split_once("\"reward\":\"").expect("it has one");
            format!("{before}\"reward\":\"1{after}")
        });
        assert!(forged.starts_with(&at("block ")) && forged.contains(&format!("at height {height}")), "{forged}");
        let signed = wrong(&|text| {
            // Another number in the signature, of the same length.
            let at = text.find("\"blockSignature\":\"").expect("it has one") + 60;
            let digit = if &text[at..=at] == "1" { "2" } else { "1" };
            format!("{}{digit}{}", &text[..at], &text[at + 1..])
        });
        assert!(signed.starts_with(&at("block ")) && signed.contains(&format!("at height {height}")), "{signed}");
        let skipped = wrong(&|_| CHAIN.lines[(line + 7) % CHAIN.lines.len()].clone());
        let found = (line + 7) % CHAIN.lines.len() + 2;
        assert_eq!(skipped, at(&format!("key 'height': found {found}, allowed is {height}")));
    }
}

/// A file of the chain with so many bytes of blanks between its halves, which are read like everything else.
fn padded(folder: &Path, blanks: usize) -> std::path::PathBuf {
    let path = folder.join("chain.jsonl");
    let mut file = BufWriter::new(File::create(&path).expect("a folder of our own"));
    let (first, second) = CHAIN.lines.split_at(CHAIN.lines.len() / 2);
    first.iter().for_each(|line| writeln!(file, "{line}").expect("there is room"));
    let blank = [&[b' '; 1023][..], b"\n"].concat();
    (0..blanks / blank.len()).for_each(|_| file.write_all(&blank).expect("there is room"));
    second.iter().for_each(|line| writeln!(file, "{line}").expect("there is room"));
    file.into_inner().expect("there is room");
    path
}

fn begun(chain: &Path, more: &[&str]) -> Command {
    let mut command = dposlab();
    let up = ["up", "--json", "--port", "0", "--delegates", "3", "--pace", "manual", "--chain"];
    command.args(up).arg(chain).args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The most memory that a process has had at a time, in KiB.
fn most_memory(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it is told");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Two files of the same chain, one of them 200 MiB longer.
#[test]
fn a_chain_takes_memory_for_its_blocks_and_none_for_its_file() {
    let most = [1 << 20, 200 << 20].map(|blanks| {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let mut child = begun(&padded(folder.path(), blanks), &[]).spawn().expect("the binary was built");
        let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut line = String::new();
        output.read_line(&mut line).expect("text");
        assert!(line.contains("\"event\":\"ready\""), "{line}");
        let most = most_memory(&child);
        interrupt(&child);
        let ended = child.wait_with_output().expect("it ends");
        assert_eq!(ended.status.code(), Some(0));
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        let tenths: Vec<&str> = told.lines().collect();
        match blanks > 8 << 20 {
            true => {
                assert_eq!(tenths.len(), 10, "{told}");
                assert!(tenths[2].ends_with("chain.jsonl: 30 % is read, block 651"), "{told}");
                assert!(tenths[9].ends_with("chain.jsonl: 100 % is read, block 1301"), "{told}");
            }
            false => assert_eq!(told, "", "nobody waits for that"),
        }
        most
    });
    assert!(most[1] < most[0] + 32 * 1024, "{most:?} KiB");
}

/// Ctrl-C, and the end of the parent, while a chain is imported: the process ends, and leaves nothing that stands in the way of
/// the next start.
#[test]
fn whatever_ends_a_testnet_ends_an_import() {
    let place = tempfile::tempdir().expect("a folder for temporary files");
    let chain = padded(place.path(), 1 << 30);
    let (ready, data) = (place.path().join("ready.json"), place.path().join("data"));
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let more = ["--ready-file", &text(&ready), "--data-dir", &text(&data)];
    let mut child = begun(&chain, &more).spawn().expect("the binary was built");
    let mut told = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut line = String::new();
    told.read_line(&mut line).expect("text");
    assert!(line.contains(": 10 % is read, block 651"), "{line}");
    interrupt(&child);
    let mut rest = String::new();
    told.read_to_string(&mut rest).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{rest}");
    assert!(rest.ends_with("dposlab: stopped before the testnet began\n"), "{rest}");
    assert!(!rest.contains("100 %"), "it did not wait for the end of the file: {rest}");
    assert!(!ready.exists());

    // A shell that starts it, and is killed when it has begun. Standard error ends when the last process that has it has ended.
    let mut shell = Command::new("sh");
    let script = "\"$0\" \"$@\" --exit-with-parent=$$ & wait";
    shell.args(["-c", script]).arg(env!("CARGO_BIN_EXE_dposlab")).args(begun(&chain, &more).get_args());
    let mut shell = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a shell");
    let mut told = BufReader::new(shell.stderr.take().expect("it is piped"));
    line.clear();
    told.read_line(&mut line).expect("text");
    assert!(line.contains(": 10 % is read"), "{line}");
    shell.kill().expect("it waits");
    shell.wait().expect("it was killed");
    let mut rest = String::new();
    told.read_to_string(&mut rest).expect("text");
    assert!(!rest.contains("100 %"), "it has outlived its parent: {rest}");

    let short = padded(place.path(), 0);
    let mut child = begun(&short, &more).spawn().expect("the binary was built");
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    line.clear();
    output.read_line(&mut line).expect("text");
    assert!(line.contains("\"event\":\"ready\""), "nothing stands in the way: {line}");
    interrupt(&child);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}
