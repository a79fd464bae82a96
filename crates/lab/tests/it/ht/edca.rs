//! Tests of access by category (EDCA): single categories against computed values, several against a
//! stochastic model, TXOPs against their limits.

use super::edca_model::{self, parameters};
use meshpace_core::{Duration, NodeId, Rate, Time};
use meshpace_lab::validate::ht::scene::{How, categories, mbps};
use meshpace_mesh::mac::{Category, FrameKind};
use meshpace_mesh::{EdcaConfig, HtConfig};
use meshpace_sim::{Config, Event, Outcome, Probe, SimPacket, Traffic};

const ONE_EXCHANGE: EdcaConfig = EdcaConfig { video_txop: Duration::ZERO, voice_txop: Duration::ZERO };
/// 1536 bytes at MCS 7 take 36 us and 48 symbols. The ACK is sent at 24 Mbit/s.
const FRAME: u64 = 36 + 4 * 48;
const ACK: u64 = 28;
const SIFS: u64 = 16;
const EXCHANGE: u64 = FRAME + SIFS + ACK;

/// Saturated flows at MCS 7 to node 0, each from a station and with a category.
fn cell(flows: &[(u16, Category)], edca: EdcaConfig, mpdus: u32, rts: bool, seconds: u64) -> Config {
    let ht = HtConfig { mpdus, edca: Some(edca), ..HtConfig::default() };
    categories(How { ht: Some(ht), ..How::mcs(7, mpdus, rts) }, flows, seconds)
}

#[test]
fn a_category_alone_waits_its_aifs_and_half_of_its_window() {
    for (category, rts, exchanges) in [
        (Category::Background, false, 1),
        (Category::BestEffort, false, 1),
        // 3.008 ms hold ten exchanges (2.864 ms) and not eleven; 1.504 ms hold five (1.424 ms).
        (Category::Video, false, 10),
        (Category::Voice, false, 5),
        // With RTS and CTS, 128 us more, seven (2.896 ms) and three (1.232 ms).
        (Category::Video, true, 7),
        (Category::Voice, true, 3),
    ] {
        let (aifsn, window, _) = parameters(category);
        let exchange = EXCHANGE + if rts { 52 + 44 + 2 * SIFS } else { 0 };
        let txop = exchanges * exchange + (exchanges - 1) * SIFS;
        let wait = (SIFS + 9 * aifsn) as f64 + 4.5 * window as f64;
        let expected = (exchanges * 11_760) as f64 / (wait + txop as f64);
        let config = cell(&[(1, category)], EdcaConfig::default(), 1, rts, 10);
        let ours = mbps(&meshpace_sim::run(&config, 1))[0];
        println!("{category:?}, RTS {rts}: {ours:.3} Mbit/s, by arithmetic {expected:.3}");
        assert!((ours / expected - 1.0).abs() < 0.005, "{category:?}: {ours} {expected}");
    }
}

#[test]
fn an_aggregate_of_a_category_ends_within_its_txop() {
    // 15 subframes of 1540 bytes take 36 us and 711 symbols, the block ACK 32 us: 2.928 ms of
    // 3.008. 16 would take 3.116 ms. Voice: 7, 1.412 ms.
    for (category, mpdus, air) in [(Category::Video, 15, 36 + 4 * 711), (Category::Voice, 7, 36 + 4 * 332)] {
        let (aifsn, window, _) = parameters(category);
        let wait = (SIFS + 9 * aifsn) as f64 + 4.5 * window as f64;
        let expected = f64::from(mpdus * 11_760) / (wait + f64::from(air + 16 + 32));
        let config = cell(&[(1, category)], EdcaConfig::default(), 64, false, 10);
        let ours = mbps(&meshpace_sim::run(&config, 1))[0];
        assert!((ours / expected - 1.0).abs() < 0.005, "{category:?}: {ours} {expected}");
    }
}

