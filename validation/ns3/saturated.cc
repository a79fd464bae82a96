// Saturated UDP between nodes at given places in ns-3.44, one hop each: what its MAC and its receiver carry, the reference for the
// profile `ieee` under the reception `sinr`.
//
//   saturated nodes=0:0,200:0 flows=0-1 [key=value ...]
//
// prints the goodput of each flow in kbit/s, separated by blanks. Keys and defaults:
//   nodes=           places in metres, "X:Y" separated by commas
//   flows=           "FROM-TO", separated by commas
//   rts=1            1: RTS/CTS before every unicast frame, 0: never
//   warmup=10        goodput counts from here ...
//   duration=40      ... to here, in seconds
//   seed=1           any whole number > 0
//
// 802.11b, 2 Mbit/s for data and control frames (ns-3 sends the ACK at the rate of its data whatever rate RTS and CTS have), long
// preamble, seven attempts for any frame, ARP answered before. Each flow offers 2 Mbit/s from U(0.1, 0.2) s on. A datagram has
// 1444 bytes: with 28 for IP and UDP, 8 for LLC and 28 for the MAC the frame is as long as one of meshpace with 1460 bytes of
// payload, whose IP and UDP take 20 as in ns-2 and which has no LLC header. So that goodputs can be compared, each datagram
// counts as 1460 bytes.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/mobility-module.h"
#include "ns3/network-module.h"
#include "ns3/wifi-module.h"

#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

// Two-ray ground at 914 MHz, antennas 1.5 m high, sent at 24.5 dBm: decoded to 250 m, sensed to 550 m.
constexpr double kDecodeDbm = -64.374;
constexpr double kSenseDbm = -78.071;
constexpr std::uint32_t kSent = 1444;
constexpr double kCounted = 1460;

[[noreturn]] void
Refuse(const std::string& why)
{
    std::fprintf(stderr, "saturated: %s\n", why.c_str());
    std::exit(2);
}

// The pairs of numbers of a list such as "0:0,200:0" or "0-1,2-3".
std::vector<std::pair<double, double>>
Pairs(const std::string& list, char between)
{
    std::vector<std::pair<double, double>> pairs;
    std::istringstream words(list);
    for (std::string word; std::getline(words, word, ',');)
    {
        const auto at = word.find(between, 1);
        if (at == std::string::npos)
        {
            Refuse("not a pair: " + word);
        }
        pairs.emplace_back(std::stod(word.substr(0, at)), std::stod(word.substr(at + 1)));
    }
    return pairs;
}

} // namespace

int
main(int argc, char* argv[])
{
    std::map<std::string, std::string> options{
        {"nodes", ""}, {"flows", ""}, {"rts", "1"}, {"warmup", "10"}, {"duration", "40"}, {"seed", "1"}};
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
    const double warmup = std::stod(options["warmup"]);
    const double duration = std::stod(options["duration"]);
    RngSeedManager::SetRun(std::stoul(options["seed"]));
    Config::SetDefault("ns3::WifiRemoteStationManager::RtsCtsThreshold",
                       UintegerValue(options["rts"] == "1" ? 0 : 4692480));
    Config::SetDefault("ns3::WifiMacQueue::MaxSize", QueueSizeValue(QueueSize("50p")));
    Config::SetDefault("ns3::WifiMacQueue::MaxDelay", TimeValue(Days(1)));
    Config::SetDefault("ns3::ArpCache::AliveTimeout", TimeValue(Days(1)));

    auto places = CreateObject<ListPositionAllocator>();
    for (const auto& [x, y] : Pairs(options["nodes"], ':'))
    {
        places->Add(Vector(x, y, 1.5));
    }
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
                                  DoubleValue(4));
    WifiMacHelper mac;
    mac.SetType("ns3::AdhocWifiMac", "FrameRetryLimit", UintegerValue(7));
    WifiHelper wifi;
    wifi.SetStandard(WIFI_STANDARD_80211b);
    wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager",
                                 "DataMode",
                                 StringValue("DsssRate2Mbps"),
                                 "ControlMode",
                                 StringValue("DsssRate2Mbps"),
                                 "NonUnicastMode",
                                 StringValue("DsssRate1Mbps"));
    const auto devices = wifi.Install(phy, mac, nodes);

    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.Install(nodes);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.0.0");
    const auto interfaces = addresses.Assign(devices);
    NeighborCacheHelper().PopulateNeighborCache();

    const auto jitter = CreateObject<UniformRandomVariable>();
    std::vector<Ptr<PacketSink>> sinks;
    std::uint16_t port = 5000;
    for (const auto& [from, to] : Pairs(options["flows"], '-'))
    {
        if (from >= nodes.GetN() || to >= nodes.GetN())
        {
            Refuse("a flow between nodes that are not there");
        }
        PacketSinkHelper sink("ns3::UdpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        const auto there = sink.Install(nodes.Get(static_cast<std::uint32_t>(to)));
        there.Start(Seconds(0));
        sinks.push_back(DynamicCast<PacketSink>(there.Get(0)));
        const auto address = interfaces.GetAddress(static_cast<std::uint32_t>(to));
        OnOffHelper source("ns3::UdpSocketFactory", InetSocketAddress(address, port));
        source.SetConstantRate(DataRate("2Mbps"), kSent);
        source.Install(nodes.Get(static_cast<std::uint32_t>(from))).Start(Seconds(0.1 + jitter->GetValue(0, 0.1)));
        ++port;
    }
    std::vector<std::uint64_t> before;
    Simulator::Stop(Seconds(warmup));
    Simulator::Run();
    for (const auto& sink : sinks)
    {
        before.push_back(sink->GetTotalRx());
    }
    Simulator::Stop(Seconds(duration - warmup));
    Simulator::Run();
    for (std::size_t i = 0; i < sinks.size(); ++i)
    {
        const auto datagrams = (sinks[i]->GetTotalRx() - before[i]) / kSent;
        std::printf("%s%.3f", i == 0 ? "" : " ", datagrams * kCounted * 8 / (duration - warmup) / 1000);
    }
    std::printf("\n");
    Simulator::Destroy();
    return 0;
}
