//! Every key of a scenario, each with values that are taken and values that are refused by name: at its bounds and one beyond. The
//! keys are those of the schema, so that a new key without a row here fails.

use crate::support::{root, run};
use dposlab::scenario::Scenario;
use serde_json::Value;
use std::{collections::BTreeSet, path::Path};

/// A key of the schema, a scenario with `@` in place of its value, values that are taken, and values that are refused.
type Row = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

/// Five delegates, three rounds: heights 1 to 15.
const HEAD: &str = "version = 1\nrounds = 3\n";
const FIVE: &str = "[network]\ndelegates = 5\n";

/// The number one above what 32 bits hold.
const BEYOND_U32: &str = "4294967296";

#[rustfmt::skip]
const SCENARIO: &[Row] = &[
    ("Scenario.version", "version = @\nrounds = 3", &["1"], &["0", "2", "-1", "'1'"]),
    ("Scenario.rounds", "version = 1\nrounds = @", &["1", "100000"], &["0", "100001", "1.5"]),
    ("Scenario.description", "H description = @", &["''", "'one line'"], &["1", "[]"]),
    ("Scenario.include", "H include = @", &["[]"], &["[1]", "1"]),
    ("Scenario.stall", "H stall = @", &["'off'", "{ rounds = 1 }"], &["'of'", "{ slots = 1 }", "4"]),
    ("StallRule.rounds", "H stall = { rounds = @ }", &["1", "100000"], &["0", "100001"]),
    ("StallRule.seconds", "H stall = { seconds = @ }", &["1", "3200000000"], &["0", "3200000001"]),
    ("Scenario.max_events", "H max_events = @", &["1", "9223372036854775807"], &["0", "-1"]),
    ("Scenario.time_limit_seconds", "H time_limit_seconds = @", &["1", "3200000000"], &["0", "3200000001"]),
    ("Scenario.crypto", "H crypto = @", &["'real'", "'every-node'", "'modelled'"], &["'none'", "true"]),
    ("Scenario.network", "H network = @", &["{}"], &["1", "{ node = 1 }"]),
    ("Scenario.rules", "H rules = @", &["{}", "{ base = 'corrected' }", "{ ledger.votes = { most = 1000, weight = 'unit' } }", "{ ledger.votes.most = 1 }"], &["{ base = 'other' }", "{ no_rule = 1 }", "1", "{ ledger.votes.most = 0 }", "{ ledger.votes.most = 1001 }", "{ ledger.votes.weight = 'half' }", "{ ledger.votes = 2 }", "{ ledger.slots_a_turn = 0 }"]),
    ("Scenario.fault", "H fault = @", &["[]", "[{ kind = 'heal' }]"], &["[1]", "[{}]", "[{ kind = 'none' }]"]),
    ("Scenario.action", "H action = @", &["[]"], &["[{}]", "1"]),
    ("Scenario.workload", "H workload = @", &["[]"], &["[{}]", "1"]),
    ("Scenario.agents", "H agents = @", &["[]", "[{ kind = 'cartel' }]"], &["[1]", "[{}]", "[{ kind = 'none' }]"]),
    ("Scenario.assert", "H assert = @", &["[]"], &["[{}]", "1"]),
];

