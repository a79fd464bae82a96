# One flow over a chain of 802.11 nodes in ns-2.35: the reference for goodput and for speed.
#
#   ns chain.tcl [key=value ...]
#
# prints one line of key=value pairs. Keys and defaults:
#   hops=4          hops from the first node to the last
#   spacing=200     metres between neighbours
#   agent=newreno   newreno | sack | udp (sack: ns-2's Sack1 with up to three blocks)
#   routes=aodv     aodv | static (shortest paths, no routing protocol on the air)
#   window=64       receiver window in segments
#   cwl=0           congestion window limit in segments, 0 for none; the smaller of it and window counts
#   rate=2000000    payload rate of udp in bit/s
#   packet=1460     payload of a segment or datagram in bytes
#   rts=1           1: RTS/CTS before every unicast frame, 0: never
#   datarate=2e6    rate of unicast data frames in bit/s
#   queue=50        limit of the interface queue
#   warmup=20       goodput counts from here ...
#   duration=200    ... to here, in seconds after the flow's time zero
#   seed=1          any whole number > 0
#   trace=          file for a trace of agents, routers and MACs; empty for none
#
# The flow starts at 1 s + U(0, 0.1 s). With routes=static the routes come from DSDV, which converges for 200 s and then
# falls silent; all times, including the flow's time zero (`t0` in the output), move by those 200 s. DSDV adds an IP
# header to every packet, also to those that TCP has already given one; TCP's own is made 20 bytes shorter, so that
# frames are as long as under AODV.

source [file join [file dirname [info script]] radio.tcl]
source [file join [file dirname [info script]] generators.tcl]
array set opt {
    hops 4 spacing 200 agent newreno routes aodv window 64 cwl 0 rate 2000000 packet 1460 rts 1 datarate 2e6
    queue 50 warmup 20 duration 200 seed 1 trace ""
}
foreach word $argv {
    if {![regexp {^([a-z]+)=(.*)$} $word -> key value] || ![info exists opt($key)]} {
        puts stderr "chain.tcl: not an option: $word (known: [lsort [array names opt]])"
        exit 2
    }
    set opt($key) $value
}
foreach {key allowed} {agent {newreno sack udp} routes {aodv static}} {
    if {$opt($key) ni $allowed} {
        puts stderr "chain.tcl: $key=$opt($key), expected one of: $allowed"
        exit 2
    }
}
set static [expr {$opt(routes) eq "static"}]
set t0 [expr {$static ? 200.0 : 0.0}]

# Only the headers in use, which makes ns-2 smaller and faster.
remove-all-packet-headers
add-packet-header Common Flags IP TCP RTP LL Mac ARP AODV Message

set ns [new Simulator]
set jitter [seed_generators $opt(seed)]

set_radio $opt(datarate) $opt(rts)
if {$static} {
    Agent/TCP set tcpip_base_hdr_size_ 20
    Agent/TCPSink set packetSize_ 20
    Agent/DSDV set use_mac_ 0
    Agent/DSDV set verbose_ 0
    # A route that is never confirmed again must not time out.
    Agent/DSDV set min_update_periods_ 1000000
}

# A wireless node needs a trace file even if nothing is traced.
set traced [expr {$opt(trace) ne "" ? "ON" : "OFF"}]
$ns trace-all [open [expr {$opt(trace) ne "" ? $opt(trace) : "/dev/null"}] w]
set nodes [expr {$opt(hops) + 1}]
set area [new Topography]
$area load_flatgrid [expr {int($opt(hops) * $opt(spacing)) + 200}] 200
create-god $nodes
$ns node-config -adhocRouting [expr {$static ? "DSDV" : "AODV"}] -llType LL -macType Mac/802_11 \
    -ifqType Queue/DropTail/PriQueue -ifqLen $opt(queue) -antType Antenna/OmniAntenna \
    -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy -topoInstance $area \
    -channel [new Channel/WirelessChannel] \
    -agentTrace $traced -routerTrace $traced -macTrace $traced -movementTrace OFF
for {set i 0} {$i < $nodes} {incr i} {
    set node($i) [$ns node]
    $node($i) random-motion 0
    $node($i) set X_ [expr {$i * double($opt(spacing))}]
    $node($i) set Y_ 100.0
    $node($i) set Z_ 0.0
}
if {$static} {
    # The last periodic update leaves at most 15 s later, its echoes die out before the flow starts.
    $ns at 165.0 {
        for {set i 0} {$i < $nodes} {incr i} { [$node($i) set ragent_] set perup_ 1e9 }
    }
}

set last $opt(hops)
if {$opt(agent) ne "udp"} {
    set source [new [expr {$opt(agent) eq "sack" ? "Agent/TCP/Sack1" : "Agent/TCP/Newreno"}]]
    set limit $opt(window)
    if {$opt(cwl) > 0 && $opt(cwl) < $limit} { set limit $opt(cwl) }
    $source set window_ $limit
    $source set packetSize_ $opt(packet)
    set sink [new [expr {$opt(agent) eq "sack" ? "Agent/TCPSink/Sack1" : "Agent/TCPSink"}]]
    set application [new Application/FTP]
} else {
    set source [new Agent/UDP]
    $source set packetSize_ $opt(packet)
    set sink [new Agent/LossMonitor]
    set application [new Application/Traffic/CBR]
    $application set packetSize_ $opt(packet)
    $application set rate_ $opt(rate)
    $application set random_ 0
}
$ns attach-agent $node(0) $source
$ns attach-agent $node($last) $sink
$ns connect $source $sink
$application attach-agent $source

# Payload bytes the sink has passed on in order.
proc delivered {} {
    global opt sink
    if {$opt(agent) ne "udp"} {
        # The sink counts packets with their 40 bytes of headers.
        return [expr {[$sink set bytes_] / ($opt(packet) + 40.0) * $opt(packet)}]
    }
    return [expr {[$sink set npkts_] * double($opt(packet))}]
}
proc counters {} {
    global opt source
    if {$opt(agent) eq "udp"} { return {0 0 0} }
    return [list [$source set ndatapack_] [$source set nrexmitpack_] [$source set nrexmit_]]
}
proc finish {} {
    global ns opt t0 before base
    set seconds [expr {$opt(duration) - $opt(warmup)}]
    set kbps [expr {([delivered] - $before) * 8 / $seconds / 1000}]
    set values {}
    foreach now [counters] then $base { lappend values [expr {$now - $then}] }
    foreach {sent retransmitted timeouts} $values break
    puts [format "hops=%d agent=%s routes=%s window=%d cwl=%d rate=%s packet=%d rts=%d seed=%d t0=%g warmup=%g duration=%g\
        goodput_kbps=%.3f sent=%d retransmitted=%d timeouts=%d" \
        $opt(hops) $opt(agent) $opt(routes) $opt(window) $opt(cwl) $opt(rate) $opt(packet) $opt(rts) $opt(seed) $t0 \
        $opt(warmup) $opt(duration) $kbps $sent $retransmitted $timeouts]
    $ns flush-trace
    exit 0
}
$ns at [expr {$t0 + 1.0 + [$jitter uniform 0 0.1]}] "$application start"
$ns at [expr {$t0 + $opt(warmup)}] { set before [delivered]; set base [counters] }
$ns at [expr {$t0 + $opt(duration)}] finish
$ns run
