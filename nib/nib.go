// Package nib is the network information base (the word of Onix and ONOS): what
// the services of a controller report about the network, as one value. A
// Snapshot is immutable and says how switches, ports, roles of ports, links,
// hosts, segments, hybrid nodes and tunnel ports are; a Base makes the next
// Snapshot of each event. There is one Base for each process, which its runtime
// feeds; services read it by weft.NIB, and weft.OnChange calls them when what they
// read has changed. They see the latest state always, and states between only by
// chance.
//
// Anyone may import it; it imports flow and api only.
package nib