#[rustfmt::skip]
const NETWORK: &[Row] = &[
    ("NetworkSection.delegates", "H network.delegates = @", &["1", "1000"], &["0", "1001", BEYOND_U32]),
    ("NetworkSection.standby", "5 standby = @", &["0", "1000"], &["1001", "-1"]),
    ("NetworkSection.vote_weights", "5 vote_weights = @", &["'equal'", "{ zipf = 1 }"], &["'zipf'", "1", "{}", "{ pareto = 1 }"]),
    ("VoteWeights.zipf", "5 vote_weights = { zipf = @ }", &["0", "0.0", "10.0"], &["-0.1", "10.1", "nan", "'1'"]),
    ("VoteWeights.list", "5 vote_weights = { list = @ }", &["[0, 0, 0, 0, 1]", "[11500000000000000, 0, 0, 0, 0]"], &["[]", "[1, 1, 1, 1]", "[1, 1, 1, 1, 1, 1]", "[0, 0, 0, 0, 0]", "[11500000000000000, 0, 0, 0, 1]", "[-1, 1, 1, 1, 1]", "[1.5, 1, 1, 1, 1]", "1"]),
    ("NetworkSection.block_time_s", "5 block_time_s = @", &["4", "3600"], &["0", "3", "3601"]),
    ("NetworkSection.relays", "5 relays = @", &["0", "1000000"], &["1000001"]),
    ("NetworkSection.reward", "5 reward = @", &["0", "100000000000000"], &["100000000000001"]),
    ("NetworkSection.vendor_field_bytes", "5 vendor_field_bytes = @", &["1", "255"], &["0", "256", "-1"]),
    ("NetworkSection.milestones", "5 milestones = @", &["[]", "[{ height = 2, reward = 0 }]"], &["[{ height = 2 }]", "[{ height = 3, reward = 1 }, { height = 3, reward = 2 }]"]),
    ("Change.height", "5 milestones = [{ height = @, delegates = 4 }]", &["6", "11"], &["1", "7", BEYOND_U32]),
    ("Change.reward", "5 milestones = [{ height = 2, reward = @ }]", &["0", "100000000000000"], &["100000000000001"]),
    ("Change.delegates", "5 milestones = [{ height = 6, delegates = @ }]", &["1", "5"], &["0", "6"]),
    ("NetworkSection.gossip", "5 gossip = @", &["'once'", "'reference'", "'announce'", "{ push = 1 }"], &["'twice'", "{ push = 0 }", "{ push = -1 }", "'once'\n[rules]\ngossip = 'reference'"]),
    ("Gossip.push", "5 gossip = { push = @ }", &["1", "4294967295"], &["0", "-1", "'16'"]),
    ("NetworkSection.topology", "5 topology = @", &["'mesh'", "'star'"], &["'bus'", "1"]),
    ("Topology.regular", "5 topology = { regular = @ }", &["2", "4"], &["0", "3", "5"]),
    ("Topology.ring", "5 topology = { ring = @ }", &["1", "2"], &["0", "3"]),
    ("Topology.small-world", "5 topology = { small-world = @ }", &["{ reach = 1, rewired = 0.5 }"], &["{ reach = 1 }", "{ rewired = 0.5 }", "1"]),
    ("SmallWorld.reach", "5 topology = { small-world = { reach = @, rewired = 0.5 } }", &["1", "2"], &["0", "3"]),
    ("SmallWorld.rewired", "5 topology = { small-world = { reach = 1, rewired = @ } }", &["0.0", "1.0"], &["-0.1", "1.1", "nan"]),
    ("Topology.scale-free", "5 topology = { scale-free = @ }", &["1", "4"], &["0", "5"]),
    ("Topology.geometric", "5 topology = { geometric = @ }", &["0.01", "1.5"], &["0.0", "-1.0", "1.6", "nan"]),
    ("Topology.outgoing", "5 topology = { outgoing = @ }", &["[1.0]", "[0.0, 0.5, 0.5, 1.0]"], &["[]", "[0.5]", "[0.5, 0.4, 1.0]", "[-0.1, 1.0]", "[nan, 1.0]", "[0.2, 0.4, 0.6, 0.8, 1.0]"]),
    ("Topology.edges", "5 topology = { edges = @ }", &["[[0, 4]]", "[[0, 1], [1, 2]]"], &["[[0, 5]]", "[[5, 0]]", "[[1, 1]]", "[[0, 1], [1, 0]]", "[[0, 1], [0, 1]]"]),
    ("ListFile.file", "5 topology = { edges = { file = @ } }", &["'Cargo.lock.edges'"], &["'no such file'", "1"]),
    ("NetworkSection.latency", "5 latency = @", &["{ min_ms = 0, max_ms = 0 }", "{ profile = 'tcp-loss-20' }"], &["{}", "{ distribution = 'normal' }", "20", "{ min_ms = 2, max_ms = 3 }\nregions = { shares = [1], latency_ms = [[1]] }"]),
    ("Latency.profile", "5 latency = { profile = @ }", &["'tcp-loss-20'"], &["'tcp-loss-21'", "'tcp-loss-20', ms = 1", "'tcp-loss-20', distribution = 'constant'", "'tcp-loss-20', per = 'link'"]),
    ("Latency.distribution", "5 latency = { distribution = @, ms = 1 }", &["'constant'"], &["'even'", "'uniform'", "'normal'", "'log-normal'", "'pareto'"]),
    ("Latency.ms", "5 latency = { distribution = 'constant', ms = @ }", &["0", "600000"], &["-0.1", "600000.1", "nan", "inf", "1, sigma = 1"]),
    ("Latency.min_ms", "5 latency = { min_ms = @, max_ms = 9 }", &["0", "9"], &["10", "-1"]),
    ("Latency.max_ms", "5 latency = { min_ms = 9, max_ms = @ }", &["9", "600000"], &["8", "600001"]),
    ("Latency.mean_ms", "5 latency = { distribution = 'normal', mean_ms = @, deviation_ms = 1 }", &["0", "600000"], &["-1", "600001"]),
    ("Latency.deviation_ms", "5 latency = { distribution = 'normal', mean_ms = 1, deviation_ms = @ }", &["0", "600000"], &["-1", "600001"]),
    ("Latency.median_ms", "5 latency = { distribution = 'log-normal', median_ms = @, sigma = 1 }", &["0.001", "600000"], &["0", "600001"]),
    ("Latency.sigma", "5 latency = { distribution = 'log-normal', median_ms = 1, sigma = @ }", &["0", "10"], &["-1", "10.1"]),
    ("Latency.per", "5 latency = { min_ms = 1, max_ms = 2, per = @ }", &["'link'", "'message'"], &["'node'"]),
    ("NetworkSection.regions", "5 regions = @", &["{ shares = [1], latency_ms = [[1]] }"], &["{}", "{ shares = [1, 1], latency_ms = [[1]] }"]),
    ("Regions.shares", "5 regions = { shares = @, latency_ms = [[1, 2], [3, 4]] }", &["[1, 2]"], &["[]", "[1]", "[1, 0]", "[1, -1]", "[1, inf]", "[1, 2, 3]", "[1e308, 1]"]),
    ("Regions.latency_ms", "5 regions = { shares = [1, 2], latency_ms = @ }", &["[[0, 600000], [1, 1]]"], &["[[1, 2]]", "[[1, 2], [3]]", "[[1, -1], [1, 1]]", "[[1, 600001], [1, 1]]"]),
    ("Regions.spread", "5 regions = { shares = [1], latency_ms = [[1]], spread = @ }", &["0", "1"], &["-0.1", "1.1"]),
    ("Regions.pareto", "5 regions = { shares = [1], latency_ms = [[5.1]], pareto = @ }", &["true", "false"], &["1", "true, spread = 0.1", "true }\nlatency = { distribution = 'pareto', mean_ms = 5 }\n#", "true }\nlatency = { distribution = 'pareto', mean_ms = 6, deviation_ms = 1 }\n#"]),
    ("Regions.drawn", "5 regions = { shares = [1], latency_ms = [[1]], drawn = @ }", &["true", "false"], &["1"]),
    ("Regions.nodes", "5 regions = { latency_ms = [[1, 2], [3, 4]], nodes = @ }", &["[0, 1, 0, 1, 0]", "{ file = 'Cargo.lock.regions' }"], &["[]", "[0]", "[0, 1, 2, 0, 0]", "[0, 1, 0, 1, -1]", "[0, 1, 0, 1, 0], shares = [1, 1]", "[0, 1, 0, 1, 0], drawn = true"]),
    ("Regions.bandwidth", "5 regions = { shares = [1, 1], latency_ms = { file = 'Cargo.lock.latencies' }, bandwidth = @ }", &["[]", "[[1, 2], [3, 9223372036854775807]]", "{ file = 'Cargo.lock.bandwidths' }"], &["[[1, 2]]", "[[0, 1], [1, 1]]", "[[1, 1], [1, -1]]", "[[1, 1], [1, 1]] }\nbandwidth = 9\n#", "[[1, 1], [1, 1]] }\nuplink = 9\nsharing = 'fair'\n#"]),
    ("NetworkSection.links", "5 links = @", &["[]", "[{ between = [0, 1], latency = L }, { between = [1, 2], latency = L }]", "[{ from = 0, to = 1, latency = L }, { from = 1, to = 0, latency = L }]", "{ file = 'Cargo.lock.links' }"],
        &["[{ between = [0, 1], latency = L }, { between = [1, 0], latency = L }]", "[{ between = [0, 1], latency = L }, { from = 1, to = 0, latency = L }]", "[{ latency = L }]"]),
    ("LinkLatency.between", "5 links = [{ between = @, latency = L }]", &["[0, 4]", "[4, 0]"], &["[0, 5]", "[5, 0]", "[1, 1]", "[1]", "[0, 1], from = 0, to = 1", "[0, 2], latency = L }]\ntopology = { ring = 1 }\n#"]),
    ("LinkLatency.from", "5 links = [{ from = @, to = 1, latency = L }]", &["0", "4"], &["5", "1", "-1"]),
    ("LinkLatency.to", "5 links = [{ from = 1, to = @, latency = L }]", &["0", "4"], &["5", "1", "-1"]),
    ("LinkLatency.latency", "5 links = [{ between = [0, 1], latency = @ }]", &["L", "{ profile = 'tcp-loss-20' }"], &["1", "{}"]),
    ("NetworkSection.loss", "5 loss = @", &["0", "1"], &["-0.01", "1.01", "nan"]),
    ("NetworkSection.duplication", "5 duplication = @", &["0", "1"], &["-0.01", "1.01"]),
    ("NetworkSection.reordering", "5 reordering = @", &["{ chance = 0.5, by_ms = 1 }"], &["{}", "{ chance = 0.5 }"]),
    ("Reordering.chance", "5 reordering = { chance = @, by_ms = 1 }", &["0", "1"], &["-0.1", "1.1"]),
    ("Reordering.by_ms", "5 reordering = { chance = 1, by_ms = @ }", &["0", "1000000000"], &["1000000001", "-1"]),
    ("NetworkSection.bandwidth", "5 bandwidth = @", &["1", "9223372036854775807"], &["0", "-1"]),
    ("NetworkSection.uplink", "5 uplink = @", &["1", "9223372036854775807", "[1, 2]\nregions = { shares = [1, 1], latency_ms = [[1, 2], [2, 1]] }"], &["0", "-1", "[1]", "[1, 2, 3]\nregions = { shares = [1, 1], latency_ms = [[1, 2], [2, 1]] }", "[1, 0]\nregions = { shares = [1, 1], latency_ms = [[1, 2], [2, 1]] }"]),
    ("NetworkSection.downlink", "5 downlink = @", &["1", "9223372036854775807", "[1]\nregions = { shares = [1], latency_ms = [[1]] }"], &["0", "-1", "[1]", "[]"]),
    ("NetworkSection.sharing", "5 uplink = 1\nsharing = @", &["'fifo'", "'fair'", "'one-at-a-time'"], &["'lifo'", "1"]),
    ("NetworkSection.overhead", "5 overhead = @", &["{}", "{ block_ms = 1 }"], &["1", "{ blocks_ms = 1 }"]),
    ("Overhead.block_ms", "5 overhead = { block_ms = @ }", &["0", "600000"], &["600001", "-1"]),
    ("Overhead.other_ms", "5 overhead = { other_ms = @ }", &["0", "600000"], &["600001", "-1"]),
    ("NetworkSection.compact", "5 gossip = 'announce'\ncompact = @", &["{ bytes = 1, share = 1, nodes = [{ share = 1, lacks = 0, missing = [[1, 1]] }] }"], &["{}", "1"]),
    ("Compact.bytes", "5 gossip = 'announce'\ncompact = { bytes = @, share = 1, nodes = [{ share = 1, lacks = 0, missing = [[1, 1]] }] }", &["1", "1000000000"], &["0", "1000000001"]),
    ("Compact.share", "5 gossip = 'announce'\ncompact = { bytes = 1, share = @, nodes = [{ share = 1, lacks = 0, missing = [[1, 1]] }] }", &["0", "1"], &["-0.1", "1.1"]),
    ("Compact.nodes", "5 gossip = 'announce'\ncompact = { bytes = 1, share = 1, nodes = @ }", &["[{ share = 1, lacks = 0, missing = [[1, 1]] }]"], &["[]", "{}"]),
    ("CompactNodes.share", "5 gossip = 'announce'\ncompact = { bytes = 1, share = 1, nodes = [{ share = 0.5, lacks = 0, missing = [[1, 1]] }, { share = @, lacks = 0, missing = [[1, 1]] }] }", &["0.5"], &["0.4", "0.6", "-0.1"]),
    ("CompactNodes.lacks", "5 gossip = 'announce'\ncompact = { bytes = 1, share = 1, nodes = [{ share = 1, lacks = @, missing = [[1, 1]] }] }", &["0", "1"], &["-0.1", "1.1"]),
    ("CompactNodes.missing", "5 gossip = 'announce'\ncompact = { bytes = 1, share = 1, nodes = [{ share = 1, lacks = 0, missing = @ }] }", &["[[0, 1]]", "[[1, 0], [0.5, 4294967295]]"], &["[]", "[[1, 0]]", "[[1.1, 1]]", "[[1, -1]]", "[1]"]),
    ("NetworkSection.block_bytes", "5 block_bytes = @", &["0", "1000000000"], &["1000000001", "-1"]),
    ("NetworkSection.processor", "5 processor = @", &["{}", "{ cores = 2 }", "[{}, { cores = 2 }]\nregions = { shares = [1, 1], latency_ms = [[1, 2], [2, 1]] }"], &["{ core = 1 }", "1", "[]", "[{}]", "[{ cores = 0 }]\nregions = { shares = [1], latency_ms = [[1]] }", "[{}]\nregions = { shares = [1, 1], latency_ms = [[1, 2], [2, 1]] }"]),
    ("Processor.cores", "5 processor = { cores = @ }", &["1", "1024"], &["0", "1025"]),
    ("Processor.validate", "5 processor = { validate = @ }", &["{}", "{ block_us = 1 }"], &["1", "{ block_ms = 1 }"]),
    ("Processor.forge", "5 processor = { forge = @ }", &["{}", "{ block_us = 1 }"], &["1", "{ block_ms = 1 }"]),
    ("Processor.serve", "5 processor = { serve = @ }", &["{}", "{ block_us = 1 }"], &["1", "{ block_ms = 1 }"]),
    ("WorkTime.block_us", "5 processor = { validate = { block_us = @ } }", &["0", "1000000000"], &["1000000001", "-1"]),
    ("WorkTime.transaction_us", "5 processor = { forge = { transaction_us = @ } }", &["0", "1000000000"], &["1000000001", "-1"]),
    ("WorkTime.signature_us", "5 processor = { forge = { signature_us = @ } }", &["0", "1000000000"], &["1000000001", "-1"]),
    (
        "WorkTime.round_end_us",
        "5 processor = { validate = { round_end_us = @ } }",
        &["0", "1000000000"],
        &["1000000001", "-1"],
    ),
    ("WorkTime.byte_ns", "5 processor = { serve = { byte_ns = @ } }", &["0", "1000000000"], &["1000000001", "-1"]),
    ("NetworkSection.classes", "5 clocks = [{}]\nclasses = @", &["{ shares = [1] }"], &["{}", "1", "{ share = [1] }"]),
    ("Classes.shares", "5 uplink = [1, 2]\nclasses = { shares = @ }", &["[1, 2]", "[0.5, 1]"], &["[]", "[1]", "[1, 0]", "[1, -1]", "[1, inf]", "[1e308, 1]"]),
    ("Classes.drawn", "5 processor = [{}]\nclasses = { shares = [1], drawn = @ }", &["true", "false"], &["1"]),
    ("Classes.nodes", "5 downlink = [1, 2]\nclasses = { nodes = @ }", &["[0, 1, 0, 1, 0]", "{ file = 'Cargo.lock.classes' }"], &["[]", "[0]", "[0, -1, 0, 0, 0]", "[0, 1, 0, 1, 0], shares = [1, 2]", "[0, 1, 0, 1, 0], drawn = true"]),
    ("NetworkSection.clocks", "5 clocks = @", &["{}", "[{}, { drift_ppm = 1 }]\nclasses = { shares = [1, 1] }"], &["{ offset = 1 }", "1", "[{}]", "[{}]\nclasses = { shares = [1, 1] }", "[{}, { drift_ppm = 100001 }]\nclasses = { shares = [1, 1] }"]),
    ("Clocks.offset_ms", "5 clocks = { offset_ms = @ }", &["0", "1000000000"], &["1000000001", "-1"]),
    ("Clocks.drift_ppm", "5 clocks = { drift_ppm = @ }", &["0", "100000"], &["100001", "-1"]),
];

