# Saturated UDP flows between nodes on a line in ns-2.35: the small cases that isolate one behaviour of the MAC each.
#
#   ns micro.tcl x=0,200,600,800 flows=0-1,2-3 [key=value ...]
#
# prints one line with the goodput of every flow in kbit/s. Keys and defaults:
#   x=0,200         places of the nodes in metres
#   flows=0-1       source-destination pairs
#   rts=1           1: RTS/CTS before every unicast frame, 0: never
#   rate=2e6        offered payload rate of every flow in bit/s
#   packet=1460     payload of a datagram in bytes
#   datarate=2e6    rate of unicast data frames in bit/s
#   warmup=10, duration=60   goodput counts between these, in seconds
#   seed=1          any whole number > 0
#
# Routing is AODV; each flow starts at 1 s + U(0, 0.1 s).

source [file join [file dirname [info script]] radio.tcl]
array set opt {x 0,200 flows 0-1 rts 1 rate 2e6 packet 1460 datarate 2e6 warmup 10 duration 60 seed 1}
foreach word $argv {
    if {![regexp {^([a-z]+)=(.*)$} $word -> key value] || ![info exists opt($key)]} {
        puts stderr "micro.tcl: not an option: $word (known: [lsort [array names opt]])"
        exit 2
    }
    set opt($key) $value
}
remove-all-packet-headers
add-packet-header Common Flags IP LL Mac ARP AODV RTP
ns-random $opt(seed)
set ns [new Simulator]
set jitter [new RNG]
$jitter seed [expr {$opt(seed) + 7919}]
# The first numbers of neighbouring seeds hardly differ in ns-2's generator; these are thrown away.
for {set i 0} {$i < 1000} {incr i} { $jitter uniform 0 1 }
set_radio $opt(datarate) $opt(rts)
# A wireless node needs a trace file even if nothing is traced.
$ns trace-all [open /dev/null w]
set places [split $opt(x) ,]
set area [new Topography]
$area load_flatgrid 5000 200
create-god [llength $places]
$ns node-config -adhocRouting AODV -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 50 \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy -topoInstance $area \
    -channel [new Channel/WirelessChannel] -agentTrace OFF -routerTrace OFF -macTrace OFF -movementTrace OFF
for {set i 0} {$i < [llength $places]} {incr i} {
    set node($i) [$ns node]
    $node($i) random-motion 0
    $node($i) set X_ [expr {double([lindex $places $i]) + 10}]
    $node($i) set Y_ 100.0
    $node($i) set Z_ 0.0
}
set sinks {}
foreach flow [split $opt(flows) ,] {
    foreach {from to} [split $flow -] break
    set source [new Agent/UDP]
    $source set packetSize_ $opt(packet)
    set sink [new Agent/LossMonitor]
    set cbr [new Application/Traffic/CBR]
    $cbr set packetSize_ $opt(packet)
    $cbr set rate_ $opt(rate)
    $cbr set random_ 0
    $ns attach-agent $node($from) $source
    $ns attach-agent $node($to) $sink
    $ns connect $source $sink
    $cbr attach-agent $source
    $ns at [expr {1.0 + [$jitter uniform 0 0.1]}] "$cbr start"
    lappend sinks $sink
}
proc received {} {
    global sinks opt
    set out {}
    foreach sink $sinks { lappend out [expr {[$sink set npkts_] * double($opt(packet))}] }
    return $out
}
proc finish {} {
    global opt before
    set out {}
    foreach now [received] then $before {
        lappend out [format %.3f [expr {($now - $then) * 8 / ($opt(duration) - $opt(warmup)) / 1000}]]
    }
    puts "x=$opt(x) flows=$opt(flows) rts=$opt(rts) rate=$opt(rate) seed=$opt(seed) goodput_kbps=[join $out ,]"
    exit 0
}
$ns at $opt(warmup) { set before [received] }
$ns at $opt(duration) finish
$ns run
