// Package testbed says how a lab would be spread over machines: it reads the file
// that names them (Parse) and places the nodes (Map). It asks no machine, and makes
// nothing.
//
// Package lab knows nothing of it: a part is an ordinary lab, whose links to others
// are tunnels (lab.Tunnel). cmd/weft and lab/serve may import it.
package testbed