/// Of a list of nodes, wherever there is one.
#[rustfmt::skip]
const WHO: &[Row] = &[
    ("NodeSpan.from", "5F kind = 'crash'\nnodes = { from = @, to = 3 }", &["0", "3", "'genesis_1'"], &["4", "5", "'genesis_5'", "'genesis_6'"]),
    ("NodeSpan.to", "5F kind = 'crash'\nnodes = { from = 3, to = @ }", &["3", "4", "'genesis_5'"], &["5", "2", "'genesis_1'", "'genesis_0'"]),
    ("Share.share", "5F kind = 'crash'\nnodes = { share = @ }", &["0", "1"], &["-0.1", "1.1", "nan"]),
    ("Share.of", "5F kind = 'crash'\nnodes = { share = 0.5, of = @ }", &["'nodes'", "'vote-weight'"], &["'delegates'"]),
    ("Trigger.seconds", "5F kind = 'heal'\nfrom = { seconds = @ }", &["0", "3200000000"], &["-1", "3200000001", "inf"]),
    ("Trigger.after", "5F kind = 'crash'\nnodes = [1]\nfrom = { seconds = 1 }\nuntil = { after = @ }", &["1", "3200000000"], &["-1", "3200000001"]),
    ("Trigger.slot", "5F kind = 'heal'\nfrom = { slot = @ }", &["0", "4294967295"], &["-1", BEYOND_U32]),
    ("Trigger.height", "5F kind = 'heal'\nfrom = { height = @ }", &["1", "15"], &["0", "16"]),
    ("Trigger.height-at-any", "5F kind = 'heal'\nfrom = { height-at-any = @ }", &["1", "15"], &["0", "16"]),
    ("Trigger.round", "5F kind = 'heal'\nfrom = { round = @ }", &["1", "4"], &["0", "5"]),
    ("Trigger.round-at-any", "5F kind = 'heal'\nfrom = { round-at-any = @ }", &["1", "4"], &["0", "5"]),
    ("Trigger.event", "5F kind = 'heal'\nfrom = { event = @ }", &["{ kind = 'block-forged' }"], &["{}", "'block-forged'"]),
    ("EventTrigger.kind", "5F kind = 'heal'\nfrom = { event = { kind = @ } }", &["'block-forged'"], &["'forged'"]),
    ("EventTrigger.node", "5F kind = 'heal'\nfrom = { event = { kind = 'block-forged', node = @ } }", &["0", "4", "'genesis_5'"], &["5", "'genesis_6'"]),
    ("EventTrigger.count", "5F kind = 'heal'\nfrom = { event = { kind = 'block-forged', count = @ } }", &["1", "4294967295"], &["0", BEYOND_U32]),
    ("Span.from", "5F kind = 'offline'\ndelegates = [1]\nrounds = { from = @, to = 2 }", &["1", "2"], &["0", "3"]),
    ("Span.to", "5F kind = 'offline'\ndelegates = [1]\nrounds = { from = 2, to = @ }", &["2", "3"], &["1", "4"]),
];

