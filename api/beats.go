package api

// BeatBounds are the upper bounds of the buckets of BeatCounts, in seconds; a
// last bucket has what is above.
var BeatBounds = [...]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1}
