// Package virtual tests the whole controller in virtual time: the nodes of a
// plan with all their services, a store and a transport in memory that fail,
// switches that forward (openflow/oftest) and hosts that speak, in one
// testing/synctest bubble. Ten minutes pass in about a second.
//
// A seed chooses the network, the plan and the faults with their times; the
// tests compare what hosts receive and what the controller says with what is
// computed from the network itself. It has nothing but tests.
package virtual