const NODES: &[&str] = &["[0, 4]", "['genesis_1', 'genesis_5']", "{ from = 0, to = 4 }", "{ share = 0.5 }"];
const NO_NODES: &[&str] = &[
    "[]",
    "[5]",
    "['genesis_6']",
    "['genesis_0']",
    "['genesis_01']",
    "[1, 1]",
    "[0, 'genesis_1']",
    "{ from = 1 }",
    "1",
];

#[rustfmt::skip]
const FAULTS: &[Row] = &[
    ("Fault.from", "5F kind = 'crash'\nnodes = [1]\nfrom = @", &["'start'", "{ round = 2 }"], &["'end'", "{ after = 1 }", "{ round = 2, height = 1 }", "2"]),
    ("Fault.until", "5F kind = 'crash'\nnodes = [1]\nfrom = { round = 2 }\nuntil = @", &["{ round = 3 }", "{ after = 1 }"], &["'start'", "{ round = 2 }", "{ round = 1 }"]),
    ("Fault.kind", "5F kind = @", &["'heal'"], &["'none'", "1"]),
    ("Fault(partition).groups", "5F kind = 'partition'\ngroups = @", &["[[0]]", "[[0, 1], [2]]", "[[0], ['genesis_2']]"], &["[]", "[[]]", "[[5]]", "[[0], [0]]", "[[0], ['genesis_1']]", "[{ from = 0, to = 4 }]", "[[0], [1]]\none_way = true"]),
    ("Fault(partition).share", "5F kind = 'partition'\nshare = @", &["{ share = 0 }", "{ share = 1, of = 'vote-weight' }"], &["{ share = 1.1 }", "0.5", "{ share = 0.5 }\ngroups = [[0]]"]),
    ("Fault(partition).one_way", "5F kind = 'partition'\ngroups = [[0]]\none_way = @", &["true", "false"], &["1"]),
    ("Fault(isolate).nodes", "5F kind = 'isolate'\nnodes = @", NODES, NO_NODES),
    ("Fault(eclipse).victims", "5F kind = 'eclipse'\nattackers = [1]\nvictims = @", NODES, NO_NODES),
    ("Fault(eclipse).attackers", "5F kind = 'eclipse'\nvictims = [1]\nattackers = @", NODES, NO_NODES),
    ("Fault(drop).messages", "5F kind = 'drop'\nmessages = @", &["[]", "['block', 'hang-up']"], &["['blok']", "['block', 'block']", "'block'"]),
    ("Fault(drop).senders", "5F kind = 'drop'\nsenders = @", NODES, NO_NODES),
    ("Fault(drop).receivers", "5F kind = 'drop'\nreceivers = @", NODES, NO_NODES),
    ("Fault(drop).chance", "5F kind = 'drop'\nchance = @", &["0", "1"], &["nan", "inf", "-0.1", "1.1"]),
    ("Fault(drop).only", "5F kind = 'drop'\nonly = @", &["1", "4294967295"], &["0", "-1", "1.5", BEYOND_U32]),
    ("Fault(delay).by_ms", "5F kind = 'delay'\nby_ms = @", &["0", "1000000000"], &["1000000001", "-1"]),
    ("Fault(delay).jitter_ms", "5F kind = 'delay'\nby_ms = 1\njitter_ms = @", &["0", "1000000000"], &["1000000001"]),
    ("Fault(delay).messages", "5F kind = 'delay'\nby_ms = 1\nmessages = @", &["['status']"], &["['status', 'status']"]),
    ("Fault(delay).senders", "5F kind = 'delay'\nby_ms = 1\nsenders = @", NODES, NO_NODES),
    ("Fault(delay).receivers", "5F kind = 'delay'\nby_ms = 1\nreceivers = @", NODES, NO_NODES),
    ("Fault(delay).chance", "5F kind = 'delay'\nby_ms = 1\nchance = @", &["0", "1"], &["-0.1", "1.1"]),
    ("Fault(delay).only", "5F kind = 'delay'\nby_ms = 1\nonly = @", &["1", "4294967295"], &["0", "-1", "1.5", BEYOND_U32]),
    ("Fault(duplicate).copies", "5F kind = 'duplicate'\ncopies = @", &["1", "100"], &["0", "101"]),
    ("Fault(duplicate).within_ms", "5F kind = 'duplicate'\nwithin_ms = @", &["0", "1000000000"], &["1000000001"]),
    ("Fault(duplicate).messages", "5F kind = 'duplicate'\nmessages = @", &["['peers']"], &["['peers', 'peers']"]),
    ("Fault(duplicate).senders", "5F kind = 'duplicate'\nsenders = @", NODES, NO_NODES),
    ("Fault(duplicate).receivers", "5F kind = 'duplicate'\nreceivers = @", NODES, NO_NODES),
    ("Fault(duplicate).chance", "5F kind = 'duplicate'\nchance = @", &["0", "1"], &["-0.1", "1.1"]),
    ("Fault(duplicate).only", "5F kind = 'duplicate'\nonly = @", &["1", "4294967295"], &["0", "-1", "1.5", BEYOND_U32]),
    ("Fault(crash).nodes", "5F kind = 'crash'\nnodes = @", NODES, NO_NODES),
    ("Fault(crash).keep_pool", "5F kind = 'crash'\nnodes = [1]\nkeep_pool = @", &["true", "false"], &["0"]),
    ("Fault(node-churn).nodes", "5F kind = 'node-churn'\nup = 9\ndown = 9\nnodes = @", NODES, NO_NODES),
    ("Fault(node-churn).up", "5F kind = 'node-churn'\nnodes = [1]\ndown = 9\nup = @", &["0.001", "100000000", "{ mean_s = 1 }", "{ min_s = 1, max_s = 1 }", "{ median_s = 1, sigma = 0 }", "{ scale_s = 1, shape = 0.1 }"], &["0", "100000001", "nan", "inf", "'long'", "[1]", "{}"]),
    ("Fault(node-churn).down", "5F kind = 'node-churn'\nnodes = [1]\nup = 9\ndown = @", &["0.001", "100000000"], &["0", "100000001", "{ mean = 1 }", "{ mean_s = 1, sigma = 1 }"]),
    ("Fault(node-churn).keep_pool", "5F kind = 'node-churn'\nnodes = [1]\nup = 9\ndown = 9\nkeep_pool = @", &["true", "false"], &["0"]),
    ("ExponentialTime.mean_s", "5F kind = 'node-churn'\nnodes = [1]\ndown = 9\nup = { mean_s = @ }", &["0.001", "100000000"], &["0", "-1", "100000001"]),
    ("UniformTime.min_s", "5F kind = 'node-churn'\nnodes = [1]\ndown = 9\nup = { min_s = @, max_s = 5 }", &["0.001", "5"], &["0", "6"]),
    ("UniformTime.max_s", "5F kind = 'node-churn'\nnodes = [1]\ndown = 9\nup = { min_s = 5, max_s = @ }", &["5", "100000000"], &["4", "100000001"]),
    ("LogNormalTime.median_s", "5F kind = 'node-churn'\nnodes = [1]\ndown = 9\nup = { median_s = @, sigma = 1 }", &["0.001", "100000000"], &["0", "100000001"]),
    ("LogNormalTime.sigma", "5F kind = 'node-churn'\nnodes = [1]\ndown = 9\nup = { median_s = 1, sigma = @ }", &["0", "10"], &["-0.1", "10.1"]),
    ("WeibullTime.scale_s", "5F kind = 'node-churn'\nnodes = [1]\ndown = 9\nup = { scale_s = @, shape = 1 }", &["0.001", "100000000"], &["0", "100000001"]),
    ("WeibullTime.shape", "5F kind = 'node-churn'\nnodes = [1]\ndown = 9\nup = { scale_s = 1, shape = @ }", &["0.1", "100"], &["0", "101"]),
    ("Fault(restart).nodes", "5F kind = 'restart'\nnodes = @", NODES, &["[5]", "[]", "[1]\nuntil = { after = 1 }"]),
    ("Fault(restart).keep_pool", "5F kind = 'restart'\nnodes = [1]\nkeep_pool = @", &["true", "false"], &["0"]),
    ("Fault(pause).nodes", "5F kind = 'pause'\nnodes = @", NODES, NO_NODES),
    ("Fault(slow).nodes", "5F kind = 'slow'\nstep_ms = 1\nnodes = @", NODES, NO_NODES),
    ("Fault(slow).step_ms", "5F kind = 'slow'\nnodes = [1]\nstep_ms = @", &["0", "1000000000"], &["1000000001"]),
    ("Fault(clock-skew).nodes", "5F kind = 'clock-skew'\nnodes = @", NODES, NO_NODES),
    ("Fault(clock-skew).offset_ms", "5F kind = 'clock-skew'\nnodes = [1]\noffset_ms = @", &["-1000000000", "1000000000"], &["-1000000001", "1000000001"]),
    ("Fault(clock-skew).drift_ppm", "5F kind = 'clock-skew'\nnodes = [1]\ndrift_ppm = @", &["-100000", "100000"], &["-100001", "100001"]),
    ("Fault(offline).delegates", "5F kind = 'offline'\ndelegates = @", NODES, NO_NODES),
    ("Fault(offline).rounds", "5F kind = 'offline'\ndelegates = [1]\nrounds = @", &["1", "3", "[1, 3]"], &["0", "4", "[]", "[1, 4]", "[2, 2]", "2\nfrom = { round = 2 }", "2\nuntil = { round = 3 }"]),
    ("Fault(late-forging).delegates", "5F kind = 'late-forging'\nby_ms = 1\ndelegates = @", NODES, NO_NODES),
    ("Fault(late-forging).by_ms", "5F kind = 'late-forging'\ndelegates = [1]\nby_ms = @", &["0", "1000000000"], &["1000000001"]),
    ("Fault(withhold).delegates", "5F kind = 'withhold'\ndelegates = @", NODES, NO_NODES),
    ("Fault(withhold).release_ms", "5F kind = 'withhold'\ndelegates = [1]\nrelease_ms = @", &["0", "1000000000"], &["nan", "inf", "1000000001"]),
    ("Fault(double-forge).delegates", "5F kind = 'double-forge'\ndelegates = @", NODES, NO_NODES),
    ("Fault(withhold-ahead).delegates", "5F kind = 'withhold-ahead'\ndelegates = @", NODES, NO_NODES),
    ("Fault(withhold-ahead).slots", "5F kind = 'withhold-ahead'\ndelegates = [1]\nslots = @", &["1", "1000"], &["0", "1001"]),
    ("Fault(coalition).delegates", "5F kind = 'coalition'\ndelegates = @", NODES, NO_NODES),
    ("Fault(coalition).slots", "5F kind = 'coalition'\ndelegates = [1, 2]\nslots = @", &["1", "1000"], &["0", "1001"]),
    ("Fault(eclipse-answers).nodes", "5F kind = 'eclipse-answers'\nvictims = [1]\nnodes = @", NODES, NO_NODES),
    ("Fault(eclipse-answers).victims", "5F kind = 'eclipse-answers'\nnodes = [1]\nvictims = @", NODES, NO_NODES),
    ("Fault(spare-forger).delegates", "5F kind = 'spare-forger'\nnodes = [4]\ndelegates = @", &["[0, 3]", "['genesis_1']"], &["[]", "[5]", "[4]", "['genesis_5']"]),
    ("Fault(spare-forger).nodes", "5F kind = 'spare-forger'\ndelegates = [4]\nnodes = @", &["[0, 3]", "['genesis_1']"], &["[]", "[5]", "[4]", "['genesis_5']"]),
    ("Fault(forge-out-of-turn).delegates", "5F kind = 'forge-out-of-turn'\ndelegates = @", NODES, NO_NODES),
    ("Fault(forge-out-of-turn).every", "5F kind = 'forge-out-of-turn'\ndelegates = [1]\nevery = @", &["1", "1000000"], &["0", "1000001"]),
    ("Fault(forge-invalid).delegates", "5F kind = 'forge-invalid'\nerror = 'reward'\ndelegates = @", NODES, NO_NODES),
    ("Fault(forge-invalid).error", "5F kind = 'forge-invalid'\ndelegates = [1]\nerror = @", &["'reward'"], &["'rewards'"]),
    ("Fault(censor).delegates", "5F kind = 'censor'\nsender = 'account_1'\ndelegates = @", NODES, NO_NODES),
    ("Fault(censor).sender", "5F kind = 'censor'\ndelegates = [1]\nsender = @", &["'account_1'", "'account_10'", "'genesis_5'"], &["'account_0'", "'account_11'", "'account_01'", "'account_+1'", "'genesis_6'", "'shared_x'", "''"]),
    ("Fault(refuse-transactions).nodes", "5F kind = 'refuse-transactions'\nnodes = @", NODES, NO_NODES),
    ("Fault(lie-about-tip).nodes", "5F kind = 'lie-about-tip'\nnodes = @", NODES, NO_NODES),
    ("Fault(lie-about-tip).claim", "5F kind = 'lie-about-tip'\nnodes = [1]\nclaim = @", &["'height'", "'id'", "'slot'"], &["'time'"]),
    ("Fault(lie-about-tip).by", "5F kind = 'lie-about-tip'\nnodes = [1]\nby = @", &["1", "-1", "1000000", "-1000000"], &["0", "1000001", "-1000001"]),
    ("Fault(lie-about-tip).signed", "5F kind = 'lie-about-tip'\nnodes = [1]\nsigned = @", &["true", "false"], &["1"]),
    ("Fault(spam-pool).nodes", "5F kind = 'spam-pool'\nper_second = 1\nnodes = @", NODES, &["[]", "[5]", "{ share = 0 }"]),
    ("Fault(spam-pool).per_second", "5F kind = 'spam-pool'\nper_second = @", &["0.000001", "10000"], &["0", "10001", "-1"]),
    ("Fault(low-fee-flood).nodes", "5F kind = 'low-fee-flood'\nper_second = 1\nnodes = @", NODES, &["[]", "[5]", "{ share = 0 }"]),
    ("Fault(low-fee-flood).per_second", "5F kind = 'low-fee-flood'\nper_second = @", &["0.000001", "10000"], &["0", "10001"]),
    ("Fault(low-fee-flood).fee", "5F kind = 'low-fee-flood'\nper_second = 1\nfee = @", &["0", "9223372036854775807"], &["nan", "inf", "-1", "9223372036854775808"]),
    ("Fault(vote-swing).voters", "5F kind = 'vote-swing'\ndelegate = 'genesis_1'\nround = 2\nblock = 'first'\nvoters = @", &["1", "10"], &["0", "11"]),
    ("Fault(vote-swing).delegate", "5F kind = 'vote-swing'\nvoters = 1\nround = 2\nblock = 'first'\ndelegate = @", &["'genesis_5'"], &["'genesis_6'", "1"]),
    ("Fault(vote-swing).round", "5F kind = 'vote-swing'\nvoters = 1\ndelegate = 'genesis_1'\nblock = 'first'\nround = @", &["2", "3"], &["1", "4"]),
    ("Fault(vote-swing).block", "5F kind = 'vote-swing'\nvoters = 1\ndelegate = 'genesis_1'\nround = 2\nblock = @", &["'first'", "'last'"], &["'middle'"]),
    ("Fault(mass-resignation).delegates", "5F kind = 'mass-resignation'\ndelegates = @", NODES, NO_NODES),
];

