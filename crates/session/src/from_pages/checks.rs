//! Checks of a run as a whole. The comment of each check begins with the sentence of the pages that
//! it comes from.

use super::application::{Application, End};
use super::plan::{Kind, Plan, Protection};
use super::world::{Checks, LISTENER, World, is_active, is_judged};
use crate::failure::Reason;
use meshpace_core::{Duration, Time};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// True if no event of the plan excuses a talk from arriving completely.
fn is_fair(plan: &Plan, at: usize) -> bool {
    let (observer, talk) = (&plan.observer, &plan.talks[at]);
    let excuses = plan.incidents.iter().any(|incident| match incident.kind {
        // "can end the connection with forged ICMP or strays only while the peer is silent"
        Kind::Blackout { .. } => observer.complaints > 0,
        Kind::Move { source, .. } => {
            // "Such an attacker can also prevent that a peer which does move is followed"; and a
            // peer that has moved and has no data to send is silent.
            let (copies, is_plain) = (observer.overtaken + observer.replayed, plan.protection == Protection::Plain);
            let is_followed = !is_plain && copies + observer.complaints == 0;
            source == talk.source && !is_followed
        }
        // A restart after a talk began is noted in `World::cut` when it happens.
        Kind::RestartOpener { .. } | Kind::RestartListener => false,
        Kind::NoListener { .. } => true,
        Kind::Abort { talk, .. } | Kind::LetGo { talk, .. } => talk == at,
    });
    is_judged(plan, talk)
        && !excuses
        && !plan.are_limits_tight
        && plan.path.lost <= 50
        // "cut the padding off a request, so that a narrow path looks wide, and the connection
        // stalls for good"
        && observer.altered_openings == 0
}

/// All checks of this file.
pub(super) const ALL: Checks = Checks { always, before_the_end, at_the_end };

/// "16,384 connections, 4096 per source, 1024 unfinished handshakes, 256 per source", or the limits
/// that the plan sets instead.
pub(super) fn always(world: &mut World<'_>) {
    let port = &world.ports[LISTENER];
    let limits = port.settings().limits;
    let (handshakes, connections) = port.endpoint.in_use();
    let mut sources: BTreeMap<IpAddr, usize> = BTreeMap::new();
    for party in port.parties.values().filter(|party| party.session.has_place()) {
        *sources.entry(party.session.peer().ip()).or_default() += 1;
    }
    let most = sources.values().max().copied().unwrap_or(0);
    let counted: usize = sources.values().sum();
    let is_right = handshakes <= limits.half_open
        && connections <= limits.connections
        && most <= limits.connections_per_source
        && counted == connections
        && port.endpoint.unfinished() == handshakes;
    if !is_right {
        world.broken.push(format!(
            "\"A listener grants places\": {handshakes} handshakes, {connections} connections, {most} of a source, \
             {counted} in fact; {limits:?}"
        ));
    }
}

/// Checks, before the remaining connections are reset, that every connection whose ends keep to the
/// protocol has ended by itself.
pub(super) fn before_the_end(world: &mut World<'_>) {
    let mut broken = Vec::new();
    for (at, talk) in world.plan.talks.iter().enumerate() {
        let ends = world.applications(at);
        if !is_judged(world.plan, talk) {
            continue;
        }
        let results = ends.map(|end| end.map(|end| (end.end.clone(), end.read, end.written)));
        for (side, application) in ends.iter().enumerate() {
            let Some(application) = application else { continue };
            if application.end.is_none() && !world.cut[at] {
                broken.push(format!("\"everything ends\": talk {at}, end {side}: {results:?}"));
            }
        }
        if is_fair(world.plan, at) && !world.cut[at] && !has_arrived(world.plan, at, ends) {
            broken.push(format!(
                "\"and all of them arrive once the wire is good, however much was forged\": talk {at}: {results:?}"
            ));
        }
        broken.extend(ends_elsewhere(ends).map(|what| format!("\"in order\": talk {at}: {what}")));
        broken.extend(told_wrongly(world, at, ends));
        broken.extend(kept_out(world, at, ends));
    }
    world.broken.extend(broken);
}

