// Package topology is the network that a lab file describes: switches, hosts, the
// links between them and what runs in the hosts. It reads files (Load, Parse),
// takes specs such as "ring:10" (Resolve), fills in what they leave open
// (Complete), says what is wrong (Check) and what differs (Compare), and writes
// files (Topology.YAML).
//
// It makes nothing: it needs neither root nor Linux. Package lab and whoever names
// networks may import it.
package topology
