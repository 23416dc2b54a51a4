// Package ids is an intrusion detection that stands between two interfaces: it
// passes every frame on, in both directions, and writes an alert for each rule
// that a frame meets. It is the network function of the paper on monolithic and
// microservice network functions, there to be measured.
//
// cmd/weft-bench/nf and experiments/nf import it. The data path is Linux's (packet
// sockets with a ring).
package ids
