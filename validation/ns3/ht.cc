// 802.11n and 802.11a over links that are given, in ns-3.44: the reference for `mac.profile = "ht"` over several hops, with hidden
// terminals and with access categories, and for a chain of 802.11a.
//
//   ht nodes=4 reach=2 flows=0-3 [key=value ...]
//
// prints, separated by blanks: the goodput of each flow in Mbit/s; after a bar, for each node the mean number of MPDUs in a frame
// with data (0 if it sent none); after another bar the frames with data, the MPDUs in them and the seconds of processor time from
// warmup to duration. Keys and defaults:
//   nodes=2          on a line, 10 m apart
//   links=           a file with lines "link A B", who hears whom, and "flow FROM TO", which go over the fewest hops; then neither reach
//                    nor flows
//   reach=0          how many places further a node is heard; 0: by all. Everybody who is heard is heard with -50 dBm
//   flows=0-1        "FROM-TO", separated by commas; over several hops along the line
//   tos=0            the ToS octet of each flow, separated by commas; the last one is that of all that follow; 192 is voice, 160 video,
//                    0 best effort, 32 background
//   video_txop=4096  limit of the TXOPs of video in us, a multiple of 32; 0: one frame
//   voice_txop=2080  the same of voice
//   traffic=udp      udp: 1.1 times the rate, but 3 times shared by all flows at most, datagrams of 1470 bytes; newreno, cubic: segments of 1448
//   offered=0        Mbit/s of each UDP flow in place of that
//   mcs=7            0 to 7
//   legacy=0         6, 9, 12, 18, 24, 36, 48 or 54: 802.11a at so many Mbit/s in place of 802.11n, without aggregates and categories
//   loses=           "NODE:SHARE": this node loses that share of the data frames that it receives
//   ampdu=1          0: one MPDU per frame with an ACK; 1: aggregates up to 65,535 bytes and 5.484 ms
//   rts=0            1: RTS/CTS before every unicast data frame
//   bar=1            0: a missed block ACK is not asked for
//   counts=0         1: failures under block ACK count against the retry limit of an MPDU
//   queue=500        packets
//   warmup=2         goodput counts from here ...
//   duration=12      ... to here, in seconds
//   trace=           a file: a line "START NODE AIR KIND BYTES RETRY" for each frame, times in us
//   series=0         1: first prints the goodput of each second and, after a colon, what node 0 sent in MPDUs with data
//   seed=1           any whole number > 0
//
// HT20 at 5220 MHz, one stream, long guard interval, RTS and CTS at 6 Mbit/s; retry limit 7, which by default MPDUs under block
// ACK do not have (the wording of the standard of 2020). Each UDP flow first sends 20 datagrams alone, so that its block ACK
// agreement is made; TCP starts at U(0.1, 0.11) s. README.md says what was set and why.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/propagation-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr std::uint32_t kDatagram = 1470;
constexpr std::uint32_t kSegment = 1448;
constexpr double kHeardDb = 70;
constexpr double kNotHeardDb = 300;

struct Sent
{
    std::uint64_t frames = 0;
    std::uint64_t mpdus = 0;
};

[[noreturn]] void
Refuse(const std::string& why)
{
    std::fprintf(stderr, "ht: %s\n", why.c_str());
    std::exit(2);
}

std::vector<std::string>
Split(const std::string& list, char at)
{
    std::vector<std::string> words;
    std::istringstream text(list);
    for (std::string word; std::getline(text, word, at);)
    {
        words.push_back(word);
    }
    return words;
}

// Loses a share of the data frames that a node receives, and no control frames.
class LostData : public ErrorModel
{
  public:
    explicit LostData(double share)
        : m_share(share)
    {
    }

  private:
    bool DoCorrupt(Ptr<Packet> packet) override
    {
        return packet->GetSize() > kDatagram && m_draw->GetValue() < m_share;
    }

    void DoReset() override
    {
    }

    double m_share;
    Ptr<UniformRandomVariable> m_draw = CreateObject<UniformRandomVariable>();
};

void
CountFrame(Sent* sent, WifiConstPsduMap psdus, WifiTxVector, double)
{
    for (const auto& [station, psdu] : psdus)
    {
        if (psdu->GetHeader(0).IsData() && psdu->GetHeader(0).HasData())
        {
            ++sent->frames;
            sent->mpdus += psdu->GetNMpdus();
        }
    }
}

// A line of the trace for a frame that begins.
void
TraceFrame(std::FILE* file, std::uint32_t node, WifiConstPsduMap psdus, WifiTxVector vector, double)
{
    for (const auto& [station, psdu] : psdus)
    {
        const auto& header = psdu->GetHeader(0);
        std::fprintf(file,
                     "%.3f %u %.3f %s %u %d\n",
                     Simulator::Now().GetNanoSeconds() / 1e3,
                     node,
                     WifiPhy::CalculateTxDuration(psdu, vector, WIFI_PHY_BAND_5GHZ).GetNanoSeconds() / 1e3,
                     header.GetTypeString(),
                     psdu->GetSize(),
                     header.IsRetry() ? 1 : 0);
    }
}