/// Compares with the model: the share of every category and the collisions inside stations must
/// agree within 2 %. Rare values must lie within the 99 % interval of five runs.
fn compare(flows: &[(u16, Category)], edca: EdcaConfig, seconds: u64, bursts: impl Fn(Category) -> u64) {
    const SEEDS: u64 = 5;
    let burst = |category| (bursts(category) * (EXCHANGE + SIFS) - SIFS, bursts(category));
    let contenders: Vec<_> = flows.iter().map(|&(station, category)| (station, category, burst(category))).collect();
    let model = edca_model::simulate(&contenders, FRAME, 1_000);
    let config = cell(flows, edca, 1, false, seconds);
    let runs: Vec<Outcome> = (1..=SEEDS).map(|seed| meshpace_sim::run(&config, seed)).collect();
    // The mean, and half of its 99 % interval.
    let judge = |what: &str, ours: Vec<f64>, theirs: f64| {
        let mean = ours.iter().sum::<f64>() / SEEDS as f64;
        let squares: f64 = ours.iter().map(|run| (run - mean).powi(2)).sum();
        let half = 4.604 * (squares / (SEEDS - 1) as f64 / SEEDS as f64).sqrt();
        println!("{what}: {mean:.3} +- {half:.3}, model {theirs:.3}, {:+.2} %", 100.0 * (mean / theirs - 1.0));
        assert!((mean - theirs).abs() <= half.max(0.02 * theirs), "{what}: {mean:.3} +- {half:.3}, model {theirs:.3}");
    };
    for (place, (station, category)) in flows.iter().enumerate() {
        let ours = runs.iter().map(|run| mbps(run)[place]).collect();
        judge(&format!("{category:?} of station {station}"), ours, model.exchanges[place] * 11_760e-6);
    }
    // All flows are saturated from 1 s on.
    let inside: Vec<f64> =
        runs.iter().map(|run| run.counters.internal_collisions as f64 / (seconds + 1) as f64).collect();
    if model.inside > 0.0 {
        judge("collisions inside per second", inside, model.inside);
    } else {
        assert_eq!(inside, [0.0; SEEDS as usize]);
    }
}

#[test]
fn categories_of_one_station_share_as_the_model_says() {
    use Category::*;
    compare(&[(1, Voice), (1, Video), (1, BestEffort)], ONE_EXCHANGE, 15, |_| 1);
    compare(&[(1, Video), (1, BestEffort), (1, Background)], ONE_EXCHANGE, 10, |_| 1);
}

#[test]
fn categories_of_several_stations_share_as_the_model_says() {
    use Category::*;
    for (one, other, seconds) in
        [(Voice, BestEffort, 15), (Video, BestEffort, 10), (BestEffort, Background, 10), (Voice, Video, 10)]
    {
        compare(&[(1, one), (2, other)], ONE_EXCHANGE, seconds, |_| 1);
    }
    let limits = |category| match category {
        Video => 10,
        Voice => 5,
        _ => 1,
    };
    compare(&[(1, Video), (2, BestEffort)], EdcaConfig::default(), 10, limits);
    compare(&[(1, Voice), (1, BestEffort), (2, Video), (2, BestEffort)], ONE_EXCHANGE, 10, |_| 1);
}

#[test]
fn a_category_without_a_frame_collides_with_none() {
    use Category::*;
    // Every 12 ms there is a voice frame, and a best-effort frame while it is on the air. When the
    // countdown of best effort ends, voice often still has the backoff that follows a transmission
    // (IEEE Std 802.11-2020, 10.23.2.2), but nothing to send.
    let mut config = cell(&[(1, Voice), (1, BestEffort)], ONE_EXCHANGE, 1, false, 18);
    for (flow, after) in config.flows.iter_mut().skip(2).zip([0, 100]) {
        flow.traffic = Traffic::Cbr { rate: Rate::from_mbps(1) };
        (flow.start, flow.start_jitter) = (Time::ZERO + Duration::from_micros(2_000_000 + after), Duration::ZERO);
    }
    let run = meshpace_sim::run(&config, 1);
    assert_eq!(run.counters.internal_collisions, 0);
    // Both flows arrive completely.
    assert!(run.flows.iter().skip(2).all(|flow| flow.goodput_bps > 0.99e6), "{:?}", mbps(&run));
}

#[test]
fn voice_starves_background_of_the_same_station() {
    use Category::*;
    // Voice waits 2 to 5 slots after SIFS, background at least 7.
    let config = cell(&[(1, Voice), (1, Background)], ONE_EXCHANGE, 1, false, 2);
    let shares = mbps(&meshpace_sim::run(&config, 1));
    assert!(shares[0] > 30.0 && shares[1] == 0.0, "{shares:?}");
}

/// Sequences of frames that follow each other after a SIFS, by station: start, end, and number of
/// MPDUs.
#[derive(Default, Clone, Debug)]
struct Bursts {
    open: Option<Burst>,
    done: Vec<Burst>,
}

#[derive(Clone, Copy, Debug)]
struct Burst {
    category: Category,
    began: Time,
    ends: Time,
    data_frames: u32,
}

