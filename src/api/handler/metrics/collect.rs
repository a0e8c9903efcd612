//! All figures as of one moment, and their text.

use super::process::Process;
use crate::{
    actors::NodeId,
    api::{
        context::ApiContext,
        http::tally::{Key, TallyReading},
        webhooks::Totals,
    },
    sim::Pace,
};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet, text},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::{Registry, Unit},
};
use std::{collections::BTreeMap, fmt};

/// Figures, in the order in which they are served.
#[derive(Debug)]
struct Figures {
    rows: Vec<Figure>,
    requests: BTreeMap<Key, TallyReading>,
}

/// One figure.
#[derive(Debug)]
struct Figure {
    /// Without unit, and without the `_total` of counters.
    name: &'static str,
    unit: Option<Unit>,
    is_counter: bool,
    about: &'static str,
    samples: Vec<(Vec<Label>, f64)>,
}

type Label = (&'static str, String);

/// The text that Prometheus reads.
pub(crate) async fn text(context: &ApiContext) -> String {
    let webhooks = context.webhooks.as_ref().map(|webhooks| webhooks.totals()).unwrap_or_default();
    let rows = [run(context).await, network(context), served(context), posts(webhooks), process(Process::now())];
    let figures = Figures { rows: rows.into_iter().flatten().collect(), requests: context.requests.all() };
    let (mut registry, mut out) = (Registry::default(), String::with_capacity(16_384));
    registry.register_collector(Box::new(figures));
    text::encode(&mut out, &registry).expect("a text takes all");
    out
}

async fn run(context: &ApiContext) -> Vec<Figure> {
    let run = context.live.now().await.ok();
    let now = run.map_or_else(|| context.view.now(), |(now, _)| now);
    let pace = run.map(|(_, pace)| match pace {
        Pace::Speed(speed) => speed,
        Pace::Max => f64::INFINITY,
        Pace::Manual | Pace::OnDemand => 0.0,
    });
    let is_up = f64::from(run.is_some() as u8);
    let about_pace = "Virtual seconds that pass in a real one, 0 for manual and on-demand, +Inf for max";
    vec![
        gauge("dposlab_up", "1 while the simulation runs, 0 after it has ended", is_up),
        gauge("dposlab_virtual_time", "Virtual time since the network's epoch", now.micros() as f64 / 1e6)
            .in_unit(Unit::Seconds),
        gauge("dposlab_pace_ratio", about_pace, pace),
    ]
}

fn network(context: &ApiContext) -> Vec<Figure> {
    let state = context.board.state();
    let by_node = |name, about, value: &dyn Fn(usize) -> f64| {
        let samples = (0..state.tips.nodes()).map(|node| (vec![("node", node.to_string())], value(node)));
        Figure { samples: samples.collect(), ..gauge(name, about, None) }
    };
    let height = |node: usize| f64::from(state.tips.of(NodeId(node as u32)).height().0);
    let live = |node: usize| f64::from(state.down[node].is_none() as u8);
    let pool = |node: usize| state.pools[node] as f64;
    let (branches, counts) = (state.tips.branches(), state.counts);
    let about_depth = "Most blocks that a losing chain has above its common height with the winning one";
    let about_missed = "Slots left empty before blocks that node 0 has applied, again where it applies a block again; under a lottery, each owner of such a slot";
    vec![
        by_node("dposlab_node_height", "Height of the block a node stands on", &height),
        by_node("dposlab_node_live", "1 for a live node, 0 for one that is down", &live),
        by_node("dposlab_node_pool_transactions", "Transactions in a node's pool", &pool),
        gauge("dposlab_branches", "Chains of live nodes that have parted, 1 without a fork", branches.branches as f64),
        gauge("dposlab_branch_depth_blocks", about_depth, branches.depth as f64),
        gauge("dposlab_faults_in_force", "Faults in force", state.faults.len() as f64),
        counter("dposlab_blocks_forged", "Blocks that delegates have forged", counts.forged),
        counter("dposlab_rollbacks", "Rollbacks of all nodes", counts.rollbacks),
        counter("dposlab_blocks_reverted", "Blocks that rollbacks have taken off nodes' chains", counts.reverted),
        counter("dposlab_missed_slots", about_missed, counts.missed),
        counter("dposlab_events", "Events of the run in this process", context.feed.count()),
        gauge("dposlab_event_streams", "Open streams of events", context.feed.readers() as f64),
    ]
}

fn served(context: &ApiContext) -> Vec<Figure> {
    let (connections, receiving) = (context.connections.counts(), &context.receiving);
    let (closed, refused) = (connections.spared.closed, connections.spared.refused);
    let about_refused = "Connections refused because all others were at work";
    vec![
        gauge("dposlab_http_connections", "Open connections", connections.open as f64),
        counter("dposlab_http_connections_accepted", "Connections taken in", connections.accepted),
        counter("dposlab_http_connections_spared", "Connections closed to make room for others", closed),
        counter("dposlab_http_connections_refused", about_refused, refused),
        gauge("dposlab_http_receiving", "Bytes of bodies on their way now", receiving.bytes() as f64)
            .in_unit(Unit::Bytes),
        counter("dposlab_http_received", "Bytes of requests' bodies", receiving.total()).in_unit(Unit::Bytes),
    ]
}

fn posts(totals: Totals) -> Vec<Figure> {
    let outcomes = [("delivered", totals.delivered), ("failed", totals.failed), ("dropped", totals.dropped)];
    let samples = outcomes.map(|(outcome, count)| (vec![("outcome", outcome.to_owned())], count as f64));
    let about = "Posts of webhooks by what became of them: taken, not taken, or never sent because too many waited";
    let about_overlooked = "Events of which no webhook heard because too many waited";
    vec![
        Figure { samples: samples.into(), ..gauge("dposlab_webhook_posts", about, None).counted() },
        counter("dposlab_webhook_events_overlooked", about_overlooked, totals.overlooked),
    ]
}

fn process(process: Process) -> Vec<Figure> {
    vec![
        gauge("process_cpu", "Processor time of the process", process.cpu).in_unit(Unit::Seconds).counted(),
        gauge("process_resident_memory", "Resident memory of the process", process.resident).in_unit(Unit::Bytes),
        gauge("process_virtual_memory", "Virtual memory of the process", process.virtual_size).in_unit(Unit::Bytes),
        gauge("process_threads", "Threads of the process", process.threads),
        gauge("process_open_fds", "Open files of the process", process.open_files),
    ]
}

fn gauge(name: &'static str, about: &'static str, value: impl Into<Option<f64>>) -> Figure {
    let samples = value.into().map(|value| (Vec::new(), value)).into_iter().collect();
    Figure { name, unit: None, is_counter: false, about, samples }
}

fn counter(name: &'static str, about: &'static str, value: u64) -> Figure {
    gauge(name, about, value as f64).counted()
}

impl Figure {
    fn in_unit(self, unit: Unit) -> Self {
        Self { unit: Some(unit), ..self }
    }

    fn counted(self) -> Self {
        Self { is_counter: true, ..self }
    }

    fn write(&self, sample: MetricEncoder<'_>, value: f64) -> fmt::Result {
        match self.is_counter {
            true => ConstCounter::new(value).encode(sample),
            false => ConstGauge::new(value).encode(sample),
        }
    }
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for figure in &self.rows {
            let kind = if figure.is_counter { MetricType::Counter } else { MetricType::Gauge };
            let mut metric = encoder.encode_descriptor(figure.name, figure.about, figure.unit.as_ref(), kind)?;
            if let [(labels, value)] = &figure.samples[..]
                && labels.is_empty()
            {
                figure.write(metric, *value)?;
                continue;
            }
            for (labels, value) in &figure.samples {
                figure.write(metric.encode_family(labels)?, *value)?;
            }
        }
        let about = "Time from a request's head to its answer";
        let seconds = Some(&Unit::Seconds);
        let mut metric =
            encoder.encode_descriptor("dposlab_http_request_duration", about, seconds, MetricType::Histogram)?;
        for ((route, method, class), TallyReading { seconds, buckets }) in &self.requests {
            let status = format!("{class}xx");
            let labels = [("route", *route), ("method", method), ("status", &status)];
            let count = buckets.iter().map(|(_, count)| count).sum();
            metric.encode_family(&labels)?.encode_histogram::<NoLabelSet>(*seconds, count, buckets, None)?;
        }
        Ok(())
    }
}
