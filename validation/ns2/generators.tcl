# The random numbers of the scripts beside this file.
#
# Neighbouring seeds of ns-2's generator begin with nearly the same number: the first of U(0, 0.1 s) is 0.06477 to 0.06494 for the
# seeds 7920 to 7925, so that the same one of several flows would start first in nearly every run. Fifty numbers of each generator
# are thrown away.
#
#   seed_generators SEED   seeds ns-2's own generator; returns another one for the starts of flows
proc seed_generators {seed} {
    ns-random $seed
    for {set i 0} {$i < 50} {incr i} { ns-random }
    set starts [new RNG]
    $starts seed [expr {$seed + 7919}]
    for {set i 0} {$i < 50} {incr i} { $starts uniform 0 1 }
    return $starts
}
