//! Simulated world: an engine, the transport endpoints at its nodes, their applications, and the
//! measurements.

mod access;
mod delay;
mod flow;
mod gap;
mod loss;
mod measurement;
mod observe;
mod routes;
mod runs;
mod timer;

use crate::config::{Config, Flow, Traffic};
use crate::engine::{Engine, Indication};
use crate::mobility::Motion;
use crate::outcome::{FlowOutcome, Outcome, PacingMeans, jain};
use crate::packet::SimPacket;
use crate::probe::Probe;
use crate::traffic::Completion;
use alloc::vec::Vec;
use delay::{Delays, SendTimes};
use flow::{CONNECTIONS, Connection, FlowState};
use loss::Arrivals;
use meshpace_core::{FlowId, NodeId, Time};
use meshpace_mesh::Packet;
use meshpace_mesh::radio::connectivity::components;
use meshpace_transport::train::Access;
use meshpace_transport::{Arrival, Config as Transport, Endpoint, PathInfo, Segment, pump};
use observe::{BatchRecorder, SeriesRecorder};
use routes::{Outage, SAMPLE};
use timer::FlowTimer;

pub use flow::FlowCounters;
pub use measurement::Measurement;
pub use runs::{ProbedWorld, run, run_sampled, run_with};

/// A time in microseconds, modulo 2^32.
#[inline]
fn micros(time: Time) -> u32 {
    (time.0 / 1_000) as u32
}

/// An engine with the flows of a scenario. A clone continues exactly like the original; a viewer
/// uses clones to step back.
#[derive(Clone)]
pub struct World<'a, O> {
    config: &'a Config,
    engine: Engine<SimPacket, O>,
    flows: Vec<FlowState>,
    /// For each flow, the delays of its data since `warmup`.
    delays: Vec<Delays>,
    send_times: SendTimes,
    /// For each flow, the arrivals of datagrams sent since the measurement began; empty before.
    arrivals: Vec<Arrivals>,
    /// Cost of channel access, for links with aggregates; `None` without aggregates.
    access: Option<Access>,
    next_packet: u32,
    /// For each flow, samples without a route since the measurement began; empty if nodes do not
    /// move.
    outages: Vec<Outage>,
    /// Time of the next sample.
    next_sample: Time,
}

impl<'a, O: Probe<SimPacket>> World<'a, O> {
    /// Creates the world of `config` at time zero, observed by `probe`.
    pub fn new(config: &'a Config, seed: u64, probe: O) -> Self {
        let ends = || config.flows.iter().flat_map(|flow| [flow.from, flow.to]);
        let mut motion = Motion::new(&config.positions, &config.mobility, seed);
        let drawn = motion.as_mut().map(|motion| motion.positions(Time::ZERO));
        let positions = drawn.as_deref().unwrap_or(&config.positions);
        let mut engine = Engine::new(positions, &config.mesh, ends(), seed, probe);
        if let Some(links) = &config.firewall {
            engine.set_firewall(links, ends());
        }
        if let Some(motion) = motion {
            engine.set_motion(motion);
        }
        let flows: Vec<FlowState> = config
            .flows
            .iter()
            .enumerate()
            .map(|(number, flow)| {
                let state = FlowState::new(flow, number as u64, seed, Time(config.warmup.0));
                engine.set_timer(FlowTimer::Application.id(number), flow.from, state.begin);
                state
            })
            .collect();
        let delays = alloc::vec![Delays::default(); flows.len()];
        let send_times = SendTimes::new(flows.len());
        World {
            config,
            engine,
            flows,
            delays,
            send_times,
            arrivals: Vec::new(),
            access: access::access(&config.mesh),
            next_packet: 0,
            outages: Vec::new(),
            next_sample: Time::NEVER,
        }
    }