const PARTIES: &[&str] = &["'account_1'", "'account_10'", "'genesis_5'", "'shared_x-2-of-3'"];
const NO_PARTIES: &[&str] =
    &["'account_0'", "'account_11'", "'genesis_0'", "'genesis_6'", "'nobody'", "'shared_'", "''"];

#[rustfmt::skip]
const ACTIONS: &[Row] = &[
    ("Action.height", "5A height = @", &["0", "15"], &["16", "-1"]),
    ("Action.node", "5A node = @", &["0", "4"], &["5", "-1", BEYOND_U32]),
    ("Action.by", "5[[action]]\ndoes = 'transfer'\nby = @", PARTIES, NO_PARTIES),
    ("Action.to", "5A to = @", PARTIES, NO_PARTIES),
    ("Action.does", "5[[action]]\nby = 'account_1'\ndoes = @", &["'transfer'", "'resign'"], &["'steal'", "'lock'", "'register'"]),
    ("Action.amount", "5A amount = @", &["1", "9223372036854775807"], &["0", "-1", "9223372036854775808"]),
    ("Action.fee", "5A fee = @", &["0", "9223372036854775807"], &["-1", "9223372036854775808"]),
    ("Action.name", "5[[action]]\nby = 'account_1'\ndoes = 'register'\nname = @", &["'one'"], &["1", "'one'\nto = 'account_2'", "'one'\n[[action]]\nby = 'account_1'\ndoes = 'transfer'\nname = 'one'"]),
    ("Action.blocks", "5[[action]]\nby = 'account_1'\ndoes = 'lock'\nname = 'l'\nblocks = @", &["0", "1000000"], &["1000001", "-1"]),
    ("Action.signers", "5[[action]]\nby = 'shared_x-2-of-3'\ndoes = 'transfer'\nsigners = @", &["[]", "[0, 2]", "[1, 1]"], &["[3]", "[256]", "[-1]"]),
    ("Action.by_time", "5[[action]]\nby = 'account_1'\ndoes = 'lock'\nname = 'l'\nby_time = @", &["true", "false"], &["1", "true\n[[action]]\nby = 'account_1'\ndoes = 'vote'\nby_time = true"]),
    ("Action.payments", "5[[action]]\nby = 'account_1'\ndoes = 'multi-payment'\npayments = @", &["0", "2", "65535"], &["1", "65536"]),
    ("Action.members", "5[[action]]\nby = 'account_1'\ndoes = 'business'\nname = 'b'\nmembers = @", &["[]", "['vat']"], &["['seed-nodes']", "['vats']"]),
    ("Action.vendor_field", "5A vendor_field = @", &["'x'"], &["''", "1", "'x'\n[[action]]\nby = 'account_1'\ndoes = 'vote'\nvendor_field = 'x'"]),
    ("Action.wrong", "5A wrong = @", &["'overspent'", "'expired'"], &["'right'", "'wrong-secret'", "'one-signature-less'"]),
];

