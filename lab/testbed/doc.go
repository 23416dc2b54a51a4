// Package testbed spreads labs over several machines: it reads the file that names the
// machines (Parse), places the nodes (Map), cuts the lab into a part for each (Parts), and
// brings the parts up, works on them, and takes them down (Up, Open, Lab) by running weft
// on the machines over ssh(1).
//
// Package lab knows nothing of it: a part is an ordinary lab, whose links to others
// are tunnels (lab.Tunnel). cmd/weft and lab/serve may import it.
package testbed
