//! The simulated world: an engine, the transport endpoints at its nodes, their applications, and what is measured.

use crate::config::{Config, Traffic};
use crate::engine::{Engine, Happening};
use crate::outcome::{FlowOutcome, Outcome, PacingMeans, jain};
use crate::packet::{INITIAL_TTL, SimPacket};
use crate::probe::Probe;
use alloc::vec::Vec;
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, FlowId, NodeId, Rng, Time};
use meshpace_transport::{Arrival, Endpoint, PathInfo, Role, Stats};

/// The window of the short-term Jain index.
const JAIN_WINDOW: Duration = Duration::from_secs(2);
/// Timers of a flow: the sender's, the receiver's, the application's.
const TIMERS_PER_FLOW: u32 = 3;
const APPLICATION: u32 = 2;

/// Runs `config` with `seed`.
pub fn run(config: &Config, seed: u64) -> Outcome {
    run_with(config, seed, ())
}

/// Runs `config` with `seed`, watched by `probe`.
pub fn run_with<O: Probe<SimPacket>>(config: &Config, seed: u64, probe: O) -> Outcome {
    World::new(config, seed, probe).measure()
}

/// One end of a flow.
struct End {
    endpoint: Endpoint,
    node: NodeId,
    peer: NodeId,
    timer: Time,
    path: Option<u8>,
}

struct FlowState {
    ends: [End; 2],
    started: bool,
    begin: Time,
    stop: Time,
    /// Application events so far, to place the next one without rounding errors adding up.
    ticks: u64,
}

struct World<'a, O> {
    config: &'a Config,
    engine: Engine<SimPacket, O>,
    flows: Vec<FlowState>,
    next_packet: u32,
}

/// What is subtracted at the end: the state of a flow when measuring began.
struct Baseline {
    delivered: u64,
    sender: Stats,
    receiver: Stats,
}

impl<'a, O: Probe<SimPacket>> World<'a, O> {
    fn new(config: &'a Config, seed: u64, probe: O) -> Self {
        let ends = config.flows.iter().flat_map(|flow| [flow.from, flow.to]);
        let mut engine = Engine::new(&config.positions, &config.mesh, ends, seed, probe);
        let flows = config
            .flows
            .iter()
            .enumerate()
            .map(|(number, flow)| {
                let mut rng = Rng::stream(seed, Purpose::FlowStart, number as u64);
                let jitter = Duration::from_secs_f64(rng.uniform_in(0.0, flow.start_jitter.as_secs_f64()));
                let begin = flow.start + jitter;
                engine.set_timer(number as u32 * TIMERS_PER_FLOW + APPLICATION, flow.from, begin);
                let end = |role, node, peer| End {
                    endpoint: Endpoint::new(&flow.transport, role),
                    node,
                    peer,
                    timer: Time::NEVER,
                    path: None,
                };
                FlowState {
                    ends: [end(Role::Sender, flow.from, flow.to), end(Role::Receiver, flow.to, flow.from)],
                    started: false,
                    begin,
                    stop: flow.stop.unwrap_or(Time::NEVER),
                    ticks: 0,
                }
            })
            .collect();
        World { config, engine, flows, next_packet: 0 }
    }

    fn measure(mut self) -> Outcome {
        let end = Time(self.config.duration.0);
        let begin = Time(self.config.warmup.0);
        self.advance(begin);
        let baseline: Vec<Baseline> = self
            .flows
            .iter()
            .map(|flow| Baseline {
                delivered: flow.delivered(),
                sender: *flow.ends[0].endpoint.stats(),
                receiver: *flow.ends[1].endpoint.stats(),
            })
            .collect();
        let mut before: Vec<u64> = baseline.iter().map(|b| b.delivered).collect();
        let (mut jain_sum, mut windows, mut idle_windows) = (0.0, 0u32, 0u32);
        let mut window_end = begin + JAIN_WINDOW;
        while window_end <= end {
            self.advance(window_end);
            let mut shares = Vec::with_capacity(self.flows.len());
            for (flow, before) in self.flows.iter().zip(&mut before) {
                let delivered = flow.delivered();
                shares.push((delivered - core::mem::replace(before, delivered)) as f64);
            }
            match jain(&shares) {
                Some(index) => {
                    jain_sum += index;
                    windows += 1;
                }
                None => idle_windows += 1,
            }
            window_end += JAIN_WINDOW;
        }
        self.advance(end);
        self.outcome(&baseline, if windows > 0 { jain_sum / f64::from(windows) } else { f64::NAN }, idle_windows)
    }