void
SetDefaults(const std::map<std::string, std::string>& options)
{
    Config::SetDefault("ns3::WifiRemoteStationManager::RtsCtsThreshold",
                       UintegerValue(options.at("rts") == "1" ? 0 : 4692480));
    Config::SetDefault("ns3::WifiMacQueue::MaxSize", QueueSizeValue(QueueSize(options.at("queue") + "p")));
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Seconds(100)));
    Config::SetDefault("ns3::QosTxop::UseExplicitBarAfterMissedBlockAck", BooleanValue(options.at("bar") == "1"));
    Config::SetDefault("ns3::WifiRemoteStationManager::IncrementRetryCountUnderBa",
                       BooleanValue(options.at("counts") == "1"));
    Config::SetDefault("ns3::ArpCache::AliveTimeout", TimeValue(Days(1)));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       TypeIdValue(options.at("traffic") == "cubic" ? TcpCubic::GetTypeId() : TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kSegment));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
}

// Who hears whom, and the flows.
struct Scene
{
    std::vector<std::vector<bool>> hears;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> flows;
};

Scene
OnLine(std::uint32_t count, std::uint32_t reach, const std::string& list)
{
    Scene scene{{count, std::vector<bool>(count)}, {}};
    for (std::uint32_t a = 0; a < count; ++a)
    {
        for (std::uint32_t b = 0; b < count; ++b)
        {
            scene.hears[a][b] = a != b && (reach == 0 || (a > b ? a - b : b - a) <= reach);
        }
    }
    for (const auto& flow : Split(list, ','))
    {
        const auto ends = Split(flow, '-');
        if (ends.size() != 2)
        {
            Refuse("not a flow: " + flow);
        }
        scene.flows.emplace_back(std::stoul(ends[0]), std::stoul(ends[1]));
    }
    return scene;
}

Scene
FromFile(std::uint32_t count, const std::string& name)
{
    Scene scene{{count, std::vector<bool>(count)}, {}};
    std::ifstream file(name);
    std::string kind;
    for (std::uint32_t a, b; file >> kind >> a >> b && a < count && b < count;)
    {
        if (kind == "link")
        {
            scene.hears[a][b] = scene.hears[b][a] = true;
        }
        else
        {
            scene.flows.emplace_back(a, b);
        }
    }
    if (scene.flows.empty())
    {
        Refuse(name + ": no flow");
    }
    return scene;
}

// Host routes over the fewest hops; on a line along the line, whoever hears whom.
void
SetRoutes(const NodeContainer& nodes, const Ipv4InterfaceContainer& interfaces, const Scene& scene, bool line)
{
    Ipv4StaticRoutingHelper routing;
    const std::uint32_t count = nodes.GetN();
    for (std::uint32_t to = 0; to < count; ++to)
    {
        std::vector<std::uint32_t> next(count, count);
        std::vector<std::uint32_t> reached{to};
        next[to] = to;
        for (std::size_t i = 0; i < reached.size(); ++i)
        {
            const auto at = reached[i];
            for (std::uint32_t from = 0; from < count; ++from)
            {
                const bool near = line ? from + 1 == at || at + 1 == from : scene.hears[at][from];
                if (near && next[from] == count)
                {
                    next[from] = at;
                    reached.push_back(from);
                    const auto table = routing.GetStaticRouting(nodes.Get(from)->GetObject<Ipv4>());
                    table->AddHostRouteTo(interfaces.GetAddress(to), interfaces.GetAddress(at), 1);
                }
            }
        }
    }
}

} // namespace

