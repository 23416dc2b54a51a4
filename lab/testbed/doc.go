// Package testbed spreads a lab over machines that are reached by ssh: it reads
// the file that names them (Parse), says which node runs where (Map), cuts the
// lab into one lab file for each machine, whose links to others are tunnels
// (lab.Tunnel), and has weft on each machine bring its part up.
//
// Machines are reached by OpenSSH's own client, so that its configuration, agents
// and jump hosts count; host keys are always checked. What is known of a lab that
// is up, and which of its nodes is where, is kept on this machine.
//
// Package lab knows nothing of it: a part is an ordinary lab. cmd/weft and
// lab/serve may import it.
package testbed
