# The radio and the MAC of the scripts beside this file: ns-2.35's 914 MHz WaveLAN, decoded to 250 m and sensed to 550 m under
# two-ray ground.
#
#   datarate   rate of unicast data frames in bit/s; all others have 1 Mbit/s
#   rts        1: RTS/CTS before every unicast frame, 0: never
proc set_radio {datarate rts} {
    Phy/WirelessPhy set Pt_ 0.28183815
    Phy/WirelessPhy set RXThresh_ 3.652e-10
    Phy/WirelessPhy set CSThresh_ 1.559e-11
    Phy/WirelessPhy set CPThresh_ 10.0
    Phy/WirelessPhy set freq_ 914e+6
    Mac/802_11 set basicRate_ 1Mb
    Mac/802_11 set dataRate_ $datarate
    Mac/802_11 set RTSThreshold_ [expr {$rts ? 0 : 3000}]
}
