// Package deploy runs services in the processes of a plan (Node): it starts and
// stops those that the plan in force assigns to a process (deploy/local), and
// connects them with those of other processes by calls, events and the packet-in
// pipeline. It is given the Specs and imports no service.
//
// cmd/weft, experiments and tests of the whole system import it.
package deploy
