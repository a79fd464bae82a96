# Quiet trains of a fixed interval over a chain in ns-2.35: what docs/quiet-trains.md calls the best fixed train.
#
#   ns train.tcl [key=value ...]
#
# prints one line of key=value pairs. Keys and defaults:
#   hops=7          hops from the first node to the last, 200 m each
#   routes=aodv     aodv | static (shortest paths, no routing protocol on the air)
#   interval=0.031  seconds between two segments of a train
#   train=32        segments of a train
#   silence=1       1: after a train nothing leaves until its ACK is back; 0: an ACK per train, without silence
#   data=1500       bytes of a data packet with its headers
#   ack=40          bytes of an ACK with its headers
#   payload=1460    bytes of a data packet that count
#   repeat=0.4      seconds after which a last segment without an ACK leaves again
#   warmup=20       goodput counts from here ...
#   duration=200    ... to here, in seconds after the flow's time zero
#   seed=1          any whole number > 0
#
# The sender knows the interval; nothing else is repaired but the last segment of a train, whose loss would end everything: what is
# lost before it is not counted. That is an upper bound for a reliable transport with this interval, and the chain loses next
# to nothing. The agents are ns-2's Message, datagrams with a word of text. Start and routes as in chain.tcl.

source [file join [file dirname [info script]] radio.tcl]
array set opt {
    hops 7 routes aodv interval 0.031 train 32 silence 1 data 1500 ack 40 payload 1460 repeat 0.4 warmup 20 duration 200 seed 1
}
foreach word $argv {
    if {![regexp {^([a-z]+)=(.*)$} $word -> key value] || ![info exists opt($key)]} {
        puts stderr "train.tcl: not an option: $word (known: [lsort [array names opt]])"
        exit 2
    }
    set opt($key) $value
}
if {$opt(routes) ni {aodv static}} {
    puts stderr "train.tcl: routes=$opt(routes), expected one of: aodv static"
    exit 2
}
set static [expr {$opt(routes) eq "static"}]
set t0 [expr {$static ? 200.0 : 0.0}]

remove-all-packet-headers
add-packet-header Common Flags IP LL Mac ARP AODV Message
ns-random $opt(seed)
set ns [new Simulator]
set jitter [new RNG]
$jitter seed [expr {$opt(seed) + 7919}]
set_radio 2e6 1
if {$static} {
    Agent/DSDV set use_mac_ 0
    Agent/DSDV set verbose_ 0
    Agent/DSDV set min_update_periods_ 1000000
}
$ns trace-all [open /dev/null w]
set nodes [expr {$opt(hops) + 1}]
set area [new Topography]
$area load_flatgrid [expr {$opt(hops) * 200 + 200}] 200
create-god $nodes
$ns node-config -adhocRouting [expr {$static ? "DSDV" : "AODV"}] -llType LL -macType Mac/802_11 \
    -ifqType Queue/DropTail/PriQueue -ifqLen 50 -antType Antenna/OmniAntenna \
    -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy -topoInstance $area \
    -channel [new Channel/WirelessChannel] \
    -agentTrace OFF -routerTrace OFF -macTrace OFF -movementTrace OFF
for {set i 0} {$i < $nodes} {incr i} {
    set node($i) [$ns node]
    $node($i) random-motion 0
    $node($i) set X_ [expr {$i * 200.0}]
    $node($i) set Y_ 100.0
    $node($i) set Z_ 0.0
}
if {$static} {
    $ns at 165.0 {
        for {set i 0} {$i < $nodes} {incr i} { [$node($i) set ragent_] set perup_ 1e9 }
    }
}

# Routing adds the 20 bytes of an IP header.
Class Source -superclass Agent/Message
Class Sink -superclass Agent/Message
set received 0
set repeated 0
set number 0
set timer ""

# Sends one segment of a train, the last one with the word "tail".
proc leave {left} {
    global ns opt source number timer
    incr number
    set tail [expr {$left == 1}]
    $source send [expr {$tail ? "tail$number" : "data"}]
    if {!$tail} {
        $ns at [expr {[$ns now] + $opt(interval)}] "leave [expr {$left - 1}]"
    } elseif {$opt(silence)} {
        set timer [$ns at [expr {[$ns now] + $opt(repeat)}] "again tail$number"]
    } else {
        $ns at [expr {[$ns now] + $opt(interval)}] "leave $opt(train)"
    }
}
proc again {word} {
    global ns opt source timer repeated
    incr repeated
    $source send $word
    set timer [$ns at [expr {[$ns now] + $opt(repeat)}] "again $word"]
}
set last_tail ""
Sink instproc recv {word} {
    global opt received last_tail
    if {$word eq "data" || $word ne $last_tail} { incr received }
    if {$word ne "data"} {
        set last_tail $word
        $self send $word
    }
}
Source instproc recv {word} {
    global ns opt number timer
    if {!$opt(silence) || $word ne "tail$number" || $timer eq ""} { return }
    $ns cancel $timer
    set timer ""
    leave $opt(train)
}
set source [new Source]
set sink [new Sink]
$source set packetSize_ [expr {$opt(data) - 20}]
$sink set packetSize_ [expr {$opt(ack) - 20}]
$ns attach-agent $node(0) $source
$ns attach-agent $node($opt(hops)) $sink
$ns connect $source $sink

proc finish {} {
    global ns opt t0 before received repeated
    set seconds [expr {$opt(duration) - $opt(warmup)}]
    set kbps [expr {($received - $before) * $opt(payload) * 8.0 / $seconds / 1000}]
    puts [format "hops=%d routes=%s interval=%s train=%d silence=%d data=%d ack=%d seed=%d warmup=%g duration=%g\
        goodput_kbps=%.3f repeated=%d" $opt(hops) $opt(routes) $opt(interval) $opt(train) $opt(silence) $opt(data) $opt(ack) \
        $opt(seed) $opt(warmup) $opt(duration) $kbps $repeated]
    exit 0
}
$ns at [expr {$t0 + 1.0 + [$jitter uniform 0 0.1]}] "leave $opt(train)"
$ns at [expr {$t0 + $opt(warmup)}] { set before $received }
$ns at [expr {$t0 + $opt(duration)}] finish
$ns run