    fn outcome(&self, baseline: &[Baseline], jain_2s: f64, idle_windows: u32) -> Outcome {
        let measured_s = (self.config.duration - self.config.warmup).as_secs_f64();
        let (mut retransmissions, mut distinct) = (0u64, 0u64);
        let flows: Vec<FlowOutcome> = self
            .flows
            .iter()
            .zip(baseline)
            .map(|(flow, base)| {
                let sender = flow.ends[0].endpoint.stats();
                let receiver = flow.ends[1].endpoint.stats();
                retransmissions += sender.retransmissions - base.sender.retransmissions;
                distinct += receiver.distinct_segments_received - base.receiver.distinct_segments_received;
                let delivered_bytes = flow.delivered() - base.delivered;
                let mean =
                    |sum: f64, sum_before: f64, n: u64, n_before: u64| (sum - sum_before) / (n - n_before) as f64;
                let (s, b) = (sender, &base.sender);
                let per_interval = |sum, before| mean(sum, before, s.interval_samples, b.interval_samples);
                let [from, to] = [flow.ends[0].node, flow.ends[1].node];
                FlowOutcome {
                    goodput_bps: delivered_bytes as f64 * 8.0 / measured_s,
                    delivered_bytes,
                    hops: self.engine.hops(from, to).or(self.engine.shortest_hops(from, to)).unwrap_or(0),
                    segments_sent: s.segments_sent,
                    retransmissions: s.retransmissions,
                    timeouts: s.timeouts,
                    rtt_mean_s: mean(s.rtt_sum_s, b.rtt_sum_s, s.rtt_samples, b.rtt_samples),
                    cov_rtt: mean(s.cov_sum, b.cov_sum, s.cov_samples, b.cov_samples),
                    pacing: PacingMeans {
                        delay_s: mean(s.delay_sum_s, b.delay_sum_s, s.delay_samples, b.delay_samples),
                        cov: mean(s.cov_sum, b.cov_sum, s.cov_samples, b.cov_samples),
                        mean_rel_abs_dev: mean(s.rel_abs_dev_sum, b.rel_abs_dev_sum, s.cov_samples, b.cov_samples),
                        interval_s: per_interval(s.interval_sum_s, b.interval_sum_s),
                        interval_delay_s: per_interval(s.interval_delay_sum_s, b.interval_delay_sum_s),
                        interval_dispersion: per_interval(s.interval_dispersion_sum, b.interval_dispersion_sum),
                    },
                }
            })
            .collect();
        let goodputs: Vec<f64> = flows.iter().map(|flow| flow.goodput_bps).collect();
        Outcome {
            measured_s,
            aggregate_goodput_bps: goodputs.iter().sum(),
            jain: jain(&goodputs).unwrap_or(f64::NAN),
            jain_2s,
            idle_windows,
            retransmission_index: retransmissions as f64 / distinct as f64,
            frames: self.engine.frames(),
            fingerprint: self.engine.fingerprint(),
            flows,
        }
    }

    fn advance(&mut self, until: Time) {
        while let Some(happening) = self.engine.advance(until) {
            match happening {
                Happening::Delivered { node, packet } => self.deliver(node, packet),
                Happening::Timer { number } => {
                    let flow = (number / TIMERS_PER_FLOW) as usize;
                    match number % TIMERS_PER_FLOW {
                        APPLICATION => self.application(flow),
                        end => {
                            let state = &mut self.flows[flow].ends[end as usize];
                            state.timer = Time::NEVER;
                            state.endpoint.on_timer(self.engine.now());
                            self.pump(flow, end as usize);
                        }
                    }
                }
            }
        }
    }

    fn deliver(&mut self, node: NodeId, packet: SimPacket) {
        let flow = packet.flow.index();
        let end = usize::from(node == self.flows[flow].ends[1].node);
        self.tell_path(flow, end);
        let arrival = Arrival { hops: packet.hops, ce: packet.ce, received_power_dbm: None };
        self.flows[flow].ends[end].endpoint.on_segment(self.engine.now(), &packet.segment, arrival);
        self.pump(flow, end);
    }

    /// Tells an endpoint how far its peer is, when that changed.
    fn tell_path(&mut self, flow: usize, end: usize) {
        let state = &mut self.flows[flow].ends[end];
        let hops = self.engine.hops(state.node, state.peer);
        if let Some(hops) = hops.filter(|&hops| state.path != Some(hops)) {
            state.path = Some(hops);
            state.endpoint.on_path(PathInfo { hops, rate: self.config.mesh.radio.rate, received_power_dbm: None });
        }
    }

    /// The application of a flow: starts it, writes the next datagram, stops it.
    fn application(&mut self, flow: usize) {
        let now = self.engine.now();
        let config = &self.config.flows[flow];
        let state = &mut self.flows[flow];
        let endpoint = &mut state.ends[0].endpoint;
        let mut next = Time::NEVER;
        if now >= state.stop {
            endpoint.close(now);
        } else {
            if !state.started {
                state.started = true;
                endpoint.open(now);
            }
            match config.traffic {
                Traffic::Ftp => {
                    endpoint.write_endless(now);
                    next = state.stop;
                }
                Traffic::Cbr { rate } => {
                    let segment = config.transport.segment();
                    endpoint.write(now, u64::from(segment));
                    state.ticks += 1;
                    let bits = u128::from(segment) * 8 * u128::from(state.ticks) * 1_000_000_000;
                    next = (state.begin + Duration((bits / u128::from(rate.0)) as u64)).min(state.stop);
                }
            }
        }
        let node = state.ends[0].node;
        self.engine.set_timer(flow as u32 * TIMERS_PER_FLOW + APPLICATION, node, next);
        self.tell_path(flow, 0);
        self.pump(flow, 0);
    }

    /// Sends what an endpoint has to send and sets its timer.
    fn pump(&mut self, flow: usize, end: usize) {
        let now = self.engine.now();
        let state = &mut self.flows[flow].ends[end];
        while let Some(segment) = state.endpoint.poll_transmit(now) {
            let packet = SimPacket {
                id: self.next_packet,
                source: state.node,
                destination: state.peer,
                flow: FlowId(flow as u16),
                ttl: INITIAL_TTL,
                hops: 0,
                ce: false,
                segment,
            };
            self.next_packet = self.next_packet.wrapping_add(1);
            self.engine.inject(state.node, packet);
        }
        let at = state.endpoint.next_wakeup();
        if at != state.timer {
            state.timer = at;
            self.engine.set_timer(flow as u32 * TIMERS_PER_FLOW + end as u32, state.node, at);
        }
    }
}

impl FlowState {
    fn delivered(&self) -> u64 {
        self.ends[1].endpoint.delivered()
    }
}
