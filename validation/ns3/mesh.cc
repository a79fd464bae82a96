// Bulk transfers between nodes at given places in ns-3.44: NewReno over AODV, the reference for speed and the counterpart
// of ../ns2/mesh.tcl.
//
//   mesh mesh=FILE [key=value ...]
//
// prints one line of key=value pairs. FILE has one line per node, "node X Y" in metres, and one per flow, "flow FROM TO".
// Keys and defaults:
//   reception=stock  stock: ns-3's own receiver; ns2: ns-2's rule on top of it (below)
//   window=64        receiver window in segments
//   packet=1460      payload of a segment in bytes
//   warmup=20        goodput counts from here ...
//   duration=200     ... to here, in seconds
//   seed=1           any whole number > 0
//
// Each flow starts at 1 s + U(0, 0.1 s). README.md says which settings mean something else than in ns-2 or here, and why
// these were taken.

#include "ns3/aodv-helper.h"
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/wifi-module.h"

#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

// Sent at 24.5 dBm over two-ray ground at 914 MHz from antennas 1.5 m high, a frame arrives with this much power ...
constexpr double kDecodeDbm = -64.374; // ... at 250 m
constexpr double kSenseDbm = -78.071;  // ... at 550 m
// A frame survives a later one that is this much weaker, under ns-2's rule.
constexpr double kCaptureDb = 10.0;

std::uint64_t g_frames = 0;

void
CountFrame(WifiConstPsduMap, WifiTxVector, double)
{
    ++g_frames;
}

// ns-2's rule of reception, on the hooks that ns-3 offers: the first frame to arrive seizes the receiver, whether it can
// be decoded or only sensed; a later one that is not 10 dB weaker spoils it, and of two that collide the one that
// lasts longer is held. What is held and cannot be used ends as an error, with EIFS. ns-3 still receives
// by its own rule; as an error model, this takes away what ns-2 would not have received.
class FirstLock : public ErrorModel
{
  public:
    FirstLock(Ptr<WifiPhy> phy, Ptr<ChannelAccessManager> access)
        : m_phy(phy),
          m_access(access)
    {
    }

    void Arrives(Ptr<const WifiPpdu>, double dbm, Time lasts)
    {
        if (dbm < kSenseDbm)
        {
            return;
        }
        const auto now = Simulator::Now();
        if (now >= m_end)
        {
            m_dbm = dbm;
            m_spoilt = dbm < kDecodeDbm || m_phy->IsStateTx();
            Hold(now + lasts);
        }
        else if (m_dbm < dbm + kCaptureDb)
        {
            m_spoilt = true;
            if (now + lasts > m_end)
            {
                m_dbm = dbm;
                Hold(now + lasts);
            }
        }
    }

    void Sends(WifiConstPsduMap, WifiTxVector, double)
    {
        m_spoilt = true;
    }

  private:
    void Hold(Time end)
    {
        m_end = end;
        m_ending.Cancel();
        m_ending = Simulator::Schedule(end - Simulator::Now(), &FirstLock::Ends, this);
    }

    void Ends()
    {
        // What ns-3 is receiving has an end of its own.
        if (m_spoilt && !m_phy->IsStateRx() && !m_phy->IsStateTx())
        {
            m_access->NotifyRxEndErrorNow();
        }
    }

    bool DoCorrupt(Ptr<Packet>) override
    {
        // ns-3 adds the parts of a frame up to its end in steps of its own.
        const auto off = Abs(Simulator::Now() - m_end);
        return m_spoilt || off > NanoSeconds(100);
    }

    void DoReset() override
    {
    }

    Ptr<WifiPhy> m_phy;
    Ptr<ChannelAccessManager> m_access;
    double m_dbm{0};      // power of the frame that is held
    bool m_spoilt{false}; // whether it cannot be used
    Time m_end;           // when it ends; none is held after that
    EventId m_ending;
};

struct Flow
{
    std::uint32_t from;
    std::uint32_t to;
};

[[noreturn]] void
Refuse(const std::string& why)
{
    std::fprintf(stderr, "mesh: %s\n", why.c_str());
    std::exit(2);
}

