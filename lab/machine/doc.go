// Package machine is what labs have on the machine that they run on: directories
// below RunDir, network namespaces by their names (InNetns, WithLinks), mounts that
// all see (Home), processes by the marks that they bear (Members), and what these
// use. It knows no switch and no host.
//
// The packages of labs may import it.
package machine