#[rustfmt::skip]
const WORKLOADS: &[Row] = &[
    ("Workload.from", "5G from = @", &["'start'", "{ height = 2 }"], &["{ after = 1 }", "{ round = 5 }"]),
    ("Workload.until", "5G from = { seconds = 9 }\nuntil = @", &["{ after = 1 }", "{ seconds = 10 }"], &["{ seconds = 9 }", "'start'"]),
    ("Workload.kind", "5[[workload]]\nper_second = 1\nkind = @", &["'generate'"], &["'make'", "'list'", "'chain'", "'trace'"]),
    ("Workload(generate).per_second", "5[[workload]]\nkind = 'generate'\nper_second = @", &["0.000001", "10000"], &["0", "10001", "nan"]),
    ("Workload(generate).arrivals", "5G arrivals = @", &["'poisson'", "'even'"], &["'odd'"]),
    ("Workload(generate).wallets", "5G wallets = @", &["1", "10000"], &["0", "10001"]),
    ("Workload(generate).funding", "5G funding = @", &["1", "1000000"], &["0", "1000001"]),
    ("Workload(generate).mix", "5G mix = @", &["{}", "{ transfer = 1 }"], &["{ transfer = 0 }", "{ transfer = -1 }", "{ gift = 1 }"]),
    ("Workload(generate).amount", "5G amount = @", &["0", "100000000"], &["-1", "100000001"]),
    ("Workload(generate).fee", "5G fee = @", &["0", "100000000"], &["-1", "100000001"]),
    ("Workload(generate).vendor_field", "5G vendor_field = @", &["0", "255", "[0, 255]", "{ min = 0, max = 255 }", "{ mean = 40 }", "{ median = 40, sigma = 1 }"], &["256", "-1", "1.5", "[]", "[256]", "{}", "'x'", "{ mean = 40, sigma = 1 }"]),
    ("Workload(generate).nodes", "5G nodes = @", NODES, &["[]", "[5]", "{ share = 0 }", "{ share = 1.1 }"]),
    ("Uniform.min", "5G amount = { min = @, max = 5 }", &["0", "5"], &["-1", "5.1"]),
    ("Uniform.max", "5G amount = { min = 5, max = @ }", &["5", "100000000"], &["4.9", "100000001"]),
    ("Around.median", "5G amount = { median = @, sigma = 1 }", &["0.1", "100000000"], &["0", "100000001"]),
    ("Around.sigma", "5G amount = { median = 1, sigma = @ }", &["0", "10"], &["-1", "10.1"]),
    ("LengthSpan.min", "5G vendor_field = { min = @, max = 5 }", &["0", "5"], &["-1", "6", "1.5"]),
    ("LengthSpan.max", "5G vendor_field = { min = 5, max = @ }", &["5", "255"], &["4", "256"]),
    ("MeanLength.mean", "5G vendor_field = { mean = @ }", &["0.001", "255"], &["0", "-1", "255.1", "nan"]),
    ("Workload(trace).file", "5[[workload]]\nkind = 'trace'\nfile = @", &["'Cargo.lock.load'"], &["'no such file'", "1", "'Cargo.lock.edges'"]),
    ("Workload(trace).wallets", "5T wallets = @", &["2", "10000"], &["0", "1", "10001"]),
    ("Workload(trace).funding", "5T funding = @", &["1", "1000000"], &["0", "1000001"]),
    ("Workload(trace).mix", "5T mix = @", &["{}", "{ transfer = 1 }"], &["{ transfer = 0 }", "{ transfer = -1 }", "{ gift = 1 }"]),
    ("Workload(trace).amount", "5T amount = @", &["0", "100000000"], &["-1", "100000001"]),
    ("Workload(trace).fee", "5T fee = @", &["0", "100000000"], &["-1", "100000001"]),
    ("Workload(trace).vendor_field", "5T vendor_field = @", &["0", "255"], &["256", "{ median = 256, sigma = 1 }", "{ median = 1, sigma = 10.1 }"]),
    ("Workload(trace).nodes", "5T nodes = @", NODES, &["[]", "[5]", "{ share = 0 }"]),
    ("Workload(list).transactions", "5[[workload]]\nkind = 'list'\nper_second = 1\ntransactions = @", &["['00']"], &["[]", "['0']", "['xy']", "['ff']"]),
    ("Workload(list).per_second", "5[[workload]]\nkind = 'list'\ntransactions = ['00']\nper_second = @", &["0.000001", "10000"], &["0", "10001"]),
    ("Workload(list).nodes", "5[[workload]]\nkind = 'list'\nper_second = 1\ntransactions = ['00']\nnodes = @", NODES, &["[]", "[5]", "{ share = 0 }"]),
    ("Workload(chain).file", "5[[workload]]\nkind = 'chain'\nfile = @", &["'Cargo.lock.blocks'"], &["'no such file'", "1"]),
    ("Workload(chain).nodes", "5[[workload]]\nkind = 'chain'\nfile = 'Cargo.lock.blocks'\nnodes = @", NODES, &["[]", "[5]", "{ share = 0 }"]),
];

