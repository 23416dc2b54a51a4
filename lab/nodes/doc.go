// Package nodes makes the nodes of a lab and runs commands in them: the Open
// vSwitches with their bridges (Switches), hybrid nodes and routers (Routers) with
// FRR (Routing), and hosts with their interface to the machine (Hosts). Each is a
// view of the layout, and does its work on the machine.
//
// Package keeper and package lab import it.
package nodes
