# Bulk transfers between nodes at given places in ns-2.35: NewReno over AODV, the reference for speed on larger meshes.
#
#   ns mesh.tcl mesh=FILE [key=value ...]
#
# prints one line of key=value pairs. FILE has one line per node, "node X Y" in metres, and one per flow, "flow FROM TO".
# Keys and defaults:
#   window=64       receiver window in segments
#   packet=1460     payload of a segment in bytes
#   warmup=20       goodput counts from here ...
#   duration=200    ... to here, in seconds
#   seed=1          any whole number > 0
#
# Each flow starts at 1 s + U(0, 0.1 s). Radio and MAC are those of radio.tcl.

source [file join [file dirname [info script]] radio.tcl]
source [file join [file dirname [info script]] generators.tcl]
array set opt {mesh "" window 64 packet 1460 warmup 20 duration 200 seed 1}
foreach word $argv {
    if {![regexp {^([a-z]+)=(.*)$} $word -> key value] || ![info exists opt($key)]} {
        puts stderr "mesh.tcl: not an option: $word (known: [lsort [array names opt]])"
        exit 2
    }
    set opt($key) $value
}
set places {}
set pairs {}
set file [open $opt(mesh)]
foreach line [split [read $file] "\n"] {
    switch -- [lindex $line 0] {
        node { lappend places [lrange $line 1 2] }
        flow { lappend pairs [lrange $line 1 2] }
    }
}
close $file

# Only the headers in use, which makes ns-2 smaller and faster.
remove-all-packet-headers
add-packet-header Common Flags IP TCP LL Mac ARP AODV
set ns [new Simulator]
set jitter [seed_generators $opt(seed)]
set_radio 2e6 1

# A wireless node needs a trace file even if nothing is traced.
$ns trace-all [open /dev/null w]
set width 1
set height 1
foreach place $places {
    foreach {x y} $place break
    if {$x + 1 > $width} { set width [expr {int($x) + 1}] }
    if {$y + 1 > $height} { set height [expr {int($y) + 1}] }
}
set area [new Topography]
$area load_flatgrid [expr {$width + 10}] [expr {$height + 10}]
create-god [llength $places]
$ns node-config -adhocRouting AODV -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen 50 \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy -topoInstance $area \
    -channel [new Channel/WirelessChannel] -agentTrace OFF -routerTrace OFF -macTrace OFF -movementTrace OFF
set number 0
foreach place $places {
    set node($number) [$ns node]
    $node($number) random-motion 0
    $node($number) set X_ [expr {double([lindex $place 0]) + 1}]
    $node($number) set Y_ [expr {double([lindex $place 1]) + 1}]
    $node($number) set Z_ 0.0
    incr number
}
set sinks {}
foreach pair $pairs {
    foreach {from to} $pair break
    set source [new Agent/TCP/Newreno]
    $source set window_ $opt(window)
    $source set packetSize_ $opt(packet)
    set sink [new Agent/TCPSink]
    $ns attach-agent $node($from) $source
    $ns attach-agent $node($to) $sink
    $ns connect $source $sink
    set application [new Application/FTP]
    $application attach-agent $source
    $ns at [expr {1.0 + [$jitter uniform 0 0.1]}] "$application start"
    lappend sinks $sink
}

# Payload bytes that all sinks have passed on in order; they count packets with their 40 bytes of headers.
proc delivered {} {
    global opt sinks
    set bytes 0
    foreach sink $sinks { set bytes [expr {$bytes + [$sink set bytes_]}] }
    return [expr {$bytes / ($opt(packet) + 40.0) * $opt(packet)}]
}
proc finish {} {
    global opt before pairs places
    set kbps [expr {([delivered] - $before) * 8 / ($opt(duration) - $opt(warmup)) / 1000}]
    puts [format "nodes=%d flows=%d window=%d seed=%d warmup=%g duration=%g goodput_kbps=%.3f" \
        [llength $places] [llength $pairs] $opt(window) $opt(seed) $opt(warmup) $opt(duration) $kbps]
    exit 0
}
$ns at $opt(warmup) { set before [delivered] }
$ns at $opt(duration) finish
$ns run