    /// Counters of every flow, and the number of hops of its route.
    fn counters(&self, now: Time) -> Vec<(FlowCounters, Option<u8>)> {
        let ends = self.config.flows.iter().map(|flow| (flow.from, flow.to));
        self.flows.iter().zip(ends).map(|(flow, (from, to))| (flow.counters(now), self.engine.hops(from, to))).collect()
    }

    /// Advances to `until`, and records the windows of the time series that end before.
    fn advance_series(&mut self, until: Time, recorder: &mut Option<SeriesRecorder>) {
        while let Some(recorder) = recorder.as_mut().filter(|recorder| recorder.next() <= until) {
            let at = recorder.next();
            self.advance_sampling(at);
            let watched = self.config.watch.iter();
            let links = watched.map(|watch| self.engine.link_state(watch.node, watch.toward)).collect();
            recorder.take(self.counters(at), links);
        }
        self.advance_sampling(until);
    }

    /// Advances to `until`, and records the batches that are complete before. Returns the time at
    /// which the last batch was complete.
    fn advance_batches(
        &mut self,
        until: Time,
        recorder: &mut Option<SeriesRecorder>,
        batch_recorder: &mut Option<BatchRecorder>,
    ) -> Option<Time> {
        while let Some(batch_recorder) = batch_recorder.as_mut().filter(|batch_recorder| batch_recorder.next() <= until)
        {
            let at = batch_recorder.next();
            self.advance_series(at, recorder);
            if batch_recorder.check(at, &self.counters(at)) {
                return Some(at);
            }
        }
        self.advance_series(until, recorder);
        None
    }

    /// Advances to `until`. If nodes move, samples every 0.1 s whether flows have a route.
    fn advance_sampling(&mut self, until: Time) {
        while self.next_sample <= until {
            let now = self.next_sample;
            self.advance(now);
            self.next_sample = now + SAMPLE;
            let Some(motion) = self.engine.motion() else { break };
            let positions = motion.positions(now);
            let components = components(&positions, self.engine.channel(), None);
            let flows = self.config.flows.iter().zip(&mut self.flows);
            for ((flow, state), outage) in flows.zip(&mut self.outages) {
                outage.route += u32::from(self.engine.hops(flow.from, flow.to).is_none());
                if components[flow.from.index()] != components[flow.to.index()] {
                    outage.path += 1;
                    state.gaps.without_path(now, SAMPLE);
                }
            }
        }
        self.advance(until);
    }