#[rustfmt::skip]
const AGENTS: &[Row] = &[
    ("Agents.kind", "5[[agents]]\nkind = @", &["'cartel'", "'apathy'"], &["'churn'", "'none'", "1"]),
    ("Agents.voters", "5[[agents]]\nkind = 'apathy'\nstake = 9\nvoters = @", &["1", "10000"], &["0", "10001", "-1"]),
    ("Agents.stake", "5[[agents]]\nkind = 'apathy'\nvoters = 2\nstake = @", &["1", "110000000"], &["0", "110000001", "110000000\n[[agents]]\nkind = 'apathy'\nvoters = 1\nstake = 1"]),
    ("Agents.spread", "5[[agents]]\nkind = 'cartel'\nspread = @", &["1", "{ min = 0, max = 1 }", "{ median = 1, sigma = 1 }"], &["0", "{ min = 0, max = 0 }", "-1"]),
    ("Agents.delegates", "5[[agents]]\nkind = 'cartel'\ndelegates = @", &["[0, 4]", "['genesis_1', 'genesis_5']", "{ from = 0, to = 4 }"], &["[]", "[5]", "['genesis_6']", "[1, 1]", "{ share = 0.5 }", "[1]\n[[agents]]\nkind = 'cartel'\ndelegates = ['genesis_2']"]),
    ("Agents.share", "5[[agents]]\nkind = 'cartel'\ndelegates = [1]\nshare = @", &["0", "1"], &["-0.1", "1.1", "nan"]),
    ("Agents.pay_rounds", "5[[agents]]\nkind = 'cartel'\npay_rounds = @", &["1", "100000"], &["0", "100001"]),
    ("Agents.nodes", "5[[agents]]\nkind = 'cartel'\nnodes = @", NODES, &["[]", "[5]", "{ share = 0 }"]),
    ("Agents(best-payer).chance", "5[[agents]]\nkind = 'best-payer'\nchance = @", &["0", "1"], &["-0.1", "1.1", "nan"]),
    ("Agents(best-payer).gain", "5[[agents]]\nkind = 'best-payer'\ngain = @", &["0", "1"], &["-0.1", "1.1"]),
    ("Agents(vote-buying).price", "5[[agents]]\nkind = 'vote-buying'\nasks_most = 1\nprice = @", &["0", "9223372036854775807"], &["-1", "9223372036854775808"]),
    ("Agents(vote-buying).asks_most", "5[[agents]]\nkind = 'vote-buying'\nprice = 1\nasks_most = @", &["0", "9223372036854775807"], &["-1", "9223372036854775808"]),
    ("Agents(vote-buying).until_round", "5[[agents]]\nkind = 'vote-buying'\nprice = 1\nasks_most = 1\nuntil_round = @", &["2", "3"], &["1", "4"]),
    ("Agents(apathy).turnout", "5[[agents]]\nkind = 'apathy'\nturnout = @", &["0", "1"], &["-0.1", "1.1"]),
    ("Agents(churn).chance", "5[[agents]]\nkind = 'churn'\nchance = @", &["0", "1"], &["-0.1", "1.1"]),
];

#[rustfmt::skip]
const ASSERTIONS: &[Row] = &[
    ("Assertion.always", "5[[assert]]\nalways = @", &["'converged'", "'height >= 1'", "'not (missed > 9 or down >= 4) and height >= 1'"], &["'convergd'", "'height >= 1 and'", "'(converged'", "'height'", "'height >= inf'", "''"]),
    ("Assertion.sometimes", "5[[assert]]\nsometimes = @", &["'converged'"], &["'hight > 1'", "'converged'\nafter = { seconds = 1 }"]),
    ("Assertion.eventually", "5[[assert]]\neventually = @", &["'converged'"], &["'hight > 1'", "'converged'\nalways = 'converged'"]),
    ("Assertion.finally", "5[[assert]]\nfinally = @", &["'converged'"], &["'hight > 1'", "'converged'\nafter_fault = 0"]),
    ("Assertion.within_rounds", "5[[assert]]\neventually = 'converged'\nwithin_rounds = @", &["0", "100000"], &["100001", "-1"]),
    ("Assertion.after", "5[[assert]]\nalways = 'converged'\nafter = @", &["'start'", "{ round = 3 }"], &["{ round = 5 }", "{ after = 1 }", "{ event = { kind = 'block-forged', node = 5 } }"]),
    ("Assertion.after_fault", "5F kind = 'heal'\n[[assert]]\neventually = 'converged'\nafter_fault = @", &["0"], &["1", "-1", "0\nafter = { seconds = 1 }"]),
];

fn tables() -> impl Iterator<Item = &'static Row> {
    [SCENARIO, NETWORK, WHO, FAULTS, ACTIONS, WORKLOADS, AGENTS, ASSERTIONS].into_iter().flatten()
}

/// The text of a row with a value in its place; what it begins with is spelt out.
fn text(template: &str, value: &str, folder: &str) -> String {
    let heads = [
        ("5F ", format!("{HEAD}{FIVE}[[fault]]\n")),
        ("5A ", format!("{HEAD}{FIVE}[[action]]\nby = 'account_1'\ndoes = 'transfer'\n")),
        ("5G ", format!("{HEAD}{FIVE}[[workload]]\nkind = 'generate'\nper_second = 1\n")),
        ("5T ", format!("{HEAD}{FIVE}[[workload]]\nkind = 'trace'\nfile = 'Cargo.lock.load'\n")),
        ("5[", format!("{HEAD}{FIVE}[")),
        ("5 ", format!("{HEAD}{FIVE}")),
        ("H ", HEAD.to_owned()),
        ("", String::new()),
    ];
    let (short, head) = heads.iter().find(|(short, _)| template.starts_with(short)).expect("the last one fits");
    let text = format!("{head}{}", &template[short.len()..]).replace('@', value);
    text.replace("Cargo.lock.", &format!("{folder}/")).replace("latency = L", "latency = { min_ms = 1, max_ms = 2 }")
}

/// The keys of the schema: of each definition, and of each kind of a tagged one.
fn keys() -> BTreeSet<String> {
    let schema = Scenario::schema();
    let mut keys = BTreeSet::new();
    let definitions = schema["$defs"].as_object().expect("it has definitions").iter();
    let root = ("Scenario".to_owned(), schema.clone());
    for (name, definition) in definitions.map(|(name, of)| (name.clone(), of.clone())).chain([root]) {
        collect(&name, &definition, &mut keys);
    }
    keys
}

fn collect(owner: &str, schema: &Value, keys: &mut BTreeSet<String>) {
    let properties = schema["properties"].as_object();
    let kind = properties.and_then(|all| all.get("kind")).and_then(|kind| kind["const"].as_str());
    let of_kind = kind.map(|kind| format!("{owner}({kind})"));
    for key in properties.into_iter().flat_map(|all| all.keys()) {
        match (&of_kind, key.as_str()) {
            (Some(_), "kind") | (None, _) => keys.insert(format!("{owner}.{key}")),
            (Some(of_kind), _) => keys.insert(format!("{of_kind}.{key}")),
        };
    }
    for list in ["oneOf", "anyOf", "allOf"] {
        for alternative in schema[list].as_array().into_iter().flatten() {
            collect(owner, alternative, keys);
        }
    }
}

#[test]
fn every_key_has_a_row_and_every_row_a_key() {
    let rows: BTreeSet<String> = tables().map(|(key, ..)| (*key).to_owned()).collect();
    let keys = keys();
    let without: Vec<_> = keys.difference(&rows).collect();
    let gone: Vec<_> = rows.difference(&keys).collect();
    assert!(without.is_empty() && gone.is_empty(), "keys without a row: {without:?}; rows without a key: {gone:?}");
    assert!(tables().all(|(.., good, bad)| !good.is_empty() && !bad.is_empty()), "each has values of both sorts");
}

