// Package testbed is what experiments measure with: Weft's controller, started
// as processes of its own by any plan and stopped without a trace (Controller);
// hosts that nobody has heard of and the round trips between them (ColdHost);
// and a simulated switch that sends packet-ins at a constant rate and keeps for
// each when it was answered (Source).
//
// The tests of the whole system and what measures it import it.
package testbed