/// True if both streams of a talk have arrived and both ends know it. Only the last ACK may be
/// missing: "If only the answers to its repeated closing are lost, the other end reports
/// ECONNRESET".
pub(super) fn has_arrived(plan: &Plan, at: usize, ends: [Option<&Application>; 2]) -> bool {
    let [Some(one), Some(other)] = ends else { return false };
    let all = |reader: &Application, writer: &Application| reader.has_read_end && reader.read == writer.total();
    let is_told = |end: &Application, peer: &Application| match &end.end {
        Some(End::Well) => true,
        Some(End::Failed(reason, _)) if *reason == Reason::TimedOut => has_closed_and_moved(plan, at, peer),
        Some(End::Failed(reason, _)) => *reason == Reason::Reset,
        _ => false,
    };
    all(one, other)
        && all(other, one)
        && is_told(one, other)
        && is_told(other, one)
        && [one, other].iter().any(|end| end.end == Some(End::Well))
}

/// True if an end closed successfully and got another address at most one round trip earlier, or
/// later: "An end that has closed sends nothing of its own accord, so nobody learns its new address".
fn has_closed_and_moved(plan: &Plan, at: usize, application: &Application) -> bool {
    let (Some(End::Well), Some(ended)) = (&application.end, application.ended_at) else { return false };
    let round_trip = Duration::from_millis(2 * (plan.path.delay_ms + plan.path.jitter_ms));
    application.side == 0
        && plan.incidents.iter().any(|incident| {
            let moved = Time::ZERO + Duration::from_millis(incident.at_ms);
            matches!(incident.kind, Kind::Move { source, .. } if source == plan.talks[at].source)
                && moved + round_trip >= ended
        })
}

/// "the bytes read are the bytes written, in order, and all of them arrive": a stream ends where its
/// writer ended it. This also holds for a writer that let go of the connection early.
pub(super) fn ends_elsewhere(ends: [Option<&Application>; 2]) -> Option<String> {
    let [Some(one), Some(other)] = ends else { return None };
    [(one, other), (other, one)].into_iter().find_map(|(reader, writer)| {
        let is_wrong = reader.has_read_end && reader.read != writer.written;
        is_wrong.then(|| format!("{} bytes were written, and the stream ended after {}", writer.written, reader.read))
    })
}

/// "`close` does the same and reports whether the data has arrived."
fn told_wrongly(world: &World<'_>, at: usize, ends: [Option<&Application>; 2]) -> Option<String> {
    let [Some(one), Some(other)] = ends else { return None };
    [(one, other), (other, one)].into_iter().find_map(|(told, peer)| {
        let is_excused = world.cut[at] || peer.end == Some(End::Own) || peer.end.is_none();
        let is_wrong = World::is_well(Some(told)) && !is_excused && peer.read != told.total();
        is_wrong.then(|| {
            format!(
                "\"reports whether the data has arrived\": talk {at}: all is well, and {} of {} bytes were read, {:?}",
                peer.read,
                told.total(),
                peer.end
            )
        })
    })
}

/// "Strangers begin 10,000 handshakes per second that they do not finish. Meanwhile ten clients open
/// a connection over a path of 200 ms there and back, send and close within a second each."
fn kept_out(world: &World<'_>, at: usize, ends: [Option<&Application>; 2]) -> Option<String> {
    let plan = world.plan;
    let is_quiet = plan.incidents.is_empty() && !is_active(&plan.observer) && !plan.are_limits_tight;
    if !is_quiet || plan.path.lost > 0 || plan.path.width < 1500 {
        return None;
    }
    let started = world.started[at]?;
    let limit = Duration::from_millis(1000 + 8 * (plan.path.delay_ms + plan.path.jitter_ms));
    let opened = ends[0]?.opened_at.unwrap_or(Time::NEVER);
    (opened.since(started) > limit)
        .then(|| format!("\"within a second each\": talk {at} opened at {opened}, begun at {started}"))
}

/// "everything ends, and gives its places back".
pub(super) fn at_the_end(world: &mut World<'_>) {
    let ports = world.ports.iter().enumerate();
    let kept = ports.filter(|(_, port)| {
        let endpoint = &port.endpoint;
        !port.parties.is_empty()
            || endpoint.in_use() != (0, 0)
            || endpoint.unfinished() > 0
            || endpoint.connections().next().is_some()
    });
    let kept: Vec<_> = kept.map(|(at, port)| (at, port.parties.len(), port.endpoint.in_use())).collect();
    if !kept.is_empty() {
        world
            .broken
            .push(format!("\"everything ends, and gives its places back\": {kept:?} (port, connections, places)"));
    }
}
