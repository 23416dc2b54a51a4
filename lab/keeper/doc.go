// Package keeper is the process that outlives whoever brought a lab up (Run): it
// relays the switches' connections to their controllers, carries the frames of
// cables, runs the programs of hosts, and starts daemons of nodes again. Other
// processes ask it by a socket (Ask).
//
// Package lab imports it, and programs that bring labs up (RunIfAsked).
package keeper
