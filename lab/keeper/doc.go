// Package keeper is the process that keeps a lab running after the command that
// brought it up has ended (Run). It relays the switches' connections to their
// controllers, carries the frames of cables, runs the programs of hosts, and
// restarts daemons of nodes. Other processes send it requests over a socket (Ask).
//
// Package lab imports it, and programs that bring labs up (RunIfAsked).
package keeper