int
main(int argc, char* argv[])
{
    std::map<std::string, std::string> options{
        {"nodes", "2"},   {"links", ""},  {"reach", "0"}, {"flows", "0-1"}, {"tos", "0"},    {"traffic", "udp"}, {"offered", "0"},
        {"mcs", "7"},     {"legacy", "0"}, {"loses", ""}, {"ampdu", "1"}, {"rts", "0"},     {"bar", "1"},    {"counts", "0"},  {"queue", "500"},   {"warmup", "2"},
        {"duration", "12"}, {"series", "0"}, {"trace", ""}, {"video_txop", "4096"}, {"voice_txop", "2080"}, {"seed", "1"}};
    for (int i = 1; i < argc; ++i)
    {
        const std::string word = argv[i];
        const auto equals = word.find('=');
        const auto option = options.find(word.substr(0, equals));
        if (equals == std::string::npos || option == options.end())
        {
            Refuse("not an option: " + word);
        }
        option->second = word.substr(equals + 1);
    }
    const bool udp = options["traffic"] == "udp";
    if (!udp && options["traffic"] != "newreno" && options["traffic"] != "cubic")
    {
        Refuse("traffic is udp, newreno or cubic");
    }
    const std::uint32_t count = std::stoul(options["nodes"]);
    const bool line = options["links"].empty();
    const int mcs = std::stoi(options["mcs"]);
    const int legacy = std::stoi(options["legacy"]);
    const double warmup = std::stod(options["warmup"]);
    const double duration = std::stod(options["duration"]);
    if (count < 2 || mcs < 0 || mcs > 7 || !(0 <= warmup && warmup < duration))
    {
        Refuse("two nodes at least, mcs is 0 to 7, and warmup comes before duration");
    }
    const auto scene = line ? OnLine(count, std::stoul(options["reach"]), options["flows"]) : FromFile(count, options["links"]);
    const auto& flows = scene.flows;
    RngSeedManager::SetRun(std::stoul(options["seed"]));
    SetDefaults(options);

    NodeContainer nodes(count);
    auto places = CreateObject<ListPositionAllocator>();
    for (std::uint32_t node = 0; node < count; ++node)
    {
        places->Add(Vector(10.0 * node, 0, 0));
    }
    MobilityHelper mobility;
    mobility.SetPositionAllocator(places);
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(nodes);
    const auto loss = CreateObject<MatrixPropagationLossModel>();
    loss->SetDefaultLoss(kNotHeardDb);
    for (std::uint32_t a = 0; a < count; ++a)
    {
        for (std::uint32_t b = a + 1; b < count; ++b)
        {
            if (scene.hears[a][b])
            {
                loss->SetLoss(nodes.Get(a)->GetObject<MobilityModel>(), nodes.Get(b)->GetObject<MobilityModel>(), kHeardDb);
            }
        }
    }
    const auto channel = CreateObject<YansWifiChannel>();
    channel->SetPropagationLossModel(loss);
    channel->SetPropagationDelayModel(CreateObject<ConstantSpeedPropagationDelayModel>());
    YansWifiPhyHelper phy;
    phy.SetChannel(channel);
    phy.Set("ChannelSettings", StringValue("{44, 20, BAND_5GHZ, 0}"));
    phy.Set("TxPowerStart", DoubleValue(20));
    phy.Set("TxPowerEnd", DoubleValue(20));
    phy.Set("Antennas", UintegerValue(1));
    phy.Set("MaxSupportedTxSpatialStreams", UintegerValue(1));
    phy.Set("MaxSupportedRxSpatialStreams", UintegerValue(1));
    const auto aggregate = UintegerValue(options["ampdu"] == "1" ? 65535 : 0);
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac",
                "FrameRetryLimit",
                UintegerValue(7),
                "BE_MaxAmpduSize",
                aggregate,
                "BK_MaxAmpduSize",
                aggregate,
                "VI_MaxAmpduSize",
                aggregate,
                "VO_MaxAmpduSize",
                aggregate);
    WifiHelper wifi;
    wifi.SetStandard(legacy > 0 ? WIFI_STANDARD_80211a : WIFI_STANDARD_80211n);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode",
                                 StringValue(legacy > 0 ? "OfdmRate" + std::to_string(legacy) + "Mbps" : "HtMcs" + std::to_string(mcs)),
                                 "ControlMode",
                                 StringValue("OfdmRate6Mbps"));
    const auto devices = wifi.Install(phy, mac, nodes);
    for (std::uint32_t node = 0; legacy == 0 && node < count; ++node)
    {
        const auto station = DynamicCast<WifiNetDevice>(devices.Get(node))->GetMac();
        station->GetQosTxop(AC_VI)->SetTxopLimit(MicroSeconds(std::stoul(options["video_txop"])));
        station->GetQosTxop(AC_VO)->SetTxopLimit(MicroSeconds(std::stoul(options["voice_txop"])));
    }
    if (const auto loses = Split(options["loses"], ':'); !loses.empty())
    {
        if (loses.size() != 2 || std::stoul(loses[0]) >= count)
        {
            Refuse("loses is NODE:SHARE");
        }
        const auto radio = DynamicCast<WifiNetDevice>(devices.Get(std::stoul(loses[0])))->GetPhy();
        radio->SetPostReceptionErrorModel(CreateObject<LostData>(std::stod(loses[1])));
    }
    std::FILE* const trace = options["trace"].empty() ? nullptr : std::fopen(options["trace"].c_str(), "w");
    if (!options["trace"].empty() && trace == nullptr)
    {
        Refuse("cannot write " + options["trace"]);
    }
    std::vector<Sent> sent(count);
    for (std::uint32_t node = 0; node < count; ++node)
    {
        const auto radio = DynamicCast<WifiNetDevice>(devices.Get(node))->GetPhy();
        radio->TraceConnectWithoutContext("PhyTxPsduBegin", MakeBoundCallback(&CountFrame, &sent[node]));
        if (trace != nullptr)
        {
            radio->TraceConnectWithoutContext("PhyTxPsduBegin", MakeBoundCallback(&TraceFrame, trace, node));
        }
    }

    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.Install(nodes);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.0.0");
    const auto interfaces = addresses.Assign(devices);
    TrafficControlHelper().Uninstall(devices);
    NeighborCacheHelper().PopulateNeighborCache();
    SetRoutes(nodes, interfaces, scene, line);

    const auto jitter = CreateObject<UniformRandomVariable>();
    const auto octets = Split(options["tos"], ',');
    const double megabits = legacy > 0 ? legacy : 6.5 * (mcs < 4 ? mcs + 1 : std::vector<int>{6, 8, 9, 10}[mcs - 4]);
    const double offered = std::stod(options["offered"]);
    const double each = offered > 0 ? offered : megabits * std::min(1.1, 3.0 / flows.size());
    std::vector<Ptr<PacketSink>> sinks;
    for (std::size_t n = 0; n < flows.size(); ++n)
    {
        const auto [from, to] = flows[n];
        if (from >= count || to >= count || from == to)
        {
            Refuse("a flow between nodes that are not there");
        }
        const std::uint16_t port = 5000 + n;
        const std::uint8_t tos = std::stoul(octets[std::min(n, octets.size() - 1)]);
        const auto protocol = udp ? "ns3::UdpSocketFactory" : "ns3::TcpSocketFactory";
        PacketSinkHelper sink(protocol, InetSocketAddress(Ipv4Address::GetAny(), port));
        const auto there = sink.Install(nodes.Get(to));
        there.Start(Seconds(0));
        sinks.push_back(DynamicCast<PacketSink>(there.Get(0)));
        const InetSocketAddress address(interfaces.GetAddress(to), port);
        ApplicationContainer source;
        double start = 0.1;
        if (udp)
        {
            OnOffHelper helper(protocol, address);
            helper.SetConstantRate(DataRate(static_cast<std::uint64_t>(each * 1e6)), kDatagram);
            helper.SetAttribute("Tos", UintegerValue(tos));
            source = helper.Install(nodes.Get(from));
            helper.SetAttribute("MaxBytes", UintegerValue(20 * kDatagram));
            helper.Install(nodes.Get(from)).Start(Seconds(0.1 * (n + 1)));
            start = 0.1 * (flows.size() + 1);
        }
        else
        {
            BulkSendHelper helper(protocol, address);
            helper.SetAttribute("SendSize", UintegerValue(kSegment));
            helper.SetAttribute("Tos", UintegerValue(tos));
            source = helper.Install(nodes.Get(from));
        }
        source.Start(Seconds(start + jitter->GetValue(0, 0.01)));
    }

    std::vector<std::uint64_t> before;
    std::pair<std::uint64_t, std::uint64_t> last;
    if (options["series"] == "1")
    {
        for (int second = 1; second <= duration; ++second)
        {
            Simulator::Schedule(Seconds(second), [&sinks, &sent, &last] {
                const auto mpdus = sent[0].mpdus;
                std::printf("%.3f:%llu ",
                            (sinks[0]->GetTotalRx() - last.first) * 8 / 1e6,
                            static_cast<unsigned long long>(mpdus - last.second));
                last = {sinks[0]->GetTotalRx(), mpdus};
            });
        }
    }
    Simulator::Stop(Seconds(warmup));
    Simulator::Run();
    for (const auto& sink : sinks)
    {
        before.push_back(sink->GetTotalRx());
    }
    const auto sentBefore = sent;
    const std::clock_t began = std::clock();
    Simulator::Stop(Seconds(duration - warmup));
    Simulator::Run();
    for (std::size_t n = 0; n < sinks.size(); ++n)
    {
        std::printf("%.4f ", (sinks[n]->GetTotalRx() - before[n]) * 8 / (duration - warmup) / 1e6);
    }
    std::printf("|");
    Sent all;
    for (std::uint32_t node = 0; node < count; ++node)
    {
        const auto frames = sent[node].frames - sentBefore[node].frames;
        const auto mpdus = sent[node].mpdus - sentBefore[node].mpdus;
        std::printf(" %.3f", frames == 0 ? 0.0 : static_cast<double>(mpdus) / frames);
        all.frames += frames;
        all.mpdus += mpdus;
    }
    std::printf(" | %llu %llu %.2f\n",
                static_cast<unsigned long long>(all.frames),
                static_cast<unsigned long long>(all.mpdus),
                static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC);
    Simulator::Destroy();
    if (trace != nullptr && std::fclose(trace) != 0)
    {
        Refuse("cannot write " + options["trace"]);
    }
    return 0;
}