    /// Outcome of the measured interval, which ends at `end`. `baseline` holds the counters at its
    /// start.
    fn outcome(&self, baseline: &[FlowCounters], end: Time, jain_2s: f64, idle_windows: u32) -> Outcome {
        let begin = Time(self.config.warmup.0);
        let measured_s = end.since(begin).as_secs_f64();
        let is_mobile = !self.outages.is_empty();
        let (mut retransmissions, mut distinct) = (0u64, 0u64);
        let flows: Vec<FlowOutcome> = self
            .flows
            .iter()
            .zip(baseline)
            .enumerate()
            .map(|(number, (flow, base))| {
                let counted = flow.counters(end);
                let repeated = counted.sender.retransmissions - base.sender.retransmissions;
                let received = counted.receiver.distinct_segments_received - base.receiver.distinct_segments_received;
                retransmissions += repeated;
                distinct += received;
                let delivered_bytes = counted.delivered - base.delivered;
                let mean =
                    |sum: f64, sum_before: f64, n: u64, n_before: u64| (sum - sum_before) / (n - n_before) as f64;
                let (s, b) = (&counted.sender, &base.sender);
                let per_interval = |sum, before| mean(sum, before, s.interval_samples, b.interval_samples);
                let Flow { from, to, traffic, ref transport, .. } = self.config.flows[number];
                let arrivals = self.arrivals.get(number).filter(|_| matches!(transport, Transport::Udp(_)));
                let sent = s.segments_sent - b.segments_sent;
                let shortest = || if is_mobile { None } else { self.engine.shortest_hops(from, to) };
                let hops = self.engine.hops(from, to).or_else(shortest);
                // Nodes that stand still have a path all the time or never.
                let is_apart = !is_mobile && hops.is_none();
                let absent = |samples: fn(&Outage) -> u32| {
                    let samples = self.outages.get(number).map(samples);
                    samples.map_or(f64::NAN, |samples| (SAMPLE * u64::from(samples)).as_secs_f64())
                };
                let with_path = match (is_mobile, is_apart) {
                    (true, _) => flow.gaps.longest_with_path(end).as_secs_f64(),
                    (false, true) => 0.0,
                    (false, false) => f64::NAN,
                };
                let measured = |file: &&Completion| file.end >= begin && file.end <= end;
                let is_http = matches!(traffic, Traffic::Http { .. });
                FlowOutcome {
                    goodput_bps: delivered_bytes as f64 * 8.0 / measured_s,
                    delivered_bytes,
                    hops: hops.unwrap_or(0),
                    segments_sent: s.segments_sent,
                    retransmissions: s.retransmissions,
                    timeouts: s.timeouts,
                    retransmission_index: repeated as f64 / received as f64,
                    loss_ratio: arrivals.map_or(f64::NAN, |arrivals| arrivals.loss_ratio(sent)),
                    rtt_mean_s: mean(s.rtt_sum_s, b.rtt_sum_s, s.rtt_samples, b.rtt_samples),
                    cov_rtt: mean(s.cov_sum, b.cov_sum, s.cov_samples, b.cov_samples),
                    acks_sent: counted.receiver.acks_sent,
                    delay: self.delays[number].outcome(),
                    longest_gap_s: flow.gaps.longest(end).as_secs_f64(),
                    pacing: PacingMeans {
                        delay_s: mean(s.delay_sum_s, b.delay_sum_s, s.delay_samples, b.delay_samples),
                        cov: mean(s.cov_sum, b.cov_sum, s.cov_samples, b.cov_samples),
                        mean_rel_abs_dev: mean(s.rel_abs_dev_sum, b.rel_abs_dev_sum, s.cov_samples, b.cov_samples),
                        interval_s: per_interval(s.interval_sum_s, b.interval_sum_s),
                        interval_delay_s: per_interval(s.interval_delay_sum_s, b.interval_delay_sum_s),
                        interval_dispersion: per_interval(s.interval_dispersion_sum, b.interval_dispersion_sum),
                    },
                    completions: flow.application.completions().iter().filter(measured).copied().collect(),
                    transferring_s: if is_http {
                        (counted.transferring - base.transferring).as_secs_f64()
                    } else {
                        f64::NAN
                    },
                    time_without_route_s: absent(|outage| outage.route),
                    time_without_path_s: if is_apart { measured_s } else { absent(|outage| outage.path) },
                    longest_gap_with_path_s: with_path,
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
            broadcasts: self.engine.broadcasts(),
            sensed: self.engine.sensed(),
            counters: self.engine.counters(),
            fingerprint: self.engine.fingerprint(),
            flows,
            ended_s: end.as_secs_f64(),
            series: None,
            batches: Vec::new(),
        }
    }

    /// Engine of the world.
    pub fn engine(&self) -> &Engine<SimPacket, O> {
        &self.engine
    }

    /// Mutable engine, for its probe and for the positions of nodes.
    pub fn engine_mut(&mut self) -> &mut Engine<SimPacket, O> {
        &mut self.engine
    }

    /// Counters of flow `number` since time zero.
    pub fn flow_counters(&self, number: usize) -> FlowCounters {
        self.flows[number].counters(self.engine.now())
    }

    /// Sending endpoint of the current connection of flow `number`.
    pub fn sender(&self, number: usize) -> Option<&Endpoint> {
        let flow = &self.flows[number];
        flow.connections[flow.current()].as_ref().map(|connection| &connection.ends[0].endpoint)
    }

    /// Runs until `until`.
    pub fn advance(&mut self, until: Time) {
        while let Some(indication) = self.engine.advance(until) {
            match indication {
                Indication::Delivered { node, previous_hop, packet } => self.deliver(node, previous_hop, packet),
                Indication::Route { node, destination, found } => self.notify_route(node, destination, found),
                Indication::Timer { id } => match FlowTimer::of(id) {
                    (flow, FlowTimer::Application) => self.application(flow),
                    (flow, FlowTimer::End { place, end }) => {
                        let Some(connection) = self.flows[flow].at(place) else { continue };
                        connection.ends[end].timer = Time::NEVER;
                        self.pump(flow, place, end);
                        self.follow_file(flow, place);
                    }
                },
            }
        }
    }

    /// Notifies the endpoints at `node` whose peer is `destination` of the loss or recovery of
    /// their route.
    fn notify_route(&mut self, node: NodeId, destination: NodeId, found: bool) {
        for number in 0..self.flows.len() {
            let ends = [self.config.flows[number].from, self.config.flows[number].to];
            let Some(end) = (0..2).find(|&end| ends[end] == node && ends[1 - end] == destination) else { continue };
            for place in 0..CONNECTIONS {
                let Some(connection) = &mut self.flows[number].connections[place] else { continue };
                let endpoint = &mut connection.ends[end].endpoint;
                let now = self.engine.now();
                if found {
                    endpoint.on_route_recovered(now)
                } else {
                    endpoint.on_route_failure(now)
                }
                let silent = endpoint.is_silent();
                self.pump(number, place, end);
                if silent {
                    self.engine.seek_route(node, destination);
                }
            }
        }
    }

    /// Hands a packet that reached `node` to the endpoint of its connection.
    fn deliver(&mut self, node: NodeId, previous_hop: NodeId, packet: SimPacket) {
        let number = packet.flow.index();
        let flow = &mut self.flows[number];
        // A packet of a removed connection has no endpoint.
        let Some(place) = flow.place_of(packet.connection) else { return };
        let end = usize::from(node == self.config.flows[number].to);
        let now = self.engine.now();
        if end == 1
            && !packet.is_pure_ack()
            && now.0 >= self.config.warmup.0
            && let Some(sent_us) = self.send_times.get(packet.id)
        {
            self.delays[number].add(micros(now).wrapping_sub(sent_us));
        }
        if let Segment::Udp(datagram) = &packet.segment
            && let Some(arrivals) = self.arrivals.get_mut(number)
        {
            arrivals.record(datagram.number);
        }
        self.report_path(number, place, end);
        let power = self.power(number, place, end, previous_hop);
        let arrival = Arrival { hops: packet.hops, ce: packet.ce, received_power_dbm: power };
        let Some(connection) = self.flows[number].at(place) else { return };
        let before = connection.ends[1].endpoint.delivered();
        connection.ends[end].endpoint.on_segment(self.engine.now(), &packet.segment, arrival);
        self.pump(number, place, end);
        self.follow_file(number, place);
        if end == 1 {
            self.follow_gap(number, place, before);
        }
    }

    /// Ends a delivery gap of a flow if the connection at `place` has delivered more than `before`.
    #[inline]
    fn follow_gap(&mut self, number: usize, place: usize, before: u64) {
        let now = self.engine.now();
        let flow = &mut self.flows[number];
        if flow.at(place).is_some_and(|connection| connection.ends[1].endpoint.delivered() > before) {
            let more = flow.has_more();
            flow.gaps.end(now, more);
        }
    }

    /// Power with which an end receives `neighbour`. It is computed once if nodes do not move.
    fn power(&mut self, flow: usize, place: usize, end: usize, neighbour: NodeId) -> Option<f32> {
        let connection = self.flows[flow].at(place)?;
        let state = &mut connection.ends[end];
        match state.power {
            Some((of, power)) if of == neighbour && self.engine.motion().is_none() => Some(power),
            _ => {
                let power = self.engine.received_power_dbm(state.node, neighbour)?;
                state.power = Some((neighbour, power));
                Some(power)
            }
        }
    }

    /// Reports the number of hops to the peer to an endpoint if the number has changed.
    fn report_path(&mut self, flow: usize, place: usize, end: usize) {
        let Some(connection) = self.flows[flow].at(place) else { return };
        let state = &mut connection.ends[end];
        let hops = self.engine.hops(state.node, state.peer);
        if let Some(hops) = hops.filter(|&hops| state.path != Some(hops)) {
            state.path = Some(hops);
            let next_hop = self.engine.next_hop(state.node, state.peer);
            let received_power_dbm = next_hop.and_then(|next| self.engine.received_power_dbm(state.node, next));
            if let Some(access) = self.access {
                state.endpoint.on_access(access);
            }
            state.endpoint.on_path(PathInfo { hops, rate: self.config.mesh.radio.rate, received_power_dbm });
        }
    }

    /// Executes the action of an application that is due now.
    fn application(&mut self, number: usize) {
        let now = self.engine.now();
        let config = &self.config.flows[number];
        let flow = &mut self.flows[number];
        if flow.application.wants_connection(now) {
            flow.reconnect(&config.transport, config.from, config.to);
            // The timers belong to the connection that had this place before.
            let place = flow.current();
            for (end, node) in [config.from, config.to].into_iter().enumerate() {
                self.engine.set_timer(FlowTimer::End { place, end }.id(number), node, Time::NEVER);
            }
        }
        let trace = match config.traffic {
            Traffic::Trace { number } => self.config.traces[usize::from(number)].as_slice(),
            _ => &[],
        };
        let flow = &mut self.flows[number];
        let place = flow.current();
        let written = flow.application.written();
        let next = match &mut flow.connections[place] {
            Some(connection) => flow.application.act(now, &mut connection.ends[0].endpoint, trace),
            None => Time::NEVER,
        };
        if flow.application.written() > written {
            flow.gaps.wait(now);
        }
        self.engine.set_timer(FlowTimer::Application.id(number), config.from, next);
        self.report_path(number, place, 0);
        self.pump(number, place, 0);
    }

    /// Informs an application with a file transfer about its progress.
    #[inline]
    fn follow_file(&mut self, number: usize, place: usize) {
        let flow = &mut self.flows[number];
        if !flow.application.is_transferring() || place != flow.current() {
            return;
        }
        let Some(connection) = flow.connections[place].as_ref() else { return };
        let delivered = connection.ends[1].endpoint.delivered();
        let ended = connection.ends[0].endpoint.is_done();
        if let Some(next) = flow.application.on_progress(self.engine.now(), delivered, ended) {
            flow.gaps.end(self.engine.now(), false);
            let from = self.config.flows[number].from;
            self.engine.set_timer(FlowTimer::Application.id(number), from, next);
        }
    }

    /// Sends the segments that an endpoint has ready, and sets its timer.
    fn pump(&mut self, flow: usize, place: usize, end: usize) {
        let now = self.engine.now();
        let Some(Connection { number, ends }) = self.flows[flow].at(place) else { return };
        let (connection, state) = (*number, &mut ends[end]);
        let (ttl, dscp) = (self.config.mesh.routing.time_to_live(), self.config.flows[flow].dscp);
        let (node, peer) = (state.node, state.peer);
        let at = pump(&mut state.endpoint, now, |_, segment| {
            let packet = SimPacket {
                id: self.next_packet,
                source: node,
                destination: peer,
                flow: FlowId(flow as u16),
                connection,
                ttl,
                hops: 0,
                ce: false,
                dscp,
                segment,
            };
            self.send_times.set(self.next_packet, micros(now));
            self.next_packet = self.next_packet.wrapping_add(1);
            self.engine.inject(node, packet);
        });
        if at != state.timer {
            state.timer = at;
            self.engine.set_timer(FlowTimer::End { place, end }.id(flow), state.node, at);
        }
    }
}