impl Probe<SimPacket> for Bursts {
    fn on(&mut self, now: Time, event: Event<'_, SimPacket>) {
        let Event::OnAir { frame } = event else { return };
        // The answers come from node 0.
        let is_data = frame.kind == FrameKind::Data;
        let (ends, data_frames) = (now + frame.air_time, u32::from(is_data));
        match &mut self.open {
            Some(burst) if now.since(burst.ends) <= Duration::from_micros(SIFS) + Duration(200) => {
                (burst.ends, burst.data_frames) = (ends, burst.data_frames + data_frames);
                assert!(!is_data || burst.category == frame.category, "one category for a TXOP");
            }
            open => {
                let began = now;
                self.done.extend(open.replace(Burst { category: frame.category, began, ends, data_frames }));
            }
        }
    }
}

#[test]
fn a_txop_holds_several_exchanges_and_keeps_its_limit() {
    use Category::*;
    for (mpdus, rts) in [(1, false), (1, true), (4, false), (64, true), (64, false)] {
        let mut bursts = Bursts::default();
        // All flows are of one station.
        let config = cell(&[(1, Video), (1, Voice), (1, BestEffort)], EdcaConfig::default(), mpdus, rts, 1);
        meshpace_sim::run_with(&config, 1, &mut bursts);
        let saturated = || bursts.done.iter().filter(|burst| burst.began > Time(1_500_000_000));
        for (category, limit_us) in [(Video, 3_008), (Voice, 1_504)] {
            let of_it = || saturated().filter(|burst| burst.category == category);
            let longest = of_it().map(|burst| burst.ends.since(burst.began)).max().unwrap();
            let most = of_it().map(|burst| burst.data_frames).max().unwrap();
            println!(
                "{category:?}, {mpdus} MPDUs, RTS {rts}: {most} data frames, {:.3} ms",
                longest.as_secs_f64() * 1e3
            );
            // 100 ns of propagation.
            assert!(longest <= Duration::from_micros(limit_us) + Duration(200 * u64::from(most)), "{longest:?}");
            assert!(longest.0 * 10 > limit_us * 1_000 * 7, "most of the limit is used: {longest:?}");
            assert!(most > 1 || mpdus == 64, "{most}");
        }
        assert!(saturated().filter(|burst| burst.category == BestEffort).all(|burst| burst.data_frames <= 1));
    }
}

#[test]
fn best_effort_of_one_station_carries_what_it_does_without_categories() {
    // Beside other stations it does not, because the counters of categories decrease in busy slots
    // too.
    for mpdus in [1, 64] {
        let with = cell(&[(1, Category::BestEffort)], EdcaConfig::default(), mpdus, true, 3);
        let mut without = with.clone();
        without.mesh.mac.ht = Some(HtConfig { edca: None, ..with.mesh.mac.ht.unwrap() });
        let [with, without] = [with, without].map(|config| mbps(&meshpace_sim::run(&config, 1))[0]);
        assert!((with / without - 1.0).abs() < 0.005, "{with} {without}");
    }
}

#[test]
fn categories_go_on_where_frames_are_lost_and_stations_hidden() {
    use Category::*;
    // Nodes 1 and 2 do not receive each other. Node 3 is received so weakly that one frame in ten
    // is lost. Some packets cross two hops.
    for (mpdus, rts) in [(1, false), (64, false), (64, true)] {
        let flows = [(1, Voice), (1, BestEffort), (2, Video), (2, Background), (3, Voice), (3, Video), (3, BestEffort)];
        let mut config = cell(&flows, EdcaConfig::default(), mpdus, rts, 3);
        let hears = |from: u16, to: u16| from.min(to) == 0 || from.max(to) == 3;
        let how = How { ht: config.mesh.mac.ht, ..How::mcs(7, mpdus, rts) };
        config.mesh = how.mesh(4, hears);
        let weak =
            |&(from, to, dbm): &(NodeId, NodeId, f64)| (from, to, if from.0.max(to.0) == 3 { -74.5 } else { dbm });
        if let meshpace_mesh::Propagation::Links(links) = &mut config.mesh.radio.propagation {
            *links = meshpace_mesh::radio::Links::new(links.all().iter().map(weak).collect());
        }
        for flow in &mut config.flows {
            flow.traffic = meshpace_sim::Traffic::Cbr { rate: meshpace_core::Rate::from_mbps(2) };
        }
        let outcome = meshpace_sim::run(&config, 1);
        let shares = mbps(&outcome);
        println!("{mpdus} MPDUs, RTS {rts}: {shares:.2?} {:?}", outcome.counters);
        assert!(
            shares.iter().all(|&share| share > 0.1 && share < 2.1),
            "nobody stops, nothing comes twice: {shares:?}"
        );
    }
}