void
ReadMesh(const std::string& name, Ptr<ListPositionAllocator> places, std::vector<Flow>& flows)
{
    std::ifstream file(name);
    if (!file)
    {
        Refuse("cannot read " + name);
    }
    std::string kind;
    while (file >> kind)
    {
        if (double x, y; kind == "node" && file >> x >> y)
        {
            places->Add(Vector(x, y, 1.5));
        }
        else if (Flow flow; kind == "flow" && file >> flow.from >> flow.to)
        {
            flows.push_back(flow);
        }
        else
        {
            Refuse(name + ": not \"node X Y\" or \"flow FROM TO\"");
        }
    }
    for (const auto& flow : flows)
    {
        if (flow.from >= places->GetSize() || flow.to >= places->GetSize())
        {
            Refuse(name + ": a flow between nodes that are not there");
        }
    }
}

void
SetDefaults(std::uint32_t window, std::uint32_t packet)
{
    const auto limit = UintegerValue(1000000000);
    // TCP. With SACK off, ns-3.44 sends nearly every segment twice after a timeout; with it, recovery is that of SACK and
    // the window that of NewReno.
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(packet));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(window * packet));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    // Otherwise a connection is given up after six timeouts.
    Config::SetDefault("ns3::TcpSocket::DataRetries", limit);
    Config::SetDefault("ns3::TcpSocket::ConnCount", limit);
    // The MAC.
    Config::SetDefault("ns3::WifiRemoteStationManager::RtsCtsThreshold", UintegerValue(0));
    // The queue of 50: AODV takes a packet that a full MAC queue refuses for a lost link, so that queue is nearly none.
    Config::SetDefault("ns3::WifiMacQueue::MaxSize", QueueSizeValue(QueueSize("2p")));
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Days(1)));
    // ARP as in ns-2: what is known stays known.
    Config::SetDefault("ns3::ArpCache::AliveTimeout", TimeValue(Days(1)));
}

} // namespace