#[test]
fn each_key_takes_its_bounds_and_refuses_what_is_beyond_by_name() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let weights = "username,weight\ngenesis_5,1\ngenesis_1,0\ngenesis_2,3\ngenesis_3,1\ngenesis_4,1\n";
    let matrix = |name: &str| format!("from,eu,us\neu,1,2{name}\nus,3,4\n");
    let (latencies, bandwidths) = (matrix(".5"), matrix(""));
    for (name, text) in [
        ("blocks", ""),
        ("edges", "from,to\n0,4\n"),
        ("load", "seconds,sender\n0,a\n1.5,b\n"),
        ("weights", weights),
        ("links", "from,to,latency_us,latency_back_us\n0,4,1000,\n1,2,,3\n"),
        ("regions", "node,region\n0,1\n1,0\n2,0\n3,0\n4,1\n"),
        ("classes", "node,class\n0,1\n1,0\n2,0\n3,0\n4,1\n"),
        ("latencies", &latencies),
        ("bandwidths", &bandwidths),
    ] {
        std::fs::write(folder.path().join(name), text).expect("a folder of our own");
    }
    let folder = folder.path().display().to_string();
    // '00' stands for the bytes of a transaction.
    let seed = std::fs::read_to_string(root().join("fuzz/seeds/scenario/good-workloads.toml")).expect("it is there");
    let bytes = seed.split('"').find(|text| text.starts_with("ff0217")).expect("a list has one");
    let transaction = format!("'{bytes}'");
    let read = |template: &str, value: &str| {
        let text = text(template, value, &folder).replace("'00'", &transaction);
        (Scenario::parse(&text, Path::new("keys.toml")).map_err(|error| error.to_string()), text)
    };
    let mut wrong = Vec::new();
    for (key, template, good, bad) in tables() {
        for value in *good {
            if let (Err(why), text) = read(template, value) {
                wrong.push(format!("{key} = {value}: {why}\n{text}"));
            }
        }
        for value in *bad {
            match read(template, value) {
                (Ok(_), text) => wrong.push(format!("{key} = {value} is taken\n{text}")),
                (Err(why), text) if !why.starts_with("keys.toml") => {
                    wrong.push(format!("{key} = {value}: {why}\n{text}"))
                }
                (Err(_), _) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
}

/// The limits of a node's links and processor are refused with the key, what was found and what is allowed.
#[test]
fn limits_of_a_node_are_refused_in_words_that_help() {
    let regions = "regions = { shares = [1, 1], latency_ms = [[1, 2], [2, 1]] }";
    for (key, lines, words) in [
        ("network.uplink", "uplink = 0", "found 0, allowed is at least 1 byte a second"),
        ("network.downlink", "downlink = 0", "found 0, allowed is at least 1 byte a second"),
        (
            "network.uplink",
            "uplink = [1]",
            "found a list of 1, allowed is one number, for there are no 'network.classes' and no 'network.regions'",
        ),
        (
            "network.clocks",
            &format!("classes = {{ shares = [1, 2, 3] }}\nclocks = [{{}}, {{}}]\n{regions}"),
            "found a list of 2, allowed is one table, or a list of 3, the number of 'network.classes'",
        ),
        (
            "network.downlink",
            &format!("downlink = []\n{regions}"),
            "found a list of 0, allowed is one number, or a list of 2, the number of 'network.regions'",
        ),
        (
            "network.classes",
            "classes = { shares = [1] }\nuplink = 5",
            "found it without a list that has an entry for each class, allowed is it beside such a list of 'uplink'",
        ),
        (
            "network.classes.shares",
            &format!("classes = {{ shares = [{}] }}", "1, ".repeat(1_001)),
            "found 1001 of them, allowed is 1000 at most",
        ),
        (
            "network.classes.shares",
            "classes = {}\nclocks = [{}]",
            "found no list, allowed is it, or 'nodes' in its place",
        ),
        (
            "network.clocks[0]",
            &format!("clocks = [1, {{}}]\n{regions}"),
            "invalid type: integer `1`, expected a table of errors of clocks",
        ),
        (
            "network.processor[1]",
            &format!("processor = [{{}}, 2]\n{regions}"),
            "invalid type: integer `2`, expected a table of a processor",
        ),
        ("network.uplink", "uplink = -1", "integer `-1`, expected a whole number of bytes per second"),
        ("network.uplink", "uplink = 1.5", "floating point `1.5`, expected a whole number of bytes per second"),
        ("network.uplink", "uplink = nan", "floating point `NaN`, expected a whole number of bytes per second"),
        ("network.downlink", "downlink = 'fast'", "string \"fast\", expected a whole number of bytes per second"),
        ("network.sharing", "sharing = 'fair'", "allowed is it beside one of them"),
        ("network.block_bytes", "block_bytes = 1000000001", "found 1000000001, allowed is 0 to 1000000000"),
        ("network.processor.cores", "processor = { cores = 0 }", "found 0, allowed is 1 to 1024"),
        (
            "network.processor.validate.byte_ns",
            "processor = { validate = { byte_ns = 1000000001 } }",
            "found 1000000001, allowed is 0 to 1000000000",
        ),
    ] {
        let text = format!("{HEAD}{FIVE}{lines}\n");
        let why = Scenario::parse(&text, Path::new("keys.toml")).expect_err(&text).to_string();
        assert!(why.contains(key) && why.contains(words), "{lines}: {why}");
    }
}

/// A number that names a thing is refused with the thing's key, what was found, and what there is.
#[test]
fn a_number_one_past_the_last_is_refused_in_the_same_words_everywhere() {
    let refused = |template: &str, value: &str| {
        let text = text(template, value, "");
        Scenario::parse(&text, Path::new("keys.toml")).expect_err(&text).to_string()
    };
    let tail = "found 5, allowed is 0 to 4";
    for (key, template, value) in [
        ("action[0].node", "5A node = @", "5"),
        ("fault[0].nodes", "5F kind = 'crash'\nnodes = @", "[5]"),
        ("fault[0].delegates", "5F kind = 'offline'\ndelegates = @", "[5]"),
        ("fault[0].groups", "5F kind = 'partition'\ngroups = @", "[[0], [5]]"),
        ("fault[0].from.event.node", "5F kind = 'heal'\nfrom = { event = { kind = 'block-forged', node = @ } }", "5"),
        ("workload[0].nodes", "5G nodes = @", "[5]"),
        ("network.links[0].between", "5 links = [{ between = @, latency = L }]", "[5, 1]"),
        ("network.links[0].from", "5 links = [{ from = @, to = 1, latency = L }]", "5"),
        (
            "assert[0].after.event.node",
            "5[[assert]]\nalways = 'converged'\nafter = { event = { kind = 'block-forged', node = @ } }",
            "5",
        ),
    ] {
        let why = refused(template, value);
        assert!(why.ends_with(&format!("key '{key}': {tail}")), "{why}");
    }
    let none = refused("5[[assert]]\neventually = 'converged'\nafter_fault = @", "0");
    assert!(
        none.ends_with("key 'assert[0].after_fault': found 0, allowed is none: there is nothing to be named"),
        "{none}"
    );
}

/// A file without `rules.base` has the reference's rules, whatever command takes it, and the first line says so.
#[test]
fn a_file_is_searched_and_swept_under_the_rules_that_it_is_played_under() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let (file, out) = (folder.path().join("s.toml"), folder.path().join("out"));
    let (file, out) = (file.display().to_string(), out.display().to_string());
    let text = |rules: &str| format!("version = 1\nrounds = 2\ncrypto = \"modelled\"\n{FIVE}{rules}");
    let first = |arguments: &[&str]| {
        let output = run(arguments);
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        told.lines().next().unwrap_or_default().to_owned()
    };
    for (rules, base) in [("", "reference"), ("[rules]\nbase = \"corrected\"\n", "corrected")] {
        std::fs::write(&file, text(rules)).expect("a folder of our own");
        let said = format!("; rules '{base}'");
        let search = ["check", &file, "--runs", "1", "--rounds", "1", "--budget", "0", "--out", &out];
        for arguments in [&["run", &file][..], &search] {
            let line = first(arguments);
            assert!(line.ends_with(&said), "{arguments:?}: {line}");
        }
        let swept = format!("{out}-{base}");
        let line = first(&["sweep", &file, "--seeds", "0..1", "--out", &swept]);
        assert!(line.ends_with(&said), "sweep: {line}");
    }
}
