# Prints when ns-2.35's TCP NewReno sends which segment over one link that loses a given list of packets.
# usage: ns conversation.tcl WINDOW INITIAL_WINDOW SECONDS "DATA_LOST" "ACKS_LOST" [SINK]
#   SINK is the class of the receiver: TCPSink unless given, or TCPSink/DelAck.
#   The lists count packets on the link in each direction from 0 (the SYN and its ACK).
#   The link has 35 ms each way; 100 Gbit/s make a packet's own time vanish (0.12 us).
# output: one line per packet, "milliseconds segment", segment 0 is the SYN.
if {$argc != 5 && $argc != 6} { puts stderr "usage: WINDOW INITIAL_WINDOW SECONDS DATA_LOST ACKS_LOST \[SINK\]"; exit 2 }
lassign $argv window initial seconds data_lost acks_lost sink_class
if {$sink_class eq ""} { set sink_class TCPSink }
set ns [new Simulator]
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right 100Gb 35ms DropTail
$ns queue-limit $left $right 10000
$ns queue-limit $right $left 10000
foreach {from to lost} [list $left $right $data_lost $right $left $acks_lost] {
    if {[llength $lost] == 0} continue
    set errors [new ErrorModel/List]
    $errors droplist $lost
    $errors drop-target [new Agent/Null]
    $ns link-lossmodel $errors $from $to
}
set tcp [new Agent/TCP/Newreno]
$tcp set window_ $window
$tcp set windowInit_ $initial
$tcp set packetSize_ 1460
set sink [new Agent/$sink_class]
$ns attach-agent $left $tcp
$ns attach-agent $right $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp
# Only what enters the link at the sender.
set trace [open "|awk {\$1 == \"+\" && \$3 == 0 {printf \"%.3f %d\\n\", \$2 * 1000, \$11}}" w]
$ns trace-queue $left $right $trace
$ns at 0.0 "$ftp start"
$ns at $seconds "finish"
proc finish {} { global ns trace; $ns flush-trace; close $trace; exit 0 }
$ns run