int
main(int argc, char* argv[])
{
    std::map<std::string, std::string> options{{"mesh", ""},
                                               {"reception", "stock"},
                                               {"window", "64"},
                                               {"packet", "1460"},
                                               {"warmup", "20"},
                                               {"duration", "200"},
                                               {"seed", "1"}};
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
    const bool firstLock = options["reception"] == "ns2";
    if (!firstLock && options["reception"] != "stock")
    {
        Refuse("reception is stock or ns2");
    }
    const std::uint32_t window = std::stoul(options["window"]);
    const std::uint32_t packet = std::stoul(options["packet"]);
    const double warmup = std::stod(options["warmup"]);
    const double duration = std::stod(options["duration"]);
    const std::uint32_t seed = std::stoul(options["seed"]);
    if (window < 1 || packet < 1 || seed < 1 || !(0 <= warmup && warmup < duration))
    {
        Refuse("window, packet and seed are at least 1, and warmup comes before duration");
    }
    auto places = CreateObject<ListPositionAllocator>();
    std::vector<Flow> flows;
    ReadMesh(options["mesh"], places, flows);
    RngSeedManager::SetRun(seed);
    SetDefaults(window, packet);

    NodeContainer nodes(places->GetSize());
    MobilityHelper mobility;
    mobility.SetPositionAllocator(places);
    mobility.SetMobilityModel("ns3::ConstantPositionMobilityModel");
    mobility.Install(nodes);

    YansWifiChannelHelper channel;
    channel.SetPropagationDelay("ns3::ConstantSpeedPropagationDelayModel");
    channel.AddPropagationLoss("ns3::TwoRayGroundPropagationLossModel", "Frequency", DoubleValue(914e6));
    YansWifiPhyHelper phy;
    phy.SetChannel(channel.Create());
    phy.Set("ChannelSettings", StringValue("{0, 22, BAND_2_4GHZ, 0}"));
    phy.Set("TxPowerStart", DoubleValue(24.5));
    phy.Set("TxPowerEnd", DoubleValue(24.5));
    phy.Set("TxGain", DoubleValue(0));
    phy.Set("RxGain", DoubleValue(0));
    // ns-3 takes this limit per 20 MHz, and the channel has 22.
    phy.Set("RxSensitivity", DoubleValue(kSenseDbm - 0.414));
    phy.Set("CcaEdThreshold", DoubleValue(kSenseDbm));
    phy.Set("CcaSensitivity", DoubleValue(kSenseDbm));
    phy.SetPreambleDetectionModel("ns3::ThresholdPreambleDetectionModel",
                                  "MinimumRssi",
                                  DoubleValue(kDecodeDbm),
                                  "Threshold",
                                  DoubleValue(firstLock ? -1000 : 4));
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac", "FrameRetryLimit", UintegerValue(7));
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211b);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode",
                                 StringValue("DsssRate2Mbps"),
                                 "ControlMode",
                                 StringValue("DsssRate1Mbps"),
                                 "NonUnicastMode",
                                 StringValue("DsssRate1Mbps"));
    const auto devices = wifi.Install(phy, mac, nodes);
    for (std::uint32_t i = 0; i < devices.GetN(); ++i)
    {
        const auto device = DynamicCast<WifiNetDevice>(devices.Get(i));
        const auto radio = device->GetPhy();
        radio->TraceConnectWithoutContext("PhyTxPsduBegin", MakeCallback(&CountFrame));
        if (firstLock)
        {
            const auto rule = Create<FirstLock>(radio, device->GetMac()->GetChannelAccessManager());
            radio->SetPostReceptionErrorModel(rule);
            radio->TraceConnectWithoutContext("SignalArrival", MakeCallback(&FirstLock::Arrives, PeekPointer(rule)));
            radio->TraceConnectWithoutContext("PhyTxPsduBegin", MakeCallback(&FirstLock::Sends, PeekPointer(rule)));
        }
    }

    // The constants that ns-2.35 has, and no HELLOs: a lost link is what the MAC gives up.
    AodvHelper aodv;
    aodv.Set("EnableHello", BooleanValue(false));
    aodv.Set("GratuitousReply", BooleanValue(false));
    aodv.Set("ActiveRouteTimeout", TimeValue(Seconds(10)));
    aodv.Set("MyRouteTimeout", TimeValue(Seconds(10)));
    aodv.Set("NodeTraversalTime", TimeValue(MilliSeconds(30)));
    aodv.Set("NetDiameter", UintegerValue(30));
    aodv.Set("TtlStart", UintegerValue(5));
    aodv.Set("RreqRetries", UintegerValue(3));
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.SetRoutingHelper(aodv);
    stack.Install(nodes);
    TrafficControlHelper queue;
    queue.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", QueueSizeValue(QueueSize("48p")));
    queue.Install(devices);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.0.0");
    const auto interfaces = addresses.Assign(devices);

    const auto jitter = CreateObject<UniformRandomVariable>();
    std::vector<Ptr<PacketSink>> sinks;
    std::uint16_t port = 5000;
    for (const auto& flow : flows)
    {
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        const auto there = sink.Install(nodes.Get(flow.to));
        there.Start(Seconds(0));
        sinks.push_back(DynamicCast<PacketSink>(there.Get(0)));
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(interfaces.GetAddress(flow.to), port));
        source.SetAttribute("SendSize", UintegerValue(packet));
        source.Install(nodes.Get(flow.from)).Start(Seconds(1 + jitter->GetValue(0, 0.1)));
        ++port;
    }

    const auto delivered = [&sinks] {
        std::uint64_t bytes = 0;
        for (const auto& sink : sinks)
        {
            bytes += sink->GetTotalRx();
        }
        return bytes;
    };
    Simulator::Stop(Seconds(warmup));
    Simulator::Run();
    const auto before = delivered();
    Simulator::Stop(Seconds(duration - warmup));
    Simulator::Run();
    std::printf("nodes=%u flows=%zu window=%u seed=%u warmup=%g duration=%g reception=%s frames=%llu goodput_kbps=%.3f\n",
                nodes.GetN(),
                flows.size(),
                window,
                seed,
                warmup,
                duration,
                options["reception"].c_str(),
                static_cast<unsigned long long>(g_frames),
                (delivered() - before) * 8 / (duration - warmup) / 1000);
    Simulator::Destroy();
    return 0;
}
